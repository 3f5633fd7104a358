"""Reads one compacted ledger: its entries, under the positions that they have in the log.

Memory: the directory, which is 16 bytes for 10,000 entries, and the positions of the chunk that was
read last, while anybody reads the ledger.

An entry that is damaged raises `Corrupted`. If the broker is set to skip what is lost, the reader
goes on behind it, with an error in the log; of a chunk whose positions are damaged all is lost.

Invariant: an entry is returned with the position at which the log has, or had, it.
"""

from __future__ import annotations

import logging
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
from magnetar.core.ledger.write_failure_log import log_name
from magnetar.core.ports.ledger_store import LedgerReader, LedgerStore

log = logging.getLogger(__name__)

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

    def __init__(
        self,
        store: LedgerStore,
        log_name: str,
        about: CompactedLedger,
        *,
        skips_lost: bool = False,
    ) -> None:
        self.about = about
        self.users = 0
        """Who reads it, or is about to."""
        self._store = store
        self._log_name = log_name
        self._skips_lost = skips_lost
        self._skipped = -1
        """The last entry of the range that was logged last."""
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
        place = chunk_with(self._directory, position) * POSITIONS_PER_CHUNK
        while place < about.entries:
            number, inside = divmod(place, POSITIONS_PER_CHUNK)
            positions = await self._known(reader, number)
            inside = max(inside, bisect_left(positions, position))
            if inside >= len(positions):
                place = (number + 1) * POSITIONS_PER_CHUNK
                continue
            place = number * POSITIONS_PER_CHUNK + inside
            last = place + len(positions) - inside - 1
            try:
                entries = await reader.read(place, last, bytes_max)
            except Corrupted as error:
                place = (await self._lost(reader, place, error))[1] + 1
                continue
            end, behind = inside + len(entries), place + len(entries)
            return Block(positions[inside:end], entries, is_last=behind == about.entries)
        return Block([], [], is_last=True)

    async def last(self) -> tuple[Position, bytes] | None:
        """The last entry, with its position; None if there is none."""
        place = self.about.entries - 1
        while place >= 0:
            reader = await self._opened()
            number, inside = divmod(place, POSITIONS_PER_CHUNK)
            positions = await self._known(reader, number)
            if not positions:
                place = number * POSITIONS_PER_CHUNK - 1
                continue
            try:
                (entry,) = await reader.read(place, place, _ENTRY_BYTES_MAX)
            except Corrupted as error:
                place = (await self._lost(reader, place, error))[0] - 1
            else:
                return positions[inside], entry
        return None

    async def find_by_time(self, since_ms: int) -> Position | None:
        """The first entry published at `since_ms` or later; None if all are older. As in the log
        (`core/topic/seek.py`), publish times may be out of order.
        """
        low, high = 0, self.about.entries
        while low < high:
            middle = (low + high) // 2
            place, entry = await self._readable(low, middle)
            sent = b"" if entry is None else entry[header.read(entry).size :]
            if entry is None or form_of(sent).publish_time(sent) < since_ms:
                low = middle + 1
            else:
                high = place
        while low < self.about.entries:
            number, inside = divmod(low, POSITIONS_PER_CHUNK)
            positions = await self._known(await self._opened(), number)
            if positions:
                return positions[inside]
            low = (number + 1) * POSITIONS_PER_CHUNK
        return None

    async def _readable(self, first: int, place: int) -> tuple[int, bytes | None]:
        """The entry at that place, or the next one before it that is not lost; None if there is
        none from `first` on.
        """
        reader = await self._opened()
        while place >= first:
            try:
                (entry,) = await reader.read(place, place, _ENTRY_BYTES_MAX)
            except Corrupted as error:
                place = (await self._lost(reader, place, error))[0] - 1
            else:
                return place, entry
        return place, None

    # -- what is lost ---------------------------------------------------------------------------

    async def _known(self, reader: LedgerReader, number: int) -> list[Position]:
        """The positions of a chunk; none if they are lost."""
        try:
            return await self._positions(reader, number)
        except Corrupted as error:
            first = number * POSITIONS_PER_CHUNK
            self._skip(first, first + POSITIONS_PER_CHUNK - 1, error)
            return []

    async def _lost(self, reader: LedgerReader, place: int, error: Corrupted) -> tuple[int, int]:
        """The first and the last of the entries round that one that are lost."""
        first, last = await reader.damage(place)
        self._skip(first, last, error)
        return first, last

    def _skip(self, first: int, last: int, error: Corrupted) -> None:
        """Log that entries are lost; raises the error if they are not to be skipped."""
        if not self._skips_lost:
            raise error
        last = min(last, self.about.entries - 1)
        if last != self._skipped:
            self._skipped = last
            log.error(
                "%s: entries %d to %d of the compacted ledger %d are lost: %s",
                log_name(self._log_name), first, last, self.about.ledger_id, error,
            )  # fmt: skip

    # -- the ledger -----------------------------------------------------------------------------

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
