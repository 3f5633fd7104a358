"""Keys that can be used, and those that cannot."""

from __future__ import annotations

import json
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import dsa, ec, rsa

from magnetar.core.security.token_keys import (
    HMAC,
    RSA,
    UnusableKey,
    jwks,
    public_key,
    secret_key,
)

PRIVATE = rsa.generate_private_key(65537, 2048)


def described(key: Any, encoding: serialization.Encoding) -> bytes:
    found: bytes = key.public_key().public_bytes(
        encoding, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return found


@pytest.mark.parametrize("encoding", [serialization.Encoding.PEM, serialization.Encoding.DER])
def test_public_keys_in_both_forms(encoding: serialization.Encoding) -> None:
    assert public_key(described(PRIVATE, encoding)).algorithms == RSA
    key = ec.generate_private_key(ec.SECP384R1())
    assert public_key(described(key, encoding)).algorithms == ("ES384",)


def test_unusable_keys() -> None:
    assert secret_key(b"x" * 32).algorithms == HMAC
    with pytest.raises(UnusableKey, match="32 bytes or more, this one 31"):
        secret_key(b"x" * 31)
    weak = rsa.generate_private_key(65537, 1024)
    for raw, said in (
        (b"", "no public key"),
        (b"-----BEGIN PUBLIC KEY-----\nx\n-----END PUBLIC KEY-----", "no public key"),
        (described(weak, serialization.Encoding.DER), "2048 bits or more, not 1024"),
        (described(dsa.generate_private_key(2048), serialization.Encoding.DER), "of a kind"),
        (
            described(ec.generate_private_key(ec.SECP256K1()), serialization.Encoding.DER),
            "of a kind",
        ),
    ):
        with pytest.raises(UnusableKey, match=said):
            public_key(raw)


def document(*entries: dict[str, Any]) -> bytes:
    return json.dumps({"keys": entries}).encode()


def test_a_jwks_document() -> None:
    entry = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(PRIVATE.public_key()))
    one, two = jwks(
        document(
            {**entry, "kid": "1", "alg": "RS512", "use": "sig"},
            {**entry, "kid": "2"},
            {**entry, "kid": "3", "use": "enc"},
            {**entry, "kid": "4", "alg": "HS256"},
            {"kty": "oct", "k": "c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0", "kid": "5"},
            {"kty": "RSA", "n": "!", "e": "!"},
            {"kty": "new"},
        )
    )
    assert (one.key_id, one.algorithms) == ("1", ("RS512",))
    assert (two.key_id, two.algorithms) == ("2", RSA)


@pytest.mark.parametrize("raw", [b"", b"[]", b"{}", b'{"keys":[]}', b'{"keys":[1]}', b"\xff"])
def test_documents_that_cannot_be_used(raw: bytes) -> None:
    with pytest.raises(UnusableKey):
        jwks(raw)
