"""A client's side of SCRAM-SHA-256 (RFC 5802, RFC 7677), which can also say what it should not."""

from __future__ import annotations

import base64
import hashlib
import hmac
import itertools
from typing import Final

NONCES: Final = itertools.count()


class ScramClient:
    """One exchange."""

    def __init__(self, name: str, password: bytes) -> None:
        self._name, self._password = name, password
        self._bare = f"n={name},r=nonce{next(NONCES)}"
        self._server_first = ""

    def first(self, gs2: str = "n,,") -> bytes:
        return (gs2 + self._bare).encode()

    def hears(self, server_first: bytes) -> None:
        self._server_first = server_first.decode()

    def final(self, gs2: str = "n,,", nonce: str | None = None) -> bytes:
        """The proof; for another channel binding or nonce than was said, if these are given."""
        told = dict(part.split("=", 1) for part in self._server_first.split(","))
        salt, count = base64.b64decode(told["s"]), int(told["i"])
        salted = hashlib.pbkdf2_hmac("sha256", self._password, salt, count)
        key = hmac.digest(salted, b"Client Key", "sha256")
        bound = base64.b64encode(gs2.encode()).decode()
        without = f"c={bound},r={nonce or told['r']}"
        message = f"{self._bare},{self._server_first},{without}".encode()
        signature = hmac.digest(hashlib.sha256(key).digest(), message, "sha256")
        proof = bytes(a ^ b for a, b in zip(key, signature, strict=True))
        return f"{without},p={base64.b64encode(proof).decode()}".encode()
