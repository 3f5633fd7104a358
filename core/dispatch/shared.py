"""Who gets which entries where many consumers share a subscription. Pure.

Round robin over the consumers of the best priority level (0 is best) that have permits; only when
none of them has any left, the next level. One turn is at most 20 entries. Permits count messages:
an entry goes out whole as long as one permit is left, so permits may end below zero.

Invariants: the shares follow each other without gaps from entry 0; there is about one for 20
entries, never one for each; a consumer without a permit gets no entry.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Generic, Protocol, TypeVar

from msgspec import Struct

TURN_ENTRIES_MAX: Final = 20
"""Then it is the next consumer's turn."""


class Permitted(Protocol):
    """What the choice looks at. Only consumers that may be served now are to be given."""

    @property
    def priority(self) -> int: ...

    @property
    def permits(self) -> int: ...


C = TypeVar("C", bound=Permitted)


class Share(Struct, Generic[C], frozen=True):
    """Entries `start`..`start + count` (exclusive) of what was looked at go to `consumer`."""

    consumer: C
    start: int
    count: int


def choose(
    entries: int, counts: Sequence[int] | None, consumers: Sequence[C], turn: int
) -> tuple[list[Share[C]], int]:
    """Deal out as many of `entries` as permits allow; returns the shares and whose turn is next.

    `counts` has the messages of each entry; None where each holds one. `turn` is what the last call
    returned, and 0 at first.
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
    """How many entries so many permits pay for, and what is left of the permits."""
    if counts is None:
        taken = min(limit, permits)
        return taken, permits - taken
    taken = 0
    while taken < limit and permits > 0:
        permits -= counts[start + taken]
        taken += 1
    return taken, permits
