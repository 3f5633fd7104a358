"""Tokens that prove somebody, and the many that do not."""

from __future__ import annotations

import base64
import json
import time
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from magnetar.core.kernel.errors import Unauthenticated
from magnetar.core.security.token_keys import TokenKey, public_key, secret_key
from magnetar.core.security.tokens import (
    TOKEN_BYTES_MAX,
    BearerConversation,
    TokenClaims,
    TokenConversation,
    TokenVerifier,
)

SECRET = b"s" * 32
RSA = rsa.generate_private_key(65537, 2048)


def pem(private: Any) -> bytes:
    found: bytes = private.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return found


def verifier(*keys: TokenKey, **claims: str) -> TokenVerifier:
    made = TokenVerifier(TokenClaims(**claims))
    made.keys = keys or [secret_key(SECRET)]
    return made


def token(key: Any = SECRET, algorithm: str = "HS256", **claims: Any) -> bytes:
    return jwt.encode({"sub": "ali", **claims}, key, algorithm).encode()


def refusal(made: TokenVerifier, said: bytes) -> str:
    with pytest.raises(Unauthenticated) as refused:
        made.verify(said)
    return str(refused.value)


def test_a_token_names_somebody() -> None:
    found = verifier().verify(token())
    assert (found.name, found.roles, found.method, found.expires_at) == (
        "ali", ("ali",), "token", None,
    )  # fmt: skip
    soon = int(time.time()) + 60
    assert verifier().verify(token(exp=soon)).expires_at == soon


def test_a_list_of_roles() -> None:
    found = verifier(role="groups").verify(token(groups=["dev", "ops"]))
    assert (found.name, found.roles) == ("dev", ("dev", "ops"))


@pytest.mark.parametrize(
    ("private", "algorithm"),
    [
        (RSA, "RS256"),
        (RSA, "PS512"),
        (ec.generate_private_key(ec.SECP256R1()), "ES256"),
        (ec.generate_private_key(ec.SECP384R1()), "ES384"),
        (ec.generate_private_key(ec.SECP521R1()), "ES512"),
        (ed25519.Ed25519PrivateKey.generate(), "EdDSA"),
    ],
)
def test_every_kind_of_key(private: Any, algorithm: str) -> None:
    made = verifier(public_key(pem(private)))
    assert made.verify(token(private, algorithm)).name == "ali"
    assert "signature is wrong" in refusal(made, token(private, algorithm)[:-4] + b"AAAA")


def unsigned(header: dict[str, Any], payload: dict[str, Any]) -> bytes:
    parts = [base64.urlsafe_b64encode(json.dumps(part).encode()) for part in (header, payload)]
    return b".".join([part.rstrip(b"=") for part in parts]) + b"."


def test_forgeries() -> None:
    made = verifier(public_key(pem(RSA)))
    nobodys = "does not belong to a key of ours"
    for algorithm in ("none", "None", "nOnE", "", None, 7):
        assert nobodys in refusal(made, unsigned({"alg": algorithm}, {"sub": "root"}))
    import hashlib
    import hmac

    head = unsigned({"alg": "HS256", "typ": "JWT"}, {"sub": "root"})[:-1]
    mac = hmac.digest(pem(RSA), head, hashlib.sha256)
    confused = head + b"." + base64.urlsafe_b64encode(mac).rstrip(b"=")
    assert nobodys in refusal(made, confused), "the public key as a secret"
    assert nobodys in refusal(verifier(), token(RSA, "RS256"))
    own = rsa.generate_private_key(65537, 2048)
    assert "signature is wrong" in refusal(made, token(own, "RS256"))
    embedded = jwt.encode(
        {"sub": "root"}, own, "RS256", headers={"jwk": {"kty": "RSA"}, "jku": "http://x/"}
    )
    assert "signature is wrong" in refusal(made, embedded.encode()), "its own key is not looked at"


@pytest.mark.parametrize(
    ("claims", "said"),
    [
        ({"exp": 1}, "has expired"),
        ({"nbf": time.time() + 3600}, "not valid yet"),
        ({"exp": "soon"}, "Expiration Time claim (exp) must be an integer"),
        ({"sub": ""}, "names nobody"),
        ({"sub": " root"}, "names nobody"),
        ({"sub": "a\0b"}, "names nobody"),
        ({"sub": "a\u202eb"}, "names nobody"),
        ({"sub": "x" * 2000}, "names nobody"),
    ],
)
def test_claims_that_do_not_hold(claims: dict[str, Any], said: str) -> None:
    assert said in refusal(verifier(), token(**claims))


def test_issuer_and_audience() -> None:
    made = verifier(issuer="us", audience="pulsar")
    assert made.verify(token(iss="us", aud=["x", "pulsar"])).name == "ali"
    for claims in ({}, {"iss": "us"}, {"iss": "us", "aud": "x"}, {"iss": "y", "aud": "pulsar"}):
        assert refusal(made, token(**claims))
    other = verifier(audience="pulsar", audience_claim="for")
    assert other.verify(token(**{"for": "pulsar"}, aud="whatever")).name == "ali"
    assert "somebody else" in refusal(other, token(aud="pulsar"))


@pytest.mark.parametrize(
    "said", [b"", b".", b"..", b"a.b.c", b"\xff" * 40, b"x" * (TOKEN_BYTES_MAX + 1)]
)
def test_what_is_no_token(said: bytes) -> None:
    assert refusal(verifier(), said)


def test_keys_with_ids() -> None:
    private = rsa.generate_private_key(65537, 2048)
    asked: list[bool] = []
    made = TokenVerifier(TokenClaims(), lambda: asked.append(True))
    made.keys = [
        TokenKey(RSA.public_key(), ("RS256",), "old"),
        TokenKey(private.public_key(), ("RS256",), "new"),
    ]
    for key, name in ((RSA, "old"), (private, "new")):
        said = jwt.encode({"sub": "ali"}, key, "RS256", headers={"kid": name}).encode()
        assert made.verify(said).name == "ali"
    assert not asked
    unknown = jwt.encode({"sub": "ali"}, RSA, "RS256", headers={"kid": "newer"}).encode()
    assert "not known here" in refusal(made, unknown)
    assert asked == [True]


async def test_the_conversation_of_pulsar() -> None:
    made = TokenConversation(verifier())
    assert await made.respond(token()) == b""
    assert made.identity is not None


async def test_the_conversation_of_oauthbearer() -> None:
    made = BearerConversation(verifier())
    assert await made.respond(b"n,,\x01auth=Bearer " + token() + b"\x01\x01") == b""
    assert made.identity is not None
    for said in (b"", b"n,,", b"n,,\x01auth=Bearer x\x01\x01", b"p=x,,\x01auth=Bearer x\x01\x01",
                 b"n,,\x01host=x\x01\x01"):  # fmt: skip
        made = BearerConversation(verifier())
        assert not made.refusal
        assert await made.respond(said) == b'{"status":"invalid_token"}'
        assert made.refusal
        with pytest.raises(Unauthenticated):
            await made.respond(b"\x01")
        assert made.identity is None


def test_the_usual_claim_may_be_a_list() -> None:
    found = verifier().verify(token(sub=["ali", "staff"]))
    assert (found.name, found.roles) == ("ali", ("ali", "staff"))


def test_a_token_that_we_signed_says_whom_it_names() -> None:
    """In the log: of one that nobody has signed, the name is nobody's."""
    for said, claimed in (
        (token(exp=1), "ali"),
        (token(key=b"x" * 32), ""),
        (token(exp=1, sub=["a", "b"]), ""),
    ):
        with pytest.raises(Unauthenticated) as refused:
            verifier().verify(said)
        assert refused.value.claimed == claimed
