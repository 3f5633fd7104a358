"""JSON Web Tokens: verified, and turned into identities (RFC 7519, RFC 8725).

Invariants: a token is accepted only by a key and an algorithm of ours, within its time, from our
issuer and for us, if these are set. No token is remembered or logged.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final

import jwt
from msgspec import Struct

from magnetar.core.kernel.errors import Unauthenticated
from magnetar.core.security.identity import Identity, is_name
from magnetar.core.security.token_keys import TokenKey

# It is about keys that are shorter than the hash, which are as hard to guess (RFC 7518, 3.2).
warnings.filterwarnings("ignore", category=jwt.InsecureKeyLengthWarning)

TOKEN_BYTES_MAX: Final = 16 * 1024
"""Larger ones are refused unread; a header of HTTP may be as large."""
ROLES_MAX: Final = 100
UNSIGNED: Final = (jwt.InvalidSignatureError, jwt.InvalidKeyError, jwt.InvalidAlgorithmError)
"""What says that a key has not signed a token."""


def _nothing() -> None:
    """There is nowhere to look for new keys."""


class TokenClaims(Struct, frozen=True):
    """Which claims are looked at, and what they must be."""

    role: str = "sub"
    """Pulsar's `tokenAuthClaim`: the name, or a list of roles, of which the first is the name."""
    issuer: str = ""
    audience: str = ""
    """Pulsar's `tokenAudience`."""
    audience_claim: str = "aud"
    """Pulsar's `tokenAudienceClaim`."""


class TokenVerifier:
    """See the module's docstring."""

    def __init__(self, claims: TokenClaims, unknown_key: Callable[[], None] = _nothing) -> None:
        """`unknown_key` is called when a token names a key that is not known: the document may have
        a new one.
        """
        self.keys: Sequence[TokenKey] = ()
        """May be replaced at any time: keys are rotated."""
        self._claims = claims
        self._unknown_key = unknown_key

    def verify(self, token: bytes) -> Identity:
        """The identity that a token proves; raises `Unauthenticated`. Plain call, some 40 us."""
        if len(token) > TOKEN_BYTES_MAX:
            raise Unauthenticated("the token is too large")
        try:
            header = jwt.get_unverified_header(token)
        except (jwt.PyJWTError, ValueError) as error:
            raise Unauthenticated("it is no token") from error
        named = header.get("kid")
        candidates = [key for key in self.keys if key.key_id in ("", named)]
        if named is None:
            candidates = list(self.keys)
        if not candidates:
            self._unknown_key()
            raise Unauthenticated("the token is signed with a key that is not known here")
        return self._identity(self._payload(token, str(header.get("alg", "")), candidates))

    def _payload(self, token: bytes, algorithm: str, keys: Sequence[TokenKey]) -> dict[str, Any]:
        claims = self._claims
        standard = claims.audience_claim == "aud"
        refusal = "the token's algorithm does not belong to a key of ours"
        for key in keys:
            if algorithm not in key.algorithms:
                continue
            try:
                return jwt.decode(
                    token,
                    key.key,
                    algorithms=[algorithm],
                    audience=(claims.audience or None) if standard else None,
                    issuer=claims.issuer or None,
                    options={
                        "verify_aud": bool(claims.audience) and standard,
                        "verify_sub": False,  # it may be a list of roles
                    },
                )
            except jwt.ExpiredSignatureError as error:
                raise self._refused("the token has expired", token) from error
            except jwt.ImmatureSignatureError as error:
                raise self._refused("the token is not valid yet", token) from error
            except (jwt.InvalidAudienceError, jwt.InvalidIssuerError) as error:
                why = "the token is for somebody else, or from another"
                raise self._refused(why, token) from error
            except jwt.MissingRequiredClaimError as error:
                raise self._refused(f"the token lacks the claim {error.claim}", token) from error
            except (*UNSIGNED, ValueError, TypeError):
                refusal = "the token's signature is wrong"
            except jwt.PyJWTError as error:
                raise self._refused(f"the token is malformed: {error}", token) from error
        raise Unauthenticated(refusal)

    def _refused(self, why: str, token: bytes) -> Unauthenticated:
        """The refusal of a token that one of our keys has signed, with whom it names."""
        refusal = Unauthenticated(why)
        with suppress(jwt.PyJWTError):
            claims = jwt.decode(token, options={"verify_signature": False})
            named = claims.get(self._claims.role)
            refusal.claimed = named if isinstance(named, str) else ""
        return refusal

    def _identity(self, payload: dict[str, Any]) -> Identity:
        claims = self._claims
        if claims.audience and claims.audience_claim != "aud":
            found = payload.get(claims.audience_claim)
            if claims.audience not in (found if isinstance(found, list) else [found]):
                raise Unauthenticated("the token is for somebody else, or from another")
        said = payload.get(claims.role)
        roles: list[Any] = said if isinstance(said, list) else [said]
        if not 0 < len(roles) <= ROLES_MAX or not all(map(_is_name, roles)):
            raise Unauthenticated(f"the token's claim {claims.role} names nobody")
        expires_at = payload.get("exp")
        return Identity(
            roles[0],
            tuple(roles),
            "token",
            float(expires_at) if isinstance(expires_at, int | float) else None,
        )


def _is_name(value: object) -> bool:
    return isinstance(value, str) and is_name(value)


class TokenConversation:
    """The client says a token."""

    __slots__ = ("_verifier", "identity")
    refusal = ""

    def __init__(self, verifier: TokenVerifier) -> None:
        self.identity: Identity | None = None
        self._verifier = verifier

    async def respond(self, said: bytes) -> bytes:
        self.identity = self._verifier.verify(said)
        return b""


class BearerConversation:
    """OAUTHBEARER (RFC 7628): `n,,^Aauth=Bearer <token>^A^A`. A refusal is told in JSON first, and
    the client answers with one ^A.
    """

    __slots__ = ("_refused", "_verifier", "identity", "refusal")

    def __init__(self, verifier: TokenVerifier) -> None:
        self.identity: Identity | None = None
        self._verifier = verifier
        self._refused: Unauthenticated | None = None
        self.refusal = ""

    async def respond(self, said: bytes) -> bytes:
        if self._refused is not None:
            raise self._refused
        try:
            self.identity = self._verifier.verify(_bearer(said))
        except Unauthenticated as error:
            self._refused, self.refusal = error, str(error)
            return b'{"status":"invalid_token"}'
        return b""


def _bearer(said: bytes) -> bytes:
    """The token of a first message."""
    header, _, rest = said.partition(b"\x01")
    flag, _, authzid = header.partition(b",")
    if flag not in (b"n", b"y") or not rest.endswith(b"\x01\x01"):
        raise Unauthenticated("it is no message of OAUTHBEARER")
    if authzid.strip(b",") not in (b"",) and not authzid.startswith(b"a="):
        raise Unauthenticated("it is no message of OAUTHBEARER")
    for pair in rest.rstrip(b"\x01").split(b"\x01"):
        key, _, value = pair.partition(b"=")
        scheme, _, token = value.partition(b" ")
        if key == b"auth" and scheme.lower() == b"bearer":
            return token.strip()
    raise Unauthenticated("the message of OAUTHBEARER has no token")
