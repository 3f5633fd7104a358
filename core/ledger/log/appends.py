"""Appends on their way to storage, joined into few runs. Pure.

BookKeeper's client adds entry by entry (`LedgerHandle.asyncAddEntry`); a run here is what all
producers sent in one sweep, so that header, digest and callback cost little per message.

Invariant: the callback of each append is called once, with the position of its own first entry, in
the order of the appends.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, pairwise
from typing import Final

from magnetar.core.kernel.errors import BrokerError
from magnetar.core.ledger.log.chain import Position

Appended = Callable[[Position | BrokerError], None]
"""Takes the position of the first entry, or the reason why the entries are not stored."""

GATHERED_BYTES_MAX: Final = 1024 * 1024
"""Runs of one sweep are joined up to this size."""
GATHERED_MAX: Final = 128
"""So many are joined: all their callbacks are called at once, each of which may be a reply to
another client. A sweep has fewer, but thousands may wait for a ledger.
"""


class Append:
    """A run of entries and its callback; it may have taken in the runs that followed it."""

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
        """For each run taken in: the place of its first entry, and its callback."""
        self.size = len(payloads[0]) if len(payloads) == 1 else sum(map(len, payloads))
        self.headers: list[bytes] | None = None
        self.entry_id = self.first_index = -1
        self._indexes: list[int] | None = None
        """The index of the first message in each entry, computed on first use."""
        self.began = self.written = began
        """When it was appended, and when it was given to storage, in seconds."""

    def join(self, others: list[Append]) -> None:
        """Take in the runs that follow; none of them has taken in others."""
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

    @property
    def end(self) -> int:
        """The entry behind its last one, once it has been written."""
        return self.entry_id + len(self.payloads)

    def parts(self) -> list[Append]:
        """The runs as they were appended, once they have been written."""
        starts = [0, *[start for start, _ in self.joined], len(self.payloads)]
        callbacks = [self.done, *[done for _, done in self.joined]]
        return [
            self.part(start, stop, done)
            for (start, stop), done in zip(pairwise(starts), callbacks, strict=True)
        ]

    def part(self, start: int, stop: int, done: Appended) -> Append:
        """Some of its entries, once they have been written."""
        counts = None if self.counts is None else self.counts[start:stop]
        part = Append(self.payloads[start:stop], counts, done, self.began)
        part.entry_id, part.written = self.entry_id + start, self.written
        part.first_index = self.index_of(part.entry_id)
        if self.headers is not None:
            part.headers = self.headers[start:stop]
        return part

    def index_of(self, entry_id: int) -> int:
        """The index of the first message in an entry of this run, once it has been written."""
        place = entry_id - self.entry_id
        if self.counts is None:
            return self.first_index + place
        if self._indexes is None:
            self._indexes = list(accumulate(self.counts, initial=self.first_index))
        return self._indexes[place]

    def report(self, result: Position | BrokerError) -> None:
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
    """Empty the queue; neighbours are joined up to the size limit."""
    while waiting:
        append = waiting.popleft()
        size = append.size
        others: list[Append] = []
        while waiting and size + waiting[0].size <= GATHERED_BYTES_MAX:
            if len(others) == GATHERED_MAX:
                break
            size += waiting[0].size
            others.append(waiting.popleft())
        if others:
            append.join(others)
        yield append
