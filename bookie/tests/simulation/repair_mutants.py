"""Mistakes of those that audit and repair ledgers."""

from contextlib import suppress

from magnetar.bookie.replication import audits
from magnetar.bookie.replication.election import AuditorElection
from magnetar.bookie.replication.fragment_replicator import FragmentReplicator
from magnetar.bookie.replication.ledger_repair import LedgerCondition, LedgerRepair
from magnetar.bookie.replication.marked_ledgers import MarkedLedgers
from magnetar.bookie.tests.simulation.mutation import mutant
from magnetar.core.kernel.errors import BrokerError

# -- workers and auditors ----------------------------------------------------------------------


@mutant
def a_repair_drops_its_last_copy():
    store = FragmentReplicator._store

    async def store_all_but_one(self, view, bookies, runs):
        await store(self, view, bookies, runs[:-1])

    return FragmentReplicator, "_store", store_all_but_one


@mutant
def a_worker_unmarks_what_it_has_not_copied():
    async def repair(self, ledger_id, suspects):
        return LedgerCondition.WHOLE

    return LedgerRepair, "repair", repair


@mutant
def an_auditor_looks_at_last_segments_only():
    members = audits._members

    def members_of_the_last(ledger):
        del ledger.segment[:-1]
        return members(ledger)

    return audits, "_members", members_of_the_last


@mutant
def a_lock_is_released_as_soon_as_it_is_taken():
    take = MarkedLedgers.take

    async def take_for_a_moment(self):
        ledger = await take(self)
        path = self.marks.lock_of(ledger.ledger_id)
        with suppress(BrokerError):
            await self.marks.store.delete(path, 0)
        return ledger

    return MarkedLedgers, "take", take_for_a_moment


@mutant
def a_vote_stays_when_its_term_is_over():
    async def withdraw(self, number):
        """It is left to the session, which goes on."""

    return AuditorElection, "_withdraw", withdraw
