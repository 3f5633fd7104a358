"""Writers that are not read, while storage is congested or too many bytes are being stored.

Each is paused when it has something to read, and they resume some at a time: ten thousand at once
would hold up the loop. Connections that only read and acknowledge go on: they relieve storage.

Invariant: those that are held are paused for storage, and open.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final

from magnetar.core.link.memory.inbound import InboundMemory
from magnetar.core.link.memory.pauses import PAUSE_STORAGE

if TYPE_CHECKING:
    from magnetar.core.link.connection import Connection

RELEASED_MAX: Final = 256
"""Those that resume in one sweep: about a millisecond."""


class HeldWriters:
    """See the module's docstring."""

    def __init__(self, incoming: InboundMemory) -> None:
        self._incoming = incoming
        self._held: dict[Connection, None] = {}
        self._much = False
        """Whether too many bytes are being stored."""
        self.holding = False
        """Whether writers are held when they have something to read."""

    def hold(self, connection: Connection) -> None:
        connection.pause(PAUSE_STORAGE)
        self._held[connection] = None

    def forget(self, connection: Connection) -> None:
        """A connection is closed."""
        self._held.pop(connection, None)

    def check(self, *, congested: bool) -> bool:
        """Hold writers while storage is congested or too many bytes are being stored, the latter
        with a hysteresis; else release some. Returns whether more are to be released soon.
        """
        incoming = self._incoming
        self._much = not incoming.storing_little if self._much else incoming.storing_much
        self.holding = self._much or congested
        if self.holding or not self._held:
            return False
        self._release_some()
        return bool(self._held)

    def _release_some(self) -> None:
        """Read some of them again, those that waited longest first."""
        for connection in list(islice(self._held, RELEASED_MAX)):
            del self._held[connection]
            connection.resume(PAUSE_STORAGE)
