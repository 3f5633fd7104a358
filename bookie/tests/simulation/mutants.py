"""Mistakes that the simulator must find: historic ones, and plausible ones of our own."""

from magnetar.bookie.tests.simulation import bookie_mutants, client_mutants, repair_mutants
from magnetar.bookie.tests.simulation.mutation import MUTANTS, mutated

__all__ = ["HISTORIC", "MUTANTS", "mutated"]

MODULES = (client_mutants, bookie_mutants, repair_mutants)
"""What has them."""
HISTORIC = ("recovery_reads_do_not_fence", "the_lac_has_no_floor", "a_fence_is_lost_in_a_crash")
<<<<<<< HEAD
=======


def mutant(function):
    MUTANTS[function.__name__] = function
    return function


@contextmanager
def mutated(name):
    """Have the code contain one mistake, until the end of the block."""
    target, attribute, replacement = MUTANTS[name]()
    now = getattr(target, attribute)
    if not isinstance(now, property):
        parameters = len(signature(now).parameters), len(signature(replacement).parameters)
        assert parameters[0] == parameters[1], f"{name} is behind the code: {signature(now)}"
    with patch.object(target, attribute, replacement):
        yield


# -- historic --------------------------------------------------------------------------------


@mutant
def recovery_reads_do_not_fence():
    """BookKeeper #2614: a bookie says "no such entry", and then takes it from the writer."""

    def begin_read(self, entry_id, held):
        read = RecoveryRead(self._view.striping, entry_id)
        answers = Answers(self._services.connections, held)
        request = Read(self._view.ledger_id, entry_id, high_priority=True)
        for position in read.write_set:
            answers.ask(position, self._read_from[position], request)
        return read, answers

    return Recovery, "_begin_read", begin_read


@mutant
def the_lac_has_no_floor():
    """BookKeeper #2615: a recovery with an empty last segment begins before it."""
    initialize = Fencing.__init__

    def without_floor(self, striping, segment_first):
        initialize(self, striping, 0)

    return Fencing, "__init__", without_floor


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


# -- fencing ---------------------------------------------------------------------------------


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


# -- recovery --------------------------------------------------------------------------------


@mutant
def one_denial_too_few_ends_a_ledger():
    return Striping, "missing_needed", property(lambda self: max(self.write - self.ack, 1))


@mutant
def no_answer_is_taken_for_a_denial():
    return RecoveryRead, "failed", RecoveryRead.missing


@mutant
def a_recovery_does_not_wait_for_what_it_stores():
    async def read_and_store(self, entry_id):
        while True:
            read, answers = self._begin_read(entry_id, lambda _: None)
            entry = await self._decide(entry_id, read, answers)
            if entry is None:
                return
            self._store_again(entry)
            self._pending.last_confirmed = entry_id
            run = recovery.run_of(entry)
            self._pending.length_confirmed = recovery.header_of(run, entry_id).length
            entry_id += 1

    return Recovery, "_read_and_store", read_and_store


@mutant
def a_recovery_reads_from_the_ensemble_it_has_made():
    begin_read = Recovery._begin_read

    def begin_read_there(self, entry_id, held):
        self._read_from = self._pending.ensemble
        return begin_read(self, entry_id, held)

    return Recovery, "_begin_read", begin_read_there


@mutant
def a_recovery_forgets_its_segments():
    async def record(self, first, ensemble):
        """It is written nowhere."""

    return Recovery, "_record", record


# -- the ensemble, and counting --------------------------------------------------------------


@mutant
def an_ack_of_a_replaced_bookie_counts():
    def acknowledge(self, pending, position, bookie):
        self._absent.pop(position, None)
        pending.acknowledged.add(position)
        self._complete()

    return PendingAdds, "acknowledge", acknowledge


@mutant
def acks_outlive_a_change_of_the_ensemble():
    def replace(self, bookies):
        for position, bookie in bookies.items():
            self._ensemble[position] = bookie
            self._failed.pop(position, None)
            self._absent.pop(position, None)
        resent = [
            (pending, position)
            for pending in self._queue
            for position in pending.positions
            if position in bookies and position not in pending.acknowledged
        ]
        self._complete()
        return resent

    return PendingAdds, "replace", replace


@mutant
def adds_are_done_during_a_change():
    """BookKeeper #1591, #4651."""

    def complete(self):
        queue, quorum = self._queue, self._striping.ack
        while queue and not self._closed and len(queue[0].acknowledged) >= quorum:
            pending = queue.popleft()
            self.last_confirmed = pending.run.last
            self.length_confirmed = pending.length
            if pending.done is not None:
                pending.done(None)

    return PendingAdds, "_complete", complete


@mutant
def one_ack_too_few_is_a_quorum():
    def complete(self):
        queue, quorum = self._queue, max(self._striping.ack - 1, 1)
        while (
            queue and not self._failed and not self._closed and len(queue[0].acknowledged) >= quorum
        ):
            pending = queue.popleft()
            self.last_confirmed = pending.run.last
            self.length_confirmed = pending.length
            if pending.done is not None:
                pending.done(None)

    return PendingAdds, "_complete", complete


@mutant
def a_segment_begins_behind_what_is_sent():
    def first_affected(self):
        return self._queue[-1].run.last + 1 if self._queue else self.last_confirmed + 1

    return PendingAdds, "first_affected", property(first_affected)


@mutant
def a_writer_closes_at_what_it_has_sent():
    close = QuorumWriter.close

    async def close_behind(self):
        self._pending.last_confirmed = self._next - 1
        self._pending.length_confirmed = self._length
        return await close(self)

    return QuorumWriter, "close", close_behind


@mutant
def metadata_are_written_over_what_others_wrote():
    async def change(self, ledger_id, transform):
        ledger, form, version = await self._read(ledger_id)
        if not transform(ledger):
            return ledger
        while True:
            try:
                data = ledger_metadata.encode(ledger, form)
                await self._store.put(self._cluster.ledger(ledger_id), data, version)
            except StorageFailed:
                raise
            except Exception:  # noqa: BLE001 - the mistake
                _, _, version = await self._read(ledger_id)
            else:
                return ledger

    return ClusterLedgers, "change", change


# -- re-replication --------------------------------------------------------------------------


@mutant
def a_repair_drops_its_last_copy():
    store = FragmentReplicator._store

    async def store_all_but_one(self, view, bookies, runs):
        await store(self, view, bookies, runs[:-1])

    return FragmentReplicator, "_store", store_all_but_one


# -- the bookie ------------------------------------------------------------------------------


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
>>>>>>> client15
