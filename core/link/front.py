"""Front: a protocol that this server speaks to clients, as the composition root sees it.

    open     load the state that it owns; no connection is served yet
    run      work without connections, until cancelled
    stop     nothing is read any more, and topics will be unloaded: store what connections have
    close    close its doors, also after a start that failed

Between `open` and `run` the link begins to accept on the front's listeners. A front that accepts by
itself (HTTP, whose stack is another's) has none, and serves its doors in `run`.

`magnetar/fronts.py` has the list of all fronts. What a connection is to the link is in `wire.py`.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable, Sequence
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple
from typing import Protocol as Port

from msgspec import Struct

from magnetar.core.link.wire import Session, Wire

if TYPE_CHECKING:
    from magnetar.core.link.connection import Connection

Protocol = Callable[["Connection"], tuple[Wire, Session]]
"""Makes the wire and the session of a new connection."""


class TlsContext:
    """The TLS context of a door's next connections. Those that are open keep theirs, so a new
    certificate disturbs nobody. A context is replaced, not changed: a new one resumes no session
    that another has verified.
    """

    __slots__ = ("current",)

    def __init__(self, current: ssl.SSLContext) -> None:
        self.current = current


class Door(NamedTuple):
    """A bound, listening socket with a name, for plain bytes or for TLS."""

    name: str
    socket: socket.socket
    tls: TlsContext | None = None


class Refusal(Enum):
    """What happens to a connection beyond the link's limits."""

    CLOSED = "closed"
    """It is closed at once: the protocol has no reply before the client's first request."""
    EXPLAINED = "explained"
    """It is accepted; its session answers the first request with `Connection.refusal` and ends it.
    Clients show the reason, and wait before they reconnect."""


class Listener(Struct, frozen=True):
    """A door, and the protocol behind it."""

    door: Door
    protocol: Protocol
    refusal: Refusal = Refusal.CLOSED


class Front(Port):
    """See the module's docstring."""

    @property
    def listeners(self) -> Sequence[Listener]:
        """The doors on which the link accepts; called once, after `open`."""
        ...

    async def open(self) -> None:
        """Load what the front owns; if it fails, the start fails."""
        ...

    async def run(self) -> None:
        """Serve until cancelled."""
        ...

    async def stop(self) -> None:
        """Store what only connections have; called when the link has stopped reading, while topics
        are still loaded.
        """
        ...

    def close(self) -> None:
        """Close the doors, if the link has not; after `run`, or instead of it."""
        ...
