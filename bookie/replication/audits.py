"""Audits: all ledgers of a cluster are looked at, and those that lack replicas are marked.

An audit of bookies reads the metadata of all ledgers, and marks those that have a bookie which does
not run. A check of all ledgers also asks the bookies that run for their first and last entries, and
perhaps for some between (`AuditorBookieCheckTask.java`, `AuditorCheckAllLedgersTask.java` of
BookKeeper 4.18).

A mark says that something is to be looked at, and whoever repairs the ledger looks for himself. So
too many do no harm; but a ledger that is left out may be lost with the next bookie. Hence a list of
ledgers that may not be whole is an error (`ClusterLedgers.ids`), and an audit that does not come to
its end counts as none. When no bookie at all is registered, nothing is marked: it tells of the
list, or of a cluster that nobody can repair.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable

import trio

from magnetar.bookie.client.quorum.ledger_view import LedgerView
from magnetar.bookie.client.quorum.store import ClusterClient
from magnetar.bookie.cluster.under_replication import UnderReplication
from magnetar.bookie.proto.storage_pb2 import LedgerMetadata
from magnetar.bookie.replication.ledger_checker import LedgerChecker
from magnetar.bookie.replication.settings import RecoverySettings
from magnetar.bookie.replication.statistics import ReplicationCounters
from magnetar.core.kernel.clock import Clock
from magnetar.core.kernel.errors import (
    BrokerError,
    Corrupted,
    LedgerNotFound,
    NotAllowed,
    StorageFailed,
    Unsupported,
)

log = logging.getLogger(__name__)


class Audits:
    """See the module's docstring. Errors are `StorageFailed`, and `NotAllowed` once disabled."""

    def __init__(
        self,
        client: ClusterClient,
        marks: UnderReplication,
        clock: Clock,
        counters: ReplicationCounters,
        settings: RecoverySettings,
    ) -> None:
        self._client = client
        # An auditor that is started anew before each check must not read the same entries again.
        self._checker = LedgerChecker(client, settings.verification_percentage, clock.wall_ms())
        self._marks = marks
        self._clock = clock
        self._counters = counters
        self._at_once = settings.ledgers_at_once

    async def audit_bookies(self) -> None:
        """Mark the ledgers of all bookies that do not run."""
        await self._of_all(self._find_lost)
        self._counters.audits += 1

    async def check_all_ledgers(self) -> None:
        """Mark also those of which bookies that run lack entries."""
        self._checker.next_turn()
        await self._of_all(self._check)
        await self._marks.set_checked(self._clock.wall_ms())

    async def mark_bookies(
        self, lost: Iterable[str], progress: Callable[[int], None] = lambda _: None
    ) -> list[int]:
        """Mark the ledgers of these bookies, and return them. `progress` hears of each ledger that
        was looked at.
        """
        wanted, found = set(lost), []

        async def look(ledger_id: int, ledger: LedgerMetadata) -> None:
            missing = wanted & _members(ledger)
            if missing:
                found.append(ledger_id)
                await self._mark(ledger_id, missing)
            progress(1)

        await self._of_all(look)
        return sorted(found)

    async def _of_all(self, look: Callable[[int, LedgerMetadata], Awaitable[None]]) -> None:
        if not (self._client.bookies.writable or self._client.bookies.read_only):
            raise StorageFailed("no bookie is registered")

        async def read(ledger_id: int) -> None:
            try:
                await look(ledger_id, await self._client.ledgers.read(ledger_id))
            except LedgerNotFound:  # deleted since it was listed
                return
            except (Corrupted, Unsupported) as error:
                log.error("ledger %d is left out of the audit: %s", ledger_id, error)

        await for_each(await self._client.ledgers.ids(), self._at_once, read)

    async def _find_lost(self, ledger_id: int, ledger: LedgerMetadata) -> None:
        lost = {bookie for bookie in _members(ledger) if not self._checker.runs(bookie)}
        if lost:
            await self._mark(ledger_id, lost)

    async def _check(self, ledger_id: int, ledger: LedgerMetadata) -> None:
        view = LedgerView(ledger_id, ledger, ledger.password)
        self._counters.ledgers_checked += 1
        try:
            found = await self._checker.check(view, ledger)
        except BrokerError as error:  # what one ledger's bookies say must not end the check of all
            log.warning("ledger %d cannot be checked: %s", ledger_id, error)
            return
        lost: set[str] = set()
        for bad in found:
            # Where a writer still is, bookies may lag.
            positions = bad.positions if bad.fragment.closed else bad.absent
            lost.update(bad.fragment.ensemble[position] for position in positions)
        if lost:
            await self._mark(ledger_id, lost)

    async def _mark(self, ledger_id: int, lost: set[str]) -> None:
        if not await self._marks.is_enabled():
            raise NotAllowed("re-replication was disabled during the audit")
        if await self._marks.mark(ledger_id, lost, self._clock.wall_ms()):
            self._counters.ledgers_marked += 1
            log.info("ledger %d lacks what %s had", ledger_id, ", ".join(sorted(lost)))


def _members(ledger: LedgerMetadata) -> set[str]:
    return {bookie for segment in ledger.segment for bookie in segment.ensembleMember}


async def for_each(
    ids: Iterable[int], at_once: int, work: Callable[[int], Awaitable[None]]
) -> None:
    """Do something for each, several at the same time; the first error ends it."""
    waiting, errors = iter(ids), list[BrokerError]()

    async def run() -> None:
        for one in waiting:
            if errors:
                return
            try:
                await work(one)
            except BrokerError as error:
                errors.append(error)

    async with trio.open_nursery() as nursery:
        for _ in range(at_once):
            nursery.start_soon(run)
    if errors:
        raise errors[0]
