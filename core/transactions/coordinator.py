"""The transaction coordinator: the participants of each transaction, and one outcome for all.

To end a transaction, the coordinator stores the decision. From then on its outcome may be reported
(Kafka's clients hear it at once; Pulsar's when everybody sees it). A task writes a marker to every
log, has every participant carry the decision out and, for a commit, carries out the pending commits
(of offsets); then it stores the end. Where no name is used twice, logs and participants that are
loaded show a commit as soon as it is decided; if all are, it is carried out in the same turn, and
the task is for what fails. After a crash in between, these steps are repeated: a second marker, or
a second execution of the rest, changes nothing. A decided transaction takes no new participants: a
writer that begins the next one waits.

Each of these steps is repeated until it succeeds, whatever the error, because the outcome is
decided and reported. Only another coordinator's write to the record ends the attempts. A
`NotCoordinator` of a participant does not: it concerns the group, not the transaction.

A coordinator that is replaced while it carries out a decision must stop: the same writer may have
begun the next transaction with the new coordinator. So it verifies the record before it loads a
log, and once more right before it appends the marker. In between, no other coordinator can have
ended the transaction: it would have had to load and mark the same log, which fences this one's
writer.

Each transaction is a record with one owner (`core/cluster/owned_record.py`). It is loaded when this
broker starts or first needs it, if this broker owns it; others are neither loaded nor ended here.
Loading does not claim it: every change of a transaction is a write, and a second marker of the same
decision changes nothing. A coordinator that finds a record written by another one drops it and
raises `NotCoordinator`; on the next request it asks again for the owner.

Invariants: no change of a transaction is answered before it is stored; operations on one name
happen one at a time; a decision never changes, for it is conditional on the record it replaces.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Final

import msgspec
import trio
from msgspec.structs import replace

from magnetar.core.cluster.owned_record import RecordState
from magnetar.core.cluster.owned_records import OwnedRecords, RecordKind
from magnetar.core.cluster.ownership import ALONE
from magnetar.core.entry.form import TransactionalForm
from magnetar.core.kernel.errors import (
    BrokerError,
    Corrupted,
    Fenced,
    NotCoordinator,
    NotReady,
    TopicNotFound,
)
from magnetar.core.kernel.names import TopicName
from magnetar.core.ports.ledger_store import Done
from magnetar.core.transactions.insistence import Step, insist, insist_on_all
from magnetar.core.transactions.kind import REUSED, TransactionKind
from magnetar.core.transactions.slot import TransactionSlot
from magnetar.core.transactions.topic_host import TopicHost
from magnetar.core.transactions.transaction import (
    AT_REST,
    PendingCommit,
    Transaction,
    TransactionState,
)

log = logging.getLogger(__name__)

NO_SPELLINGS: Final[Mapping[str, str]] = {}
SWEEP_SECONDS: Final = 1.0
DELETE_SECONDS: Final = 0.05
"""How long the record of a transaction that is over waits to be deleted together with others."""

CommitPending = Callable[[Iterable[PendingCommit]], Awaitable[None]]
"""Carries out pending commits, perhaps not for the first time; repeated after a `BrokerError`."""


async def nothing_pending(pending: Iterable[PendingCommit]) -> None:
    """`CommitPending` where transactions have no pending commits."""
    assert not pending, "there are none"


class TransactionCoordinator:
    """See the module's docstring."""

    def __init__(
        self,
        broker: TopicHost,
        path: str,
        form: TransactionalForm,
        commit_pending: CommitPending,
        kind: TransactionKind = REUSED,
    ) -> None:
        """`form` is that of the markers."""
        self._broker = broker
        self._form = form
        self._kind = kind
        self.records = OwnedRecords(
            broker.metadata,
            RecordKind(
                "transaction", path, msgspec.json.encode, msgspec.json.Decoder(Transaction).decode
            ),
            broker.ownership.transaction,
        )
        self._commit_pending = commit_pending
        self._slots: dict[str, TransactionSlot] = {}
        self._over: list[TransactionSlot] = []
        """Those whose records are to be deleted, soon and together."""
        self._puts_at_once = broker.metadata.puts_at_once
        self._alone = broker.ownership is ALONE
        """No other broker can own what this one has begun."""
        self._over_size = 0
        """How many are over, and their records not deleted yet."""
        self._writers: dict[int, TransactionSlot] = {}
        self.names_bytes = 0
        """What the names of logs and participants take in memory."""

    async def open(self) -> None:
        """Load the transactions that this broker owns, and carry out stored decisions."""
        for name in await self.records.names():
            if await self.records.is_ours(name):
                slot = self._slot(name)
                async with slot.lock:
                    try:
                        await self._load(slot)
                    except Corrupted as error:  # this transaction fails, the others load
                        log.error("transaction %s: %s", name, error)
                self._drop_unused(slot)

    async def run(self, idle_ms_max: int) -> None:
        """Abort expired transactions, and forget unused transactional ids, until cancelled."""
        while True:
            await trio.sleep(SWEEP_SECONDS)
            now_ms = self._broker.clock.wall_ms()
            for slot in list(self._slots.values()):
                found = slot.transaction
                if found is None or found.decided:
                    continue
                try:
                    idle_ms = now_ms - found.changed_ms
                    if found.state is TransactionState.ONGOING:
                        if not found.sink and found.expires_ms() < now_ms:
                            await self._time_out(slot)
                    elif idle_ms > idle_ms_max:
                        await self.forget(found.name)
                except BrokerError as error:
                    log.warning("transaction %s: %s", found.name, error)

    # -- questions ----------------------------------------------------------------------------

    def find(self, name: str) -> Transaction | None:
        slot = self._slots.get(name)
        return slot.transaction if slot is not None else None

    def knows(self, name: str) -> bool:
        """Whether there is a transaction of that name, or one that has just ended. Plain call."""
        return name in self._slots

    def has_log(self, name: str, log: str) -> bool:
        """Whether a transaction includes the log. Plain call."""
        slot = self._slots.get(name)
        return slot is not None and log in slot.logs

    def has_participant(self, name: str, participant: str) -> bool:
        """The same for a participant."""
        slot = self._slots.get(name)
        return slot is not None and participant in slot.participants

    def of_writer(self, writer: int) -> Transaction | None:
        """The transaction of a producer id. Plain call, for each batch."""
        slot = self._writers.get(writer)
        return slot.transaction if slot is not None else None

    def admits(self, writer: int, epoch: int, log: str) -> bool:
        """Whether a writer has an ongoing transaction that includes the log. Plain call."""
        slot = self._writers.get(writer)
        if slot is None or slot.transaction is None:
            return False
        found = slot.transaction
        return found.epoch == epoch and found.state is TransactionState.ONGOING and log in slot.logs

    @property
    def size(self) -> int:
        """How many transactional ids are in memory."""
        return len(self._slots)

    @property
    def open_size(self) -> int:
        """The same without those that are over, as long as these are few."""
        return max(self.size - self._over_size, self.size // 2)

    def all(self) -> Iterator[Transaction]:
        for slot in self._slots.values():
            if slot.transaction is not None:
                yield slot.transaction

    # -- changes ------------------------------------------------------------------------------

    @asynccontextmanager
    async def alone_with(self, name: str, *, settled: bool) -> AsyncIterator[TransactionSlot]:
        """Enter the turn to change a transaction; `settled` waits until a decision is carried out.

        Raises `NotCoordinator` if another broker owns it.
        """
        while True:
            slot = self._slot(name)
            try:
                await self._lock(slot, settled=settled)
                try:
                    if not slot.lost and await self._is_ready(slot, settled=settled):
                        yield slot
                        return
                finally:
                    slot.lock.release()
            finally:
                self._drop_unused(slot)

    @staticmethod
    async def _lock(slot: TransactionSlot, *, settled: bool) -> None:
        while True:
            if settled and not slot.rest.is_set():
                await slot.rest.wait()
            try:
                slot.lock.acquire_nowait()  # most are free, and others would run before it returns
            except trio.WouldBlock:
                await slot.lock.acquire()
            if not settled or slot.rest.is_set():
                return
            slot.lock.release()

    def _slot(self, name: str) -> TransactionSlot:
        slot = self._slots.get(name)
        if slot is None:
            slot = self._slots[name] = TransactionSlot(name, self.records.unread(name))
        return slot

    def _drop_unused(self, slot: TransactionSlot) -> None:
        unused = slot.transaction is None and not slot.over
        # with the lock free nobody waits for it
        if unused and slot.lock.value and self._slots.get(slot.name) is slot:
            del self._slots[slot.name]

    async def _is_ready(self, slot: TransactionSlot, *, settled: bool) -> bool:
        """Whether the caller's turn begins: the record is loaded, and settled if required."""
        if slot.record.state is RecordState.UNREAD:
            await self.records.check_owner(slot.name)
            await self._load(slot)
        elif slot.record.state is RecordState.UNSURE:
            try:
                await slot.record.settle()
            except Fenced as error:
                raise self._lost(slot) from error
            self._know(slot)
            self._finish_later(slot)
        elif slot.begun is not None:
            await self.records.check_owner(slot.name)
        return slot.rest.is_set() or not settled

    async def _load(self, slot: TransactionSlot) -> None:
        """Load its record; the caller has the turn."""
        if slot.record.state is RecordState.UNREAD:
            await slot.record.load()
            self._know(slot)
            self._finish_later(slot)

    def _know(self, slot: TransactionSlot) -> None:
        """Set the slot to the state of the record; one that is lost counts no more."""
        if slot.lost:
            return
        if slot.record.value is not None:
            slot.begun = None
        found = slot.record.value or slot.begun
        before, slot.transaction = slot.transaction, None if slot.over else found
        if before is not None:
            self._forget_writer(before.writer, slot)
            self.names_bytes -= before.names_bytes()
        slot.logs = slot.participants = frozenset()
        if slot.transaction is not None:
            self.names_bytes += slot.transaction.names_bytes()
            slot.logs = frozenset(slot.transaction.logs)
            slot.participants = frozenset(slot.transaction.participants)
            self._writers[slot.transaction.writer] = slot

    def _lost(self, slot: TransactionSlot) -> NotCoordinator:
        """Another coordinator has written the record; returns what to raise."""
        if not slot.lost:
            log.warning("transaction %s: another broker coordinates it now", slot.name)
            slot.lost = True
            if slot.transaction is not None:
                self._forget_writer(slot.transaction.writer, slot)
                self.names_bytes -= slot.transaction.names_bytes()
        if self._slots.get(slot.name) is slot:
            del self._slots[slot.name]
        slot.seen.set()
        slot.rest.set()
        return self.records.elsewhere(slot.name)

    def _forget_writer(self, writer: int, slot: TransactionSlot) -> None:
        if self._writers.get(writer) is slot:
            del self._writers[writer]

    def begin(self, begun: Transaction) -> None:
        """Begin a transaction under a name that nobody has had before. Plain call: it is stored
        with the first of what it includes.
        """
        slot = self._slot(begun.name)
        assert slot.transaction is None, f"{begun.name} is given once"
        slot.begun = begun
        slot.record.expect_none()
        self._know(slot)

    def drop(self, slot: TransactionSlot, *, commit: bool, timed_out: bool = False) -> None:
        """End a transaction that includes nothing. Plain call."""
        begun, slot.begun = slot.begun, None
        assert begun is not None, "what includes anything is decided"
        self._know(slot)
        self._tell(begun, commit, timed_out)

    def _tell(self, found: Transaction, commit: bool, timed_out: bool) -> None:
        if self._kind.decided is not None:
            self._kind.decided(found, commit, timed_out)

    async def store(self, slot: TransactionSlot, found: Transaction, **changes: Any) -> Transaction:
        """Store a changed transaction; `NotCoordinator` if another broker has taken it over."""
        changed = replace(found, changed_ms=self._broker.clock.wall_ms(), **changes)
        try:
            await slot.record.write(changed)
        except Fenced as error:
            raise self._lost(slot) from error
        self._know(slot)
        return changed

    async def extend(
        self,
        slot: TransactionSlot,
        *,
        logs: Iterable[str] = (),
        participants: Iterable[str] = (),
        pending: Iterable[PendingCommit] = (),
        spellings: Mapping[str, str] = NO_SPELLINGS,
    ) -> None:
        """Add logs and participants; the first ones begin the transaction."""
        found = slot.transaction
        assert found is not None, "a transaction begins with its writer"
        now_ms = self._broker.clock.wall_ms()
        await self.store(
            slot, found.extended(now_ms, logs, participants, spellings, pending=pending)
        )

    async def decide(
        self,
        slot: TransactionSlot,
        *,
        commit: bool,
        epoch: int | None = None,
        timed_out: bool = False,
    ) -> None:
        """Store the decision; a task carries it out afterwards."""
        found, state = _decision(slot, commit=commit)
        epoch = found.epoch if epoch is None else epoch
        await self.store(slot, found, state=state, epoch=epoch)
        self._tell(found, commit, timed_out)
        self._finish_later(slot)

    def take(self, name: str) -> TransactionSlot | None:
        """Take the turn to change a transaction, until `give_back`. Plain call; None if that takes
        a task: the turn has to be awaited, or the record to be read, or the store cannot write so.
        """
        slot = self._slots.get(name)
        if slot is None or slot.lost or not slot.lock.value or not self._puts_at_once:
            return None
        if slot.record.state is not RecordState.HELD or not (slot.begun is None or self._alone):
            return None
        slot.lock.acquire_nowait()
        return slot

    async def make_ready(self, slot: TransactionSlot) -> None:
        """Find out what is stored, by who has taken the turn; `NotCoordinator` if it is lost."""
        if slot.lost or not await self._is_ready(slot, settled=False):
            raise self.records.elsewhere(slot.name)

    def give_back(self, slot: TransactionSlot) -> None:
        """Give the turn back."""
        slot.lock.release()
        self._drop_unused(slot)

    def store_at_once(self, slot: TransactionSlot, changed: Transaction, done: Done) -> bool:
        """`store` as a plain call, by who has taken the turn; `done` is called on the loop. False,
        and nothing is done, if it takes a task.
        """
        changed = replace(changed, changed_ms=self._broker.clock.wall_ms())
        return slot.record.write_at_once(changed, partial(self._stored, slot, done))

    def _stored(self, slot: TransactionSlot, done: Done, error: BrokerError | None) -> None:
        if isinstance(error, Fenced):
            error = self._lost(slot)
        elif error is None:
            self._know(slot)
        done(error)

    def decide_at_once(self, slot: TransactionSlot, *, commit: bool, done: Done) -> bool:
        """`decide` likewise."""
        found, state = _decision(slot, commit=commit)
        decided = partial(self._decided, slot, found, commit, done)
        return self.store_at_once(slot, replace(found, state=state), decided)

    def _decided(
        self,
        slot: TransactionSlot,
        found: Transaction,
        commit: bool,
        done: Done,
        error: BrokerError | None,
    ) -> None:
        outcome: BrokerError | None = NotReady("this server failed behind the decision")
        try:
            if error is None:
                self._finish_later(slot)
                self._tell(found, commit, timed_out=False)
            outcome = error
        finally:
            done(outcome)

    async def _time_out(self, slot: TransactionSlot) -> None:
        async with self.alone_with(slot.name, settled=False) as slot:
            found = slot.transaction
            if found is None or found.state is not TransactionState.ONGOING:
                return
            log.info("transaction %s: aborted after %d ms", found.name, found.timeout_ms)
            if slot.begun is not None:
                self.drop(slot, commit=False, timed_out=True)
            else:
                # fences its writer
                await self.decide(slot, commit=False, epoch=found.epoch + 1, timed_out=True)

    async def forget(self, name: str) -> None:
        """Delete the record of a transaction, unless it is ongoing."""
        async with self.alone_with(name, settled=True) as slot:
            found = slot.transaction
            if found is None or found.state is TransactionState.ONGOING:
                return
            await self._delete(slot)

    async def _delete(self, slot: TransactionSlot) -> None:
        try:
            await slot.record.delete()
        except Fenced as error:
            raise self._lost(slot) from error
        self._know(slot)

    # -- carrying out -------------------------------------------------------------------------

    def _finish_later(self, slot: TransactionSlot) -> None:
        found = slot.transaction
        if found is not None and found.decided and slot.rest.is_set():
            slot.rest, slot.seen = trio.Event(), trio.Event()
            shown = found.state is TransactionState.COMMITTING and not self._kind.is_reused
            if shown and self._show(slot, found) and not found.pending:
                self._finish_shown(slot, found)
            else:
                self._broker.spawn(self._finish, slot, found)

    def _show(self, slot: TransactionSlot, found: Transaction) -> bool:
        """Have logs and participants see a commit. If all of them are loaded, whoever waits for
        that is answered before it is carried out: the decision is stored, and never changes.
        """
        all_see = True
        for name in found.logs:
            topic = self._broker.topics.get(name)
            if topic is not None and not topic.fenced:
                topic.show_committed(self._kind.key_of(found))
            else:
                all_see = False
        for name in found.participants:
            all_see = self._kind.show(found, name) and all_see
        if all_see:
            self._is_seen(slot)
        return all_see

    def _finish_shown(self, slot: TransactionSlot, found: Transaction) -> None:
        """Carry out a commit that everybody sees, in this turn and without a task. Nothing is
        verified: who has replaced this coordinator has loaded these logs, so appends fail here.
        """
        loaded = (self._broker.topics[name].stored for name in found.logs)
        topics = [topic for topic in loaded if topic is not None]
        left, failed = 1 + len(topics) + len(found.participants), False

        def done(error: BrokerError | None) -> None:
            nonlocal left, failed
            left, failed = left - 1, failed or error is not None
            if failed and not left:
                self._broker.spawn(self._finish, slot, found)
            elif not left:
                self._is_over(slot)

        key = self._kind.key_of(found)
        for topic in topics:
            topic.end_at_once(self._form, key, found.epoch, done, committed=True)
        for name in found.participants:
            self._kind.store(found, name, done)
        done(None)

    async def _finish(self, slot: TransactionSlot, found: Transaction) -> None:
        """Mark every log, carry out the pending commits, and store the end."""
        steps: list[Step] = [partial(self._mark, slot, found, name) for name in found.logs]
        if self._kind.settle is not None:
            steps += [partial(self._settle, slot, found, name) for name in found.participants]
        await insist_on_all(slot, steps)
        if found.state is TransactionState.COMMITTING and found.pending:
            await insist(slot, partial(self._commit_pending_of, slot, found))
        if not self._kind.is_reused:
            self._is_seen(slot)
            self._is_over(slot)
            return
        await insist(slot, partial(self._end, slot))
        slot.seen.set()
        slot.rest.set()
        self._drop_unused(slot)

    def _is_seen(self, slot: TransactionSlot) -> None:
        if not slot.seen.is_set():
            slot.over = True
            self._know(slot)
            slot.seen.set()

    def _is_over(self, slot: TransactionSlot) -> None:
        """Have its record deleted; those of a while are deleted by one write of the metadata."""
        slot.rest.set()
        if not self._over:
            self._broker.spawn(self._delete_all)
        self._over.append(slot)
        self._over_size += 1

    async def _delete_all(self) -> None:
        await trio.sleep(DELETE_SECONDS)
        slots, self._over = self._over, []
        async with trio.open_nursery() as nursery:
            for slot in slots:
                nursery.start_soon(self._delete_over, slot)

    async def _delete_over(self, slot: TransactionSlot) -> None:
        await insist(slot, partial(self._end, slot))
        slot.over = False
        self._over_size -= 1
        self._drop_unused(slot)

    async def _settle(self, slot: TransactionSlot, found: Transaction, name: str) -> None:
        settle = self._kind.settle
        assert settle is not None
        await self._verify(slot)
        await settle(found, name)

    async def _commit_pending_of(self, slot: TransactionSlot, found: Transaction) -> None:
        await self._verify(slot)
        await self._commit_pending(found.pending)

    async def _verify(self, slot: TransactionSlot) -> None:
        """Raise `NotCoordinator` if another coordinator has written the record."""
        try:
            await slot.record.verify()
        except Fenced as error:
            raise self._lost(slot) from error

    async def _end(self, slot: TransactionSlot) -> None:
        """Store the end. A new coordinator of the transactional id would do the same."""
        async with slot.lock:
            now = slot.transaction
            if slot.over:
                await self._delete(slot)
            elif now is not None and now.decided:
                # an attempt for a sink ends for good: a late request of it begins nothing new
                epoch = now.epoch + bool(now.sink)
                rest = {"state": AT_REST[now.state], "logs": (), "participants": (), "pending": ()}
                await self.store(slot, now, epoch=epoch, **rest)

    async def _mark(self, slot: TransactionSlot, found: Transaction, name: str) -> None:
        await self._verify(slot)
        try:
            topic = await self._broker.topic(TopicName.parse(name), create=False)
        except TopicNotFound:
            return  # the topic is deleted
        await self._verify(slot)
        key, commit = self._kind.key_of(found), found.state is TransactionState.COMMITTING
        # it appends before its first await
        await topic.end_transaction(self._form, key, found.epoch, committed=commit)


def _decision(slot: TransactionSlot, *, commit: bool) -> tuple[Transaction, TransactionState]:
    """What is decided, and the state that this gives it."""
    found = slot.transaction
    assert found is not None, "a transaction begins with its writer"
    assert found.state is TransactionState.ONGOING, "only what goes on is decided"
    return found, TransactionState.COMMITTING if commit else TransactionState.ABORTING
