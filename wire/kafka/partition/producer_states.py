"""The states of a partition's idempotent producers, which detect duplicates (KIP-98). Pure.

`ProducerStateManager.java`, `ProducerStateEntry.java` and `ProducerAppendInfo.java` of Kafka 4.1 do
the same. A producer numbers its records, and may have five batches under way. A batch is the next
one, or a duplicate of one of the last five (and gets the result of the first), or out of order. An
unknown producer may begin with any number, since its state may have expired.

Any client can invent producer ids, so there are limits: in time (`producer.id.expiration.ms`, a day
as in Kafka), for each partition, and for the server. At the last limit, the partition with the most
producers loses the one that has been silent for longest: a flood of ids harms no other partition.

Invariants: numbers are checked when batches arrive, not when they are stored; a failed batch and
all batches behind it leave no trace; the cost of a batch does not depend on the number of
producers; `Census.count` is the number of producers in all partitions.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from magnetar.core.entry.kafka import form
from magnetar.core.entry.kafka.record_batch import BatchHeader, header_of
from magnetar.core.ledger.log.chain import Position
from magnetar.wire.kafka.errors import INVALID_PRODUCER_EPOCH, OUT_OF_ORDER, KafkaRefusal

BATCHES_MAX: Final = 5
"""Batches of one producer (`ProducerStateEntry.NUM_BATCHES_TO_RETAIN`): an idempotent producer may
have no more under way (`max.in.flight.requests.per.connection`).
"""
PRODUCERS_MAX: Final = 10_000
"""Producers of one partition; beyond it the one that has been silent for longest goes."""
PRODUCERS_IN_ALL_MAX: Final = 50_000
"""Producers of all partitions; each takes up to a kilobyte."""
PRODUCERS_MIN: Final = 100
"""A partition has at least this many, even if there are too many in all."""
SILENT_MS_MAX: Final = 24 * 60 * 60 * 1000
"""A producer expires after this silence (`producer.id.expiration.ms`)."""
SEQUENCES: Final = 1 << 31
"""After 2147483647 comes 0 (`DefaultRecordBatch.incrementSequence`)."""
UNKNOWN: Final = -1

AppendDone = Callable[[int, int], None]
"""Takes an error code, and the offset if there is one."""


class BatchMetadata:
    """One batch: its numbers, and its offset once it is stored."""

    __slots__ = ("first", "last", "offset", "waiting")

    def __init__(self, first: int, last: int, offset: int = UNKNOWN) -> None:
        self.first = first
        self.last = last
        self.offset = offset
        self.waiting: list[AppendDone] = []
        """Callbacks of duplicates that came before the batch was stored."""


class ProducerState:
    """One producer: its epoch and its last batches."""

    __slots__ = ("batches", "epoch", "heard_ms", "last_ms")

    def __init__(self, epoch: int, heard_ms: int) -> None:
        self.epoch = epoch
        self.heard_ms = heard_ms
        """The time of its last batch by our clock."""
        self.last_ms = -1
        """The highest timestamp of its last batch."""
        self.batches: list[BatchMetadata] = []

    @property
    def last_stored(self) -> int:
        """The last number of what is stored; -1 for nothing. What is under way may fail yet."""
        stored = [batch.last for batch in self.batches if batch.offset >= 0]
        return stored[-1] if stored else UNKNOWN

    def add(self, batch: BatchMetadata) -> None:
        self.batches.append(batch)
        if len(self.batches) > BATCHES_MAX:
            del self.batches[0]


class ProducerImage(NamedTuple):
    """A producer in a snapshot."""

    number: int
    epoch: int
    last_ms: int
    batches: list[tuple[int, int, int]]
    """First and last number of each, and its offset."""


class Census:
    """The number of producers that all partitions know, and the partition that knows most."""

    __slots__ = ("count", "largest")

    def __init__(self) -> None:
        self.count = 0
        self.largest: ProducerStates | None = None
        """The partition with most producers, of those that gained one since `largest` was set."""


class ProducerStates:
    """See the module's docstring. A view of the log (`core/ledger/fold/fold.py`)."""

    __slots__ = ("_census", "_known")

    def __init__(self, census: Census) -> None:
        self._census = census
        self._known: OrderedDict[int, ProducerState] = OrderedDict()
        """In the order of their last batches; the latest is at the end."""

    def __len__(self) -> int:
        return len(self._known)

    def admit(self, header: BatchHeader, now_ms: int) -> tuple[BatchMetadata, bool]:
        """The metadata of a batch, and whether it is a duplicate; raises `KafkaRefusal` otherwise.

        A duplicate succeeds with its first offset: DUPLICATE_SEQUENCE_NUMBER is for older ones, and
        Kafka's broker returns it no more. A false OUT_OF_ORDER is dangerous, as it makes librdkafka
        raise its epoch and send again, which can duplicate (librdkafka#4953).
        """
        first = header.first_sequence
        last = (first + header.last_delta) % SEQUENCES
        producer = self._known.get(header.producer_id)
        if producer is None:
            producer = self._begin(header.producer_id, header.producer_epoch, now_ms)
        else:
            self._known.move_to_end(header.producer_id)
            producer.heard_ms = now_ms
        if header.producer_epoch < producer.epoch:
            raise KafkaRefusal(INVALID_PRODUCER_EPOCH)
        if header.producer_epoch > producer.epoch:
            if first != 0:  # `ProducerAppendInfo.checkSequence`
                raise KafkaRefusal(OUT_OF_ORDER)
            producer.epoch = header.producer_epoch
            producer.batches.clear()
        for batch in producer.batches:
            if (batch.first, batch.last) == (first, last):
                return batch, True
        if producer.batches and first != (producer.batches[-1].last + 1) % SEQUENCES:
            raise KafkaRefusal(OUT_OF_ORDER)
        made = BatchMetadata(first, last)
        producer.last_ms = header.last_timestamp
        producer.add(made)
        return made, False

    def all(self) -> Iterable[tuple[int, ProducerState]]:
        """Every producer that is known, by its id."""
        return self._known.items()

    def _begin(self, number: int, epoch: int, now_ms: int) -> ProducerState:
        """Add a producer; remove another if a limit is exceeded."""
        known, census = self._known, self._census
        self._forget_silent(now_ms)
        made = known[number] = ProducerState(epoch, now_ms)
        census.count += 1
        if census.largest is None or len(known) > len(census.largest):
            census.largest = self
        if len(known) > PRODUCERS_MAX:
            self._forget_oldest()
        elif census.count > PRODUCERS_IN_ALL_MAX and len(census.largest) > PRODUCERS_MIN:
            census.largest._forget_oldest()
        return made

    def _forget_silent(self, now_ms: int) -> None:
        while self._known:
            if now_ms - next(iter(self._known.values())).heard_ms < SILENT_MS_MAX:
                return
            self._forget_oldest()

    def _forget_oldest(self) -> None:
        self._known.popitem(last=False)
        self._census.count -= 1

    def clear(self) -> None:
        """Remove all producers: the partition is unloaded."""
        self._census.count -= len(self._known)
        self._known.clear()
        if self._census.largest is self:
            self._census.largest = None

    def stored(self, batch: BatchMetadata, offset: int) -> None:
        """Set the offset of a stored batch, and answer its duplicates."""
        batch.offset = offset
        waiting, batch.waiting = batch.waiting, []
        for answer in waiting:
            answer(0, offset)

    def failed(self, producer_id: int, batch: BatchMetadata, code: int) -> None:
        """Remove a batch that was not stored, and all batches behind it."""
        producer = self._known.get(producer_id)
        if producer is not None and batch in producer.batches:
            while producer.batches and producer.batches[-1] is not batch:
                producer.batches.pop()
            producer.batches.pop()
        waiting, batch.waiting = batch.waiting, []
        for answer in waiting:
            answer(code, UNKNOWN)

    # -- as a view of the log -----------------------------------------------------------------

    def apply(self, sent: bytes, index: int, _position: Position, now_ms: int) -> None:
        """Replay an entry: a batch of Kafka's counts if it has a producer id and a number.

        Transaction markers have no number: they are no batch of their producer.
        """
        data = form.batch_in(sent)
        if data is None:
            return
        header = header_of(data)
        if header.producer_id < 0 or header.first_sequence < 0:
            return
        producer = self._known.get(header.producer_id)
        if producer is None:
            producer = self._begin(header.producer_id, header.producer_epoch, now_ms)
        else:
            self._known.move_to_end(header.producer_id)
            producer.heard_ms = now_ms
        if producer.epoch != header.producer_epoch:
            producer.epoch = header.producer_epoch
            producer.batches.clear()
        last = (header.first_sequence + header.last_delta) % SEQUENCES
        producer.last_ms = header.last_timestamp
        producer.add(BatchMetadata(header.first_sequence, last, index))

    def forget_before(self, _index: int) -> None:
        """Nothing to do: a batch may be sent again after its entry is trimmed."""

    def snapshot(self) -> list[ProducerImage] | None:
        """The image of each producer; None if there are none."""
        return [
            ProducerImage(
                number,
                producer.epoch,
                producer.last_ms,
                [(one.first, one.last, one.offset) for one in producer.batches if one.offset >= 0],
            )
            for number, producer in self._known.items()
        ] or None

    def restore(self, image: Iterable[ProducerImage], now_ms: int) -> None:
        for one in image:
            producer = self._begin(one.number, one.epoch, now_ms)
            producer.last_ms = one.last_ms
            producer.batches += (BatchMetadata(*batch) for batch in one.batches)
