"""The source of a dispatcher's entries while its consumer reads compacted.

    compacted   position <= horizon    reads the compacted ledger
    log         behind it              reads the log, as `EntrySource` does

A source that begins (a consumer becomes active, or wants a redelivery) reads the compacted ledger
of that moment to its end, and then the log, even if the log has been compacted further meanwhile:
the log still has what deletes a key, which a compacted ledger has not, so a reader that was told of
a value is told of its end. Only what retention has deleted from the log is read from a later
compacted ledger. (Pulsar chooses by the latest horizon before each read, `CompactedTopicUtils` of
4.2.)

Entries of the log that are not in the compacted ledger count as acknowledged, as soon as delivery
passes them, or the mark-delete position would never pass them. So do messages of a batch that are
marked as compacted out; clients hear of these in the set of acknowledged messages that comes with
a batch (PIP-54), since some would deliver them.

Memory: one block of entries at a time.

Invariants: entries come in order of their positions; a source that reads compacted holds its
compacted ledger, so that it is not deleted, and lets it go when it begins anew or stops.
"""

from __future__ import annotations

import logging
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

import trio

from magnetar.core.entry import header
from magnetar.core.entry.forms import NATIVE
from magnetar.core.kernel.errors import BrokerError
from magnetar.core.ledger.compacted.compacted_reader import Block, CompactedReader
from magnetar.core.ledger.compacted.compacted_topic import CompactedTopic
from magnetar.core.ledger.cursor.cursor import Cursor
from magnetar.core.ledger.log.chain import Position
from magnetar.core.ledger.log.managed_ledger import ManagedLedger
from magnetar.core.ledger.read.tail_cache import Slice
from magnetar.core.topic.environment import Environment
from magnetar.core.topic.subscription.foreign_entries import converted
from magnetar.core.topic.subscription.source import EntrySource

log = logging.getLogger(__name__)

BLOCK_BYTES_MAX: Final = 256 * 1024
RETRY_SECONDS: Final = 0.1
RETRY_SECONDS_MAX: Final = 10.0
"""The pause before a block that cannot be read is tried again; it doubles."""


class LoadedBlock:
    """Entries of a compacted ledger, converted, as runs without gaps."""

    __slots__ = ("_lasts", "begins", "end", "masks", "runs", "size")

    def __init__(self, begins: Position, end: Position, runs: list[Slice]) -> None:
        self.begins = begins
        """The block has every entry of the compacted ledger from here on."""
        self.end = end
        """And up to here."""
        self.runs = runs
        self.size = sum(len(payload) for run in runs for payload in run.payloads)
        self.masks: dict[Position, tuple[int, int]] = {}
        """Of batches with messages that are compacted out: a bit for each that is not, and how many
        messages there were."""
        self._lasts = [(one.ledger_id, one.first_entry + len(one.payloads) - 1) for one in runs]

    def next(self, position: Position) -> Position | None:
        """The first entry at or after `position`; None if the block has none."""
        at = bisect_left(self._lasts, position)
        if at == len(self.runs):
            return None
        run = self.runs[at]
        return max(position, (run.ledger_id, run.first_entry))

    def at(self, position: Position) -> tuple[Slice, int] | None:
        """The run with that entry, and its place there."""
        at = bisect_left(self._lasts, position)
        if at == len(self.runs) or self.runs[at].ledger_id != position[0]:
            return None
        place = position[1] - self.runs[at].first_entry
        return (self.runs[at], place) if place >= 0 else None


class CompactedSource:
    """See the module's docstring."""

    def __init__(
        self,
        source: EntrySource,
        compacted: CompactedTopic,
        ledger: ManagedLedger,
        cursor: Cursor,
        env: Environment,
        arrived: Callable[[], None],
    ) -> None:
        self.plain = source
        """The source of who does not read compacted, and behind the horizon."""
        self._compacted = compacted
        self._ledger = ledger
        self._cursor = cursor
        self._env = env
        self._arrived = arrived
        self._behind = False
        """The compacted ledger has been read to its end."""
        self._reader: CompactedReader | None = None
        self._block: LoadedBlock | None = None
        self._loading = False
        self._retry_seconds = RETRY_SECONDS

    def begin(self) -> Position:
        """Begin anew after the mark-delete position; returns the position to read from."""
        ledger_id, entry_id = self._cursor.mark_delete
        return self.normal((ledger_id, entry_id + 1))

    def stop(self) -> None:
        """Drop loaded entries, and let the compacted ledger go."""
        self._behind = False
        self.forget()
        self._let_go()

    def forget(self) -> None:
        """Drop loaded entries; they may be loaded again."""
        if self._block is not None:
            self._block = None
            self._env.loaded.let_go(self)

    def _let_go(self) -> None:
        reader, self._reader = self._reader, None
        if reader is not None:
            self._compacted.leave(reader)

    # -- plain calls of the dispatcher --------------------------------------------------------

    def normal(self, position: Position) -> Position:
        """The position to read at or after `position`. It may have to be looked up: then it is
        `position` itself, and `at` returns nothing until it is known.
        """
        if not self._is_compacted(position):
            return self._ledger.chain.normal(position)
        block = self._block
        if block is None or not block.begins <= position <= block.end:
            return position
        found = block.next(position)
        behind = (block.end[0], block.end[1] + 1)
        self._pass(position, found or behind)
        return found if found is not None else self.normal(behind)

    def _is_compacted(self, position: Position) -> bool:
        """Whether that position is read from the compacted ledger, which is held from now on."""
        if self._reader is not None:
            if position <= self._reader.about.horizon:
                return True
            self._behind = True
            self.forget()
            self._let_go()
        if self._behind and position >= self._ledger.chain.first:
            return False
        current = self._compacted.current
        if current is None or position > current.horizon:
            self._behind = True
            return False
        self._reader = self._compacted.use(current)
        return True

    def at(self, position: Position) -> tuple[Slice, int] | None:
        """A run and the place of `position` in it; None if it is not written or not loaded."""
        if self._reader is None:
            return self.plain.at(position)
        block = self._block
        if block is not None and block.begins <= position <= block.end:
            return block.at(position)
        if not self._loading:
            self._loading = True
            self._env.spawn(self._load, self._reader, position)
        return None

    def masked(self, part: Slice, partial: Mapping[int, int] | None) -> dict[int, int] | None:
        """The bits of messages of batches to deliver, by place in `part`, if not all are: of those
        that are not acknowledged (`partial`), the ones that are not compacted out.
        """
        found = dict(partial or {})
        masks = self._block.masks if self._block is not None else {}
        for place in range(len(part.payloads) if masks else 0):
            mask, _ = masks.get((part.ledger_id, part.first_entry + place), (0, 0))
            if mask:
                found[place] = mask & found.get(place, mask)
        return found or None

    def _pass(self, first: Position, behind: Position) -> None:
        """Acknowledge the entries of the log from `first` on that are before `behind`."""
        cursor = self._cursor
        last = (behind[0], behind[1] - 1)
        if last < first or last <= cursor.mark_delete:
            return
        if cursor.mark_delete >= (first[0], first[1] - 1):
            cursor.ack_to(last)
            return
        if first[0] == last[0]:
            cursor.ack_range(first[0], first[1], last[1])
            return
        for segment in self._ledger.chain.segments:
            if first[0] <= segment.ledger_id <= last[0]:
                low = first[1] if segment.ledger_id == first[0] else 0
                high = last[1] if segment.ledger_id == last[0] else segment.entries - 1
                if low <= high:
                    cursor.ack_range(segment.ledger_id, low, high)

    # -- loading ------------------------------------------------------------------------------

    async def _load(self, reader: CompactedReader, position: Position) -> None:
        held = self._compacted.use(reader.about)
        block = None
        try:
            block = await self._loaded(held, position)
        except BrokerError as error:
            ledger_id = held.about.ledger_id
            log.error("%s: cannot read ledger %d: %s", self._ledger.name, ledger_id, error)
            await trio.sleep(self._retry_seconds)
            self._retry_seconds = min(self._retry_seconds * 2, RETRY_SECONDS_MAX)
        else:
            self._retry_seconds = RETRY_SECONDS
        finally:
            self._loading = False
            self._compacted.leave(held)
        if block is not None and self._reader is not None and self._reader.about == held.about:
            self._block = block
            self._env.loaded.hold(self, block.size)
            for batch, (mask, size) in block.masks.items():
                self._cursor.ack_bits(batch, mask, size)
        self._arrived()

    async def _loaded(self, reader: CompactedReader, position: Position) -> LoadedBlock:
        memory = self._env.loaded
        bytes_max = min(memory.share, BLOCK_BYTES_MAX)
        load = await memory.begin(bytes_max)
        try:
            found = await reader.block(position, bytes_max)
        finally:
            memory.end(load)
        end = reader.about.horizon if found.is_last else found.positions[-1]
        runs: list[Slice] = []
        for run in runs_of(found):
            runs += await self._native(run) if self._ledger.mixed else [run]
        block = LoadedBlock(position, end, runs)
        for run in runs:
            for place, count in enumerate(run.counts or ()):
                mask = mask_of(NATIVE.remaining_places(run.sent(place)), count)
                if mask:
                    block.masks[run.ledger_id, run.first_entry + place] = (mask, count)
        return block

    async def _native(self, run: Slice) -> list[Slice]:
        """A run in the native form, without entries that nobody can read."""
        made: list[Slice] = []
        start = 0
        while start < len(run.payloads):
            part = await converted(run.part(start, len(run.payloads)), _ignore, self._ledger)
            start += len(part.payloads)
            made += _without_empty(part)
        return made


def _ignore(_ledger_id: int, _first: int, _last: int) -> None:
    """Nothing is hidden yet: delivery passes the gap."""


def runs_of(block: Block) -> Iterator[Slice]:
    """The entries of a block as slices, which have no gaps."""
    positions, entries = block.positions, block.entries
    begin = 0
    for place in range(1, len(positions) + 1):
        ledger_id, entry_id = positions[place - 1]
        if place < len(positions) and positions[place] == (ledger_id, entry_id + 1):
            continue
        part = entries[begin:place]
        yield Slice(ledger_id, positions[begin][1], part, [header.read(one).count for one in part])
        begin = place


def _without_empty(part: Slice) -> Iterator[Slice]:
    begin = 0
    for place in range(len(part.payloads) + 1):
        if place == len(part.payloads) or not part.payloads[place]:
            if begin < place:
                yield part.part(begin, place)
            begin = place + 1


def mask_of(places: Sequence[int], count: int) -> int:
    """A bit for each message that is left of a batch of so many; 0 for all. A place behind the
    batch, which a client may have noted, is none.
    """
    bits = bytearray(count // 8 + 1)
    for place in places:
        if place < count:
            bits[place >> 3] |= 1 << (place & 7)
    return int.from_bytes(bits, "little")
