"""Which entries of one log belong to transactions that are open, or aborted. Pure.

Kafka has it beside each segment (`TransactionIndex.java`, and the ongoing transactions in
`ProducerStateManager.java`), Pulsar in the topic's transaction buffer.

A producer has at most one transaction open in a log. It begins with the first entry that says so,
and ends with a marker: an entry of its own. What is below the first entry of every open transaction
is stable. Entries stay where they are, however the transaction ends; aborted ones are named by the
producer's id and by where they begin and end.

Invariants: entries come in the order of the log, each once; replayed from some place on, after a
restart, the state is the same; a marker of nothing open changes nothing.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import NamedTuple

from magnetar.core.entry.form import MarkKind
from magnetar.core.entry.forms import form_of
from magnetar.core.ledger.log.chain import Position

ProducerId = int
"""A number that no other producer ever has."""


class Open(NamedTuple):
    """Where a transaction begins."""

    first: int
    position: Position
    since_ms: int


class Aborted(NamedTuple):
    """An aborted transaction, from its first entry to its marker."""

    writer: ProducerId
    first: int
    last: int


class IndexImage(NamedTuple):
    """The index, as snapshots have it."""

    open: list[tuple[ProducerId, Open]]
    aborted: list[Aborted]


class TransactionIndex:
    """See the module's docstring. A view of the log (`fold.py`)."""

    __slots__ = ("aborted", "open")

    def __init__(self) -> None:
        self.open: dict[ProducerId, Open] = {}
        """In the order they began."""
        self.aborted: list[Aborted] = []
        """In the order they ended."""

    def wrote(self, writer: ProducerId, index: int, position: Position, now_ms: int) -> None:
        """An entry of the producer's transaction is stored."""
        if writer not in self.open:
            self.open[writer] = Open(index, position, now_ms)

    def ended(self, writer: ProducerId, index: int, *, committed: bool) -> None:
        """Its marker is stored."""
        begun = self.open.pop(writer, None)
        if begun is not None and not committed:
            self.aborted.append(Aborted(writer, begun.first, index))

    # -- questions ----------------------------------------------------------------------------

    def _first(self) -> Open | None:
        return next(iter(self.open.values()), None)

    def stable_index(self, end: int) -> int:
        """Everything below is decided; `end` is where the log ends."""
        first = self._first()
        return end if first is None else first.first

    def stable_entries(self, ledger_id: int, first_entry: int, entries: int) -> int:
        """How many of consecutive entries are decided."""
        if not self.open:
            return entries
        position = next(iter(self.open.values())).position
        if ledger_id < position[0]:
            return entries
        if ledger_id > position[0]:
            return 0
        return max(min(position[1] - first_entry, entries), 0)

    def hides(self, writer: ProducerId, index: int) -> bool:
        """Whether an entry of that producer is aborted."""
        at = bisect_left(self.aborted, index, key=_last)
        return any(one.writer == writer and one.first <= index for one in self.aborted[at:])

    def aborted_within(self, first: int, end: int) -> list[Aborted]:
        """Those that overlap what is from `first` up to, not including, `end`."""
        at = bisect_left(self.aborted, first, key=_last)
        return [one for one in self.aborted[at:] if one.first < end]

    # -- as a view of the log -----------------------------------------------------------------

    def apply(self, sent: bytes, index: int, position: Position, now_ms: int) -> None:
        """Apply an entry that is replayed; most belong to no transaction."""
        found = form_of(sent).transaction_mark(sent)
        if found is None:
            return
        if found.kind is MarkKind.PART:
            self.wrote(found.writer, index, position, now_ms)
        else:
            self.ended(found.writer, index, committed=found.kind is MarkKind.COMMIT)

    def forget_before(self, index: int) -> None:
        """The log begins there now."""
        del self.aborted[: bisect_left(self.aborted, index, key=_last)]

    def snapshot(self) -> IndexImage:
        return IndexImage(list(self.open.items()), list(self.aborted))

    def restore(self, image: IndexImage, _now_ms: int) -> None:
        self.open, self.aborted = dict(image.open), list(image.aborted)


def _last(one: Aborted) -> int:
    return one.last
