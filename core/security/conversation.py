"""One authentication: an exchange of bytes that fronts pass on without interpreting it.

SASL is such an exchange, Pulsar's AUTH_CHALLENGE (PIP-30), MQTT's AUTH, and a header of HTTP. Most
consist of one message of the client.

Invariants: `identity` is None until the exchange has succeeded. A failure is answered late, and
says neither whether the name or the secret was wrong, nor the secret.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, Protocol

from msgspec import Struct

from magnetar.core.kernel.errors import Unauthenticated
from magnetar.core.security.identity import Identity

PLAIN: Final = "PLAIN"
OAUTHBEARER: Final = "OAUTHBEARER"
SCRAM_SHA_256: Final = "SCRAM-SHA-256"
SCRAM_SHA_512: Final = "SCRAM-SHA-512"
SASL: Final[Sequence[str]] = (PLAIN, SCRAM_SHA_256, SCRAM_SHA_512, OAUTHBEARER)
"""The mechanisms of SASL. `PLAIN` begins with `authzid NUL name NUL password` (RFC 4616)."""
TOKEN: Final = "token"
"""The client says a token, and nothing else."""
BASIC: Final = "basic"
"""The client says `name:password`, as Pulsar's `AuthenticationBasic` and HTTP do."""
CERTIFICATE: Final = "tls"
"""The client says nothing: its certificate was verified (`AuthenticationTls` of Pulsar)."""


class AuthPeer(Struct, frozen=True):
    """What is known of a client besides what it says."""

    host: str = ""
    tls: ssl.SSLObject | None = None
    """The connection's TLS, if it has any."""

    @property
    def certificate(self) -> bytes | None:
        """The client's certificate (DER), if it has shown one that was verified."""
        if self.tls is None or self.tls.context.verify_mode == ssl.CERT_NONE:
            return None
        try:
            return self.tls.getpeercert(binary_form=True)
        except ValueError:  # the handshake is not over
            return None


class Conversation(Protocol):
    """The exchange of one authentication."""

    @property
    def identity(self) -> Identity | None: ...

    @property
    def refusal(self) -> str:
        """Why it has failed, where its client is told so in the mechanism's own words first, and
        may go without the last message; empty otherwise.
        """
        ...

    async def respond(self, said: bytes) -> bytes:
        """Process bytes of the client and return the answer; raises `Unauthenticated`."""
        ...


@contextmanager
def claiming(name: str) -> Iterator[None]:
    """Have a failure say who the client says it is: for the log, not for the client."""
    try:
        yield
    except Unauthenticated as error:
        error.claimed = name
        raise


Mechanism = Callable[[AuthPeer], Conversation]
"""Begins an exchange."""
