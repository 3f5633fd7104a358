"""The batches of one log from an offset on, for Fetch: Kafka's as stored, other entries converted.

The next entry is read only if it will probably fit: reading a megabyte in vain costs as much as
sending one.

Invariant: batches are whole and in order; with `one_at_least` there is at least one (KIP-74).
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
        """The offset before which to stop."""
        self._offset = -1
        """The offset of the next message; -1 before the first entry is read."""
        self._full = False
        """The next entry lies beyond the end, or does not fit."""
        self._taken = 0
        """The number of entries taken."""
        self._foreign = Foreign(log.topic.ledger)

    def leave_out_aborted(self) -> None:
        """Leave out messages of other protocols whose transactions were aborted."""
        self._foreign.committed = True

    @property
    def end(self) -> int:
        """The offset behind the last message taken."""
        return self._offset

    def gather_cached(self, offset: int) -> bool:
        """As `gather`, if the entry of the offset is known, and all entries are cached and Kafka's.
        Otherwise False, after which this object is of no use. Plain call.
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
        """Read from the batch on that contains the offset."""
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
                    break  # return the entries before it; the next fetch gets the error
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
        """Entries from the tail cache or the last read; None if storage has to be read."""
        ledger = self._log.topic.ledger
        found = ledger.cached(position)
        if found is None:
            return ledger.read_at_once(position, READ_ENTRIES_MAX, max(self._left, 1))
        return found[0].part(found[1], len(found[0].payloads))

    @property
    def _promising(self) -> bool:
        """Whether there is room for an entry of average size."""
        gathered = self.size + self._foreign.size
        return not self._taken or self._left >= gathered // self._taken

    def _behind(self, part: Slice, taken: int) -> Position:
        self._taken += taken
        return self._log.topic.ledger.chain.normal((part.ledger_id, part.first_entry + taken))

    def _note(self, position: Position) -> None:
        """Remember the position of the offset at which the next fetch begins."""
        if self._offset >= 0:
            self._log.places.note(self._offset, position)

    @property
    def _left(self) -> int:
        return self._bytes_max - self.size - self._foreign.size

    async def _take(self, part: Slice) -> int:
        """Take the entries that fit; return their number."""
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
        """Take Kafka's batches from `place` on, up to a foreign entry or one that does not fit."""
        if place == 0:
            header = part.header(0)
            if header.index < 0:
                return len(part.payloads)  # compaction has just removed the entries
            # offsets are continuous inside a slice, but compaction may have removed some before it
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
            self._give(self._foreign.take())

    def _give(self, *pieces: bytes | memoryview) -> None:
        self.pieces += pieces
        self.size += sum(map(len, pieces))


def _count(part: Slice, place: int) -> int:
    """The number of offsets of an entry."""
    return 1 if part.counts is None else part.counts[place]
