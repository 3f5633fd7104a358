"""Proofs of identity, right and wrong, each with the role that it proves, if it does."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from typing import Any, Final

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from msgspec import Struct

from interop_tests.security.pulsar_people import SECRET, token

AUDIENCE: Final = "urn:magnetar"
PUBLIC_KEY: Final = (
    rsa.generate_private_key(65537, 2048)
    .public_key()
    .public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
)
"""Another key of the server's, so that it may be mistaken for a secret."""
SAMS_PASSWORD: Final = b"sam-secret"
"""`sam` has it for SCRAM-SHA-256, and no other."""
OWN_KEY: Final = {"kty": "oct", "k": "aw"}
MEBIBYTE: Final = 1024 * 1024
NAMES: Final = (
    "ROOT", "r\u043e\u043et", "root|s", "root/..", "../root", "User:root", "root,writer",
    "ro\u00f6t", "\uff52oot", "%72oot", "root;", "*", "persistent://public/default/t", "a" * 1000,
)  # fmt: skip
"""Names that somebody may have, and that are nobody else's."""
NO_NAMES: Final = (
    "", " root", "root ", "root\0", "ro\u200bot", "root\n", "\u202etoor", "a" * 5000, "\u00a0root",
)  # fmt: skip


class Proof(Struct, frozen=True):
    """What a client says."""

    what: str
    said: bytes
    role: str | None = None


def signed(
    name: Any, *, head: dict[str, Any] | None = None, key: bytes = SECRET, **claims: Any
) -> bytes:
    """A token with any header."""
    parts = [head or {"alg": "HS256"}, {"sub": name, "aud": AUDIENCE, **claims}]
    said = b".".join(_base64(json.dumps(part).encode()) for part in parts)
    algorithm = {"HS384": hashlib.sha384, "HS512": hashlib.sha512}.get(parts[0]["alg"])
    return said + b"." + _base64(hmac.digest(key, said, algorithm or hashlib.sha256))


def _base64(raw: bytes) -> bytes:
    return base64.urlsafe_b64encode(raw).rstrip(b"=")


def _unsigned(algorithm: str) -> bytes:
    return signed("root", head={"alg": algorithm}).rpartition(b".")[0] + b"."


def _other_payload() -> bytes:
    head, _, signature = signed("stranger").split(b".")
    return b".".join((head, signed("root").split(b".")[1], signature))


def _tokens() -> list[Proof]:
    found = [
        *(Proof(f"the token of {name}", signed(name), name) for name in ("writer", "stranger")),
        Proof("the token of root", signed("root"), "root"),
        Proof("HS512", signed("writer", head={"alg": "HS512"}), "writer"),
        Proof("another key id", signed("writer", head={"alg": "HS256", "kid": "../x"}), "writer"),
        Proof("expired", signed("root", exp=time.time() - 60)),
        Proof("not valid yet", signed("root", nbf=time.time() + 3600)),
        Proof("for somebody else", signed("root", aud="urn:elsewhere")),
        Proof("for nobody", token("root").encode()),
        Proof("another secret", signed("root", key=b"x" * 32)),
        Proof("the public key as secret", signed("root", key=PUBLIC_KEY)),
        Proof("another algorithm", signed("root", head={"alg": "RS256"})),
        Proof(
            "its own key", signed("root", head={"alg": "HS256", "jwk": {"kty": "oct"}}, key=b"k")
        ),
        Proof("another payload", _other_payload()),
        Proof("half", signed("root")[:-20]),
        Proof("more", signed("root") + b"A"),
        Proof("twice", signed("root") + b"." + signed("root")),
        Proof("a mebibyte", signed("root", padding="x" * MEBIBYTE)),
        Proof("dots", b".."),
        Proof("nothing", b""),
        Proof("noise", bytes(range(256))),
    ]
    found += [Proof(f"alg {each}", _unsigned(each)) for each in ("none", "None", "nOnE", "")]
    found += [Proof(f"sub {each!r}", signed(each)) for each in (5, None, {}, [], [[]], [""])]
    found += [Proof(f"the name {each[:40]!r}", signed(each), each) for each in NAMES]
    found += [Proof(f"the name {each[:40]!r}", signed(each)) for each in NO_NAMES]
    return found


def _passwords() -> list[Proof]:
    """`name:password`."""
    wrong = (
        "bob:guess", "BOB:builder", "b\u043eb:builder", ":builder", "bob:", "bob", "", ":",
        "bob\0:builder", "bob:builder\0", " bob:builder", "eve:builder", "bob:{SHA}", "root:",
        "token:token", "a" * 70_000,
    )  # fmt: skip
    return [
        Proof("the password of bob", b"bob:builder", "bob"),
        *(Proof(f"the password {each[:40]!r}", each.encode()) for each in wrong),
    ]


TOKENS: Final = _tokens()
PASSWORDS: Final = _passwords()
