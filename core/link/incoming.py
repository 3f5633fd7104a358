"""What has come from all peers together and is not done with: how much, and who waits.

Two kinds, each with a limit. What of a frame has come (`partial`) goes only when its peer sends the
rest of it; what is on its way to storage (`storing`) goes by itself.

A large frame asks for room as it grows, in steps of what has come, so that to announce one costs
nothing. One that finds none waits, unread, until there is room for all the rest of it: so those who
wait hold little, and those who hold much lack nothing but their peer's bytes. Who then sends none
is closed (`stalls.py`). A quarter is kept for peers that have had something stored before; they
also go first. One frame at a time (the *privileged*) has room without asking, so that there is one
for the largest too. While much is held (`tight`) the link receives little at once, and small frames
ask for room.

While too much is on its way to storage, the link reads nobody who writes. So storage is never asked
to take more than that and what one peer brought in one go: nothing has to be refused that its
client would not send again.

Large requests that are being answered (`asked`) have a limit too, as large as the first one's.

Invariants: `partial` is the sum of `held` over all connections; at most one connection is
privileged, and if somebody waits, one is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from core.link.connection import Connection

LARGE_BYTES: Final = 256 * 1024
"""A frame larger than this is received into a buffer of its own, and asks for room."""
LARGE_BYTES_TIGHT: Final = 16 * 1024
"""The same while much is held; and no more is received from one peer at once."""
TIGHT: Final = 2
"""Such a part of the limit is much."""
PART_OF_PROVEN: Final = 4
"""Such a part of it is kept for peers that have had something stored."""


class Incoming:
    """See the module's docstring."""

    __slots__ = (
        "_partial_max",
        "_privileged",
        "_storing_max",
        "_waiting",
        "asked",
        "partial",
        "storing",
        "tight",
    )

    def __init__(self, partial_max: int, storing_max: int) -> None:
        self.partial = self.asked = self.storing = 0
        self.tight = False
        self._partial_max = partial_max
        self._storing_max = storing_max
        self._privileged: Connection | None = None
        self._waiting: dict[bool, dict[Connection, int]] = {True: {}, False: {}}
        """Of those that are proven and those that are not: how much room each asks for, in the
        order of asking."""

    # -- frames that have come in part ----------------------------------------------------------

    @property
    def large_bytes(self) -> int:
        return LARGE_BYTES_TIGHT if self.tight else LARGE_BYTES

    def hold(self, connection: Connection, size: int) -> None:
        """So much is held of its unfinished frame, from now on."""
        before, connection.held = connection.held, size
        self.partial += size - before
        self.tight = self.partial * TIGHT > self._partial_max
        if size < before:
            self._serve()

    def ask(self, connection: Connection, step: int, rest: int) -> bool:
        """Whether its frame may have the room of a step more now. If not, it is told (`go_on`) when
        it may have all the rest.
        """
        if not self._may(connection, step, anew=True):
            self._waiting[connection.proven][connection] = rest
            return False
        self.hold(connection, connection.held + step)
        return True

    def _may(self, connection: Connection, more: int, *, anew: bool) -> bool:
        """Whether there is room; it may be as the privileged one. Who comes `anew` goes behind
        those who wait.
        """
        limit = self._partial_max
        if not connection.proven:
            limit -= limit // PART_OF_PROVEN
        if self.partial + more <= limit and not (anew and self._waiting[connection.proven]):
            return True
        if self._privileged in (None, connection):
            self._privileged = connection
            return True
        return False

    def done(self, connection: Connection) -> None:
        """Its frame is whole, or it has gone."""
        for waiting in self._waiting.values():
            waiting.pop(connection, None)
        if self._privileged is connection:
            self._privileged = None
        self.hold(connection, 0)
        self._serve()

    def _serve(self) -> None:
        """Those who wait, in order, as far as there is room."""
        for waiting in self._waiting.values():
            while waiting:
                connection, rest = next(iter(waiting.items()))
                if not self._may(connection, rest, anew=False):
                    break
                del waiting[connection]
                connection.held += rest
                self.partial += rest
                connection.go_on()
        self.tight = self.partial * TIGHT > self._partial_max

    @property
    def short(self) -> bool:
        """Somebody waits, or there is more than there may be."""
        return any(self._waiting.values()) or self.partial > self._partial_max

    # -- requests that are being answered -------------------------------------------------------

    def take(self, size: int) -> bool:
        """Whether there is room for one more; then it has it."""
        if self.asked + size > self._partial_max:
            return False
        self.asked += size
        return True

    # -- on their way to storage ----------------------------------------------------------------

    @property
    def storing_much(self) -> bool:
        return self.storing >= self._storing_max

    @property
    def storing_little(self) -> bool:
        return 2 * self.storing <= self._storing_max
