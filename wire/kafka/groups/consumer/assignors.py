"""Server-side assignors: from members and subscriptions to a target assignment. Pure.

`uniform` gives all members equally many partitions, as nearly as their subscriptions allow, and
moves as few as possible. `spread` ("range" to clients) gives each member neighbouring partitions of
each topic, so that topics with equal numbers of partitions are assigned alike.

Invariant: every partition of a subscribed topic is assigned to exactly one of its subscribers.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping, Set
from typing import Final

TopicIdPartition = tuple[bytes, int]
"""The id of a topic, and a partition."""
Wishes = Mapping[str, Set[bytes]]
"""The ids of subscribed topics by member."""
Targets = dict[str, set[TopicIdPartition]]

PASSES_MAX: Final = 10
"""Passes over all topics to balance members with different subscriptions."""


def uniform(
    wishes: Wishes, sizes: Mapping[bytes, int], held: Mapping[str, Set[TopicIdPartition]]
) -> Targets:
    """Assign partitions. `sizes` has partition counts by topic, `held` the present assignment."""
    wanting = _wanting(wishes)
    given: Targets = {member: set() for member in wishes}
    _keep(wishes, sizes, held, given)
    taken = {partition for partitions in given.values() for partition in partitions}
    for topic in sorted(wanting):
        heap = [(len(given[member]), member) for member in wanting[topic]]
        heapq.heapify(heap)
        for number in range(sizes[topic]):
            if (topic, number) not in taken:
                count, member = heap[0]
                given[member].add((topic, number))
                heapq.heapreplace(heap, (count + 1, member))
    for _ in range(PASSES_MAX):
        if not _evened_out(wanting, given):
            break
    return given


def _wanting(wishes: Wishes) -> dict[bytes, list[str]]:
    """The subscribers of each topic."""
    found: dict[bytes, list[str]] = {}
    for member in sorted(wishes):
        for topic in wishes[member]:
            found.setdefault(topic, []).append(member)
    return found


def _keep(
    wishes: Wishes,
    sizes: Mapping[bytes, int],
    held: Mapping[str, Set[TopicIdPartition]],
    given: Targets,
) -> None:
    """Let members keep their partitions, up to a fair share."""
    alike = len({frozenset(some) for some in wishes.values()}) == 1
    total = sum(sizes[topic] for topic in {topic for some in wishes.values() for topic in some})
    # with different subscriptions the fair share is unknown here: an excess is moved later
    share, more = divmod(total, len(wishes)) if alike else (total, 0)
    taken: set[TopicIdPartition] = set()
    for member in sorted(wishes, key=lambda one: (-len(held.get(one, ())), one)):
        has = sorted(
            (topic, number)
            for topic, number in held.get(member, ())
            if topic in wishes[member] and number < sizes[topic] and (topic, number) not in taken
        )
        room = share + (more > 0)
        if len(has) >= room and more > 0:
            more -= 1
        given[member].update(has[:room])
        taken.update(given[member])


def _evened_out(wanting: Mapping[bytes, list[str]], given: Targets) -> bool:
    """Move partitions from the subscriber of a topic with most to the one with least."""
    moved = False
    for topic in sorted(wanting):
        members = wanting[topic]
        own = {one: sorted(p for p in given[one] if p[0] == topic) for one in members}
        while True:
            least = min(members, key=lambda one: (len(given[one]), one))
            most = max(
                (one for one in members if own[one]),
                key=lambda one: (len(given[one]), one),
                default=least,
            )
            if len(given[most]) - len(given[least]) < 2:
                break
            partition = own[most].pop()
            given[most].remove(partition)
            given[least].add(partition)
            own[least].append(partition)
            moved = True
    return moved


def spread(
    wishes: Wishes, sizes: Mapping[bytes, int], held: Mapping[str, Set[TopicIdPartition]]
) -> Targets:
    """Assign neighbouring partitions of each topic to its subscribers in order of member id."""
    del held
    given: Targets = {member: set() for member in wishes}
    for topic, members in _wanting(wishes).items():
        share, more = divmod(sizes[topic], len(members))
        first = 0
        for place, member in enumerate(members):
            behind = first + share + (place < more)
            given[member].update((topic, number) for number in range(first, behind))
            first = behind
    return given


Assignor = Callable[[Wishes, Mapping[bytes, int], Mapping[str, Set[TopicIdPartition]]], Targets]
DEFAULT: Final = "uniform"
ASSIGNORS: Final[Mapping[str, Assignor]] = {"uniform": uniform, "range": spread}
"""The assignors by their names for clients."""
