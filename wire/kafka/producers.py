"""What a partition knows of producers that must not write twice. Pure.

Each numbers what it sends, and may have five batches under way. A batch comes next, or is one of
the last five again (and is answered as it was the first time), or is out of order. A producer that
nothing is known of may begin with any number: what was known may have been forgotten.

Anybody may invent ids, so there are limits: in time as Kafka has it (`producer.id.expiration.ms`, a
day), for each partition, and for the server. At the last one, who has been silent for longest in
the partition that has most is forgotten: who floods one with ids harms no other.

Invariants: numbers are judged when batches come, not when they are stored; a batch that could not
be stored, and all behind it, are as if they had never come; what a batch costs does not depend on
how many producers there are; `Census.count` is the number of those known in all partitions.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from magnetar.core.entry.kafka_batch import BatchHeader
from magnetar.wire.kafka.errors import INVALID_PRODUCER_EPOCH, OUT_OF_ORDER, Refused

REMEMBERED_BATCHES: Final = 5
PRODUCERS_MAX: Final = 10_000
"""Of one partition; the one that has been silent for longest is forgotten."""
PRODUCERS_IN_ALL_MAX: Final = 50_000
"""Of all partitions; each takes up to a kilobyte."""
PRODUCERS_MIN: Final = 100
"""So many a partition keeps though there are too many in all."""
SILENT_MS_MAX: Final = 24 * 60 * 60 * 1000
"""Who has been silent for so long is forgotten."""
SEQUENCES: Final = 1 << 31
"""After the highest number comes 0."""
UNKNOWN: Final = -1

Told = Callable[[int, int], None]
"""An error code, and the offset if there is none."""


class Remembered:
    """One batch: its numbers, and where it is stored as soon as it is."""

    __slots__ = ("first", "last", "offset", "waiting")

    def __init__(self, first: int, last: int, offset: int = UNKNOWN) -> None:
        self.first = first
        self.last = last
        self.offset = offset
        self.waiting: list[Told] = []
        """Who sent it again before that."""


class Producer:
    """One producer: its epoch and its last batches."""

    __slots__ = ("batches", "epoch", "heard_ms", "last_ms")

    def __init__(self, epoch: int, heard_ms: int) -> None:
        self.epoch = epoch
        self.heard_ms = heard_ms
        """When it last sent a batch, by our clock."""
        self.last_ms = -1
        """The latest time in its last batch."""
        self.batches: list[Remembered] = []

    def remember(self, batch: Remembered) -> None:
        self.batches.append(batch)
        if len(self.batches) > REMEMBERED_BATCHES:
            del self.batches[0]


class Known(NamedTuple):
    """A producer, as it is kept over restarts."""

    number: int
    epoch: int
    last_ms: int
    batches: list[tuple[int, int, int]]
    """First and last number of each, and its offset."""


class Census:
    """How many producers all partitions know together, and which of these knows most."""

    __slots__ = ("count", "largest")

    def __init__(self) -> None:
        self.count = 0
        self.largest: Producers | None = None
        """Of those that somebody came to since another was."""


class Producers:
    """See the module's docstring."""

    def __init__(self, census: Census) -> None:
        self._census = census
        self._known: OrderedDict[int, Producer] = OrderedDict()
        """Who was heard of last is at the end."""

    def __len__(self) -> int:
        return len(self._known)

    def come(self, header: BatchHeader, now_ms: int) -> tuple[Remembered, bool]:
        """A batch comes: what is remembered of it, and whether it was here before."""
        first = header.first_sequence
        last = (first + header.last_delta) % SEQUENCES
        producer = self._known.get(header.producer_id)
        if producer is None:
            producer = self._begin(header.producer_id, header.producer_epoch, now_ms)
        else:
            self._known.move_to_end(header.producer_id)
            producer.heard_ms = now_ms
        if header.producer_epoch < producer.epoch:
            raise Refused(INVALID_PRODUCER_EPOCH)
        if header.producer_epoch > producer.epoch:
            if first != 0:
                raise Refused(OUT_OF_ORDER)
            producer.epoch = header.producer_epoch
            producer.batches.clear()
        for batch in producer.batches:
            if (batch.first, batch.last) == (first, last):
                return batch, True
        if producer.batches and first != (producer.batches[-1].last + 1) % SEQUENCES:
            raise Refused(OUT_OF_ORDER)
        made = Remembered(first, last)
        producer.last_ms = header.last_timestamp
        producer.remember(made)
        return made, False

    def all(self) -> Iterable[tuple[int, Producer]]:
        """Everybody who is known, by number."""
        return self._known.items()

    def _begin(self, number: int, epoch: int, now_ms: int) -> Producer:
        """One more is known, and whoever there is no more room for is not."""
        known, census = self._known, self._census
        self._forget_silent(now_ms)
        made = known[number] = Producer(epoch, now_ms)
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

    def let_go(self) -> None:
        """The partition is put away, and counts no more."""
        self._census.count -= len(self._known)
        self._known.clear()
        if self._census.largest is self:
            self._census.largest = None

    def stored(self, batch: Remembered, offset: int) -> None:
        """It has its place; whoever sent it again meanwhile hears of it."""
        batch.offset = offset
        waiting, batch.waiting = batch.waiting, []
        for told in waiting:
            told(0, offset)

    def failed(self, producer_id: int, batch: Remembered, code: int) -> None:
        """It was not stored: forget it, and everything behind it."""
        producer = self._known.get(producer_id)
        if producer is not None and batch in producer.batches:
            while producer.batches and producer.batches[-1] is not batch:
                producer.batches.pop()
            producer.batches.pop()
        waiting, batch.waiting = batch.waiting, []
        for told in waiting:
            told(code, UNKNOWN)

    # -- over restarts ------------------------------------------------------------------------

    def known(self) -> list[Known]:
        """Everybody, as it is kept; nothing is on its way."""
        return [
            Known(
                number,
                producer.epoch,
                producer.last_ms,
                [(one.first, one.last, one.offset) for one in producer.batches],
            )
            for number, producer in self._known.items()
        ]

    def restore(self, kept: Iterable[Known], now_ms: int) -> None:
        """As it was kept, by a partition that knows nobody yet."""
        for one in kept:
            producer = self._begin(one.number, one.epoch, now_ms)
            producer.last_ms = one.last_ms
            producer.batches += (Remembered(*batch) for batch in one.batches)

    def note(self, header: BatchHeader, offset: int, now_ms: int) -> None:
        """A batch that was found in the log, in its order."""
        if header.producer_id < 0 or header.first_sequence < 0:
            return
        producer = self._known.get(header.producer_id)
        if producer is None:
            producer = self._begin(header.producer_id, header.producer_epoch, now_ms)
        elif producer.epoch != header.producer_epoch:
            producer.epoch = header.producer_epoch
            producer.batches.clear()
        last = (header.first_sequence + header.last_delta) % SEQUENCES
        producer.last_ms = header.last_timestamp
        producer.remember(Remembered(header.first_sequence, last, offset))
