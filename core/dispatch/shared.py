"""Assigns entries to the consumers of a shared subscription. Pure.

Round robin over the consumers with permits of the best priority level (0 is best); only if none of
them has permits left, those of the next level (`AbstractDispatcherMultipleConsumers
.getNextConsumer` of Pulsar 4.2). A turn is at most 20 entries (`dispatcherMaxRoundRobinBatchSize`).
Permits count messages: an entry is delivered whole while one permit is left, so permits may end
below zero.

Invariants: the shares have no gaps and begin at entry 0; a share has about 20 entries; a consumer
without permits gets no entry.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Generic, Protocol, TypeVar

from magnetar.core.kernel.structs import FrozenStruct

TURN_ENTRIES_MAX: Final = 20
"""The size of a turn."""


class Permitted(Protocol):
    """A consumer, as the assignment sees it; callers pass only those that may be served now."""

    @property
    def priority(self) -> int: ...

    @property
    def permits(self) -> int: ...


C = TypeVar("C", bound=Permitted)


class Share(FrozenStruct, Generic[C], frozen=True):
    """Entries `start`..`start + count` (exclusive) go to `consumer`."""

    consumer: C
    start: int
    count: int


def choose(
    entries: int, counts: Sequence[int] | None, consumers: Sequence[C], turn: int
) -> tuple[list[Share[C]], int]:
    """Assign as many entries as permits allow; returns the shares, and the next turn.

    `counts` has the messages of each entry, None if each holds one. `turn` is the result of the
    last call, 0 at first.
    """
    shares: list[Share[C]] = []
    start = 0
    for level in _levels(consumers):
        left = [consumer.permits for consumer in level]
        while level and start < entries:
            at = turn % len(level)
            alone = len(level) == 1
            limit = entries - start if alone else min(entries - start, TURN_ENTRIES_MAX)
            taken, left[at] = _affordable(start, limit, counts, left[at])
            if taken:
                shares.append(Share(level[at], start, taken))
                start += taken
            if left[at] > 0:
                turn = at + 1
            else:
                # who follows moves up to this place, so the turn stays where it is
                del level[at], left[at]
                turn = at
    return shares, turn


def _levels(consumers: Sequence[C]) -> list[list[C]]:
    """Consumers with permits by priority, best first, each level in the given order."""
    levels: dict[int, list[C]] = {}
    for consumer in consumers:
        if consumer.permits > 0:
            levels.setdefault(consumer.priority, []).append(consumer)
    return [levels[priority] for priority in sorted(levels)]


def _affordable(
    start: int, limit: int, counts: Sequence[int] | None, permits: int
) -> tuple[int, int]:
    """How many entries the permits allow, and the permits left."""
    if counts is None:
        taken = min(limit, permits)
        return taken, permits - taken
    taken = 0
    while taken < limit and permits > 0:
        permits -= counts[start + taken]
        taken += 1
    return taken, permits
