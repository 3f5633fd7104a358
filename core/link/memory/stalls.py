"""Closes peers that hold memory for which others wait, and make no progress.

They are checked about once a second, and only while another peer waits. Progress is to receive, or
to send, at least `RATE_BYTES_MIN` a second: single bytes would block others as well (Slowloris;
Apache's mod_reqtimeout has such a least rate, `MinRate`).

A peer that is closed loses nothing: it requests again what it did not receive, and a frame of which
it sent only a part was never acknowledged.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from magnetar.core.link.memory.inbound import InboundMemory
from magnetar.core.link.memory.outbound import OutboundMemory
from magnetar.core.link.sockets import unsent

if TYPE_CHECKING:
    from magnetar.core.link.connection import Connection

RATE_BYTES_MIN: Final = 16 * 1024
"""Bytes a second."""


class Watched:
    """The last progress of connections, and its time."""

    __slots__ = ("_marks",)

    def __init__(self) -> None:
        self._marks: dict[Connection, tuple[int, float]] = {}

    def stalled(
        self, places: Iterable[tuple[Connection, int]], now: float, seconds: float
    ) -> list[Connection]:
        """The connections without progress for so long; `places` has their present state."""
        marks, self._marks = self._marks, {}
        found = []
        for connection, place in places:
            before, since = marks.get(connection, (place, now))
            if abs(place - before) >= RATE_BYTES_MIN * seconds:
                before, since = place, now
            self._marks[connection] = before, since
            if now - since >= seconds:
                found.append(connection)
        return found

    def clear(self) -> None:
        self._marks.clear()


class Stalls:
    """See the module's docstring."""

    def __init__(self, incoming: InboundMemory, outgoing: OutboundMemory, seconds: float) -> None:
        self._incoming = incoming
        self._outgoing = outgoing
        self._seconds = seconds
        self._sending = Watched()
        self._receiving = Watched()

    def stalled(
        self, connections: Iterable[Connection], now: float
    ) -> Iterator[tuple[Connection, str]]:
        """The connections to close, each with the reason."""
        if self._outgoing.short:
            # what the system took counts as it leaves: it asks for more in steps of megabytes
            unread = [(one, one.taken_bytes - unsent(one.fd)) for one in connections if one.outbox]
            for one in self._sending.stalled(unread, now, self._seconds):
                yield one, "takes nothing, while others wait for the memory"
        else:
            self._sending.clear()
        if self._incoming.short:
            begun = [(one, one.received_bytes) for one in connections if one.waited_for]
            for one in self._receiving.stalled(begun, now, self._seconds):
                yield one, "sends nothing more of its frame, while others wait for the memory"
        else:
            self._receiving.clear()
