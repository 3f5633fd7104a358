"""Delayed entries: positions ordered by the time when they are due. Pure.

Each is one number in a heap (due time, then position) and one bit in a bitmap of its ledger: about
50 bytes, while tuples in a set and a heap take 300. Pulsar uses bitmaps as well
(`InMemoryDelayedDeliveryTracker.java` of 4.2, with Roaring bitmaps). A removed entry loses its bit
and stays in the heap until it reaches the top.

Invariant: the heap is at most twice as long as the number of entries, and a constant longer; a
ledger without delayed entries has no bitmap.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import Final

from magnetar.core.ledger.log.chain import Position
from magnetar.core.topic.subscription.replay import STALE_MAX

ID_BITS: Final = 64
ID_MASK: Final = (1 << ID_BITS) - 1


class _Entries:
    """The delayed entries of one ledger."""

    __slots__ = ("bits", "count")

    def __init__(self) -> None:
        self.bits = bytearray()
        self.count = 0

    def has(self, entry_id: int) -> bool:
        return entry_id >> 3 < len(self.bits) and bool(
            self.bits[entry_id >> 3] >> (entry_id & 7) & 1
        )

    def flip(self, entry_id: int) -> None:
        missing = (entry_id >> 3) + 1 - len(self.bits)
        if missing > 0:
            self.bits += bytes(missing)
        self.bits[entry_id >> 3] ^= 1 << (entry_id & 7)


class DelayedDeliveries:
    """See the module's docstring."""

    def __init__(self) -> None:
        self._heap: list[int] = []
        self._ledgers: dict[int, _Entries] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def __contains__(self, position: Position) -> bool:
        entries = self._ledgers.get(position[0])
        return entries is not None and entries.has(position[1])

    def __iter__(self) -> Iterator[Position]:
        """In no order."""
        for ledger_id, entries in self._ledgers.items():
            for at, byte in enumerate(entries.bits):
                if byte:
                    yield from ((ledger_id, at * 8 + bit) for bit in range(8) if byte >> bit & 1)

    def add(self, position: Position, due_ms: int) -> None:
        """Add an entry; if it is there already, its first due time counts."""
        if position in self:
            return
        ledger_id, entry_id = position
        entries = self._ledgers.get(ledger_id)
        if entries is None:
            entries = self._ledgers[ledger_id] = _Entries()
        entries.flip(entry_id)
        entries.count += 1
        self._count += 1
        heapq.heappush(self._heap, ((due_ms << ID_BITS) | ledger_id) << ID_BITS | entry_id)
        if len(self._heap) > 2 * self._count + STALE_MAX:
            self._heap = [number for number in self._heap if _position(number) in self]
            heapq.heapify(self._heap)

    def discard(self, position: Position) -> None:
        """Remove an entry."""
        if position not in self:
            return
        ledger_id, entry_id = position
        entries = self._ledgers[ledger_id]
        entries.flip(entry_id)
        entries.count -= 1
        self._count -= 1
        if not entries.count:
            del self._ledgers[ledger_id]

    @property
    def next_due_ms(self) -> int | None:
        """When the next entry is due; None if there is none."""
        while self._heap and _position(self._heap[0]) not in self:
            heapq.heappop(self._heap)
        return self._heap[0] >> 2 * ID_BITS if self._heap else None

    def take_due(self, now_ms: int, entries_max: int) -> list[Position]:
        """Remove and return entries that are due, up to a number."""
        due: list[Position] = []
        while len(due) < entries_max:
            soonest = self.next_due_ms
            if soonest is None or soonest > now_ms:
                break
            position = _position(heapq.heappop(self._heap))
            self.discard(position)
            due.append(position)
        return due

    def clear(self) -> None:
        self._heap.clear()
        self._ledgers.clear()
        self._count = 0


def _position(number: int) -> Position:
    return number >> ID_BITS & ID_MASK, number & ID_MASK
