"""What is on its way to storage: runs, joined to as few as may be. Pure.

Invariant: each run's callback is called once, with the position of its own first entry, in the
order in which the runs came.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import Final

from magnetar.core.kernel.errors import BrokerError
from magnetar.core.ledger.log.chain import Position

Appended = Callable[[Position | BrokerError], None]
"""Receives the position of the first entry of a run, or why it is not stored."""

GATHERED_BYTES_MAX: Final = 1024 * 1024
"""Runs of one sweep are joined up to this size."""


class Append:
    """Runs on their way to storage as one, each with whom to tell and where it begins."""

    __slots__ = (
        "_indexes",
        "began",
        "counts",
        "done",
        "entry_id",
        "first_index",
        "headers",
        "joined",
        "payloads",
        "size",
        "written",
    )

    def __init__(
        self,
        payloads: list[bytes],
        counts: list[int] | None,
        done: Appended,
        began: float = 0.0,
    ) -> None:
        self.payloads = payloads
        self.counts = counts
        self.done = done
        self.joined: Sequence[tuple[int, Appended]] = ()
        """Where in this one those begin that it took in, and whom of them to tell."""
        self.size = len(payloads[0]) if len(payloads) == 1 else sum(map(len, payloads))
        self.headers: list[bytes] | None = None
        self.entry_id = self.first_index = -1
        self._indexes: list[int] | None = None
        """Of the first message in each entry."""
        self.began = self.written = began
        """When it was brought, and when it was given to storage, in seconds."""

    def join(self, others: list[Append]) -> None:
        """Merge following runs into this one; none of them has been merged before."""
        payloads = self.payloads.copy()  # the list may be the caller's own
        counts = self.counts.copy() if self.counts is not None else None
        joined = []
        for other in others:
            entries = len(payloads)
            if counts is not None or other.counts is not None:
                counts = counts or [1] * entries
                counts += other.counts or [1] * len(other.payloads)
            payloads += other.payloads
            joined.append((entries, other.done))
            self.size += other.size
        self.payloads, self.counts, self.joined = payloads, counts, joined

    def index_of(self, entry_id: int) -> int:
        """The index of the first message in an entry of this run, once it has been written."""
        place = entry_id - self.entry_id
        if self.counts is None:
            return self.first_index + place
        if self._indexes is None:
            self._indexes = list(accumulate(self.counts, initial=self.first_index))
        return self._indexes[place]

    def tell(self, result: Position | BrokerError) -> None:
        """Report the position of the first entry, or the failure, to all callers."""
        self.done(result)
        if isinstance(result, BrokerError):
            for _, done in self.joined:
                done(result)
        elif self.joined:
            ledger_id, first = result
            for start, done in self.joined:
                done((ledger_id, first + start))


def joined(waiting: deque[Append]) -> Iterator[Append]:
    """Take everything that waits, neighbours joined."""
    while waiting:
        append = waiting.popleft()
        size, others = append.size, []
        while waiting and size + waiting[0].size <= GATHERED_BYTES_MAX:
            size += waiting[0].size
            others.append(waiting.popleft())
        if others:
            append.join(others)
        yield append
