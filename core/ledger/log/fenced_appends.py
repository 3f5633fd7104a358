"""Appends that were refused because their ledger was fenced. Pure.

A ledger is fenced by another owner of the topic, or by who recovers it because a bookie was lost
(AutoRecovery, `bookkeeper shell recover`), and then the topic is still ours. Pulsar fails such
appends, and its clients send again (`ManagedLedgerImpl.addComplete` of 4.2). Here they wait until
the ledger is sealed: what the recovery has kept of them is stored, the rest is written again. A run
of several entries may be kept in part, since bookies take each entry by itself: then it lies in two
ledgers, and its callback gets a `SplitPosition`.

Invariants: they leave in their order, and before any later append is written; no entry that was
kept is written again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Final, Self

from magnetar.core.kernel.errors import BrokerError, Fenced
from magnetar.core.ledger.log.appends import Append, Appended
from magnetar.core.ledger.log.chain import Position

EMPTY_LEDGERS_MAX: Final = 3
"""Ledgers in a row that are fenced before anything is in them; then appends fail."""


class SplitPosition(tuple[int, int]):
    """The position of the first entry of a run that is not in one ledger."""

    kept: int
    """The entries in the first ledger."""
    rest: Position
    """Where the others begin; that may be split in turn."""

    @classmethod
    def of(cls, first: Position, kept: int, rest: Position) -> Self:
        position = cls(first)
        position.kept, position.rest = kept, rest
        return position


def stretches_of(first: Position, entries: int) -> Iterator[tuple[int, Position]]:
    """How many entries of a stored run follow each other, and the position of the first of them."""
    while isinstance(first, SplitPosition):
        yield first.kept, (first[0], first[1])
        entries -= first.kept
        first = first.rest
    yield entries, first


class _SplitRun:
    """The callbacks of the two parts of a run."""

    def __init__(self, kept: int, done: Appended) -> None:
        self._kept, self._done = kept, done
        self._first: Position | BrokerError = (-1, -1)

    def first_stored(self, result: Position | BrokerError) -> None:
        self._first = result

    def rest_stored(self, result: Position | BrokerError) -> None:
        if isinstance(result, tuple) and isinstance(self._first, tuple):
            result = SplitPosition.of(self._first, self._kept, result)
        self._done(result)


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
        if self._appends and self._appends[0].entry_id < entries:
            stored.append(self._split_first(entries - self._appends[0].entry_id))
        return stored

    def _split_first(self, kept: int) -> Append:
        """Take the entries that were kept off the first one that waits."""
        append = self._appends.popleft()
        run = _SplitRun(kept, append.done)
        self._appends.appendleft(append.part(kept, len(append.payloads), run.rest_stored))
        return append.part(0, kept, run.first_stored)

    def taken(self) -> deque[Append]:
        """Remove all that are left."""
        appends, self._appends = self._appends, deque()
        return appends
