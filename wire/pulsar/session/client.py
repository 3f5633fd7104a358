"""The client of one connection: who it is, its version and features, its liveness, replies to it.

Invariant: nothing is packed once the connection is closed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import trio

from magnetar.core.kernel.errors import BrokerError, Invalid
from magnetar.core.link.connection import Connection
from magnetar.core.security.access import Access
from magnetar.core.security.actions import Action, ResourceType
from magnetar.core.security.identity import ANYBODY, Identity
from magnetar.wire.pulsar import events, refusals
from magnetar.wire.pulsar.wire import PulsarWire, WireState

REASSURE_SECONDS: Final = 15.0
"""Clients ping every 30 s and wait as long for the PONG (`ClientCnx.java` of 4.2)."""


class PulsarClient:
    """See the module's docstring."""

    __slots__ = (
        "_closed",
        "_reassured_at",
        "access",
        "connection",
        "features",
        "gone",
        "identity",
        "known",
        "original",
        "pong",
        "protocol_version",
        "version",
        "wire",
        "writable",
    )

    def __init__(
        self,
        connection: Connection,
        wire: PulsarWire,
        access: Access,
        now: float,
        closed: Callable[[str], None],
    ) -> None:
        """`closed` is called by `end`, and detaches all producers and consumers."""
        self.access = access
        self.identity = ANYBODY
        self.known = False
        """Whether it has introduced itself, and has proven its identity if it must."""
        self.original: Identity | None = None
        """Whom it speaks for, if it is a proxy."""
        self.connection = connection
        self.wire = wire
        self.features = events.Features()
        self.version = ""
        """As CONNECT states it: `Pulsar-Java-v4.2.0`, `Pulsar-CPP-v3.7`."""
        self.protocol_version = 0
        self.gone = False
        self.pong = trio.Event()
        """Set, and replaced, by each PONG."""
        self.writable = trio.Event()
        """Set, and replaced, when the client has received its output, or is gone."""
        self._reassured_at = now
        self._closed = closed

    @property
    def peer(self) -> str:
        return self.connection.peer

    # -- rights -------------------------------------------------------------------------------

    def check(self, action: Action, kind: ResourceType, name: str) -> None:
        """Raise `Unauthorized` unless it may do that. Plain call."""
        access, host = self.access, self.connection.host
        access.check(self.identity, action, kind, name, host)
        if self.original is not None:
            access.check(self.original, action, kind, name, host)

    @property
    def principal(self) -> str:
        """The name of whom it acts for; empty without authentication."""
        return self.identity.name if self.original is None else self.original.name

    def owns(self, owner: str) -> bool:
        """Whether it may use what somebody of that name has begun: it is he, or a superuser."""
        access = self.access
        if access.judge is None or owner == self.principal:
            return True
        everybody = (self.identity,) if self.original is None else (self.identity, self.original)
        return all(access.allows(who, Action.ALTER, ResourceType.SERVER, "") for who in everybody)

    # -- answers ------------------------------------------------------------------------------

    def reply(self, frame: bytes) -> None:
        """Pack one reply."""
        if not self.gone:
            self.wire.reply(frame)
            self.connection.touch()

    def reply_large(self, frame: bytes) -> None:
        """Pack a reply that counts at once in the output memory of all connections."""
        if not self.gone:
            self.wire.reply(frame)
            self.connection.packed(len(frame))

    def refuse(self, event: events.Event, error: BrokerError) -> None:
        """Answer a request with an error, in the reply type that it asks for."""
        name = type(event).__name__
        self.connection.complain(f"{name} refused", f"{name} refused: {error}")
        if hasattr(event, "request_id"):
            self.reply(refusals.failure(event, error))
        elif isinstance(error, Invalid):
            self.connection.end(str(error))

    # -- signs of life ------------------------------------------------------------------------

    def answer_ping(self) -> None:
        self.wire.pong()
        self.connection.touch()

    def ping(self) -> None:
        """Send PING; a client that is not known by now is disconnected."""
        if self.wire.state is not WireState.OPEN:
            self.connection.end("it did not introduce itself")
            return
        self.wire.ping()
        self.connection.touch()

    def note_pong(self) -> None:
        self.pong.set()
        self.pong = trio.Event()

    def reassure(self, now: float) -> bool:
        """Send an unrequested PONG to a client that is not read; False once it is gone.

        Its PING is not read either, and without a PONG it closes the connection after a minute.
        The C++ client takes no other command for a sign of life (4.2 was tried).
        """
        if now - self._reassured_at >= REASSURE_SECONDS:
            self._reassured_at = now
            self.answer_ping()
        return not self.gone

    # -- its end ------------------------------------------------------------------------------

    def wake(self) -> None:
        """Resume everything that waited until the client had received its output, or was gone."""
        self.writable.set()
        self.writable = trio.Event()

    def end(self, reason: str) -> None:
        """Close the connection; when this returns, all of it is detached."""
        self.connection.end(reason)
        self._closed(reason)

    def close(self) -> None:
        """Drop the packed bytes of a closed connection."""
        self.gone = True
        self.wake()
        self.wire.close()
        self.wire.take_outgoing()  # else it would stay in memory until garbage collection
        self._closed = lambda _reason: None  # and the session
