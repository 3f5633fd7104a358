"""What of one log belongs to transactions: which are open, and which came to nothing. Pure.

A writer has at most one transaction open in a log. It begins with the first entry that says so, and
ends with a marker: an entry of its own. What is below the first entry of every open transaction is
stable. Entries stay where they are, whatever becomes of them; those that came to nothing are named
by their writer and where they begin and end.

Invariants: entries are told in the order of the log, each once; told again from some place on,
after a restart, the state is the same; a marker of nothing open changes nothing.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple

from magnetar.core.ledger.chain import Position

Writer = int
"""A number that no other writer ever has."""


class Open(NamedTuple):
    """Where a transaction begins."""

    first: int
    position: Position
    since_ms: int


class Aborted(NamedTuple):
    """One that came to nothing, from its first entry to its marker."""

    writer: Writer
    first: int
    last: int


class LogTransactions:
    """See the module's docstring."""

    def __init__(self) -> None:
        self.open: dict[Writer, Open] = {}
        """In the order they began."""
        self.aborted: list[Aborted] = []
        """In the order they ended."""

    def wrote(self, writer: Writer, index: int, position: Position, now_ms: int) -> None:
        """An entry of the writer's transaction."""
        if writer not in self.open:
            self.open[writer] = Open(index, position, now_ms)

    def ended(self, writer: Writer, index: int, *, committed: bool) -> None:
        """Its marker."""
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
        first = self._first()
        if first is None or ledger_id < first.position[0]:
            return entries
        if ledger_id > first.position[0]:
            return 0
        return max(min(first.position[1] - first_entry, entries), 0)

    def hides(self, writer: Writer, index: int) -> bool:
        """Whether an entry of that writer came to nothing."""
        at = bisect_left(self.aborted, index, key=_last)
        return any(one.writer == writer and one.first <= index for one in self.aborted[at:])

    def aborted_within(self, first: int, end: int) -> list[Aborted]:
        """Those that overlap what is from `first` up to, not including, `end`."""
        at = bisect_left(self.aborted, first, key=_last)
        return [one for one in self.aborted[at:] if one.first < end]

    def forget_before(self, index: int) -> None:
        """The log begins there now."""
        del self.aborted[: bisect_left(self.aborted, index, key=_last)]

    # -- for storage --------------------------------------------------------------------------

    def restore(self, opened: Sequence[tuple[Writer, Open]], aborted: Sequence[Aborted]) -> None:
        self.open, self.aborted = dict(opened), list(aborted)


def _last(one: Aborted) -> int:
    return one.last
