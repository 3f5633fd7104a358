"""Mistakes in the client of a cluster: recovery, ensembles, metadata."""

from magnetar.bookie.client.quorum import recovery
from magnetar.bookie.client.quorum.answers import Answers
from magnetar.bookie.client.quorum.pending_adds import PendingAdds
from magnetar.bookie.client.quorum.recovery import Recovery
from magnetar.bookie.client.quorum.recovery_quorums import Fencing, Proof, RecoveryRead
from magnetar.bookie.client.quorum.striping import Striping
from magnetar.bookie.client.quorum.writer import QuorumWriter
from magnetar.bookie.cluster.ledgers import ClusterLedgers
from magnetar.bookie.format import ledger_metadata
from magnetar.bookie.rpc.messages import Read
from magnetar.bookie.tests.simulation.mutation import mutant
from magnetar.core.kernel.errors import StorageFailed

# -- historic ----------------------------------------------------------------------------------


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
def one_bookie_too_few_is_fenced():
    """Found only with bookies that deny entries before their fence is durable, as Apache's do."""

    def proof(self):
        everywhere = range(self._striping.ensemble)
        if any(self._striping.is_covered({*self._answered, one}) for one in everywhere):
            return Proof.FOUND if self._answered else Proof.UNDECIDED
        if len(self._answered | self._failed) == self._striping.ensemble:
            return Proof.LOST
        return Proof.UNDECIDED

    return Fencing, "proof", property(proof)


# -- recovery ----------------------------------------------------------------------------------


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


# -- the ensemble, and counting ----------------------------------------------------------------


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
