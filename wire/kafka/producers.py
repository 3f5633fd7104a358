"""What a partition knows of producers that must not write twice. Pure.

Each numbers what it sends, and may have five batches under way. A batch comes next, or is one of
the last five again (and is answered as it was the first time), or is out of order. A producer that
nothing is known of may begin with any number: what was known may have been forgotten.

Invariant: numbers are judged when batches come, not when they are stored; a batch that could not be
stored, and all behind it, are as if they had never come.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from core.entry.kafka_batch import BatchHeader
from wire.kafka.errors import INVALID_PRODUCER_EPOCH, OUT_OF_ORDER, Refused

REMEMBERED_BATCHES: Final = 5
PRODUCERS_MAX: Final = 10_000
"""Of one partition; the one that has been silent for longest is forgotten."""
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

    __slots__ = ("batches", "epoch", "last_ms")

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.last_ms = -1
        """The latest time in its last batch."""
        self.batches: deque[Remembered] = deque(maxlen=REMEMBERED_BATCHES)


class Known(NamedTuple):
    """A producer, as it is kept over restarts."""

    number: int
    epoch: int
    last_ms: int
    batches: list[tuple[int, int, int]]
    """First and last number of each, and its offset."""


class Producers:
    """See the module's docstring."""

    def __init__(self) -> None:
        self._known: dict[int, Producer] = {}

    def come(self, header: BatchHeader) -> tuple[Remembered, bool]:
        """A batch comes: what is remembered of it, and whether it was here before."""
        first = header.first_sequence
        last = (first + header.last_delta) % SEQUENCES
        producer = self._known.pop(header.producer_id, None)
        if producer is None:
            producer = Producer(header.producer_epoch)
        self._known[header.producer_id] = producer  # the last one heard of
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
        producer.batches.append(made)
        self._forget_some()
        return made, False

    def all(self) -> Iterable[tuple[int, Producer]]:
        """Everybody who is known, by number."""
        return self._known.items()

    def _forget_some(self) -> None:
        while len(self._known) > PRODUCERS_MAX:
            del self._known[next(iter(self._known))]

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

    def restore(self, kept: Iterable[Known]) -> None:
        """As it was kept."""
        for one in kept:
            producer = self._known[one.number] = Producer(one.epoch)
            producer.last_ms = one.last_ms
            producer.batches += (Remembered(*batch) for batch in one.batches)

    def note(self, header: BatchHeader, offset: int) -> None:
        """A batch that was found in the log, in its order."""
        if header.producer_id < 0 or header.first_sequence < 0:
            return
        producer = self._known.get(header.producer_id)
        if producer is None or producer.epoch != header.producer_epoch:
            producer = self._known[header.producer_id] = Producer(header.producer_epoch)
        last = (header.first_sequence + header.last_delta) % SEQUENCES
        producer.last_ms = header.last_timestamp
        producer.batches.append(Remembered(header.first_sequence, last, offset))
        self._forget_some()
