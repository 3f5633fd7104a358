"""Runs read from entry logs, with the entries read ahead; the oldest are evicted.

A run is for readers that read on, so it leaves also when some time has passed (`age`): a scan of a
log, as at a start, does not fill memory for good.

Invariants: the cache exceeds its limit only if it holds one run alone; no two runs of a ledger
begin with the same entry. Where runs overlap, the one that begins last is searched, which may miss
an entry; so may one leave that has gaps, for another that reaches farther.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import OrderedDict
from operator import attrgetter
from typing import Final

from magnetar.bookie.format.entries import Run
from magnetar.bookie.server.cache.large_entries import LargeEntries
from magnetar.bookie.server.cache.striped_run import StripedRun

Cached = Run | LargeEntries | StripedRun
GAP_MAX: Final = 64
"""A reader goes on if what it has read before is no farther away: a ledger that is striped over so
many bookies has one entry in so many here.
"""

_first = attrgetter("first")


class ReadCache:
    """Runs by ledger, in the order of their entries: a few long ones, or many short ones of a
    ledger whose entries lie between those of others.
    """

    def __init__(self, bytes_max: int) -> None:
        self.bytes = 0
        self._bytes_max = bytes_max
        self._ledgers: dict[int, list[Cached]] = {}
        self._order: OrderedDict[int, Cached] = OrderedDict()
        """By identity, oldest first. Finding the oldest is slow in a plain dict: it skips the slots
        of deleted keys.
        """
        self._aged: tuple[int, ...] = ()
        """The identities of those that were there at the last `age`."""

    def put(self, run: Cached) -> None:
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
            self._drop(next(iter(self._order.values())))

    def find(self, ledger_id: int, entry_id: int) -> Run | LargeEntries | None:
        """A run that holds an entry."""
        run = self._before(ledger_id, entry_id)
        if run is None or entry_id > run.last:
            return None
        return run.run_from(entry_id) if isinstance(run, StripedRun) else run

    def leads_to(self, ledger_id: int, entry_id: int) -> bool:
        """Whether what was read before ends just before an entry: its reader goes on."""
        run = self._before(ledger_id, entry_id)
        return run is not None and entry_id - GAP_MAX <= run.last < entry_id

    def _before(self, ledger_id: int, entry_id: int) -> Cached | None:
        """Of the runs that begin with the entry or before it, the one that begins last."""
        runs = self._ledgers.get(ledger_id, ())
        at = bisect_right(runs, entry_id, key=_first)
        return runs[at - 1] if at else None

    def age(self) -> None:
        """Evict the runs that were there at the last call. (An identity may be that of a new run by
        now, which is read again then.)
        """
        for key in self._aged:
            if (run := self._order.get(key)) is not None:
                self._drop(run)
        self._aged = tuple(self._order)

    def clear(self) -> None:
        self._ledgers.clear()
        self._order.clear()
        self.bytes = 0

    def forget(self, ledger_id: int) -> None:
        for run in list(self._ledgers.get(ledger_id, ())):
            self._drop(run)

    def drop(self, ledger_id: int, entry_id: int) -> None:
        """Remove the run in which an entry was found."""
        run = self._before(ledger_id, entry_id)
        if run is not None:
            self._drop(run)

    def _drop(self, run: Cached) -> None:
        self._leave(run)
        runs = self._ledgers[run.ledger_id]
        del runs[bisect_left(runs, run.first, key=_first)]
        if not runs:
            del self._ledgers[run.ledger_id]

    def _leave(self, run: Cached) -> None:
        del self._order[id(run)]
        self.bytes -= run.memory_bytes
