"""The entries that compaction left of a ledger, and where they are stored now. Pure.

Entries keep their positions for ever: what clients and cursors know of them stays true. So a ledger
that was compacted goes on under its own id, with entries missing, while what is left of it is kept
in another ledger, in order and without gaps, together with what is left of its neighbours:

    ledger 4, of 9 entries         [0 . . 3 4 . . . 8]        positions (4, 0) (4, 3) (4, 4) (4, 8)
    stored in ledger 17 from 5 on  ... 5 6 7 8 [ids] ...      behind them, their ids: 0 3 4 8

Invariant: `ids` rise, and there is at least one; the last is the last entry of the ledger.
"""

from __future__ import annotations

import sys
import zlib
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from typing import Final

from magnetar.core.kernel.errors import Corrupted

REMAINING: Final = "magnetar.kept"
"""Property of one ledger: where it is stored; the fields of `RemainingEntries.location`."""
IDS_PER_ENTRY: Final = 100_000
_WORD_BYTES: Final = 4


class RemainingEntries:
    """See the module's docstring."""

    __slots__ = ("first", "ids", "ledger_id")

    def __init__(self, ledger_id: int, first: int, ids: Sequence[int]) -> None:
        self.ledger_id = ledger_id
        """Where they are stored."""
        self.first = first
        """The entry of that ledger that holds the first of them."""
        self.ids = array("I", ids)

    @property
    def location(self) -> str:
        """As a property: the ledger, the entry that holds the first, and how many there are."""
        return f"{self.ledger_id} {self.first} {len(self.ids)}"

    def next(self, entry_id: int) -> int | None:
        """The first entry from there on that is left."""
        place = bisect_left(self.ids, entry_id)
        return self.ids[place] if place < len(self.ids) else None

    def count(self, first: int, last: int) -> int:
        """How many of these entries are left."""
        ids = self.ids
        return max(bisect_right(ids, last) - bisect_left(ids, first), 0)

    def run(self, entry_id: int, entries_max: int) -> tuple[int, int]:
        """Where an entry is stored, and how many follow each other from there; 0 if it is gone."""
        ids, place = self.ids, bisect_left(self.ids, entry_id)
        end = place
        while end < len(ids) and end - place < entries_max and ids[end] == entry_id + end - place:
            end += 1
        return self.first + place, end - place

    def runs(self, first: int, last: int) -> Iterator[tuple[int, int]]:
        """The entries that are left of a range, as ranges."""
        entry_id = self.next(first)
        while entry_id is not None and entry_id <= last:
            _, count = self.run(entry_id, last - entry_id + 1)
            yield entry_id, entry_id + count - 1
            entry_id = self.next(entry_id + count)


def parse_location(text: str) -> tuple[int, int, int]:
    """The ledger, the entry that holds the first, and how many there are."""
    try:
        ledger_id, first, count = map(int, text.split())
    except ValueError as error:
        raise Corrupted(f"a compacted ledger is not kept at {text!r}") from error
    return ledger_id, first, count


def id_entries(count: int) -> int:
    """How many entries the ids of so many take."""
    return -(-count // IDS_PER_ENTRY)


def encoded(ids: Sequence[int]) -> list[bytes]:
    """Ids as entries: how far each is from the one before it, compressed."""
    return [
        _packed(ids[start : start + IDS_PER_ENTRY]) for start in range(0, len(ids), IDS_PER_ENTRY)
    ]


def _packed(ids: Sequence[int]) -> bytes:
    steps = array("I", (ids[0], *(after - before for before, after in pairwise(ids))))
    if sys.byteorder == "big":
        steps.byteswap()
    return zlib.compress(steps.tobytes(), 1)


def decoded(entries: Sequence[bytes], count: int) -> list[int]:
    """The ids again; `Corrupted` if these are not so many, or do not rise."""
    ids: list[int] = []
    for entry in entries:
        steps = array("I")
        try:
            data = zlib.decompressobj().decompress(entry, IDS_PER_ENTRY * _WORD_BYTES + 1)
            steps.frombytes(data)
        except (zlib.error, ValueError) as error:
            raise Corrupted(f"these are no ids of entries: {error}") from error
        if sys.byteorder == "big":
            steps.byteswap()
        ids += accumulate(steps)
    if len(ids) != count or any(before >= after for before, after in pairwise(ids)):
        raise Corrupted(f"these are no ids of {count} entries")
    return ids
