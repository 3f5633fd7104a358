"""DIGEST-MD5 (RFC 2831), both sides, as Java's SASL has it. Pure.

    server   realm="bookkeeper",nonce="...",qop="auth",charset=utf-8,algorithm=md5-sess
    client   username="ali",realm="bookkeeper",nonce="...",nc=00000001,cnonce="...",
             digest-uri="bookkeeper/bookkeeper",qop=auth,response=...,charset=utf-8
    server   rspauth=...                    proves that it knows the password, too

It was withdrawn (RFC 6331): MD5 is weak, and what the server stores is as good as the password. It
is here since Apache BookKeeper's clients and bookies have no other way without a plugin or Kerberos
(`SaslClientState.java`, `SaslServerState.java` of 4.18). There is one realm, no integrity or
confidentiality layer (`qop=auth`), and no second use of a nonce.

Invariant: a proof is for the nonce of this exchange, and made of the password.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Mapping
from typing import Final

from magnetar.core.kernel.errors import Unauthenticated

SAID_BYTES_MAX: Final = 4096
"""RFC 2831 2.1.2; a challenge may have 2048."""
_NONCE_COUNT: Final = "00000001"
_directive = re.compile(
    r'[\s,]*([a-z-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s",]+))\s*(?=,|$)', re.DOTALL
)


def secret_of(name: str, realm: str, password: str) -> bytes:
    """What is stored of a password: the same as `htdigest` writes, but as bytes."""
    return _md5(f"{name}:{realm}:{password}".encode())


class DigestServer:
    """The server's side of one exchange. `secrets` has what is stored, by name."""

    def __init__(self, secrets: Mapping[str, bytes], realm: str, uri: str, nonce: str) -> None:
        self.name = ""
        """Of the client; empty until it is proved."""
        self._secrets = secrets
        self._realm = realm
        self._uri = uri
        self._nonce = nonce
        self._challenged = False

    def respond(self, said: bytes) -> bytes:
        """The next message; raises `Unauthenticated`."""
        if not self._challenged:
            if said:
                raise Unauthenticated("DIGEST-MD5 begins with a challenge")
            self._challenged = True
            return (
                f'realm="{self._realm}",nonce="{self._nonce}",qop="auth",charset=utf-8,'
                "algorithm=md5-sess"
            ).encode()
        if not self._nonce:
            raise Unauthenticated("the exchange is over")
        nonce, self._nonce = self._nonce, ""
        return self._check(_parsed(said), nonce)

    def _check(self, found: Mapping[str, str], nonce: str) -> bytes:
        name, client_nonce = found.get("username", ""), found.get("cnonce", "")
        expected = {"nonce": nonce, "realm": self._realm, "nc": _NONCE_COUNT}
        wrong = [key for key, value in expected.items() if found.get(key) != value]
        if found.get("qop", "auth") != "auth" or found.get("digest-uri") != self._uri:
            wrong.append("qop or digest-uri")
        if found.get("authzid", name) != name:
            wrong.append("authzid")
        if wrong or not client_nonce:
            raise Unauthenticated(f"a message of DIGEST-MD5 with a wrong {', '.join(wrong)}")
        # An unknown name is compared with what nobody's proof is, so that both take as long.
        secret = self._secrets.get(name)
        nonces = nonce, client_nonce, found.get("authzid", "")
        proof = _proof(secret or bytes(16), nonces, "AUTHENTICATE", self._uri)
        said = found.get("response", "").encode()
        if not hmac.compare_digest(proof.encode(), said) or secret is None:
            raise Unauthenticated("an unknown name, or a wrong password")
        self.name = name
        return f"rspauth={_proof(secret, nonces, '', self._uri)}".encode()


class DigestClient:
    """The client's side of one exchange."""

    def __init__(self, name: str, password: str, uri: str, nonce: str) -> None:
        self._name = name
        self._password = password
        self._uri = uri
        self._nonce = nonce
        self._expected = ""
        """How the server proves itself."""

    def respond(self, said: bytes) -> bytes | None:
        """The next message, None after the last one; raises `Unauthenticated` if the server does
        not know the password.
        """
        found = _parsed(said)
        if self._expected:
            if not hmac.compare_digest(found.get("rspauth", "").encode(), self._expected.encode()):
                raise Unauthenticated("it does not know the password itself")
            return None
        realm, nonce = found.get("realm", ""), found.get("nonce", "")
        if not nonce or "auth" not in found.get("qop", "auth").split(","):
            raise Unauthenticated("its challenge is none of DIGEST-MD5")
        secret = secret_of(self._name, realm, self._password)
        nonces = nonce, self._nonce, ""
        self._expected = _proof(secret, nonces, "", self._uri)
        return (
            f'charset=utf-8,username="{_quoted(self._name)}",realm="{_quoted(realm)}",'
            f'nonce="{_quoted(nonce)}",nc={_NONCE_COUNT},cnonce="{self._nonce}",'
            f'digest-uri="{self._uri}",qop=auth,'
            f"response={_proof(secret, nonces, 'AUTHENTICATE', self._uri)}"
        ).encode()


def _proof(secret: bytes, nonces: tuple[str, str, str], method: str, uri: str) -> str:
    """`response` of the client, for the method AUTHENTICATE; `rspauth` of the server, for none."""
    nonce, client_nonce, authzid = nonces
    session = secret + f":{nonce}:{client_nonce}".encode()
    if authzid:
        session += f":{authzid}".encode()
    key, what = _md5(session).hex(), _md5(f"{method}:{uri}".encode()).hex()
    return _md5(f"{key}:{nonce}:{_NONCE_COUNT}:{client_nonce}:auth:{what}".encode()).hex()


def _md5(said: bytes) -> bytes:
    return hashlib.md5(said, usedforsecurity=False).digest()


def _parsed(said: bytes) -> Mapping[str, str]:
    if len(said) > SAID_BYTES_MAX:
        raise Unauthenticated("a message of DIGEST-MD5 is too large")
    try:
        text = said.decode()
    except UnicodeDecodeError as error:
        raise Unauthenticated("a message of DIGEST-MD5 is not UTF-8") from error
    found: dict[str, str] = {}
    at = 0
    while at < len(text):
        piece = _directive.match(text, at)
        if piece is None or piece[1] in found:
            raise Unauthenticated("a message of DIGEST-MD5 makes no sense")
        quoted = piece[2]
        found[piece[1]] = piece[3] if quoted is None else re.sub(r"\\(.)", r"\1", quoted)
        at = piece.end()
    return found


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
