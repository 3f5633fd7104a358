"""Keys that tokens are verified with. Pure.

The key decides which algorithms are accepted, never the token: a public key as the secret of HS256,
or `none`, is the oldest forgery (RFC 8725 3.1).

    secret, 32 bytes or more    HS256 HS384 HS512
    RSA                         RS256 RS384 RS512 PS256 PS384 PS512
    EC on P-256, P-384, P-521   ES256, ES384, ES512
    Ed25519                     EdDSA
"""

from __future__ import annotations

from typing import Any, Final

import jwt
import msgspec
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from msgspec import Struct

HMAC: Final = ("HS256", "HS384", "HS512")
RSA: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")
CURVES: Final = {"secp256r1": "ES256", "secp384r1": "ES384", "secp521r1": "ES512"}
SECRET_BYTES_MIN: Final = 32
"""256 bits, as HS256 demands (RFC 7518 3.2) and Pulsar's JWT library checks."""
RSA_BITS_MIN: Final = 2048


class UnusableKey(Exception):
    """A key that cannot be used, with a sentence that says why."""


class TokenKey(Struct, frozen=True):
    """One key."""

    key: Any
    algorithms: tuple[str, ...]
    key_id: str = ""
    """`kid` of a JWKS; empty for a key that stands alone."""


def secret_key(raw: bytes) -> TokenKey:
    """A secret; raises `UnusableKey`."""
    if len(raw) < SECRET_BYTES_MIN:
        raise UnusableKey(f"a secret has {SECRET_BYTES_MIN} bytes or more, this one {len(raw)}")
    return TokenKey(raw, HMAC)


def public_key(raw: bytes) -> TokenKey:
    """A public key as PEM or DER, as `pulsar tokens create-key-pair` writes it."""
    try:
        if raw.lstrip().startswith(b"-----"):
            key = serialization.load_pem_public_key(raw)
        else:
            key = serialization.load_der_public_key(raw)
    except (ValueError, TypeError) as error:
        raise UnusableKey("it is no public key in PEM or DER") from error
    return _of(key)


def _of(key: object, key_id: str = "") -> TokenKey:
    if isinstance(key, RSAPublicKey):
        if key.key_size < RSA_BITS_MIN:
            raise UnusableKey(f"an RSA key has {RSA_BITS_MIN} bits or more, not {key.key_size}")
        return TokenKey(key, RSA, key_id)
    if isinstance(key, EllipticCurvePublicKey) and key.curve.name in CURVES:
        return TokenKey(key, (CURVES[key.curve.name],), key_id)
    if isinstance(key, Ed25519PublicKey):
        return TokenKey(key, ("EdDSA",), key_id)
    raise UnusableKey("it is of a kind that tokens are not signed with")


def jwks(document: bytes) -> list[TokenKey]:
    """The signing keys of a JWKS document (RFC 7517); those of other kinds are left out."""
    try:
        entries = msgspec.json.decode(document, type=_Document).keys
    except msgspec.DecodeError as error:
        raise UnusableKey(f"it is no JWKS document: {error}") from error
    found = []
    for entry in entries:
        if entry.get("use", "sig") != "sig" or entry.get("kty") == "oct":
            continue
        try:
            parsed = jwt.PyJWK(entry)
            key = _of(parsed.key, str(entry.get("kid", "")))
        except (jwt.PyJWTError, UnusableKey, ValueError, KeyError, TypeError):
            continue
        named = entry.get("alg")
        if named is None:
            found.append(key)
        elif named in key.algorithms:
            found.append(TokenKey(key.key, (named,), key.key_id))
    if not found:
        raise UnusableKey("it has no public key that tokens are signed with")
    return found


class _Document(Struct):
    keys: list[dict[str, Any]]
