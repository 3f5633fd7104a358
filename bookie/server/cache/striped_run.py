"""Entries of one ledger that lie together in an entry log, with gaps between their ids. Pure.

Of a ledger that is striped over more bookies than have each entry, a bookie has only some entries:
a `Run` of them would end after one or two. They are read together all the same, since who reads the
ledger asks this bookie for the next of them.

Invariant: whole records of one ledger, with ids that only grow.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from struct import Struct
from typing import Final

import msgspec

from magnetar.bookie.format import entries
from magnetar.bookie.format.entries import ENTRY_BYTES_MIN, LENGTH_BYTES, RECORD_BYTES_MIN, Run

OBJECT_BYTES: Final = 300

_start = Struct(">iqq").unpack_from


class StripedRun(msgspec.Struct, frozen=True, gc=False):
    """See the module's docstring. It has at least one entry."""

    ledger_id: int
    entry_ids: array[int]
    blob: bytes
    offsets: array[int]
    """The start of each record, and the end of the last."""

    @property
    def first(self) -> int:
        return self.entry_ids[0]

    @property
    def last(self) -> int:
        return self.entry_ids[-1]

    @property
    def count(self) -> int:
        return len(self.entry_ids)

    @property
    def memory_bytes(self) -> int:
        return len(self.blob) + 12 * len(self.offsets) + OBJECT_BYTES

    def run_from(self, entry_id: int) -> Run | None:
        """The entries with consecutive ids from this one on; None if it is in a gap."""
        ids, count = self.entry_ids, self.count
        start = bisect_left(ids, entry_id)
        if start == count or ids[start] != entry_id:
            return None
        stop = start + 1
        while stop < count and ids[stop] == entry_id + stop - start:
            stop += 1
        base = self.offsets[start]
        offsets = array("I", [offset - base for offset in self.offsets[start : stop + 1]])
        return Run(self.ledger_id, entry_id, self.blob[base : base + offsets[-1]], offsets)

    def count_intact(self) -> int:
        """How many records from the start have the right digest."""
        for place in range(self.count):
            if not entries.is_intact(self.blob, self.offsets[place], self.offsets[place + 1]):
                return place
        return self.count

    def cut(self, count: int) -> StripedRun:
        """The first `count` entries."""
        offsets = self.offsets[: count + 1]
        blob = self.blob[: offsets[-1]]
        return StripedRun(self.ledger_id, self.entry_ids[:count], blob, offsets)


def goes_on(data: bytes, position: int, run: Run) -> bool:
    """Whether there is a later entry of the same ledger behind a run, after a gap."""
    _, ledger_id, entry_id = _start(data, position)
    return bool(ledger_id == run.ledger_id and entry_id > run.last)


def striped_in(data: bytes) -> StripedRun | None:
    """The whole records of one ledger from the start on, with ids that grow; None without any."""
    entry_ids, offsets = array("q"), array("I")
    position, end, before, wanted = 0, len(data), -1, -1
    while end - position >= RECORD_BYTES_MIN:
        size, ledger_id, entry_id = _start(data, position)
        if not offsets:
            wanted = ledger_id
        following = position + LENGTH_BYTES + size
        if size < ENTRY_BYTES_MIN or following > end or ledger_id != wanted or entry_id <= before:
            break
        entry_ids.append(entry_id)
        offsets.append(position)
        position, before = following, entry_id
    if not offsets:
        return None
    offsets.append(position)
    return StripedRun(wanted, entry_ids, data[:position], offsets)
