"""A LedgerStore in memory: the verified fake, which passes the contract tests of the real one.

It confirms appends on `sync`, or at once, so that tests decide when an entry is stored.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence

import trio

from magnetar.core.kernel.errors import (
    BrokerError,
    Corrupted,
    EntryNotFound,
    Fenced,
    LedgerNotFound,
    StorageFailed,
    StorageFull,
)
from magnetar.core.ports.ledger_store import Done, LedgerInfo, Quorums


class MemoryLedger:
    """One ledger, writer and reader in one."""

    def __init__(
        self, store: MemoryLedgers, ledger_id: int, properties: Mapping[str, bytes]
    ) -> None:
        self.ledger_id = ledger_id
        self.properties = dict(properties)
        self.quorums: Quorums | None = None
        """What was asked for."""
        self.entries: list[bytes] = []
        self.last_confirmed = -1
        self.closed = False
        self.failure: BrokerError | None = None
        self.damaged: set[int] = set()
        """Damaged entries."""
        self._store = store
        self._waiting: deque[tuple[int, Done]] = deque()

    @property
    def length(self) -> int:
        return sum(map(len, self.entries))

    def append(
        self, payloads: Sequence[bytes], done: Done, headers: Sequence[bytes] | None = None
    ) -> int:
        assert payloads, "a run has at least one entry"
        first = len(self.entries)
        if self.closed and self.failure is None:
            self.failure = Fenced(f"ledger {self.ledger_id} is closed")
        if not self._store.writable() and self.failure is None:
            self.failure = StorageFull("the disk is full")
        if self.failure is not None:
            failure = self.failure
            trio.lowlevel.current_trio_token().run_sync_soon(lambda: done(failure))
            return first
        if headers is not None:
            payloads = [head + payload for head, payload in zip(headers, payloads, strict=True)]
        self.entries += payloads
        self._waiting.append((len(self.entries) - 1, done))
        if self._store.sync_at_once:
            trio.lowlevel.current_trio_token().run_sync_soon(self.sync)
        return first

    @property
    def waits(self) -> bool:
        """Whether something that was appended is not stored."""
        return bool(self._waiting)

    def sync(self) -> None:
        """Store everything appended so far."""
        while self._waiting:
            self.last_confirmed, done = self._waiting.popleft()
            done(None)

    def fail(self, error: BrokerError) -> None:
        """Lose everything that is not stored yet, and accept nothing more."""
        self.failure = error
        del self.entries[self.last_confirmed + 1 :]
        while self._waiting:
            self._waiting.popleft()[1](error)

    async def read(self, first: int, last: int, bytes_max: int) -> list[bytes]:
        last = min(last, self.last_confirmed)
        if not 0 <= first <= last:
            raise EntryNotFound(f"ledger {self.ledger_id} has no entries {first} to {last}")
        if first in self.damaged:
            raise Corrupted(f"entry {self.ledger_id}:{first} does not have its digest")
        return self._part(first, last, bytes_max)

    async def damage(self, entry_id: int) -> tuple[int, int]:
        await trio.lowlevel.checkpoint()  # the real one searches in a thread meanwhile
        first = last = entry_id
        while first - 1 in self.damaged:
            first -= 1
        while last + 1 in self.damaged:
            last += 1
        return first, last

    def _part(self, first: int, last: int, bytes_max: int) -> list[bytes]:
        found = [self.entries[first]]
        size = len(found[0])
        for entry_id in range(first + 1, last + 1):
            entry = self.entries[entry_id]
            size += len(entry)
            if size > bytes_max or entry_id in self.damaged:
                break
            found.append(entry)
        return found

    def read_at_once(self, first: int, last: int, bytes_max: int) -> list[bytes]:
        last = min(last, self.last_confirmed)
        if not (self._store.at_hand and 0 <= first <= last) or first in self.damaged:
            return []
        return self._part(first, last, bytes_max)

    async def close(self) -> LedgerInfo:
        self.fail(self.failure or Fenced(f"ledger {self.ledger_id} is closed"))
        self.closed = True
        return self.info()

    def info(self) -> LedgerInfo:
        return LedgerInfo(
            self.ledger_id, self.closed, self.last_confirmed, self.length, self.properties
        )


class MemoryLedgers:
    """See the module's docstring."""

    def __init__(self, *, sync_at_once: bool = True) -> None:
        self.sync_at_once = sync_at_once
        self.ledgers: dict[int, MemoryLedger] = {}
        self.create_failure: BrokerError | None = None
        self.at_hand = False
        """Whether reads are served at once, as from the page cache."""
        self.full = False
        """Whether the disk is full."""
        self.bookies = 5
        """How many bookies there might be: what a ledger may ask for."""
        self._next_id = 0

    def writable(self, quorums: Quorums | None = None) -> bool:
        return not self.full and (quorums is None or quorums.ensemble <= self.bookies)

    def refusal(self, quorums: Quorums | None = None) -> str:
        if quorums is not None and quorums.ensemble > self.bookies:
            return f"storage takes no writes: fewer than {quorums.ensemble} bookies take writes"
        return "storage takes no writes: the disk is full"

    def sync(self) -> None:
        """Store everything appended so far, in all ledgers."""
        for ledger in list(self.ledgers.values()):
            ledger.sync()

    async def create(
        self, properties: Mapping[str, bytes], quorums: Quorums | None = None
    ) -> MemoryLedger:
        if self.create_failure is not None:
            raise self.create_failure
        if quorums is not None and quorums.ensemble > self.bookies:
            raise StorageFailed(
                f"a ledger needs {quorums.ensemble} bookies, and {self.bookies} take writes"
            )
        ledger = MemoryLedger(self, self._next_id, properties)
        ledger.quorums = quorums
        self.ledgers[self._next_id] = ledger
        self._next_id += 1
        return ledger

    async def open(self, ledger_id: int, *, recover: bool) -> MemoryLedger:
        ledger = self._find(ledger_id)
        if recover and not ledger.closed:
            await ledger.close()
        return ledger

    async def info(self, ledger_id: int) -> LedgerInfo:
        return self._find(ledger_id).info()

    async def delete(self, ledger_id: int) -> None:
        self.ledgers.pop(ledger_id, None)

    def _find(self, ledger_id: int) -> MemoryLedger:
        found = self.ledgers.get(ledger_id)
        if found is None:
            raise LedgerNotFound(f"there is no ledger {ledger_id}")
        return found
