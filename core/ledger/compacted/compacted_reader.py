"""Reads one compacted ledger: its entries, under the positions that they have in the log.

Memory: the directory, which is 16 bytes for 10,000 entries, and the positions of the chunk that was
read last, while anybody reads the ledger.

Invariant: an entry is returned with the position at which the log has, or had, it.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Final, NamedTuple

from magnetar.core.entry import header
from magnetar.core.entry.forms import form_of
from magnetar.core.kernel.errors import Corrupted
from magnetar.core.ledger.compacted.positions import (
    POSITIONS_PER_CHUNK,
    chunk_with,
    chunks_of,
    unpacked,
)
from magnetar.core.ledger.ledger_owner import open_own
from magnetar.core.ledger.log.chain import START, Position
from magnetar.core.ledger.log.ledger_list_record import CompactedLedger
from magnetar.core.ports.ledger_store import LedgerReader, LedgerStore

_ENTRY_BYTES_MAX: Final = 1


class Block(NamedTuple):
    """Entries that follow each other in a compacted ledger."""

    positions: list[Position]
    entries: list[bytes]
    """As they are stored, with the broker's header."""
    is_last: bool
    """Whether nothing of the compacted ledger follows."""


class CompactedReader:
    """See the module's docstring."""

    def __init__(self, store: LedgerStore, log_name: str, about: CompactedLedger) -> None:
        self.about = about
        self.users = 0
        """Who reads it, or is about to."""
        self._store = store
        self._log_name = log_name
        self._reader: LedgerReader | None = None
        self._directory: list[Position] = []
        self._chunk: tuple[int, list[Position]] = (-1, [])
        """The number of a chunk, and its positions."""

    async def block(self, position: Position, bytes_max: int) -> Block:
        """Entries from the first one at or after `position` on; none if there is none."""
        about = self.about
        if not about.entries:
            return Block([], [], is_last=True)
        reader = await self._opened()
        number = chunk_with(self._directory, position)
        positions = await self._positions(reader, number)
        place = bisect_left(positions, position)
        if place == len(positions):
            number, place = number + 1, 0
            if number == len(self._directory):
                return Block([], [], is_last=True)
            positions = await self._positions(reader, number)
        first = number * POSITIONS_PER_CHUNK
        entries = await reader.read(first + place, first + len(positions) - 1, bytes_max)
        end = place + len(entries)
        return Block(positions[place:end], entries, is_last=first + end == about.entries)

    async def last(self) -> tuple[Position, bytes] | None:
        """The last entry, with its position; None if there is none."""
        if not self.about.entries:
            return None
        return await self._at(self.about.entries - 1)

    async def find_by_time(self, since_ms: int) -> Position | None:
        """The first entry published at `since_ms` or later; None if all are older. As in the log
        (`core/topic/seek.py`), publish times may be out of order.
        """
        low, high = 0, self.about.entries
        while low < high:
            middle = (low + high) // 2
            _, entry = await self._at(middle)
            sent = entry[header.read(entry).size :]
            if form_of(sent).publish_time(sent) < since_ms:
                low = middle + 1
            else:
                high = middle
        return (await self._at(low))[0] if low < self.about.entries else None

    async def _at(self, place: int) -> tuple[Position, bytes]:
        reader = await self._opened()
        number, inside = divmod(place, POSITIONS_PER_CHUNK)
        positions = await self._positions(reader, number)
        (entry,) = await reader.read(place, place, _ENTRY_BYTES_MAX)
        return positions[inside], entry

    async def _opened(self) -> LedgerReader:
        if self._reader is None:
            about = self.about
            reader = await open_own(self._store, about.ledger_id, self._log_name)
            chunks = chunks_of(about.entries)
            at = about.entries + chunks
            (entry,) = await reader.read(at, at, _ENTRY_BYTES_MAX)
            self._directory = unpacked(entry, chunks)
            self._reader = reader
        return self._reader

    async def _positions(self, reader: LedgerReader, number: int) -> list[Position]:
        """The positions of a chunk."""
        known, positions = self._chunk
        if known == number:
            return positions
        about = self.about
        at = about.entries + number
        (entry,) = await reader.read(at, at, _ENTRY_BYTES_MAX)
        count = min(about.entries - number * POSITIONS_PER_CHUNK, POSITIONS_PER_CHUNK)
        positions = unpacked(entry, count)
        if positions[0] != self._directory[number] or positions[-1] <= START:
            raise Corrupted(f"chunk {number} of ledger {about.ledger_id} is not in its directory")
        self._chunk = (number, positions)
        return positions
