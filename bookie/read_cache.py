"""Runs read from entry logs, the asked-for and what lay behind it; the oldest go first.

Invariant: never more than its bytes, save for the newest run alone.
"""

from __future__ import annotations

from bookie.entries import Run


class ReadCache:
    """A few large runs: looked through by ledger, dropped by age."""

    def __init__(self, bytes_max: int) -> None:
        self.bytes = 0
        self._bytes_max = bytes_max
        self._ledgers: dict[int, list[Run]] = {}
        self._order: dict[int, Run] = {}
        """By identity, oldest first."""

    def put(self, run: Run) -> None:
        self._ledgers.setdefault(run.ledger_id, []).append(run)
        self._order[id(run)] = run
        self.bytes += run.memory_bytes
        while self.bytes > self._bytes_max and len(self._order) > 1:
            self._drop(next(iter(self._order.values())))

    def find(self, ledger_id: int, entry_id: int) -> Run | None:
        for run in reversed(self._ledgers.get(ledger_id, ())):
            if run.first <= entry_id <= run.last:
                return run
        return None

    def forget(self, ledger_id: int) -> None:
        for run in list(self._ledgers.get(ledger_id, ())):
            self._drop(run)

    def _drop(self, run: Run) -> None:
        del self._order[id(run)]
        self.bytes -= run.memory_bytes
        runs = self._ledgers[run.ledger_id]
        runs[:] = [other for other in runs if other is not run]
        if not runs:
            del self._ledgers[run.ledger_id]
