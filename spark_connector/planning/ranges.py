"""Which entries a query reads, as ranges of ledgers, and how they are divided among tasks. Pure.

A task of Python costs Spark 30 ms before it reads a row, so many ranges are packed into few tasks:
those of one topic stay together and in order where they fit.

Invariants: ranges cover what is between two positions, each entry once; the same positions and
facts give the same ranges, so that a task which is run again reads the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import zip_longest
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from magnetar.core.ledger.read.reading_plan import Place, PlannedLedger, ReadingPlan
from magnetar.core.ledger.read.transaction_index import Aborted
from magnetar.spark_connector.offsets import NO_INDEX

ANY_OFFSET: Final = (1 << 63) - 1
PIECES_MAX: Final = 1_000
"""About so many ranges a task are made of larger ones."""


class EntryRange(Struct, frozen=True):
    """Entries of one ledger, `first` to `last`, and the offsets that are wanted of them."""

    log: str
    """The full name of the topic, or of the partition."""
    ledger_id: int
    first: int
    last: int
    bytes: int
    """About."""
    from_offset: int = 0
    to_offset: int = ANY_OFFSET
    """Not included."""
    kept: str = ""
    """Where the entries of a compacted ledger are stored."""
    first_index: int = NO_INDEX
    """Of the whole ledger, as it was planned."""
    next_index: int = NO_INDEX
    """Of what comes behind the ledger."""

    @property
    def stored_in(self) -> int:
        """The ledger that has them."""
        return int(self.kept.split()[0]) if self.kept else self.ledger_id


class Share(Struct, frozen=True):
    """What one task reads."""

    ranges: tuple[EntryRange, ...]

    @property
    def bytes(self) -> int:
        return sum(one.bytes for one in self.ranges)


def between(
    log: str,
    plan: ReadingPlan,
    start: Place,
    end: Place,
    wanted: Callable[[PlannedLedger], bool] = lambda _: True,
) -> Iterator[EntryRange]:
    """The ranges of a log from one position up to, not including, another."""
    for ledger, following in zip_longest(plan.ledgers, plan.ledgers[1:]):
        if not wanted(ledger):
            continue
        first = start.entry_id if ledger.id == start.ledger_id else 0
        last = end.entry_id if ledger.id == end.ledger_id else ledger.entries
        if start.ledger_id <= ledger.id <= end.ledger_id and first < last:
            size = ledger.bytes * (last - first) // max(ledger.entries, 1)
            yield EntryRange(
                log,
                ledger.id,
                first,
                last - 1,
                size,
                max(start.index, 0),
                end.index if end.index >= 0 else ANY_OFFSET,
                ledger.kept,
                ledger.first_index,
                plan.end.index if following is None else following.first_index,
            )


def is_another(ledger_id: int, index: int, plan: ReadingPlan) -> bool:
    """Whether a message of that ledger, or the end of it, is none of this log's: in one log, what
    comes later has later indexes.
    """
    later = (ledger for ledger in plan.ledgers if ledger.id > ledger_id)
    following = next(later, None)
    return index > plan.end.index or (following is not None and following.first_index < index)


def cut(one: EntryRange, bytes_max: int) -> Iterator[EntryRange]:
    """A range in pieces of about that size."""
    entries = one.last - one.first + 1
    pieces = min(max(-(-one.bytes // bytes_max), 1), entries)
    for number in range(pieces):
        first = one.first + entries * number // pieces
        last = one.first + entries * (number + 1) // pieces - 1
        yield replace(one, first=first, last=last, bytes=one.bytes // pieces)


def shared(ranges: Sequence[EntryRange], bytes_max: int, least: int, most: int) -> list[Share]:
    """The ranges as the shares of `least` to `most` tasks; fewer if there is not so much."""
    total = sum(one.bytes for one in ranges)
    wanted = min(max(-(-total // bytes_max), least, 1), max(most, 1))
    size = max(-(-total // wanted), 1)
    bytes_max = max(bytes_max, size // PIECES_MAX)
    pieces = [piece for one in ranges for piece in cut(one, min(size, bytes_max))]
    shares: list[Share] = []
    taken: list[EntryRange] = []
    filled = 0
    for piece in pieces:
        # A share ends where the sum of all before it passes the next multiple.
        taken.append(piece)
        filled += piece.bytes
        if filled >= size * (len(shares) + 1) and len(shares) < wanted - 1:
            shares.append(Share(tuple(taken)))
            taken = []
    if taken:
        shares.append(Share(tuple(taken)))
    return shares


def aborted_of(plan: ReadingPlan, one: EntryRange) -> list[Aborted]:
    """The aborted transactions that the range may have entries of."""
    start, end = one.from_offset, one.to_offset
    aborted = map(Aborted._make, plan.aborted)
    return [each for each in aborted if each.first < end and each.last >= start]
