"""Takes marked ledgers one by one, each under its lock, so that one worker repairs it at a time.

Ledgers are looked for in random order, as by Apache's workers: where several look at the same time,
each finds others (`ZkLedgerUnderreplicationManager.java` of BookKeeper 4.18).

Invariant: what is done with a ledger is done while its lock is ours by our own clock: a lock that
is lost cancels it (`LockedLedger.held`).
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Final, Protocol

import trio

from magnetar.bookie.cluster.changes import Changes
from magnetar.bookie.cluster.under_replication import LEVELS, UnderReplication, id_of
from magnetar.core.kernel.errors import AlreadyExists, BadVersion, NotFound, StorageFailed

PAUSE_SECONDS: Final = 0.1
"""Between two looks at all marks: they may change a thousand times a second."""
UNSURE_SECONDS: Final = 300.0
"""How long a lock may appear whose answer was lost: more than any request is on its way."""
log = logging.getLogger(__name__)


class Order(Protocol):
    """Chance, as in `random.Random`."""

    def shuffle(self, names: list[str], /) -> None: ...


class LockedLedger:
    """A ledger whose lock we have."""

    def __init__(self, ledger_id: int) -> None:
        self.ledger_id = ledger_id
        self.version = 0
        """Of its mark, as it was read under the lock."""
        self.missing: tuple[str, ...] = ()
        """The bookies that the mark names."""
        self.marked_ms: int | None = None
        """When it was written, by its auditor's clock."""
        self.is_held = True
        self._scope = trio.CancelScope()

    def lose(self) -> None:
        """The session is over: another worker may take the ledger."""
        self.is_held = False
        self._scope.cancel()

    @contextmanager
    def held(self) -> Iterator[None]:
        """Do something as long as the lock is ours."""
        self._scope = trio.CancelScope()
        if not self.is_held:
            self._scope.cancel()
        with self._scope:
            yield


Find = Callable[[], Awaitable[LockedLedger | None]]


class MarkedLedgers:
    """See the module's docstring."""

    def __init__(self, marks: UnderReplication, owner: str, order: Order) -> None:
        self.marks = marks
        self._value = f'bookieId: "{owner}"\n'.encode()
        self._order = order
        self._unsure: dict[int, float] = {}
        """Ledgers whose locks may be ours, or become that: the store has not said. Until when."""

    async def take(self) -> LockedLedger:
        """Wait for a marked ledger that nobody repairs, and lock it."""
        return await self._until_found(self._find)

    async def lock(self, ledger_id: int, waits_for: Callable[[str], None]) -> LockedLedger:
        """Wait until nobody repairs a ledger, whether it is marked or not, and lock it. `waits_for`
        hears once who repairs it, if somebody does.
        """
        told = False

        async def find() -> LockedLedger | None:
            nonlocal told
            ledger = await self.lock_now(ledger_id)
            if ledger is None and not told:
                holder = await self.marks.lock_holder(ledger_id)
                if holder is not None:  # else it is through meanwhile, which is a change
                    told = True
                    waits_for(holder)
            return ledger

        return await self._until_found(find)

    async def _until_found(self, find: Find) -> LockedLedger:
        with Changes(self.marks.store, self.marks.root) as changes:
            while True:
                changes.begin()
                await self._release_unsure()
                found = await find()
                if found is not None:
                    return found
                await changes.wait()
                await trio.sleep(PAUSE_SECONDS)

    async def _find(self) -> LockedLedger | None:
        if not await self.marks.is_enabled():
            return None
        locked = set(await self.marks.store.children(self.marks.locks))
        return await self._search(self.marks.ledgers, LEVELS, locked)

    async def _search(self, path: str, levels: int, locked: set[str]) -> LockedLedger | None:
        names = await self.marks.store.children(path)
        self._order.shuffle(names)
        for name in names:
            if levels:
                found = await self._search(f"{path}/{name}", levels - 1, locked)
            else:
                found = None if name in locked else await self._lock(name)
            if found is not None:
                return found
        return None

    async def _lock(self, name: str) -> LockedLedger | None:
        ledger_id = id_of(name)
        if ledger_id is None:
            return None
        ledger = await self.lock_now(ledger_id)
        if ledger is None:
            return None
        marked = None
        try:
            marked = await self.marks.marked(ledger_id)
        finally:
            if marked is None:  # whoever had the lock before has repaired it
                await self.release(ledger)
        if marked is None:
            return None
        ledger.missing, ledger.marked_ms = marked[0].missing, marked[0].found_ms
        ledger.version = marked[1]
        return ledger

    async def lock_now(self, ledger_id: int) -> LockedLedger | None:
        """Lock a ledger, unless somebody repairs it."""
        ledger = LockedLedger(ledger_id)
        try:
            await self.marks.store.lease(self.marks.lock_of(ledger_id), self._value, ledger.lose)
        except AlreadyExists:
            return None
        except StorageFailed:
            self._unsure[ledger_id] = trio.current_time() + UNSURE_SECONDS
            raise
        self._unsure.pop(ledger_id, None)
        return ledger

    async def _release_unsure(self) -> None:
        """A lock that nobody knows of would keep its ledger from being repaired as long as this
        process runs. One that is not there may be on its way: when it comes, that is a change, and
        it is looked for again.
        """
        for ledger_id, until in list(self._unsure.items()):
            path = self.marks.lock_of(ledger_id)
            found = await self.marks.store.get(path)
            if found is not None and found.value == self._value:
                with suppress(BadVersion, NotFound):
                    await self.marks.store.delete(path, found.version)
            elif trio.current_time() < until:
                continue
            self._unsure.pop(ledger_id, None)

    async def release(self, ledger: LockedLedger) -> None:
        """Let others take it. Tried until it is done, or the session ends: a lock that is forgotten
        would keep the ledger from being repaired as long as this process runs.
        """
        path = self.marks.lock_of(ledger.ledger_id)
        while ledger.is_held:
            try:
                found = await self.marks.store.get(path)
                if found is not None:
                    await self.marks.store.delete(path, found.version)
            except (BadVersion, NotFound):
                pass
            except StorageFailed as error:
                log.warning("the lock of ledger %d stays: %s", ledger.ledger_id, error)
                await trio.sleep(1)
                continue
            ledger.is_held = False
