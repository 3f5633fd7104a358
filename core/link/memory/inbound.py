"""The memory for bytes received from all peers and not processed yet, and the queue for it.

There are two kinds, each with a limit. Parts of frames (`partial`) stay until their peers send the
rest; bytes that are being stored (`storing`) need no peer.

A large frame reserves memory as it grows, in proportion to what was received, so that announcing
one costs nothing. If there is none, it waits, unread, until there is memory for all of its rest: so
frames that wait hold little, and frames that hold much need nothing but their peer's bytes. A peer
that then sends none is closed (`stalls.py`). A quarter is reserved for peers whose data was stored
before; they are served first, too. One frame at a time (the *privileged*) needs no reservation, so
that the largest frame fits. While much is held (`tight`), the link receives little at once, and
small frames reserve memory too.

While too many bytes are being stored, the link reads no peer that writes. So storage never gets
more than the limit and what one peer sent in one go, and nothing has to be refused that its client
would not send again (Kafka bounds the same with `queued.max.request.bytes`, Pulsar with
`maxMessagePublishBufferSizeInMB`).

Large requests in progress (`requested`), and small ones that wait, have the limit of the first kind
too. A quarter of the small ones' part is reserved likewise. While there are many (`requests_high`),
little is received at once from peers whose data was never stored: received bytes become requests
before they can be refused, and requests take several times their size.

Invariants: `partial` is the sum of `held` over all frames; at most one of them is privileged, and
one is if any frame waits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from magnetar.core.link.partial_frame import PartialFrame

LARGE_BYTES: Final = 256 * 1024
"""A frame larger than this is received into a buffer of its own, and reserves memory."""
LARGE_BYTES_TIGHT: Final = 16 * 1024
"""The same while much is held; also the most that is received from one peer at once then."""
TIGHT: Final = 2
"""Much is held from this part of the limit on."""
REQUESTS_HIGH: Final = 4
"""There are many requests from this part of the limit on (`requests_high`)."""
ASKING_BYTES: Final = 4096
"""The most that is received at once then from a peer whose data was never stored."""
PART_OF_PROVEN: Final = 4
"""The part that is reserved for peers whose data was stored."""


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
        """Frames that wait, of proven peers and of others: the memory that each needs, in order."""

    # -- frames that have come in part ----------------------------------------------------------

    @property
    def large_bytes(self) -> int:
        return LARGE_BYTES_TIGHT if self.tight else LARGE_BYTES

    def hold(self, frame: PartialFrame, size: int) -> None:
        """Set how many bytes of a frame are held."""
        less = size < frame.held
        self._count(frame, size)
        if less:
            self._serve()

    def ask(self, frame: PartialFrame, step: int, rest: int) -> bool:
        """Reserve one more step of memory. If there is none, False, and `go_on` is called when
        there is memory for the rest.
        """
        if not self._may(frame, step, anew=True):
            self._waiting[frame.proven][frame] = rest
            return False
        self.hold(frame, frame.held + step)
        return True

    def _may(self, frame: PartialFrame, more: int, *, anew: bool) -> bool:
        """Whether there is memory, perhaps as the privileged frame. A frame that comes `anew` is
        served after those that wait.
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
        """The frame is whole, or its connection is closed."""
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
        """Serve frames that wait, in order, as far as there is memory."""
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
        """Whether a frame waits, or the limit is exceeded."""
        return any(self._waiting.values()) or self.partial > self._partial_max

    # -- requests that are being answered -------------------------------------------------------

    def take(self, size: int, *, proven: bool = True) -> bool:
        """Reserve memory for a request; False if there is none."""
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
