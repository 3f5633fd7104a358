"""Positions that wait to be delivered again, and those that wait for their time. Pure.

Both are a heap beside a set: what is taken out of the set stays in the heap until it comes to the
top. Invariant: no heap is longer than twice its set and a little, however much comes and goes.
"""

import heapq
from collections.abc import Iterator
from typing import Final

from core.ledger.chain import Position

STALE_MAX: Final = 64
"""Beyond as many entries as are alive, a heap may have so many that are not."""


class Replay:
    """Positions that wait to be delivered again, lowest first."""

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


class Delayed:
    """Positions with the time they are due, soonest first."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, Position]] = []
        self._times: dict[Position, int] = {}

    def __len__(self) -> int:
        return len(self._times)

    def add(self, position: Position, due_ms: int) -> None:
        if position not in self._times:
            self._times[position] = due_ms
            heapq.heappush(self._heap, (due_ms, position))
            if len(self._heap) > 2 * len(self._times) + STALE_MAX:
                self._heap = sorted((due, waiting) for waiting, due in self._times.items())

    def __iter__(self) -> Iterator[Position]:
        return iter(self._times)

    def discard(self, position: Position) -> None:
        self._times.pop(position, None)

    @property
    def next_due_ms(self) -> int | None:
        """When to look again."""
        while self._heap and self._heap[0][1] not in self._times:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def take_due(self, now_ms: int) -> list[Position]:
        """Remove and return what is due."""
        due = []
        while (soonest := self.next_due_ms) is not None and soonest <= now_ms:
            position = heapq.heappop(self._heap)[1]
            del self._times[position]
            due.append(position)
        return due

    def clear(self) -> None:
        self._heap.clear()
        self._times.clear()
