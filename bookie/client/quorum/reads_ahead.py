"""Recovery reads of the next entries: begun in order, several at the same time, decided in order.

Each entry is asked of its whole write set, and nobody knows its size before it comes. As many are
begun as seem to have room, if they are as large as the one before. If more comes than has room, the
last reads are given up, and begun again when it is their turn.

Invariant: answers that wait here take `bytes_max`, or are those to the first read.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

from magnetar.bookie.client.quorum.answers import Answers
from magnetar.bookie.client.quorum.recovery_quorums import RecoveryRead

READS_AHEAD_MIN: Final = 2
"""At first: mostly there is little to find. With each entry that is found it is twice as many."""
Begin = Callable[[int, Callable[[int], None]], tuple[RecoveryRead, Answers]]
"""Begins to read an entry; the callback hears of bytes that its answers hold, or hold no more."""


class ReadsAhead:
    """See the module's docstring. `copies` are the bookies that each entry is asked of."""

    def __init__(
        self, begin: Begin, first: int, *, copies: int, count_max: int, bytes_max: int
    ) -> None:
        self._begin = begin
        self._next = first
        """The first entry that is not asked for."""
        self._reads: deque[tuple[RecoveryRead, Answers]] = deque()
        self._copies = copies
        self._count_max = count_max
        self._bytes_max = bytes_max
        self._ahead = READS_AHEAD_MIN
        self._bytes = 0

    def first(self) -> tuple[RecoveryRead, Answers]:
        """The read of the next entry. Others are begun by halves of what may be on its way, so that
        requests and responses travel many together.
        """
        if len(self._reads) <= self._ahead // 2:
            while len(self._reads) < self._ahead:
                self._reads.append(self._begin(self._next, self._held))
                self._next += 1
        return self._reads[0]

    def decided(self, size: int) -> None:
        """The first entry is known, and this is its size; go on to the next one."""
        _, answers = self._reads.popleft()
        answers.end()
        fitting = self._bytes_max // (self._copies * max(size, 1))
        self._ahead = max(1, min(2 * self._ahead, self._count_max, fitting))

    def _held(self, size: int) -> None:
        self._bytes += size
        while self._bytes > self._bytes_max and len(self._reads) > 1:
            _, answers = self._reads.pop()
            self._next -= 1
            self._ahead = len(self._reads)
            answers.end()

    def end(self) -> None:
        """Nobody wants the rest."""
        while self._reads:
            _, answers = self._reads.pop()
            answers.end()
