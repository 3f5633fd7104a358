"""Key_Shared: which consumer owns which part of the 65,536 hashes. Pure.

There are three ways to divide them, as in Pulsar 4.2: a consistent hashing ring, on which each
consumer has 100 points by default and owns the hashes up to each
(`ConsistentHashingStickyKeyConsumerSelector.java`); halving, where a new consumer takes the lower
half of the largest range (`HashRangeAutoSplitStickyKeyConsumerSelector.java`); and ranges that the
consumers choose (`HashRangeExclusiveStickyKeyConsumerSelector.java`, PIP-34). On the ring, owners
follow from names, the same as on Pulsar's broker; with halving, from the order of arrival.

Invariants: a hash has at most one owner, and exactly one unless consumers choose ranges; when a
consumer attaches or leaves, only hashes that it gains or loses get another owner.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Final, Generic, Protocol, TypeVar

from magnetar.core.dispatch.murmur import murmur3
from magnetar.core.kernel.errors import HashRangeTaken
from magnetar.core.kernel.structs import FrozenStruct

HASHES: Final = 65_536
SEPARATOR: Final = "\0"
"""Separates the parts of a point's name (KEY_SEPARATOR in Pulsar)."""
RANGES_PER_CONSUMER_MAX: Final = 1_000


class Division(FrozenStruct, frozen=True):
    """How hashes are divided among consumers that choose no ranges."""

    ring: bool = True
    """Consistent hashing, else halving."""
    points: int = 100
    """Points of each consumer on the ring."""

    def selector(self) -> Selector[C]:
        return Ring(self.points) if self.ring else Halving()


CONSISTENT: Final = Division()


class NamedConsumer(Protocol):
    """A consumer, as the division sees it."""

    @property
    def name(self) -> str: ...


C = TypeVar("C", bound=NamedConsumer)

HashRange = tuple[int, int]
"""The first and the last hash, both included."""


class Selector(Protocol[C]):
    """See the module's docstring."""

    def add(self, consumer: C, ranges: Sequence[HashRange]) -> None:
        """Add a consumer; `ranges` are those that it chooses, if the mode has them."""
        ...

    def remove(self, consumer: C) -> None: ...

    def hash_of(self, key: bytes) -> int:
        """The hash of a message's key: 1 to 65,535, as 0 stands for no hash."""
        ...

    def select(self, hash_: int) -> C | None:
        """The owner of a hash; None if there is none."""
        ...

    def ranges_of(self, consumer: C) -> list[HashRange]:
        """The ranges of a consumer, in order."""
        ...


def _of_all(key: bytes) -> int:
    return murmur3(key) % HASHES or 1


class Ring(Generic[C]):
    """A consistent hashing ring. If two points coincide, the consumer that attached first wins.

    Places are 1 to 65,535; keys and points are hashed in the same way.
    """

    def __init__(self, points_per_consumer: int = 100) -> None:
        self._points_per_consumer = points_per_consumer
        self._points: list[tuple[int, int]] = []
        """(place, rank of the consumer), sorted."""
        self._consumers: dict[int, C] = {}
        self._twins: dict[int, int] = {}
        """By rank: the number of a consumer among those of its name."""
        self._next_rank = 0
        # what `select` looks at: distinct places and who owns the hashes up to each
        self._places: list[int] = []
        self._owners: list[C] = []

    def add(self, consumer: C, ranges: Sequence[HashRange]) -> None:
        rank, self._next_rank = self._next_rank, self._next_rank + 1
        # of consumers with the same name each needs points of its own: by the first free number
        others = self._consumers.items()
        taken = {self._twins[other] for other, one in others if one.name == consumer.name}
        twin = next(number for number in range(len(taken) + 1) if number not in taken)
        self._consumers[rank], self._twins[rank] = consumer, twin
        for i in range(self._points_per_consumer):
            name = SEPARATOR.join((consumer.name, str(twin), str(i)))
            self._points.append((self.hash_of(name.encode()), rank))
        self._points.sort()
        self._settle()

    def remove(self, consumer: C) -> None:
        gone = [rank for rank, other in self._consumers.items() if other is consumer]
        for rank in gone:
            del self._consumers[rank], self._twins[rank]
        self._points = [point for point in self._points if point[1] not in gone]
        self._settle()

    def _settle(self) -> None:
        self._places, self._owners = [], []
        for place, rank in self._points:
            if not self._places or self._places[-1] != place:
                self._places.append(place)
                self._owners.append(self._consumers[rank])

    def hash_of(self, key: bytes) -> int:
        return murmur3(key) % (HASHES - 1) + 1

    def select(self, hash_: int) -> C | None:
        places = self._places
        if not places:
            return None
        at = bisect_left(places, hash_)
        return self._owners[at if at < len(places) else 0]

    def ranges_of(self, consumer: C) -> list[HashRange]:
        ranges: list[HashRange] = []
        before = 0
        for place, owner in zip(self._places, self._owners, strict=True):
            if owner is consumer:
                ranges.append((before + 1, place))
            before = place
        if self._owners and before < HASHES - 1 and self._owners[0] is consumer:
            ranges.append((before + 1, HASHES - 1))
        return _joined(ranges)


class Halving(Generic[C]):
    """One range per consumer; a new one takes the lower half of the largest."""

    def __init__(self) -> None:
        self._lasts: list[int] = []
        """The last hash of each range, sorted; a range begins after the one before."""
        self._owners: list[C] = []

    def add(self, consumer: C, ranges: Sequence[HashRange]) -> None:
        if not self._lasts:
            self._lasts, self._owners = [HASHES - 1], [consumer]
            return
        sizes = [last - first + 1 for first, last in map(self._range, range(len(self._lasts)))]
        largest = max(range(len(sizes)), key=sizes.__getitem__)
        first, last = self._range(largest)
        if first == last:
            raise HashRangeTaken("every hash already has a consumer of its own")
        self._lasts.insert(largest, (first + last) // 2)
        self._owners.insert(largest, consumer)

    def remove(self, consumer: C) -> None:
        at = next((i for i, owner in enumerate(self._owners) if owner is consumer), None)
        if at is None:
            return
        if at == len(self._lasts) - 1 and at > 0:
            # the topmost range has no neighbour above: the one below takes it over
            self._lasts[at - 1] = HASHES - 1
        del self._lasts[at], self._owners[at]

    def hash_of(self, key: bytes) -> int:
        return _of_all(key)

    def select(self, hash_: int) -> C | None:
        if not self._lasts:
            return None
        return self._owners[bisect_left(self._lasts, hash_)]

    def ranges_of(self, consumer: C) -> list[HashRange]:
        return [self._range(i) for i, owner in enumerate(self._owners) if owner is consumer]

    def _range(self, at: int) -> HashRange:
        return (self._lasts[at - 1] + 1 if at else 0, self._lasts[at])


class Sticky(Generic[C]):
    """Ranges that the consumers choose; a hash in none of them has no owner."""

    def __init__(self) -> None:
        self._ranges: list[tuple[int, int]] = []
        self._owners: list[C] = []

    def add(self, consumer: C, ranges: Sequence[HashRange]) -> None:
        """Raise `HashRangeTaken` if the ranges are invalid, or overlap those of a consumer."""
        ranges = _checked(ranges)
        for first, last in ranges:
            at = bisect_right(self._ranges, (last, HASHES)) - 1
            if at >= 0 and self._ranges[at][1] >= first:
                taken = self._ranges[at]
                raise HashRangeTaken(
                    f"hash range [{first}, {last}] overlaps [{taken[0]}, {taken[1]}] of consumer"
                    f" {self._owners[at].name}"
                )
        for one in ranges:
            at = bisect_left(self._ranges, one)
            self._ranges.insert(at, one)
            self._owners.insert(at, consumer)

    def remove(self, consumer: C) -> None:
        left = [
            (one, owner)
            for one, owner in zip(self._ranges, self._owners, strict=True)
            if owner is not consumer
        ]
        self._ranges = [one for one, _owner in left]
        self._owners = [owner for _one, owner in left]

    def hash_of(self, key: bytes) -> int:
        return _of_all(key)

    def select(self, hash_: int) -> C | None:
        at = bisect_right(self._ranges, (hash_, HASHES)) - 1
        return self._owners[at] if at >= 0 and self._ranges[at][1] >= hash_ else None

    def ranges_of(self, consumer: C) -> list[HashRange]:
        pairs = zip(self._ranges, self._owners, strict=True)
        return [one for one, owner in pairs if owner is consumer]


def _checked(ranges: Sequence[HashRange]) -> list[HashRange]:
    """The ranges, sorted and checked: in bounds, and without overlap."""
    if not ranges:
        raise HashRangeTaken("a sticky consumer must name at least one hash range")
    if len(ranges) > RANGES_PER_CONSUMER_MAX:
        raise HashRangeTaken(f"a consumer may name at most {RANGES_PER_CONSUMER_MAX} hash ranges")
    before = -1
    ordered = sorted(ranges)
    for first, last in ordered:
        if not 0 <= first <= last < HASHES:
            raise HashRangeTaken(f"[{first}, {last}] is not a range of hashes 0 to {HASHES - 1}")
        if first <= before:
            raise HashRangeTaken(f"hash range [{first}, {last}] overlaps another of its own")
        before = last
    return ordered


def _joined(ranges: list[HashRange]) -> list[HashRange]:
    """The ranges, adjacent ones joined."""
    joined: list[HashRange] = []
    for first, last in ranges:
        if joined and joined[-1][1] + 1 == first:
            joined[-1] = (joined[-1][0], last)
        else:
            joined.append((first, last))
    return joined
