"""Repairs one ledger: finds what it lacks, copies it, and has the metadata name the new bookies.

    1  its metadata are read, and its fragments checked
    2  each closed fragment that lacks replicas is copied to other bookies, which the placement
       chooses as for a writer; to a bookie that runs and lacks entries only if there is no other
       A bookie that runs and lacks single entries (`ledger_checker.py`) gets those, and stays:
       to store an entry again is nothing else than to store it, for ours and Apache's
    3  when all is durable there, the metadata name them, if they still name the bookies before
    4  if anything was copied, the ledger is read and checked again

Nothing else is remembered: after a crash at any line it is begun anew by whoever takes the ledger
next. What was copied before 3 is not in the metadata, and the bookies drop it with the ledger.

Where we differ from Apache's `ReplicationWorker` on purpose: a ledger is taken from its writer only
if a bookie of its last ensemble does not run, and another could take its place. Closing one whose
bookies merely lag, or that nobody could repair then, would stop its writer for nothing.
"""

from __future__ import annotations

import enum
import logging
from collections.abc import Collection, Mapping, Sequence

from magnetar.bookie.client.quorum.ledger_view import LedgerView
from magnetar.bookie.client.quorum.recovery import recover
from magnetar.bookie.client.quorum.store import ClusterClient
from magnetar.bookie.proto.storage_pb2 import LedgerMetadata
from magnetar.bookie.replication.fragment_replicator import FragmentReplicator
from magnetar.bookie.replication.fragments import replaced
from magnetar.bookie.replication.ledger_checker import BadFragment, LedgerChecker
from magnetar.bookie.replication.settings import RecoverySettings
from magnetar.bookie.replication.statistics import ReplicationCounters
from magnetar.core.kernel.errors import BrokerError, LedgerNotFound, StorageFailed

log = logging.getLogger(__name__)


class LedgerCondition(enum.Enum):
    """What a ledger is like after a repair."""

    WHOLE = "whole"
    """It lacks nothing."""
    OPEN = "open"
    """The last ensemble of an open ledger lacks bookies; its writer may replace them."""
    INCOMPLETE = "incomplete"
    """It lacks something that could not be restored now."""


class LedgerRepair:
    """See the module's docstring. `LedgerNotFound` tells that a ledger was deleted."""

    def __init__(
        self, client: ClusterClient, settings: RecoverySettings, counters: ReplicationCounters
    ) -> None:
        self.checker = LedgerChecker(client)
        self._client = client
        self._replicator = FragmentReplicator(client, settings, counters)
        self._counters = counters

    async def repair(self, ledger_id: int, suspects: Collection[str] = ()) -> LedgerCondition:
        """Restore what a ledger lacks, as far as that is possible now. `suspects` are bookies that
        may lack any of their entries, though they run.
        """
        view, bad = await self._look(ledger_id, suspects)
        closed = [each for each in bad if each.fragment.closed]
        copied = [await self._try(view, each) for each in closed]
        if any(copied):
            self._counters.ledgers_replicated += 1
            view, bad = await self._look(ledger_id, suspects)
        if not bad:
            return await self._whole(view)
        last = bad[-1]
        # Whatever else it lacks: while it is open, its last fragment can only lose more bookies.
        if not last.fragment.closed and self._may_be_taken(view, last):
            return LedgerCondition.OPEN
        return LedgerCondition.INCOMPLETE

    async def _whole(self, view: LedgerView) -> LedgerCondition:
        """Whether a ledger is whole of which nothing bad was found: by a list of bookies that may
        be older than the mark, and a bookie without entries is asked for nothing.
        """
        for bookie in view.bookies:
            if not await self._client.bookies.is_registered(bookie):
                return LedgerCondition.INCOMPLETE
        return LedgerCondition.WHOLE

    async def end_grace(self, ledger_id: int) -> None:
        """Take a ledger from its writer, if that has not replaced its lost bookies itself.

        The store is asked whether they are lost: an old list would stop the writer for nothing.
        """
        view, bad = await self._look(ledger_id)
        if not bad or bad[-1].fragment.closed or not self._may_be_taken(view, bad[-1]):
            return
        absent = [bad[-1].fragment.ensemble[position] for position in bad[-1].absent]
        if not all([await self._client.bookies.is_registered(bookie) for bookie in absent]):
            log.warning(
                "ledger %d is open and has lost %s: it is recovered, and its writer fenced",
                ledger_id, ", ".join(bad[-1].bookies),
            )  # fmt: skip
            await self._recover(view)

    def _may_be_taken(self, view: LedgerView, bad: BadFragment) -> bool:
        absent = {p: bad.fragment.ensemble[p] for p in bad.absent}
        placement = self._client.services.placement
        return bool(placement.substitutes(bad.fragment.ensemble, absent, view.striping))

    async def _look(
        self, ledger_id: int, suspects: Collection[str] = ()
    ) -> tuple[LedgerView, list[BadFragment]]:
        ledger = await self._client.ledgers.read(ledger_id)
        view = _view(ledger_id, ledger)
        return view, await self.checker.check(view, ledger, suspects)

    async def _recover(self, view: LedgerView) -> LedgerMetadata:
        client = self._client
        self._counters.ledgers_recovered += 1
        return await recover(view, client.services, client.settings, client.ledgers)

    async def _try(self, view: LedgerView, bad: BadFragment) -> bool:
        """Whether a fragment was restored. What one fragment lacks is no reason to leave others."""
        try:
            patched = await self._patch(view, bad)
            if patched != set(bad.positions):
                rest = [position for position in bad.positions if position not in patched]
                await self.restore(view, BadFragment(bad.fragment, rest, bad.absent))
        except LedgerNotFound:
            raise
        except BrokerError as error:
            log.warning(
                "entries %d to %d of ledger %d are not restored: %s",
                bad.fragment.first, bad.fragment.last, view.ledger_id, error,
            )  # fmt: skip
            return False
        return True

    # -- one fragment -------------------------------------------------------------------------

    async def _patch(self, view: LedgerView, bad: BadFragment) -> set[int]:
        """Have bookies store the single entries that they lack; the positions of those that do."""
        patched = set()
        for position, entries in bad.lacking.items():
            bookie = bad.fragment.ensemble[position]
            lacks = f"ledger {view.ledger_id}: {bookie} lacks {len(entries)} entries"
            if bookie not in self._client.bookies.writable:
                continue
            try:
                await self._replicator.replicate(view, bad.fragment, {position: bookie}, entries)
            except LedgerNotFound:
                raise
            except BrokerError as error:
                log.warning("%s, and does not get them: %s", lacks, error)
                continue
            patched.add(position)
            log.warning("%s, such as %d, and gets them", lacks, entries[0])
        return patched

    async def restore(
        self, view: LedgerView, bad: BadFragment, excluded: Collection[str] = ()
    ) -> None:
        """Have other bookies store what some do not; `StorageFailed` if there are too few."""
        chosen = self.choose(view, bad, excluded)
        if not chosen:
            raise StorageFailed(f"no bookie can take the place of {', '.join(bad.bookies)}")
        await self._replicator.replicate(view, bad.fragment, chosen)
        new = {p: bookie for p, bookie in chosen.items() if bookie != bad.fragment.ensemble[p]}
        if new:
            await self._client.ledgers.change(
                view.ledger_id, lambda ledger: replaced(ledger, bad.fragment, new)
            )
            log.info(
                "ledger %d from entry %d on: %s instead of %s",
                view.ledger_id, bad.fragment.first, ", ".join(new.values()),
                ", ".join(bad.fragment.ensemble[position] for position in new),
            )  # fmt: skip
        if len(chosen) < len(bad.positions):
            raise StorageFailed(f"there are too few bookies for ledger {view.ledger_id}")

    def choose(
        self, view: LedgerView, bad: BadFragment, excluded: Collection[str] = ()
    ) -> Mapping[int, str]:
        """The bookies that get the entries, by position."""
        ensemble = bad.fragment.ensemble
        failed = {position: ensemble[position] for position in bad.positions}
        found = self._client.services.placement.substitutes(
            ensemble, failed, view.striping, suspects_too=True, excluded=excluded
        )
        same = {
            position: bookie
            for position, bookie in failed.items()
            if bookie in self._client.bookies.writable and bookie not in excluded
        }
        return {**same, **found}

    # -- by hand ------------------------------------------------------------------------------

    async def without(
        self, ledger_id: int, lost: Collection[str]
    ) -> tuple[LedgerView, Sequence[BadFragment]]:
        """The fragments of a ledger that have one of these bookies, in any condition."""
        ledger = await self._client.ledgers.read(ledger_id)
        return _view(ledger_id, ledger), self.checker.without(ledger, lost)

    async def replace(self, ledger_id: int, lost: Collection[str]) -> int:
        """Have a ledger do without these bookies; how many fragments were copied. An open one that
        has them in its last ensemble is recovered first.
        """
        view, bad = await self.without(ledger_id, lost)
        if bad and not bad[-1].fragment.closed:
            await self._recover(view)
            view, bad = await self.without(ledger_id, lost)
        for each in bad:
            await self.restore(view, each, lost)
        _, left = await self.without(ledger_id, lost)
        if left:
            raise StorageFailed(f"ledger {ledger_id} was changed by another client: try again")
        return len(bad)


def _view(ledger_id: int, ledger: LedgerMetadata) -> LedgerView:
    """With the password that the metadata have, as Apache's `BookKeeperAdmin` opens ledgers."""
    return LedgerView(ledger_id, ledger, ledger.password)
