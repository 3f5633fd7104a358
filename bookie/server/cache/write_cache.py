"""Entries that are in the journal and not yet in an entry log: one half fills, one is written out.

Apache's bookie has two `WriteCache` objects for the same (`swapWriteCache` of
`SingleDirectoryDbLedgerStorage.java`, 4.18).

A half is written out when it is nearly full, at a random point of its last quarter. The bookies of
an ensemble get the same entries at the same time: with one limit for all, they would all be busy
writing out in the same moments, and no other could answer for them.

Invariant: only the loop changes a half, and never the leaving one, so that the checkpoint's thread
can read it. The loop drops that half when its entries are in an entry log.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Callable
from operator import attrgetter
from typing import Final

from magnetar.bookie.format.entries import Run

_first = attrgetter("first")

DUE_BITS: Final = 8
DUE_PARTS: Final = 4 << DUE_BITS
"""A random number of that many bits is less than a quarter of this."""


class Half:
    """Runs by ledger, each ledger's in the order of their entries."""

    __slots__ = ("bytes", "entries", "longest", "overlapping", "runs")

    def __init__(self) -> None:
        self.runs: dict[int, list[Run]] = {}
        self.bytes = 0
        self.entries = 0
        self.overlapping = False
        """Whether an entry may be here twice, because a recovery wrote it again."""
        self.longest = 0
        """The most entries of a run: how far back one may begin that holds an entry."""

    def put(self, run: Run) -> None:
        ledger_id, count = run.ledger_id, run.count  # a look at a run costs ten times a local one
        runs = self.runs.get(ledger_id)
        if runs is None:
            self.runs[ledger_id] = [run]
        elif run.first > runs[-1].last:
            runs.append(run)
        else:
            self.overlapping = True
            insort(runs, run, key=_first)
        self.bytes += run.memory_bytes
        self.entries += count
        if count > self.longest:
            self.longest = count

    def find(self, ledger_id: int, entry_id: int) -> Run | None:
        """The run that holds an entry."""
        runs = self.runs.get(ledger_id)
        if runs is None:
            return None
        place = bisect_right(runs, entry_id, key=_first)
        while place:
            place -= 1
            run = runs[place]
            if entry_id <= run.last:
                return run
            if not self.overlapping or run.first + self.longest <= entry_id:
                return None  # no earlier run can reach so far
        return None

    def last(self, ledger_id: int) -> int:
        """The highest entry id, -1 if there is none."""
        runs = self.runs.get(ledger_id)
        if not runs:
            return -1
        highest = -1
        for run in reversed(runs):
            if run.first + self.longest <= highest + 1:
                break
            highest = max(highest, run.last)
        return highest


class WriteCache:
    """The two halves."""

    def __init__(self, half_bytes: int, random_bits: Callable[[int], int]) -> None:
        self.half_bytes = half_bytes
        self._random_bits = random_bits
        self._due = self._next_due()
        self.filling = Half()
        self.leaving: Half | None = None

    def put(self, run: Run) -> bool:
        """Add a run; returns whether the half is to be written out now."""
        self.filling.put(run)
        return self.filling.bytes >= self._due

    def _next_due(self) -> int:
        return self.half_bytes - self.half_bytes * self._random_bits(DUE_BITS) // DUE_PARTS

    def find(self, ledger_id: int, entry_id: int) -> Run | None:
        run = self.filling.find(ledger_id, entry_id)
        if run is None and self.leaving is not None:
            run = self.leaving.find(ledger_id, entry_id)
        return run

    def last(self, ledger_id: int) -> int:
        last = self.filling.last(ledger_id)
        if self.leaving is not None:
            last = max(last, self.leaving.last(ledger_id))
        return last

    def runs(self, ledger_id: int) -> list[Run]:
        """A ledger's runs, which may overlap."""
        found = list(self.filling.runs.get(ledger_id, ()))
        if self.leaving is not None:
            found += self.leaving.runs.get(ledger_id, ())
        return found

    def swap(self) -> Half:
        """Begin to write out: the full half becomes the leaving one, an empty one fills."""
        assert self.leaving is None, "one half is being written out already"
        self.leaving, self.filling = self.filling, Half()
        self._due = self._next_due()
        return self.leaving

    def drop(self) -> None:
        """Drop the leaving half: its entries are in an entry log."""
        self.leaving = None

    @property
    def bytes(self) -> int:
        return self.filling.bytes + (self.leaving.bytes if self.leaving is not None else 0)

    @property
    def entries(self) -> int:
        return self.filling.entries + (self.leaving.entries if self.leaving is not None else 0)

    @property
    def is_congested(self) -> bool:
        """The half is full and not swapped yet: connections should wait."""
        return self.filling.bytes >= self.half_bytes

    def is_over(self, burst_bytes: int) -> bool:
        """Whether more than `burst_bytes` have been added to a full half."""
        return self.filling.bytes >= self.half_bytes + burst_bytes
