"""Batches of one log from an offset on, for a fetch: Kafka's as they are stored, others crossed.

What is not cached is read only where it will probably fit: to read a megabyte in vain costs as much
as the one before it.

Invariant: batches are whole and in order; there is at least one if one is wanted at any size.
"""

from __future__ import annotations

from typing import Final

from core.entry import kafka_batch, kafka_form
from core.ledger.chain import Position
from core.ledger.tail_cache import Slice
from wire.kafka.session.foreign import Foreign
from wire.kafka.session.logs import Log

READ_ENTRIES_MAX: Final = 5_000


class Gathering:
    """See the module's docstring."""

    __slots__ = (
        "_bytes_max",
        "_end",
        "_foreign",
        "_log",
        "_offset",
        "_one_at_least",
        "_taken",
        "pieces",
        "size",
    )

    def __init__(self, log: Log, bytes_max: int, end: int, *, one_at_least: bool) -> None:
        self.pieces: list[bytes | memoryview] = []
        self.size = 0
        self._log = log
        self._bytes_max = bytes_max
        self._one_at_least = one_at_least
        self._end = end
        """Nothing from this offset on."""
        self._offset = -1
        """Of the next message, once the first was seen."""
        self._taken = 0
        """How many entries were gathered."""
        self._foreign = Foreign(log.topic.ledger)

    @property
    def end(self) -> int:
        """Behind the last message that was gathered."""
        return self._offset

    async def gather(self, offset: int) -> None:
        """From the batch on that has the offset in it."""
        ledger, places = self._log.topic.ledger, self._log.places
        position = await places.find(offset)
        while ledger.chain.has(position):
            part = await self._part(position)
            if part is None:
                break
            taken = await self._take(part)
            self._taken += taken
            position = ledger.chain.normal((part.ledger_id, part.first_entry + taken))
            if taken < len(part.payloads):
                break
        self._end_foreign()
        if self._offset >= 0:
            places.note(self._offset, position)

    async def _part(self, position: Position) -> Slice | None:
        """None if there is room for none that is like those before."""
        ledger = self._log.topic.ledger
        found = ledger.cached(position)
        if found is not None:
            return found[0].part(found[1], len(found[0].payloads))
        gathered = self.size + self._foreign.size
        if self._taken and self._left < gathered // self._taken:
            return None
        return await ledger.read(position, READ_ENTRIES_MAX, max(self._left, 1))

    @property
    def _left(self) -> int:
        return self._bytes_max - self.size - self._foreign.size

    async def _take(self, part: Slice) -> int:
        """As many entries as there is room for; returns how many those are."""
        header = part.header(0)
        if header.index < 0:
            return len(part.payloads)  # it has just been compacted away
        # the offsets of entries that follow each other do so too, but others may be missing
        self._offset = header.first_index
        for place in range(len(part.payloads)):
            payload = part.payloads[place]
            nothing = not self.size and not self._foreign.offsets
            if self._offset >= self._end:
                return place
            if len(payload) > self._left and not (nothing and self._one_at_least):
                return place
            count = 1 if part.counts is None else part.counts[place]
            batch = kafka_form.batch_at(payload, part.sent_at(place))
            if batch < 0:
                position = (part.ledger_id, part.first_entry + place)
                await self._foreign.add(part.sent(place), position, self._offset, count)
                if self._foreign.full:
                    self._end_foreign()
            else:
                self._end_foreign()
                self._give(*kafka_batch.with_offset(payload, batch, self._offset))
            self._offset += count
        return len(part.payloads)

    def _end_foreign(self) -> None:
        if self._foreign.offsets:
            self._give(self._foreign.taken())

    def _give(self, *pieces: bytes | memoryview) -> None:
        self.pieces += pieces
        self.size += sum(map(len, pieces))
