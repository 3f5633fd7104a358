"""Names and passwords: `PLAIN` of SASL (RFC 4616), and Pulsar's and HTTP's `basic`.

A password is looked at in a thread, because bcrypt takes 50 ms; what was right is remembered for a
minute, by a keyed digest, so that a client of HTTP pays once. An unknown name takes as long as a
wrong password: it is compared with somebody's hash, and refused whatever comes out.

A password may be a token instead: `token:` in front of it, as for Kafka on Pulsar, or three parts
with dots that begin as a token does, from MQTT's devices.

Invariant: what is remembered fits the hash that is stored now.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Mapping
from typing import Final

import trio

from magnetar.core.kernel.clock import Clock
from magnetar.core.kernel.errors import Unauthenticated
from magnetar.core.security.conversation import claiming
from magnetar.core.security.htpasswd import password_hashes
from magnetar.core.security.identity import Identity
from magnetar.core.security.tokens import TokenVerifier

REMEMBERED_SECONDS: Final = 60.0
REMEMBERED_MAX: Final = 10_000
THREADS: Final = 2
"""Passwords that are looked at at a time; others wait, and the loop goes on."""
WAITING_MAX: Final = 1_000
"""Passwords that wait for it; more are refused at once."""
SAID_BYTES_MAX: Final = 64 * 1024
TOKEN_PREFIX: Final = b"token:"
METHOD: Final = "password"
"""How identities were proven."""
WRONG: Final = "the name or the password is wrong"


class Passwords:
    """The people of an htpasswd file."""

    def __init__(self, clock: Clock) -> None:
        self.hashes: Mapping[str, str] = {}
        """By name. May be replaced at any time."""
        self._clock = clock
        self._key = secrets.token_bytes(32)
        self._right: dict[bytes, tuple[float, str]] = {}
        """For digests of name and password: until when, and the hash that they fitted."""
        self._threads = trio.CapacityLimiter(THREADS)

    async def prove(self, name: str, password: bytes) -> Identity:
        """The identity of somebody with that password; raises `Unauthenticated`."""
        stored = self.hashes.get(name)
        compared = stored or next(iter(self.hashes.values()), None)
        if compared is None:
            raise Unauthenticated(WRONG)
        said = hmac.digest(self._key, name.encode() + b"\0" + password, hashlib.sha256)
        now = self._clock.monotonic()
        until, fitted = self._right.get(said, (0.0, ""))
        if stored is None or fitted != stored or until <= now:
            if self._threads.statistics().tasks_waiting >= WAITING_MAX:
                raise Unauthenticated("too many clients authenticate now, try again")
            right = await trio.to_thread.run_sync(
                password_hashes.fits, password, compared, limiter=self._threads
            )
            if stored is None or not right or self.hashes.get(name) != stored:
                raise Unauthenticated(WRONG)
            self._remember(said, now + REMEMBERED_SECONDS, stored)
        return Identity(name, (name,), METHOD)

    def _remember(self, said: bytes, until: float, stored: str) -> None:
        while len(self._right) >= REMEMBERED_MAX:
            del self._right[next(iter(self._right))]
        self._right[said] = (until, stored)


class PasswordConversation:
    """One message with name and password."""

    __slots__ = ("_passwords", "_tokens", "identity")
    refusal = ""

    def __init__(self, passwords: Passwords | None, tokens: TokenVerifier | None) -> None:
        self.identity: Identity | None = None
        self._passwords = passwords
        self._tokens = tokens

    async def respond(self, said: bytes) -> bytes:
        if len(said) > SAID_BYTES_MAX:
            raise Unauthenticated("name and password are too long")
        name, password = self._parted(said)
        token = _token_in(password)
        if token and self._tokens is not None:
            self.identity = self._tokens.verify(token)
        elif not name:
            raise Unauthenticated("a password needs a name")
        elif self._passwords is not None:
            with claiming(name):
                self.identity = await self._passwords.prove(name, password)
        else:
            raise Unauthenticated("the password is no token, and there are no passwords here")
        return b""

    def _parted(self, said: bytes) -> tuple[str, bytes]:
        """The message of PLAIN."""
        parts = said.split(b"\0")
        if len(parts) != 3:
            raise Unauthenticated("it is no message of PLAIN")
        acting_as, name, password = parts
        if acting_as not in (b"", name):
            raise Unauthenticated("nobody may act as another here")
        return _decoded(name), password


class BasicConversation(PasswordConversation):
    """The message `name:password`."""

    __slots__ = ()

    def _parted(self, said: bytes) -> tuple[str, bytes]:
        name, colon, password = said.partition(b":")
        if not colon or not name:
            raise Unauthenticated("it is no name with a password")
        return _decoded(name), password


def _decoded(name: bytes) -> str:
    try:
        return name.decode()
    except UnicodeDecodeError as error:
        raise Unauthenticated("the name is not UTF-8") from error


def _token_in(password: bytes) -> bytes:
    if password.startswith(TOKEN_PREFIX):
        return password.removeprefix(TOKEN_PREFIX)
    return password if password.startswith(b"eyJ") and password.count(b".") == 2 else b""


def people_in(text: str) -> tuple[dict[str, str], list[str]]:
    """The hashes of an htpasswd file, by name; and what is wrong with other lines."""
    found: dict[str, str] = {}
    wrong: list[str] = []
    for number, line in enumerate(text.splitlines(), 1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        name, colon, stored = line.partition(":")
        stored = stored.partition(":")[0]  # a comment may follow
        if not colon or not name:
            wrong.append(f"line {number} is no name with a hash")
        elif not password_hashes.is_hash(stored):
            wrong.append(f"line {number}: the hash of {name} is not bcrypt, apr1 or SHA")
        else:
            found[name] = stored
    return found, wrong
