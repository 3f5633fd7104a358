"""SCRAM (RFC 5802, RFC 7677): a password is proven without being said. Pure.

    client          n,,n=ali,r=abc              its name and a nonce
    server          r=abcXYZ,s=salt,i=4096      its own nonce, salt and iterations of the name
    client          c=biws,r=abcXYZ,p=proof     made of password, salt and all that was said
    server          v=signature                 proves that it knows the credential, too

The server stores keys from which neither the password nor the proof can be made. There is no
channel binding (`n,,` or `y,,`), as in Kafka (`ScramSaslServer.java` of 4.3). Names are compared as
they are: Kafka's clients do not normalise them either (`ScramFormatter.java`).

Invariant: `final` succeeds once, and only after `challenge`, with the nonce of this exchange.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from typing import Final

from msgspec import Struct

from magnetar.core.kernel.errors import Unauthenticated
from magnetar.core.security.conversation import SCRAM_SHA_256, SCRAM_SHA_512

HASHES: Final = {SCRAM_SHA_256: "sha256", SCRAM_SHA_512: "sha512"}
"""The hash of each mechanism."""
ITERATIONS_MIN: Final = 4096
ITERATIONS_MAX: Final = 16384
"""The limits of Kafka (`ScramMechanism.java`): more would keep clients busy."""
SAID_BYTES_MAX: Final = 4096
"""The longest message of a client."""
WRONG: Final = "the name or the password is wrong"
_NONCE: Final = r"r=(?P<nonce>[!-+\--~]+)(?:,[a-z]+=[^,]*)*"
"""A nonce, and extensions, which are ignored."""
_FIRST: Final = re.compile(
    rf"(?P<gs2>[ny],(?:a=(?P<as>[^,]+))?,)n=(?P<name>[^,]+),{_NONCE}", re.DOTALL
)
_FINAL: Final = re.compile(
    rf"(?P<bare>c=(?P<bound>[A-Za-z0-9+/=]+),{_NONCE}),p=(?P<proof>[A-Za-z0-9+/=]+)", re.DOTALL
)


class Credential(Struct, frozen=True):
    """What is stored of a password."""

    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int


def salted(mechanism: str, password: bytes, salt: bytes, iterations: int) -> bytes:
    """`SaltedPassword` of the RFC: takes milliseconds."""
    return hashlib.pbkdf2_hmac(HASHES[mechanism], password, salt, iterations)


def credential_of(
    mechanism: str, salted_password: bytes, salt: bytes, iterations: int
) -> Credential:
    """The credential of a salted password."""
    name = HASHES[mechanism]
    client_key = hmac.digest(salted_password, b"Client Key", name)
    stored_key = hashlib.new(name, client_key).digest()
    server_key = hmac.digest(salted_password, b"Server Key", name)
    return Credential(salt, stored_key, server_key, iterations)


def stand_in(mechanism: str, name: str, secret: bytes) -> Credential:
    """The credential of a name that has none, always the same, so that such names cannot be told
    from others. No password fits it. Its salt looks like one of Kafka's tools.
    """
    digest = hmac.digest(secret, f"{mechanism} {name}".encode(), "sha512")
    number, letters = int.from_bytes(digest[:32], "big"), []
    for _ in range(25):
        number, letter = divmod(number, 36)
        letters.append("0123456789abcdefghijklmnopqrstuvwxyz"[letter])
    keys = hashlib.pbkdf2_hmac("sha512", digest, b"no password", 1)
    size = hashlib.new(HASHES[mechanism]).digest_size
    return Credential("".join(letters).encode(), keys[:size], keys[:size], ITERATIONS_MIN)


class ScramExchange:
    """The server's side of one exchange."""

    def __init__(self, mechanism: str, nonce: str) -> None:
        """`nonce` is the server's: random, and printable without commas."""
        self._hash = HASHES[mechanism]
        self._nonce = nonce
        self._gs2 = ""
        self._said = ""
        """`AuthMessage` so far."""
        self._credential: Credential | None = None

    def first(self, said: bytes) -> str:
        """Read the client's first message; return its name."""
        found = _read(_FIRST, said)
        name = _name(found["name"])
        if found["as"] is not None and _name(found["as"]) != name:
            raise Unauthenticated("nobody may act in the name of somebody else")
        self._gs2 = found["gs2"]
        self._said = said.decode()[len(self._gs2) :]
        self._nonce = found["nonce"] + self._nonce
        return name

    def challenge(self, credential: Credential) -> bytes:
        """The answer to the first message."""
        self._credential = credential
        salt = base64.b64encode(credential.salt).decode()
        answer = f"r={self._nonce},s={salt},i={credential.iterations}"
        self._said += f",{answer}"
        return answer.encode()

    def final(self, said: bytes) -> bytes:
        """Check the client's proof, and return ours; raises `Unauthenticated`."""
        credential, self._credential = self._credential, None
        if credential is None:
            raise Unauthenticated("a message out of turn")
        found = _read(_FINAL, said)
        if _decoded(found["bound"]) != self._gs2.encode() or found["nonce"] != self._nonce:
            raise Unauthenticated("it does not continue this exchange")
        message = f"{self._said},{found['bare']}".encode()
        signature = hmac.digest(credential.stored_key, message, self._hash)
        proof = _decoded(found["proof"])
        if len(proof) != len(signature):
            raise Unauthenticated(WRONG)
        client_key = bytes(a ^ b for a, b in zip(proof, signature, strict=True))
        stored_key = hashlib.new(self._hash, client_key).digest()
        if not hmac.compare_digest(stored_key, credential.stored_key):
            raise Unauthenticated(WRONG)
        ours = hmac.digest(credential.server_key, message, self._hash)
        return b"v=" + base64.b64encode(ours)


def _read(pattern: re.Pattern[str], said: bytes) -> re.Match[str]:
    try:
        text = said.decode()
    except UnicodeDecodeError:
        text = ""
    found = pattern.fullmatch(text) if len(said) <= SAID_BYTES_MAX else None
    if found is None:
        raise Unauthenticated("not a message of SCRAM")
    return found


def _name(text: str) -> str:
    """A `saslname`: commas and equals signs are escaped."""
    if re.search("=(?!2C|3D)", text):
        raise Unauthenticated("not a name of SCRAM")
    return text.replace("=2C", ",").replace("=3D", "=")


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        raise Unauthenticated("not a message of SCRAM") from None
