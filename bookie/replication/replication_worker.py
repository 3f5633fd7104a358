"""Repairs marked ledgers, one at a time, until it is cancelled.

    a ledger         then
    lacks nothing    it is unmarked, and its lock released
    is deleted       likewise
    is open          the lock is kept for the grace period; if its writer has not replaced the lost
                     bookie by then, it is recovered; the lock is released, and the ledger is a
                     closed one for whoever takes it next
    is incomplete    the lock is kept for a while, which doubles with each failure, or until there
                     are other bookies than before; then released

While locks are only kept, other ledgers are repaired, up to `waiting_ledgers_max`
(`ReplicationWorker.java` of BookKeeper 4.18).
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Collection
from typing import Final

import trio

from magnetar.bookie.replication.ledger_repair import LedgerCondition, LedgerRepair
from magnetar.bookie.replication.marked_ledgers import LockedLedger, MarkedLedgers
from magnetar.bookie.replication.presence import BookiePresence
from magnetar.bookie.replication.settings import RecoverySettings
from magnetar.bookie.replication.statistics import ReplicationCounters
from magnetar.core.kernel.errors import BrokerError, LedgerNotFound, StorageFailed

DOUBLINGS: Final = 5
"""Of the pause after a failure, until it is the longest (`NUM_OF_EXPONENTIAL_BACKOFF_RETRIALS`)."""
FAILED_LEDGERS_MAX: Final = 2000
"""Of which the number of failures is known."""
log = logging.getLogger(__name__)


class ReplicationWorker:
    """See the module's docstring."""

    def __init__(
        self,
        marked: MarkedLedgers,
        repair: LedgerRepair,
        settings: RecoverySettings,
        counters: ReplicationCounters,
        presence: BookiePresence,
    ) -> None:
        self._marked = marked
        self._repair = repair
        self._settings = settings
        self._counters = counters
        self._presence = presence
        self._failures: OrderedDict[int, int] = OrderedDict()
        self._changed = trio.Event()

    def bookies_changed(self) -> None:
        """There are other bookies than before: one may take what no other could."""
        self._changed.set()
        self._changed = trio.Event()

    async def run(self) -> None:
        """Repair ledgers until it is cancelled."""
        room = trio.Semaphore(self._settings.waiting_ledgers_max)
        async with trio.open_nursery() as nursery:
            while True:
                await room.acquire()
                try:
                    ledger = await self._marked.take()
                except StorageFailed as error:
                    log.warning("marked ledgers cannot be looked for: %s", error)
                    room.release()
                    await trio.sleep(self._settings.error_pause_seconds)
                    continue
                outcome = await self._replicate(ledger)
                nursery.start_soon(self._conclude, ledger, outcome, room)

    async def _replicate(self, ledger: LockedLedger) -> LedgerCondition:
        with ledger.held():
            try:
                outcome = await self._repair.repair(ledger.ledger_id, self._suspects(ledger))
            except LedgerNotFound:
                log.info("ledger %d is not repaired: it was deleted", ledger.ledger_id)
                outcome = LedgerCondition.WHOLE
            except BrokerError as error:
                log.warning("ledger %d cannot be repaired: %s", ledger.ledger_id, error)
                outcome = LedgerCondition.INCOMPLETE
            log.info("ledger %d is %s", ledger.ledger_id, outcome.value)
            return outcome
        log.warning("the lock of ledger %d is lost", ledger.ledger_id)
        return LedgerCondition.INCOMPLETE

    def _suspects(self, ledger: LockedLedger) -> Collection[str]:
        """The bookies of which all entries are read. Where no percentage is asked for, those are
        left out whose absence is what the mark tells of.
        """
        if self._settings.verification_percentage:
            return ledger.missing
        away = self._presence.was_away
        return [bookie for bookie in ledger.missing if not away(bookie, ledger.marked_ms)]

    async def _conclude(
        self, ledger: LockedLedger, outcome: LedgerCondition, room: trio.Semaphore
    ) -> None:
        with ledger.held():
            try:
                await self._wait_or_unmark(ledger, outcome)
            except BrokerError as error:
                log.warning("ledger %d: %s", ledger.ledger_id, error)
                await trio.sleep(self._settings.error_pause_seconds)
            await self._marked.release(ledger)
        room.release()

    async def _wait_or_unmark(self, ledger: LockedLedger, outcome: LedgerCondition) -> None:
        if outcome is LedgerCondition.WHOLE:
            self._failures.pop(ledger.ledger_id, None)
            await self._marked.marks.unmark(ledger.ledger_id, ledger.version)
        elif outcome is LedgerCondition.OPEN:
            await trio.sleep(self._settings.open_ledger_grace_seconds)
            await self._repair.end_grace(ledger.ledger_id)
        else:
            self._counters.ledgers_deferred += 1
            with trio.move_on_after(self._pause_after(ledger.ledger_id)):
                await self._changed.wait()

    def _pause_after(self, ledger_id: int) -> float:
        failures = self._failures.pop(ledger_id, 0)
        self._failures[ledger_id] = failures + 1
        if len(self._failures) > FAILED_LEDGERS_MAX:
            self._failures.popitem(last=False)
        doublings: int = min(failures, DOUBLINGS)
        return self._settings.failed_ledger_pause_seconds * 2.0 ** (doublings - DOUBLINGS)
