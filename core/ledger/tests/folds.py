"""What the suite of folds plays with: a subject for each view, a log's history, a power cut."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from magnetar.core.entry.kafka import form, record_batch
from magnetar.core.entry.kafka.record_batch import header_of
from magnetar.core.entry.record import Record
from magnetar.core.kernel.errors import BrokerError, StorageFailed
from magnetar.core.ledger.fold.fold import Fold
from magnetar.core.ledger.log.managed_ledger import ManagedLedger
from magnetar.core.policy.policies import Effective
from magnetar.core.testing.bench import NAME, Bench, IndexedOutcome, settled
from magnetar.core.testing.entries import entry
from magnetar.core.topic import transaction_buffer
from magnetar.core.topic.publishing import deduplication
from magnetar.core.topic.publishing.sequences import ProducerSequences
from magnetar.core.topic.transaction_buffer import TransactionBuffer
from magnetar.wire.kafka.partition import producer_snapshots
from magnetar.wire.kafka.partition.producer_states import Census, ProducerStates

NOW_MS = 1_700_000_000_000
Done = Callable[[Any], None]
Step = tuple[int, int]
"""What is written (0 or 1 mostly, 2 sometimes), and by which producer."""


class Subject(Protocol):
    """A view of one log, with its fold."""

    fold: Fold[Any]

    def next(self, step: Step) -> bytes:
        """The entry that a producer sends next."""
        ...

    def sent(self, entry: bytes) -> Done:
        """It goes to storage; returns what applies the change when it is there."""
        ...

    def apply(self, entry: bytes, index: int) -> None: ...

    def state(self) -> Any:
        """All that the view says, as far as the log reaches back."""
        ...


class OfSequences:
    """Deduplication: snapshots in a cursor."""

    path = f"/managed-ledgers/{NAME}/pulsar.dedup"

    def __init__(self, desk: Bench, ledger: ManagedLedger) -> None:
        self.view = ProducerSequences()
        on = deduplication.Deduplication(desk.storage, ledger, Effective())
        self.fold = on._new_fold(self.view)

    def next(self, step: Step) -> bytes:
        self.view.push("p", max(self.view.pushed.get("p", -1), self.view.stored.get("p", -1)) + 1)
        chunk = (b"u", 0, 2) if step[0] == 2 else None  # of a large message, and not the last
        return entry(sequence_id=self.view.pushed["p"], chunk=chunk)

    def sent(self, entry: bytes) -> Done:
        return lambda _result: self.view.apply(entry, 0, (0, 0), NOW_MS)

    def apply(self, entry: bytes, index: int) -> None:
        self.view.apply(entry, index, (0, 0), NOW_MS)

    def state(self) -> Any:
        return list(self.view.stored.items())


class OfTransactions:
    """A transaction buffer: snapshots in the metadata store."""

    path = f"{transaction_buffer.SNAPSHOTS}/{NAME}"

    def __init__(self, desk: Bench, ledger: ManagedLedger) -> None:
        self.view = ledger.transactions
        self.ledger = ledger
        self.fold = TransactionBuffer(desk.storage, ledger).fold

    def next(self, step: Step) -> bytes:
        kind, producer = step
        if kind != 0 and producer in self.view.open:
            data = record_batch.marker(producer, 0, 1, committed=kind == 1)
        else:
            data = transactional(producer)
        return form.wrapped(data, 1, 1)

    def sent(self, entry: bytes) -> Done:
        header = header_of(form.batch_in(entry) or b"")

        def done(position: Any) -> None:
            index = self.ledger.delivered_index(position)
            if header.attributes & record_batch.CONTROL:
                batch = form.batch_in(entry) or b""
                committed = record_batch.is_commit(batch)
                self.view.ended(header.producer_id, index, committed=committed)
            else:
                self.view.wrote(header.producer_id, index, position, 0)

        return done

    def apply(self, entry: bytes, index: int) -> None:
        self.view.apply(entry, index, (0, 0), 0)

    def state(self) -> Any:
        self.view.forget_before(self.ledger.first_index)
        return {who: one.first for who, one in self.view.open.items()}, self.view.aborted


class OfProducers:
    """Kafka's producers: snapshots in the metadata store, and only when the log is unloaded."""

    path = f"{producer_snapshots.SNAPSHOTS}/{NAME}"

    def __init__(self, desk: Bench, ledger: ManagedLedger) -> None:
        self.view = ProducerStates(Census())
        self.ledger = ledger
        self.fold = producer_snapshots.fold_of(desk.storage, ledger, self.view)

    def next(self, step: Step) -> bytes:
        kind, producer = step
        known = dict(self.view.all()).get(producer)
        epoch, first = (0, 0) if known is None else (known.epoch, 0)
        if known is not None and known.batches:
            first = known.batches[-1].last + 1
        if kind == 2:
            epoch, first = epoch + 1, 0
        data = bytearray(record_batch.batch_of([Record(0, 1, None, b"v")], 0, 1))
        data[43:51] = producer.to_bytes(8, "big")
        data[51:53] = epoch.to_bytes(2, "big")
        data[53:57] = first.to_bytes(4, "big")
        return form.wrapped(bytes(data), 1, 1)

    def sent(self, entry: bytes) -> Done:
        header = header_of(form.batch_in(entry) or b"")
        batch, before = self.view.admit(header, NOW_MS)
        assert not before

        def done(result: Any) -> None:
            if isinstance(result, BrokerError):
                self.view.failed(header.producer_id, batch, 56)
            else:
                self.view.stored(batch, self.ledger.delivered_index(result))

        return done

    def apply(self, entry: bytes, index: int) -> None:
        self.view.apply(entry, index, (0, 0), NOW_MS)

    def state(self) -> Any:
        return self.view.snapshot() or []


def transactional(writer: int) -> bytes:
    batch = bytearray(record_batch.batch_of([Record(0, 1, None, b"v")], 0, 1))
    batch[22] |= record_batch.TRANSACTIONAL
    batch[43:51] = writer.to_bytes(8, "big")
    return bytes(batch)


CASES = [OfSequences, OfTransactions, OfProducers]
Case = type[OfSequences] | type[OfTransactions] | type[OfProducers]


class History:
    """One log with one view, over restarts; and every entry that was ever stored."""

    def __init__(self, desk: Bench, case: Case) -> None:
        self.desk = desk
        self.case = case
        self.entries: list[bytes] = []
        """Each at its index."""
        self.ledger: ManagedLedger
        self.subject: Subject

    async def begin(self) -> History:
        self.ledger = await self.desk.ledger()
        self.subject = self.case(self.desk, self.ledger)
        await self.subject.fold.begin()
        return self

    async def load(self) -> None:
        """As the next owner does, after a crash or a clean end."""
        await settled()  # the former one does nothing any more
        self.ledger = await self.desk.ledger()
        self.subject = self.case(self.desk, self.ledger)
        await self.subject.fold.load()

    async def write(self, *steps: Step) -> None:
        for step in steps:
            entry = self.subject.next(step)
            apply, outcome = self.subject.sent(entry), IndexedOutcome(self.ledger)

            def done(result: Any, apply: Done = apply, outcome: IndexedOutcome = outcome) -> None:
                outcome(result)
                if isinstance(result, tuple) or self.case is OfProducers:
                    apply(result)

            self.ledger.append([entry], None, done)
            await settled()
            if isinstance(outcome.result, tuple):
                self.keep(outcome.index, entry)

    def keep(self, index: int, entry: bytes) -> None:
        self.entries += [b""] * (index - len(self.entries)) + [entry]

    async def trim(self, count: int) -> None:
        closed = [one.ledger_id for one in self.ledger.chain.segments if one.closed_ms]
        await self.ledger.trim(closed[:count])

    def model(self, first: int = 0, without: range = range(0)) -> Any:
        """What the entries say, from an index on."""
        fresh = self.case(self.desk, ManagedLedger(self.desk.storage, NAME, lambda: None))
        for index, stored in enumerate(self.entries):
            if stored and index >= first and index not in without:
                fresh.apply(stored, index)
        if isinstance(fresh, OfTransactions):
            fresh.view.forget_before(self.ledger.first_index)
            return {who: one.first for who, one in fresh.view.open.items()}, fresh.view.aborted
        return fresh.state()

    def check(self) -> None:
        assert self.subject.state() == self.model()


class PowerCut:
    """The stores fail for good from one durable step on, which happens itself or does not."""

    def __init__(self, desk: Bench, at: int, *, happens: bool) -> None:
        self.left = at
        self.happens = happens
        self.desk = desk
        self._real = {
            (store, name): getattr(store, name)
            for store, name in (
                (desk.metadata, "put"),
                (desk.metadata, "delete"),
                (desk.ledgers, "create"),
                (desk.ledgers, "delete"),
            )
        }
        for (store, name), call in self._real.items():
            setattr(store, name, self._guarded(call))

    @property
    def struck(self) -> bool:
        return self.left < 0

    def _guarded(self, call: Any) -> Any:
        async def guarded(*given: Any) -> Any:
            self.left -= 1
            if self.left == -1:
                self.desk.ledgers.full = True
                if self.happens:
                    await call(*given)
            if self.left < 0:
                raise StorageFailed("the power is gone")
            return await call(*given)

        return guarded

    def ends(self) -> None:
        self.desk.ledgers.full = False
        for (store, name), call in self._real.items():
            setattr(store, name, call)
