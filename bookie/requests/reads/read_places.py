"""Which reads may wait: there are places for those of all connections, and none must take all.

- A connection may have an eighth of the places that others leave it, alone as many as in a queue of
  one of Apache's eight threads, and a few (`FEW`) as long as there are any. So whoever comes later
  gets as much as those before, not what they left.
- A client that has many waiting and receives nothing for `STUCK_SECONDS` loses them when another
  one lacks a place, and its connection ends. A peer that is closed loses nothing: it asks again
  (`core/link/memory/stalls.py` does the same for memory).

Invariant: no connection is given up that receives, nor for one that would have a place without it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from magnetar.bookie.requests.in_progress import InProgress
from magnetar.bookie.requests.limits import READ_THREADS, RequestLimits

FEW: Final = 16
STUCK_SECONDS: Final = 2.0


class Stuck(Protocol):
    """The reads of a connection that does not receive."""

    def give_up(self, reason: str, /) -> None:
        """Forget the reads that wait, and call `moves`."""
        ...


class ReadPlaces:
    """See the module's docstring."""

    def __init__(self, limits: RequestLimits, reads: InProgress, now: Callable[[], float]) -> None:
        self.given_up = 0
        """Connections that lost their places."""
        self._limits = limits
        self._reads = reads
        self._now = now
        self._stuck: dict[Stuck, float] = {}
        """Those with many reads that wait for their client, and since when; the oldest first."""

    def has_one(self, own: int) -> bool:
        """Whether a connection with so many reads that wait may have one more."""
        if own >= self._limits.max_pending_read_requests_per_thread:
            return False
        if self._is_free(own):
            return True
        self._take_back()
        return self._is_free(own)

    def _is_free(self, own: int) -> bool:
        count, places = self._reads.count, self._limits.reads_waiting_max
        return count < places and own < max(FEW, (places - count + own) // READ_THREADS)

    def _take_back(self) -> None:
        """Give up the one that has been stuck longest, if that is long."""
        stuck, since = next(iter(self._stuck.items()), (None, 0.0))
        if stuck is not None and self._now() - since >= STUCK_SECONDS:
            self.given_up += 1
            stuck.give_up("it does not receive its responses, and others lack the places")

    def waits(self, reads: Stuck, own: int) -> None:
        """So many reads wait for a client that does not receive."""
        if own >= FEW:
            self._stuck.setdefault(reads, self._now())

    def moves(self, reads: Stuck) -> None:
        """It receives, or has no reads that wait."""
        self._stuck.pop(reads, None)
