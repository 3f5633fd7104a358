"""What is to be sent to all peers together: how much it is, and who waits when it is too much.

Every byte that is packed for a peer and not taken by it counts, and so does what is reserved for an
answer that is being gathered. Peers that do not read must not take the memory of those that do:

- One answer may have a quarter of what is left, so that each further one that nobody takes is
  smaller than the one before.
- The last quarter of all is for peers that have shown that they read (`Connection.reads`).
- As less is left, each outbox may hold less before dispatch passes it by (`high`). Where only the
  last quarter is left everybody else is passed by. Who has more than that waiting, and more than a
  little, is not read either.

A connection that has to wait is called when there is room again, in order, as many at a time
as there is room for; those that read go first. Who holds what others wait for, and takes nothing,
is closed (`stalls.py`).

Invariants: `used` is the sum over all connections of what is packed and in their outboxes, and of
what is reserved; a connection that waits is called in the end, or goes.
"""

from __future__ import annotations

from typing import Final, Protocol

SHARE_BYTES_MIN: Final = 1024 * 1024
"""A smaller answer is not worth its round trip: it waits."""
SHARES: Final = 4
"""One answer has at most such a part of what is left."""
PART_OF_PROVEN: Final = 4
"""This part of all is reserved for peers that read."""
SMALL_BYTES: Final = 16 * 1024
"""A peer for which no more than this waits is read, however much waits for others."""
OUTBOXES: Final = 8
"""One outbox has at most such a part of what is left."""


class BlockedPeer(Protocol):
    """A connection that has to wait."""

    @property
    def reads(self) -> bool:
        """Whether it may use what is reserved for peers that read."""
        ...

    def relieved(self) -> None:
        """There is room: ask again."""
        ...


class OutboundMemory:
    """See the module's docstring."""

    __slots__ = (
        "_easy",
        "_kept",
        "_share_min",
        "_small",
        "_waiting",
        "high",
        "high_max",
        "high_read",
        "limit",
        "used",
    )

    def __init__(self, limit: int, high_max: int) -> None:
        self.limit = limit
        self.used = 0
        self._kept = limit // PART_OF_PROVEN
        self._share_min = min(SHARE_BYTES_MIN, limit // (SHARES * PART_OF_PROVEN))
        self.high_max = min(high_max, (limit - self._kept) // OUTBOXES)
        """One connection may have so much waiting for it while there is enough."""
        self.high = self.high_max
        """One with more than this waiting for it is passed by."""
        self.high_read = self.high_max
        """One with more than this waiting for it is not read."""
        self._small = min(SMALL_BYTES, self.high_max)
        self._easy = limit - self._kept - OUTBOXES * self.high_max
        """Up to here no peer need hold back for others."""
        self._waiting: dict[bool, dict[BlockedPeer, None]] = {True: {}, False: {}}
        """Those that read, and the others."""

    def add(self, size: int) -> None:
        """So much more is to be sent, or is reserved."""
        self.used += size
        if self.used > self._easy:
            self._set_high()

    def remove(self, size: int) -> None:
        """So much is sent, or not reserved any more."""
        self.used -= size
        assert self.used >= 0, "more was sent than was packed"
        if self.high < self.high_max:
            self._set_high()

    def _set_high(self) -> None:
        left = self._left(reads=False)
        self.high = min(self.high_max, left // OUTBOXES) if left > 0 else -1
        self.high_read = max(self.high, self._small)

    def _left(self, *, reads: bool) -> int:
        left = self.limit - self.used
        return left if reads else left - self._kept

    # -- answers --------------------------------------------------------------------------------

    def share(self, *, reads: bool) -> int:
        """How large an answer may be now; 0 for none: `wait`."""
        return self._share_of(self._left(reads=reads))

    def _share_of(self, left: int) -> int:
        return max(left // SHARES, self._share_min) if left >= self._share_min else 0

    # -- waiting --------------------------------------------------------------------------------

    def wait(self, who: BlockedPeer) -> None:
        """Tell them when there is room."""
        self.forget(who)
        self._waiting[who.reads][who] = None

    def forget(self, who: BlockedPeer) -> None:
        for waiting in self._waiting.values():
            waiting.pop(who, None)

    def look_again(self) -> None:
        """Some of those who wait may have taken meanwhile what was sent before."""
        others = self._waiting[False]
        for who in [who for who in others if who.reads]:
            del others[who]
            self._waiting[True][who] = None

    @property
    def short(self) -> bool:
        """Whether a peer waits, or the limit is exceeded."""
        return any(self._waiting.values()) or self.used > self.limit

    @property
    def may_relieve(self) -> bool:
        """Whether a peer waits for which there is room."""
        for reads, waiting in self._waiting.items():  # no generator: it is asked twice a sweep
            if waiting and self.share(reads=reads) > 0:
                return True
        return False

    def relieve(self) -> None:
        """Tell the first of those who wait, as many as there is room for their shares."""
        for reads, waiting in self._waiting.items():
            left = self._left(reads=reads)
            while waiting and (share := self._share_of(left)):
                first = next(iter(waiting))
                del waiting[first]
                first.relieved()
                left -= share
