"""Runs read from entry logs, with the entries read ahead; the oldest are evicted.

A run is for readers that read on, so it leaves also when some time has passed (`age`): a scan of a
log, as at a start, does not fill memory for good.

Invariants: the cache exceeds its limit only if it holds one run alone; no two runs of a ledger
begin with the same entry. Where runs overlap, the one that begins last is searched, which may miss
an entry.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import OrderedDict
from operator import attrgetter

from magnetar.bookie.format.entries import Run
from magnetar.bookie.server.cache.large_entries import LargeEntries

_first = attrgetter("first")


class ReadCache:
    """Runs by ledger, in the order of their entries: a few long ones, or many short ones of a
    ledger whose entries lie between those of others.
    """

    def __init__(self, bytes_max: int) -> None:
        self.bytes = 0
        self._bytes_max = bytes_max
        self._ledgers: dict[int, list[Run | LargeEntries]] = {}
        self._order: OrderedDict[int, Run | LargeEntries] = OrderedDict()
        """By identity, oldest first. Finding the oldest is slow in a plain dict: it skips the slots
        of deleted keys.
        """
        self._aged: tuple[int, ...] = ()
        """The identities of those that were there at the last `age`."""

    def put(self, run: Run | LargeEntries) -> None:
        runs = self._ledgers.setdefault(run.ledger_id, [])
        at = bisect_left(runs, run.first, key=_first)
        while at < len(runs) and runs[at].last <= run.last:
            self._leave(runs.pop(at))  # the new run has all of its entries
        if at < len(runs) and runs[at].first == run.first:
            return  # the old run has all entries of the new one
        runs.insert(at, run)
        self._order[id(run)] = run
        self.bytes += run.memory_bytes
        while self.bytes > self._bytes_max and len(self._order) > 1:
            self.drop(next(iter(self._order.values())))

    def find(self, ledger_id: int, entry_id: int) -> Run | LargeEntries | None:
        runs = self._ledgers.get(ledger_id, ())
        at = bisect_right(runs, entry_id, key=_first)
        if at and entry_id <= runs[at - 1].last:
            return runs[at - 1]
        return None

    def age(self) -> None:
        """Evict the runs that were there at the last call. (An identity may be that of a new run by
        now, which is read again then.)
        """
        for key in self._aged:
            if (run := self._order.get(key)) is not None:
                self.drop(run)
        self._aged = tuple(self._order)

    def clear(self) -> None:
        self._ledgers.clear()
        self._order.clear()
        self.bytes = 0

    def forget(self, ledger_id: int) -> None:
        for run in list(self._ledgers.get(ledger_id, ())):
            self.drop(run)

    def drop(self, run: Run | LargeEntries) -> None:
        """Remove one run."""
        self._leave(run)
        runs = self._ledgers[run.ledger_id]
        del runs[bisect_left(runs, run.first, key=_first)]
        if not runs:
            del self._ledgers[run.ledger_id]

    def _leave(self, run: Run | LargeEntries) -> None:
        del self._order[id(run)]
        self.bytes -= run.memory_bytes
