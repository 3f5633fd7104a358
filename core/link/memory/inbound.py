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

While too much is on its way to storage, the link reads no peer that writes. So storage never has
to take more than that and what one peer brought in one go: nothing has to be refused that its
client would not send again.

Large requests that are being answered (`requested`), and small ones that wait, have a limit too, as
large as the first one's. Of the small ones' part a quarter is kept likewise. While there are many
(`asked_much`) little is received at once from peers that have had nothing stored: what is received
becomes requests before anything can be said against it, and they take several times its size.

Invariants: `partial` is the sum of `held` over all frames; at most one of them is privileged, and
if somebody waits, one is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from magnetar.core.link.partial_frame import PartialFrame

LARGE_BYTES: Final = 256 * 1024
"""A frame larger than this is received into a buffer of its own, and asks for room."""
LARGE_BYTES_TIGHT: Final = 16 * 1024
"""The same while much is held; and no more is received from one peer at once."""
TIGHT: Final = 2
"""Such a part of the limit is much."""
REQUESTS_HIGH: Final = 4
"""Such a part of the limit of requests is much."""
ASKING_BYTES: Final = 4096
"""Then no more is received at once from a peer that only asks."""
PART_OF_PROVEN: Final = 4
"""This part of it is reserved for peers that have had something stored."""


class InboundMemory:
    """See the module's docstring."""

    __slots__ = (
        "_partial_max",
        "_privileged",
        "_storing_max",
        "_waiting",
        "partial",
        "requested",
        "storing",
        "tight",
    )

    def __init__(self, partial_max: int, storing_max: int) -> None:
        self.partial = self.requested = self.storing = 0
        self.tight = False
        self._partial_max = partial_max
        self._storing_max = storing_max
        self._privileged: PartialFrame | None = None
        self._waiting: dict[bool, dict[PartialFrame, int]] = {True: {}, False: {}}
        """Of those that are proven and those that are not: how much room each asks for, in the
        order of asking."""

    # -- frames that have come in part ----------------------------------------------------------

    @property
    def large_bytes(self) -> int:
        return LARGE_BYTES_TIGHT if self.tight else LARGE_BYTES

    def hold(self, frame: PartialFrame, size: int) -> None:
        """So much of it is held from now on."""
        less = size < frame.held
        self._count(frame, size)
        if less:
            self._serve()

    def ask(self, frame: PartialFrame, step: int, rest: int) -> bool:
        """Whether it may have the room of a step more now. If not, `go_on` is called when
        it may have all the rest.
        """
        if not self._may(frame, step, anew=True):
            self._waiting[frame.proven][frame] = rest
            return False
        self.hold(frame, frame.held + step)
        return True

    def _may(self, frame: PartialFrame, more: int, *, anew: bool) -> bool:
        """Whether there is room; it may be as the privileged one. Who comes `anew` goes behind
        those who wait.
        """
        limit = self._partial_max
        if not frame.proven:
            limit -= limit // PART_OF_PROVEN
        if self.partial + more <= limit and not (anew and self._waiting[frame.proven]):
            return True
        if self._privileged in (None, frame):
            self._privileged = frame
            return True
        return False

    def done(self, frame: PartialFrame) -> None:
        """It is whole, or its connection is closed."""
        for waiting in self._waiting.values():
            waiting.pop(frame, None)
        if self._privileged is frame:
            self._privileged = None
        self._count(frame, 0)
        self._serve()

    def _count(self, frame: PartialFrame, size: int) -> None:
        self.partial += size - frame.held
        frame.held = size
        self.tight = self.partial * TIGHT > self._partial_max

    def _serve(self) -> None:
        """Those who wait, in order, as far as there is room."""
        for waiting in self._waiting.values():
            while waiting:
                frame, rest = next(iter(waiting.items()))
                if not self._may(frame, rest, anew=False):
                    break
                del waiting[frame]
                self._count(frame, frame.held + rest)
                frame.go_on()

    @property
    def short(self) -> bool:
        """Whether a peer waits, or the limit is exceeded."""
        return any(self._waiting.values()) or self.partial > self._partial_max

    # -- requests that are being answered -------------------------------------------------------

    def take(self, size: int, *, proven: bool = True) -> bool:
        """Whether there is room for one more; then it has it."""
        limit = self._partial_max
        if not proven:
            limit -= limit // PART_OF_PROVEN
        if self.requested + size > limit:
            return False
        self.requested += size
        return True

    @property
    def requests_high(self) -> bool:
        return self.requested * REQUESTS_HIGH > self._partial_max

    # -- on their way to storage ----------------------------------------------------------------

    @property
    def storing_much(self) -> bool:
        return self.storing >= self._storing_max

    @property
    def storing_little(self) -> bool:
        return 2 * self.storing <= self._storing_max
