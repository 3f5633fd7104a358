"""Times when entries are due, by position, soonest first, in little memory. Pure.

A new time is one number in a heap (60 bytes). 4,096 of them are sorted into a *run*: three arrays,
24 bytes an entry. The soonest time of all is that of the heap, or of the run whose first is the
soonest. The latest are given up by cutting the end of a run off. What is left of a run that has
become short returns to the heap, so that there are not too many runs.

A time counts as long as its position is in a set of the owner's (`live`). One that does not count
stays until it is the soonest, is sorted, or is cut off. A few of them are dropped at a time, so
that nobody waits for half a million: the soonest may be one that does not count.

Invariants: a run is sorted, and in `_heads` once; `len` is the number of times in the heap and in
what is left of the runs.
"""

from __future__ import annotations

import heapq
from array import array
from collections.abc import Iterator
from typing import Final

from magnetar.core.ledger.log.chain import Position
from magnetar.core.topic.subscription.delayed.position_set import PositionSet

RUN_TIMES_MAX: Final = 4_096
SHORT_RUN_TIMES: Final = RUN_TIMES_MAX // 8
DROPPED_MAX: Final = 32
"""Times that do not count, of those dropped in one look at the soonest."""
ID_BITS: Final = 64
ID_MASK: Final = (1 << ID_BITS) - 1


class _SortedTimes:
    """Sorted times, and the place of the first that is left."""

    __slots__ = ("at", "dues", "entries", "ledgers")

    def __init__(self, numbers: list[int]) -> None:
        self.at = 0
        self.dues = array("Q", [number >> 2 * ID_BITS for number in numbers])
        self.ledgers = array("Q", [number >> ID_BITS & ID_MASK for number in numbers])
        self.entries = array("Q", [number & ID_MASK for number in numbers])

    def __len__(self) -> int:
        return len(self.dues) - self.at

    @property
    def due_ms(self) -> int:
        return self.dues[self.at]

    @property
    def position(self) -> Position:
        return self.ledgers[self.at], self.entries[self.at]

    def step(self) -> None:
        """Leave the first behind; half of the arrays at most is left behind in them."""
        self.at += 1
        if self.at > len(self.dues) // 2:
            self._keep(self.at, len(self.dues))
            self.at = 0

    def _keep(self, start: int, stop: int) -> None:
        for numbers in (self.dues, self.ledgers, self.entries):
            del numbers[stop:]
            del numbers[:start]

    def times(self, start: int = 0) -> Iterator[tuple[Position, int]]:
        """Those that are left, from a place on."""
        for at in range(self.at + start, len(self.dues)):
            yield (self.ledgers[at], self.entries[at]), self.dues[at]

    def cut(self, keep: int) -> list[tuple[Position, int]]:
        """Give up all but so many, the soonest; returns the others."""
        others = list(self.times(keep))
        self._keep(0, self.at + keep)
        return others


class KnownTimes:
    """See the module's docstring."""

    __slots__ = ("_count", "_heads", "_heap", "_live", "_made")

    def __init__(self, live: PositionSet) -> None:
        self._live = live
        self._heap: list[int] = []
        self._heads: list[tuple[int, int, _SortedTimes]] = []
        """The runs, by the time that was their first one, and a number of each."""
        self._made = 0
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, position: Position, due_ms: int) -> None:
        self._count += 1
        ledger_id, entry_id = position
        heapq.heappush(self._heap, ((due_ms << ID_BITS) | ledger_id) << ID_BITS | entry_id)
        if len(self._heap) >= RUN_TIMES_MAX:
            self._sort(RUN_TIMES_MAX // 2)

    def _sort(self, least: int) -> None:
        """Make a run of the heap, if there is so much in it without what no longer counts."""
        numbers = sorted(number for number in self._heap if _position(number) in self._live)
        self._count -= len(self._heap) - len(numbers)
        if len(numbers) < least:
            self._heap = numbers  # sorted, and so a heap
            return
        self._heap = []
        if numbers:
            run = _SortedTimes(numbers)
            self._made += 1
            heapq.heappush(self._heads, (run.due_ms, self._made, run))

    def _dissolve(self, run: _SortedTimes) -> None:
        """Return to the heap what is left of a run, which is in `_heads` no more."""
        self._count -= len(run)
        for position, due_ms in run.times():
            self.add(position, due_ms)

    def soonest(self) -> int | None:
        """The soonest time, perhaps of one that does not count; None if there is none."""
        self._settle()
        if not self._heap:
            return self._heads[0][0] if self._heads else None
        due_ms = self._heap[0] >> 2 * ID_BITS
        return min(due_ms, self._heads[0][0]) if self._heads else due_ms

    def pop(self) -> Position:
        """Remove the soonest time, for which `soonest` was just asked."""
        self._count -= 1
        if self._heap and (not self._heads or self._heap[0] >> 2 * ID_BITS <= self._heads[0][0]):
            return _position(heapq.heappop(self._heap))
        run = self._heads[0][2]
        position = run.position
        run.step()
        return position

    def _settle(self) -> None:
        """Drop some that do not count from the front, and put the soonest run first."""
        heads, live, spare = self._heads, self._live, DROPPED_MAX
        while heads:
            due_ms, made, run = heads[0]
            while spare and len(run) and run.position not in live:
                run.step()
                self._count -= 1
                spare -= 1
            if len(run) < SHORT_RUN_TIMES:
                heapq.heappop(heads)
                self._dissolve(run)
            elif run.due_ms != due_ms:
                heapq.heapreplace(heads, (run.due_ms, made, run))
            else:
                break
        while spare and self._heap and _position(self._heap[0]) not in live:
            heapq.heappop(self._heap)
            self._count -= 1
            spare -= 1

    def give_up(self) -> list[tuple[Position, int]]:
        """Remove some of the latest times, at least one if there are any; returns them."""
        if len(self._heap) > self._count // 2:
            self._sort(0)
        latest = max(
            (head for head in self._heads if len(head[2])),
            key=lambda head: head[2].dues[-1],
            default=None,
        )
        if latest is None:
            return []
        run = latest[2]
        given_up = run.cut(len(run) // 2)
        self._count -= len(given_up)
        if len(run) < SHORT_RUN_TIMES:
            self._heads.remove(latest)
            heapq.heapify(self._heads)
            self._dissolve(run)
        return given_up

    def clear(self) -> None:
        self._heap = []
        self._heads = []
        self._count = 0


def _position(number: int) -> Position:
    return number >> ID_BITS & ID_MASK, number & ID_MASK
