"""Chooses the active consumer of a Failover subscription. Pure.

The candidates are the consumers of the best priority level (0 is best), by name. A partition takes
the one at its index, so that the partitions of a topic are spread over the consumers; a topic
without partitions takes the next one on a hash ring, so that topics are spread too
(`AbstractDispatcherSingleActiveConsumer.pickAndScheduleActiveConsumer` of Pulsar 4.2).

Invariant: the result depends on the topic's name and the attached consumers, not on the order of
arrival.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, Protocol, TypeVar

from magnetar.core.dispatch.murmur import murmur3

POINTS_PER_CONSUMER: Final = 100
_PARTITION = re.compile(r"-partition-(0|[1-9][0-9]*)$")


class Candidate(Protocol):
    """A consumer, as the choice sees it."""

    @property
    def name(self) -> str: ...

    @property
    def priority(self) -> int: ...


C = TypeVar("C", bound=Candidate)


def active(consumers: Sequence[C], topic: object) -> C | None:
    """The active consumer; None if there is none. `topic` is a name, or prints as one."""
    if len(consumers) < 2:
        return consumers[0] if consumers else None
    best = min(consumer.priority for consumer in consumers)
    candidates = [consumer for consumer in consumers if consumer.priority == best]
    candidates.sort(key=lambda consumer: consumer.name)
    found = _PARTITION.search(str(topic))
    if found:
        return candidates[int(found[1]) % len(candidates)]
    return _on_ring(candidates, murmur3(str(topic).encode()))


def _on_ring(candidates: Sequence[C], place: int) -> C:
    """The owner of the first point from `place` on."""
    ring = sorted(
        (point, i) for i, consumer in enumerate(candidates) for point in _points(consumer.name)
    )
    at = bisect_left(ring, (place, -1))
    return candidates[ring[at % len(ring)][1]]


@lru_cache(256)
def _points(name: str) -> tuple[int, ...]:
    return tuple(murmur3(f"{name}{i}".encode()) for i in range(POINTS_PER_CONSUMER))
