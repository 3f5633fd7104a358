"""Appends that were refused because their ledger was fenced. Pure.

A ledger is fenced by another owner of the topic, or by who recovers it because a bookie was lost
(AutoRecovery, `bookkeeper shell recover`), and then the topic is still ours. Pulsar fails such
appends, and its clients send again (`ManagedLedgerImpl.addComplete` of 4.2). Here they wait until
the ledger is sealed: what the recovery has kept of them is stored, the rest is written again. A run
of several entries that it has kept in part is written again whole, as the client would have sent
it: its first entries are there twice.

Invariant: they leave in their order, each as it was appended, and before any later append is
written.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from magnetar.core.kernel.errors import BrokerError, Fenced
from magnetar.core.ledger.log.appends import Append

EMPTY_LEDGERS_MAX: Final = 3
"""Ledgers in a row that are fenced before anything is in them; then appends fail."""


class FencedAppends:
    """See the module's docstring."""

    __slots__ = ("_appends", "_empty")

    def __init__(self) -> None:
        self._appends: deque[Append] = deque()
        self._empty = 0
        """Ledgers in a row that were empty."""

    def __bool__(self) -> bool:
        return bool(self._appends)

    @property
    def first(self) -> Append | None:
        """The first one that waits."""
        return self._appends[0] if self._appends else None

    def accepts(self, error: BrokerError) -> bool:
        """Whether an append that failed so may be written again."""
        return isinstance(error, Fenced) and self._empty < EMPTY_LEDGERS_MAX

    def add(self, append: Append) -> None:
        """One that was refused, after those before it."""
        self._appends.extend(append.parts())

    def ended_well(self) -> None:
        """A ledger has ended that nobody had fenced."""
        self._empty = 0

    def stored_in(self, entries: int) -> list[Append]:
        """Remove those that are in the first `entries` of the ledger, which is how it ends."""
        self._empty = 0 if entries else self._empty + 1
        stored = []
        while self._appends and self._appends[0].end <= entries:
            stored.append(self._appends.popleft())
        return stored

    def taken(self) -> deque[Append]:
        """Remove all that are left."""
        appends, self._appends = self._appends, deque()
        return appends
