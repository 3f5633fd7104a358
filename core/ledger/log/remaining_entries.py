"""The entries that compaction left of a ledger, and where they are stored now. Pure.

Entries keep their positions for ever, because clients and cursors refer to them. So a compacted
ledger keeps its id and has entries missing, while the remaining ones are stored in another ledger,
in order and without gaps, after those of its neighbours. Kafka's cleaner keeps offsets in the same
way (`Cleaner.cleanSegments` of 4.1 writes a group of segments into one); Pulsar's compaction keeps
message ids (PIP-14).

    ledger 4, of 9 entries         [0 . . 3 4 . . . 8]        positions (4, 0) (4, 3) (4, 4) (4, 8)
    stored in ledger 17 from 5 on  ... 5 6 7 8 [ids] ...      after them, their ids: 0 3 4 8

Invariant: `ids` ascend, and there is at least one; the last is the last entry of the ledger.
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
"""Property of one ledger: where its entries are stored, as `RemainingEntries.location`."""
IDS_PER_ENTRY: Final = 100_000
_WORD_BYTES: Final = 4


class RemainingEntries:
    """See the module's docstring."""

    __slots__ = ("first", "ids", "ledger_id")

    def __init__(self, ledger_id: int, first: int, ids: Sequence[int]) -> None:
        self.ledger_id = ledger_id
        """The ledger that holds them."""
        self.first = first
        """The first remaining entry of that ledger."""
        self.ids = array("I", ids)

    @property
    def location(self) -> str:
        """As a property: the ledger, its entry that is the first of them, and their number."""
        return f"{self.ledger_id} {self.first} {len(self.ids)}"

    def next(self, entry_id: int) -> int | None:
        """The first remaining entry from `entry_id` on."""
        place = bisect_left(self.ids, entry_id)
        return self.ids[place] if place < len(self.ids) else None

    def count(self, first: int, last: int) -> int:
        """The number of entries that remain."""
        ids = self.ids
        return max(bisect_right(ids, last) - bisect_left(ids, first), 0)

    def run(self, entry_id: int, entries_max: int) -> tuple[int, int]:
        """Where an entry is stored, and how many follow without a gap; 0 if it is removed."""
        ids, place = self.ids, bisect_left(self.ids, entry_id)
        end = place
        while end < len(ids) and end - place < entries_max and ids[end] == entry_id + end - place:
            end += 1
        return self.first + place, end - place

    def runs(self, first: int, last: int) -> Iterator[tuple[int, int]]:
        """The remaining entries of a range, as ranges."""
        entry_id = self.next(first)
        while entry_id is not None and entry_id <= last:
            _, count = self.run(entry_id, last - entry_id + 1)
            yield entry_id, entry_id + count - 1
            entry_id = self.next(entry_id + count)


def parse_location(text: str) -> tuple[int, int, int]:
    """The parts of a `RemainingEntries.location`."""
    try:
        ledger_id, first, count = map(int, text.split())
    except ValueError as error:
        raise Corrupted(f"{text!r} is no location of a compacted ledger") from error
    return ledger_id, first, count


def id_entries(count: int) -> int:
    """How many entries `count` ids take."""
    return -(-count // IDS_PER_ENTRY)


def encoded(ids: Sequence[int]) -> list[bytes]:
    """Ids as entries: the differences of neighbours, compressed."""
    return [
        _packed(ids[start : start + IDS_PER_ENTRY]) for start in range(0, len(ids), IDS_PER_ENTRY)
    ]


def _packed(ids: Sequence[int]) -> bytes:
    steps = array("I", (ids[0], *(after - before for before, after in pairwise(ids))))
    if sys.byteorder == "big":
        steps.byteswap()
    return zlib.compress(steps.tobytes(), 1)


def decoded(entries: Sequence[bytes], count: int) -> list[int]:
    """The ids; `Corrupted` unless there are `count` of them, in ascending order."""
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
