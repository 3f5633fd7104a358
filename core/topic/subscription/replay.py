"""The replay set: positions to be delivered again. Pure.

A heap with lazy removal: a position that leaves the set stays in the heap until it reaches the top.

Invariant: the heap is at most twice as long as the set, and a constant longer.
"""

import heapq
from collections.abc import Iterator
from typing import Final, Protocol

from magnetar.core.ledger.log.chain import Position

STALE_MAX: Final = 64
"""Stale positions that a heap may have beside as many as there are live ones."""


class ReplaySet(Protocol):
    """Entries to be delivered again, in any order."""

    def __len__(self) -> int: ...

    def __contains__(self, position: Position) -> bool: ...

    def __iter__(self) -> Iterator[Position]: ...

    def add(self, position: Position) -> None: ...

    def discard(self, position: Position) -> None: ...

    def clear(self) -> None: ...


class Replay:
    """Positions to be delivered again, lowest first."""

    def __init__(self) -> None:
        self._heap: list[Position] = []
        self._set: set[Position] = set()

    def __len__(self) -> int:
        return len(self._set)

    def __contains__(self, position: Position) -> bool:
        return position in self._set

    def add(self, position: Position) -> None:
        if position not in self._set:
            self._set.add(position)
            heapq.heappush(self._heap, position)
            if len(self._heap) > 2 * len(self._set) + STALE_MAX:
                self._heap = sorted(self._set)

    def discard(self, position: Position) -> None:
        self._set.discard(position)

    def first_run(self, entries_max: int) -> tuple[Position, int] | None:
        """The first position, and how many consecutive ones begin with it."""
        heap, members = self._heap, self._set
        while heap and heap[0] not in members:
            heapq.heappop(heap)
        if not heap:
            return None
        first = ledger_id, entry_id = heap[0]
        count = 1
        while count < entries_max and (ledger_id, entry_id + count) in members:
            count += 1
        return first, count

    def clear(self) -> None:
        self._heap.clear()
        self._set.clear()

    def __iter__(self) -> Iterator[Position]:
        return iter(self._set)
