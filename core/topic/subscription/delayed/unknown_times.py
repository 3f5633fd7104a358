"""Delayed entries whose times are not kept, by blocks of 1,024 consecutive positions. Pure.

Of a block only the soonest time is known, and which entries it is about: 300 bytes. When that time
is near, the block is taken out to be read again, and its entries' times are known from then on.

Invariant: a block has at least one entry; each block that is not taken out is in the heap with its
soonest time, perhaps beside later ones that no longer count.
"""

from __future__ import annotations

import heapq

from magnetar.core.ledger.buckets.bucket import BLOCK_BITS, BLOCK_ENTRIES, PLACE_MASK, BlockKey
from magnetar.core.ledger.log.chain import Position
from magnetar.core.topic.subscription.replay import STALE_MAX


class _Block:
    __slots__ = ("entries", "soonest_ms")

    def __init__(self) -> None:
        self.soonest_ms: int | None = None
        self.entries = 0
        """A bit for each."""

    def clear_to(self, place: int) -> None:
        self.entries &= -1 << (place + 1)


class UnknownTimes:
    """See the module's docstring."""

    __slots__ = ("_blocks", "_heap", "_out")

    def __init__(self) -> None:
        self._blocks: dict[BlockKey, _Block] = {}
        self._heap: list[tuple[int, BlockKey]] = []
        self._out: tuple[BlockKey, _Block] | None = None
        """The block that is being read."""

    def add(self, position: Position, due_ms: int, entries: int = 1) -> None:
        """Add some entries of a block, a bit for each from `position` on."""
        key = position[0], position[1] >> BLOCK_BITS
        block = self._blocks.get(key)
        if block is None:
            block = self._blocks[key] = _Block()
        if block.soonest_ms is None or due_ms < block.soonest_ms:
            block.soonest_ms = due_ms
            heapq.heappush(self._heap, (due_ms, key))
            if len(self._heap) > 2 * len(self._blocks) + STALE_MAX:
                self._heap = [entry for entry in self._heap if self._counts(entry)]
                heapq.heapify(self._heap)
        block.entries |= entries << (position[1] & PLACE_MASK)

    def discard(self, position: Position) -> bool:
        """False if it is not there."""
        key, bit = (position[0], position[1] >> BLOCK_BITS), 1 << (position[1] & PLACE_MASK)
        found = False
        for block in (self._blocks.get(key), self._out_if(key)):
            if block is not None and block.entries & bit:
                block.entries ^= bit
                found = True
                self._let_go(key, block)
        return found

    def _out_if(self, key: BlockKey) -> _Block | None:
        return self._out[1] if self._out is not None and self._out[0] == key else None

    def _let_go(self, key: BlockKey, block: _Block) -> None:
        """Of a block that is empty; one that is taken out stays so until it is asked for."""
        if not block.entries and self._blocks.get(key) is block:
            del self._blocks[key]

    def discard_to(self, position: Position) -> None:
        """Remove all up to a position."""
        last = position[0], position[1] >> BLOCK_BITS
        reached = [each for each in self._blocks.items() if each[0] <= last]
        if self._out is not None and self._out[0] <= last:
            reached.append(self._out)
        for key, block in reached:
            block.clear_to(position[1] & PLACE_MASK if key == last else BLOCK_ENTRIES)
            self._let_go(key, block)

    def clear(self) -> None:
        self._blocks.clear()
        self._heap.clear()
        self._out = None

    # -- reading one again --------------------------------------------------------------------

    @property
    def soonest_ms(self) -> int | None:
        """The soonest time of all blocks that are not taken out; None if there is none."""
        while self._heap and not self._counts(self._heap[0]):
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def _counts(self, entry: tuple[int, BlockKey]) -> bool:
        block = self._blocks.get(entry[1])
        return block is not None and block.soonest_ms == entry[0]

    def take_out(self) -> None:
        """Take out the block whose time is the soonest."""
        assert self._out is None
        if self.soonest_ms is not None:
            key = heapq.heappop(self._heap)[1]
            self._out = key, self._blocks.pop(key)

    @property
    def wanted(self) -> tuple[Position, int] | None:
        """The first position of the block that is taken out, and how many entries there are from it
        to the last one; None if none is out.
        """
        if self._out is None:
            return None
        (ledger_id, number), block = self._out
        if not block.entries:
            self._out = None
            return None
        first = (block.entries & -block.entries).bit_length() - 1
        return (ledger_id, (number << BLOCK_BITS) + first), block.entries.bit_length() - first
