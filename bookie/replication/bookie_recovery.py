"""Replaces bookies in all ledgers by hand, without an auditor and without workers: what
`bookkeeper shell recover` does (`BookKeeperAdmin.recoverBookieData` of BookKeeper 4.18).

The bookies need not be gone: what they have is read from wherever it is. Each ledger is repaired
under its lock, as by a worker, which Apache's does not do. Whoever repairs many ledgers can leave
those that somebody else repairs to the end, and wait for them then.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from msgspec import Struct

from magnetar.bookie.client.quorum.store import ClusterClient
from magnetar.bookie.format import ledger_metadata
from magnetar.bookie.replication.ledger_repair import LedgerRepair
from magnetar.bookie.replication.marked_ledgers import MarkedLedgers
from magnetar.core.kernel.errors import LedgerNotFound, StorageFailed


class PlannedFragment(Struct, frozen=True):
    """What is to be done about one fragment."""

    ledger_id: int
    first: int
    last: int
    ensemble: Sequence[str]
    replacements: Mapping[str, str]
    """By the bookies that are replaced; those are missing for which there is no other."""
    open: bool
    """Whether the ledger is taken from its writer first."""


class RecoveredLedger(Struct, frozen=True):
    """What was done about one ledger."""

    fragments: int
    """Those that were copied."""
    closed: bool
    """Whether the ledger was taken from its writer, or from a recovery that did not end."""


class LockedElsewhere(Struct, frozen=True):
    """Nothing was done about a ledger: somebody else repairs it."""


class BookieRecovery:
    """See the module's docstring."""

    def __init__(
        self,
        client: ClusterClient,
        repair: LedgerRepair,
        locks: MarkedLedgers,
        lost: Collection[str],
    ) -> None:
        self._client = client
        self._repair = repair
        self._locks = locks
        self._lost = frozenset(lost)

    async def plan(self, ledger_id: int) -> list[PlannedFragment]:
        """What `recover` would do; other bookies may be chosen then."""
        try:
            view, bad = await self._repair.without(ledger_id, self._lost)
        except LedgerNotFound:
            return []
        found = []
        for each in bad:
            ensemble = each.fragment.ensemble
            chosen = self._repair.choose(view, each, self._lost)
            new = {ensemble[position]: bookie for position, bookie in chosen.items()}
            found.append(
                PlannedFragment(
                    ledger_id, each.fragment.first, each.fragment.last, ensemble, new,
                    not each.fragment.closed,
                )
            )  # fmt: skip
        return found

    async def recover(
        self,
        ledger_id: int,
        *,
        skip_open: bool = False,
        waits_for: Callable[[str], None] | None = None,
    ) -> RecoveredLedger | LockedElsewhere | None:
        """Replace the bookies in a ledger; None if it does not name them, or is left alone. Who
        gives no `waits_for` does not wait for somebody else who repairs it.
        """
        try:
            ledger = await self._client.ledgers.read(ledger_id)
        except LedgerNotFound:
            return None
        members = {bookie for segment in ledger.segment for bookie in segment.ensembleMember}
        if not members.intersection(self._lost):
            return None
        if skip_open and ledger.state == ledger_metadata.OPEN:
            return None
        last = ledger.segment[-1].ensembleMember
        closes = ledger.state != ledger_metadata.CLOSED and not self._lost.isdisjoint(last)
        if waits_for is not None:
            lock = await self._locks.lock(ledger_id, waits_for)
        elif (found := await self._locks.lock_now(ledger_id)) is not None:
            lock = found
        else:
            return LockedElsewhere()
        with lock.held():
            try:
                copied = await self._repair.replace(ledger_id, self._lost)
                return RecoveredLedger(copied, closes)
            except LedgerNotFound:
                return None
            finally:
                await self._locks.release(lock)
        raise StorageFailed(f"the lock of ledger {ledger_id} was lost")
