"""Mistakes of those that audit and repair ledgers."""

from contextlib import suppress

from magnetar.bookie.replication import audits
from magnetar.bookie.replication.election import AuditorElection
from magnetar.bookie.replication.fragment_replicator import FragmentReplicator
from magnetar.bookie.replication.ledger_checker import LedgerChecker
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
    async def repair(self, ledger_id, suspects=()):
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
def an_auditor_reads_no_entries_between_the_first_and_the_last():
    initialize = LedgerChecker.__init__

    def without_percentage(self, client, percentage=0, turn=0):
        initialize(self, client, 0, turn)

    return LedgerChecker, "__init__", without_percentage


@mutant
def a_worker_looks_for_nothing_that_a_mark_tells_of():
    repair = LedgerRepair.repair

    async def repair_without_suspects(self, ledger_id, suspects=()):
        return await repair(self, ledger_id)

    return LedgerRepair, "repair", repair_without_suspects


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
