"""Runs that a writer refuses: each is reported in its turn, and never from within `append`.

Invariant: as long as one is not reported, `error` is set, and the writer accepts nothing: what is
stored behind a refused run could be taken for it.
"""

from __future__ import annotations

from collections import deque

from magnetar.core.kernel.errors import BrokerError
from magnetar.core.ports.ledger_store import Done


class RefusedRuns:
    """See the module's docstring."""

    def __init__(self) -> None:
        self._runs: deque[tuple[int, Done, BrokerError]] = deque()
        self.error: BrokerError | None = None
        """Of the last one; None if all are reported."""

    def add(self, before: int, done: Done, error: BrokerError) -> None:
        """Refuse a run behind the one that ends with the entry `before`."""
        self._runs.append((before, done, error))
        self.error = error

    def report(self, reported: int) -> None:
        """Report those behind runs that are reported themselves, up to this entry."""
        runs = self._runs
        while runs and runs[0][0] <= reported:
            _, done, error = runs.popleft()
            if not runs:
                self.error = None
            done(error)
