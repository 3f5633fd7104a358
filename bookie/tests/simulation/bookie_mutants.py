"""Mistakes in a bookie: fences, durability, LACs, full disks, garbage collection, registration."""

from contextlib import suppress

from magnetar.bookie.cluster import cluster as clusters
from magnetar.bookie.cluster.ledgers import ClusterLedgers
from magnetar.bookie.cluster.registration import Registration
from magnetar.bookie.format import entries
from magnetar.bookie.format import journal as journal_format
from magnetar.bookie.server import replay
from magnetar.bookie.server.bookie import Bookie
from magnetar.bookie.server.checkpoint import Checkpointer
from magnetar.bookie.server.entry_lookup import EntryLookup
from magnetar.bookie.server.garbage.collector import Collector
from magnetar.bookie.server.journal.kernel_writer import KernelWriter
from magnetar.bookie.server.ledgers.lac_waiters import LacWaiters
from magnetar.bookie.server.ledgers.served import ServedLedgers
from magnetar.bookie.server.ledgers.states import LedgerStates
from magnetar.bookie.tests.simulation.mutation import mutant
from magnetar.core.kernel.errors import Corrupted, EntryNotFound, StorageFailed

# -- fences ------------------------------------------------------------------------------------


@mutant
def a_fence_is_lost_in_a_crash():
    """Apache's bookie: replay drops the fence of a ledger without a key in the journal, and the
    answer to the fence does not wait for it.
    """

    def write_fence(self, ledger_id, state, done):
        state.fenced = True
        self._checkpointer.rows[ledger_id] = state.row()
        if state.keyed:
            self.write_note(journal_format.fence_note(ledger_id), done)
        else:
            done(None)

    return LedgerStates, "write_fence", write_fence


@mutant
def a_fence_is_answered_before_it_is_durable():
    fence = ServedLedgers.fence

    def fence_at_once(self, ledger_id, master_key, done):
        fence(self, ledger_id, master_key, lambda error: None)
        done(None)

    return ServedLedgers, "fence", fence_at_once


@mutant
def a_recovery_add_lifts_the_fence():
    add = ServedLedgers.add

    def add_and_lift(self, run, master_key, acked, *, recovery=False, urgent=False):
        add(self, run, master_key, acked, recovery=recovery, urgent=urgent)
        if recovery:
            self.known(run.ledger_id).fenced = False

    return ServedLedgers, "add", add_and_lift


@mutant
def a_restart_forgets_fences_in_rows():
    touch = LedgerStates.touch

    def touch_unfenced(self, ledger_id, master_key):
        state = touch(self, ledger_id, master_key)
        state.fenced = False
        return state

    return LedgerStates, "touch", touch_unfenced


# -- durability --------------------------------------------------------------------------------


@mutant
def an_add_is_acknowledged_before_it_is_durable():
    put = KernelWriter.put

    def put_and_deliver(self, batch):
        items, size = batch
        early = [(blob, None) for blob, _ in items]
        put(self, (early, size))
        self._deliver([([(b"", acked) for _, acked in items], 0)], None)

    return KernelWriter, "put", put_and_deliver


@mutant
def a_mark_passes_what_is_in_memory():
    async def make_mark(self):
        mark = self._journal.synced
        if mark > self._mark or not self._begun:
            await self._worker.run(replay_mark, self.storage, mark)
        self._mark, self._begun = mark, True
        self._reached = mark

    from magnetar.bookie.server.ledger_storage import make_mark as replay_mark

    return Checkpointer, "_make_mark", make_mark


@mutant
def a_replay_drops_notes():
    return replay._Target, "note", lambda self, note: None


@mutant
def damage_is_taken_for_absence():
    entry = EntryLookup.entry

    async def entry_or_nothing(self, ledger_id, entry_id, ahead_bytes=0):
        try:
            return await entry(self, ledger_id, entry_id, ahead_bytes)
        except (Corrupted, StorageFailed):
            raise EntryNotFound(f"there is no entry {ledger_id}:{entry_id}") from None

    return EntryLookup, "entry", entry_or_nothing


# -- explicit LACs, long polls, full disks -------------------------------------------------------


@mutant
def an_explicit_lac_is_answered_before_it_is_durable():
    write_lac = ServedLedgers.write_lac

    def write_lac_at_once(self, ledger_id, master_key, packet, done):
        write_lac(self, ledger_id, master_key, packet, lambda error: None)
        done(None)

    return ServedLedgers, "write_lac", write_lac_at_once


@mutant
def a_restart_forgets_explicit_lacs():
    touch = LedgerStates.touch

    def touch_without(self, ledger_id, master_key):
        state = touch(self, ledger_id, master_key)
        state.explicit_lac = b""
        return state

    return LedgerStates, "touch", touch_without


@mutant
def a_poll_is_told_of_the_last_entry_before_it_is_confirmed():
    return entries, "last_confirmed_in", lambda run: run.last


@mutant
def a_poll_sleeps_through_a_new_lac():
    return LacWaiters, "advanced", lambda self, ledger_id, lac: None


@mutant
def a_poll_sleeps_through_a_fence():
    return LacWaiters, "ended", lambda self, ledger_id: None


@mutant
def a_full_bookie_takes_writers():
    check_room = Bookie.check_room

    def check_room_for_recoveries(self, spare_bytes=-1):
        check_room(self, max(spare_bytes, 0))

    return Bookie, "check_room", check_room_for_recoveries


@mutant
def a_full_bookie_refuses_recoveries():
    check_room = Bookie.check_room

    def check_room_for_writers(self, spare_bytes=-1):
        check_room(self)

    return Bookie, "check_room", check_room_for_writers


@mutant
def a_full_bookie_refuses_fences():
    fence = ServedLedgers.fence

    def fence_with_room(self, ledger_id, master_key, done):
        self._bookie.check_room()
        fence(self, ledger_id, master_key, done)

    return ServedLedgers, "fence", fence_with_room


# -- garbage collection ------------------------------------------------------------------------


@mutant
def a_partial_list_of_ledgers_is_trusted():
    """As an iterator of Apache's once did, which stopped at an empty directory."""

    async def deleted(self, ledger_ids):
        listed = []
        for name in await self._store.children(self._cluster.root):
            if not clusters.is_special(name):
                with suppress(StorageFailed):
                    await self._walk(name, listed)
        return [ledger_id for ledger_id in ledger_ids if ledger_id not in listed]

    return ClusterLedgers, "deleted", deleted


@mutant
def a_ledger_that_is_created_after_the_list_is_taken_for_deleted():
    collect = Collector.collect

    async def collect_by_an_old_list(self, compact_below):
        catalog = self._catalog
        listed = await catalog.ids()

        class OldList:
            async def deleted(self, ledger_ids):
                return [ledger_id for ledger_id in ledger_ids if ledger_id not in listed]

        self._catalog = OldList()
        try:
            await collect(self, compact_below)
        finally:
            self._catalog = catalog

    return Collector, "collect", collect_by_an_old_list


@mutant
def an_old_log_is_unlinked_before_the_new_index_is_durable():
    async def compact(self, log_id):
        storage = self._storage
        runs = iter(list(storage.reader.scan(log_id, storage.pause)))
        await self._unlink(log_id)
        while True:
            async with storage.lock:
                if await self._in_thread(self._move_slice, runs) is None:
                    return

    return Collector, "_compact", compact


@mutant
def a_compaction_drops_the_end_of_a_run():
    live_records = Collector._live_records

    def all_but_the_last(self, location, run):
        parts = list(live_records(self, location, run))
        return iter(parts[:-1] if len(parts) > 1 or run.count > 1 else parts)

    return Collector, "_live_records", all_but_the_last


@mutant
def the_row_of_a_deleted_ledger_goes_first():
    def forget_blocking(self, gone):
        for ledger_id in gone:
            self._storage.ledgers.forget(ledger_id)
        self._storage.ledgers.sync()
        for ledger_id in gone:
            self._storage.locations.forget(ledger_id)

    return Collector, "_forget_blocking", forget_blocking


# -- registration ------------------------------------------------------------------------------


@mutant
def a_bookie_does_not_register_again():
    return Registration, "_lost", lambda self, path: None
