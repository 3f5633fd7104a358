"""Batches of one log from an offset on, for a fetch: Kafka's as they are stored, others converted.

What comes next is only looked at where it will probably fit: to read a megabyte in vain costs as
much as the one before it.

Invariant: batches are whole and in order; there is at least one if the first may have any size.
"""

from __future__ import annotations

from typing import Final

from magnetar.core.entry.kafka import form, record_batch
from magnetar.core.kernel.errors import StorageFailed
from magnetar.core.ledger.log.chain import Position
from magnetar.core.ledger.read.tail_cache import Slice
from magnetar.wire.kafka.partition.foreign_entries import Foreign
from magnetar.wire.kafka.partition.logs import PartitionLog

READ_ENTRIES_MAX: Final = 5_000


class FetchedBatches:
    """See the module's docstring."""

    __slots__ = (
        "_bytes_max",
        "_end",
        "_foreign",
        "_full",
        "_log",
        "_offset",
        "_one_at_least",
        "_taken",
        "pieces",
        "size",
    )

    def __init__(self, log: PartitionLog, bytes_max: int, end: int, *, one_at_least: bool) -> None:
        self.pieces: list[bytes | memoryview] = []
        self.size = 0
        self._log = log
        self._bytes_max = bytes_max
        self._one_at_least = one_at_least
        self._end = end
        """Nothing from this offset on."""
        self._offset = -1
        """Of the next message, once the first was seen."""
        self._full = False
        """What comes next is beyond the end, or there is no room for it."""
        self._taken = 0
        """How many entries were gathered."""
        self._foreign = Foreign(log.topic.ledger)

    @property
    def end(self) -> int:
        """Behind the last message that was gathered."""
        return self._offset

    def gather_cached(self, offset: int) -> bool:
        """As `gather`, where it is known which entry that is, and all is cached and came from
        Kafka's clients. False if not: then this one is of no use any more. Plain call.
        """
        ledger, places = self._log.topic.ledger, self._log.places
        position = places.known(offset)
        if position is None:
            return False
        while ledger.chain.has(position) and self._promising:
            part = self._cached(position)
            if part is None:
                return False
            taken = self._take_own(part, 0)
            position = self._behind(part, taken)
            if self._full:
                break
            if taken < len(part.payloads):
                return False
        self._note(position)
        return True

    async def gather(self, offset: int) -> None:
        """From the batch on that has the offset in it."""
        ledger = self._log.topic.ledger
        position = await self._log.places.find(offset)
        while ledger.chain.has(position) and self._promising:
            part = self._cached(position)
            if part is None:
                try:
                    part = await self._read(position)
                except StorageFailed:
                    if not self._taken:
                        raise
                    break  # what stands before it is given; the next fetch hears of it
            position = self._behind(part, await self._take(part))
            if self._full:
                break
        self._end_foreign()
        self._note(position)

    async def _read(self, position: Position) -> Slice:
        ledger = self._log.topic.ledger
        read = ledger.losses.read_round if ledger.skips_lost else ledger.read
        return await read(position, READ_ENTRIES_MAX, max(self._left, 1))

    def _cached(self, position: Position) -> Slice | None:
        """What was written just now, or read just before."""
        ledger = self._log.topic.ledger
        found = ledger.cached(position)
        if found is None:
            return ledger.read_at_once(position, READ_ENTRIES_MAX, max(self._left, 1))
        return found[0].part(found[1], len(found[0].payloads))

    @property
    def _promising(self) -> bool:
        """Whether there is room for an entry that is like those before."""
        gathered = self.size + self._foreign.size
        return not self._taken or self._left >= gathered // self._taken

    def _behind(self, part: Slice, taken: int) -> Position:
        self._taken += taken
        return self._log.topic.ledger.chain.normal((part.ledger_id, part.first_entry + taken))

    def _note(self, position: Position) -> None:
        """The next fetch begins there."""
        if self._offset >= 0:
            self._log.places.note(self._offset, position)

    @property
    def _left(self) -> int:
        return self._bytes_max - self.size - self._foreign.size

    async def _take(self, part: Slice) -> int:
        """As many entries as there is room for; returns how many those are."""
        place = self._take_own(part, 0)
        while place < len(part.payloads) and not self._full:
            position, count = (part.ledger_id, part.first_entry + place), _count(part, place)
            await self._foreign.add(part.sent(place), position, self._offset, count)
            if self._foreign.full:
                self._end_foreign()
            self._offset += count
            place = self._take_own(part, place + 1)
        return place

    def _take_own(self, part: Slice, place: int) -> int:
        """Batches of Kafka's clients from `place` on, up to what is foreign, or one too many."""
        if place == 0:
            header = part.header(0)
            if header.index < 0:
                return len(part.payloads)  # it has just been compacted away
            # the offsets of entries that follow each other do so too, but others may be missing
            self._offset = header.first_index
        for at in range(place, len(part.payloads)):
            payload = part.payloads[at]
            nothing = not self.size and not self._foreign.offsets
            if self._offset >= self._end or (
                len(payload) > self._left and not (nothing and self._one_at_least)
            ):
                self._full = True
                return at
            batch = form.batch_at(payload, part.sent_at(at))
            if batch < 0:
                return at
            self._end_foreign()
            self._give(*record_batch.with_offset(payload, batch, self._offset))
            self._offset += _count(part, at)
        return len(part.payloads)

    def _end_foreign(self) -> None:
        if self._foreign.offsets:
            self._give(self._foreign.taken())

    def _give(self, *pieces: bytes | memoryview) -> None:
        self.pieces += pieces
        self.size += sum(map(len, pieces))


def _count(part: Slice, place: int) -> int:
    """How many offsets an entry takes."""
    return 1 if part.counts is None else part.counts[place]
