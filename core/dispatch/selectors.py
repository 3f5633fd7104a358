"""Key_Shared: which consumer owns which part of the 65,536 hashes. Pure.

Three ways to divide them: a consistent hashing ring (each consumer has 100 points, or as many as
are wanted, and owns what lies up to them), halving (a newcomer takes the lower half of the largest
range), or ranges that the consumers name themselves. All have the same verbs. On the ring names
decide who owns what, the same as on Apache's broker; halved, the order of arrival does.

Invariants: a hash has at most one owner, and exactly one unless owners name their own ranges; when
a consumer comes or goes, only hashes that it gains or loses change hands.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Final, Generic, Protocol, TypeVar

from msgspec import Struct

from magnetar.core.dispatch.murmur import murmur3
from magnetar.core.kernel.errors import HashRangeTaken

HASHES: Final = 65_536
SEPARATOR: Final = "\0"
"""Between the parts of a point's name (`ConsistentHashingStickyKeyConsumerSelector.java`)."""
RANGES_PER_CONSUMER_MAX: Final = 1_000


class Division(Struct, frozen=True):
    """How hashes are divided among consumers that name no ranges themselves."""

    ring: bool = True
    """By consistent hashing; else by halving."""
    points: int = 100
    """Of each consumer on the ring."""

    def selector(self) -> Selector[C]:
        return Ring(self.points) if self.ring else Halving()


CONSISTENT: Final = Division()


class NamedConsumer(Protocol):
    """What the division looks at."""

    @property
    def name(self) -> str: ...


C = TypeVar("C", bound=NamedConsumer)

HashRange = tuple[int, int]
"""Both ends belong to it."""


class Selector(Protocol[C]):
    """See the module's docstring."""

    def add(self, consumer: C, ranges: Sequence[HashRange]) -> None:
        """A consumer comes; `ranges` are those it names itself, if that is the way."""
        ...

    def remove(self, consumer: C) -> None: ...

    def hash_of(self, key: bytes) -> int:
        """The hash of a message's key: 1 to 65,535, as 0 stands for no hash."""
        ...

    def select(self, hash_: int) -> C | None:
        """Its owner; None if it has none."""
        ...

    def ranges_of(self, consumer: C) -> list[HashRange]:
        """What it owns, in order."""
        ...


def _of_all(key: bytes) -> int:
    return murmur3(key) % HASHES or 1


class Ring(Generic[C]):
    """A consistent hashing ring. Where two points fall together, who came first owns the hash.

    Places are 1 to 65,535, and hashes of keys are taken as those of points are.
    """

    def __init__(self, points_per_consumer: int = 100) -> None:
        self._points_per_consumer = points_per_consumer
        self._points: list[tuple[int, int]] = []
        """(place, rank of the consumer), sorted."""
        self._consumers: dict[int, C] = {}
        self._twins: dict[int, int] = {}
        """By rank: which of those with its name it is."""
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
    """One range per consumer; a newcomer takes the lower half of the largest."""

    def __init__(self) -> None:
        self._lasts: list[int] = []
        """The last hash of each range, sorted; each begins behind the one before."""
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
    """Ranges the consumers name themselves; a hash in none of them has no owner."""

    def __init__(self) -> None:
        self._ranges: list[tuple[int, int]] = []
        self._owners: list[C] = []

    def add(self, consumer: C, ranges: Sequence[HashRange]) -> None:
        """Raise `HashRangeTaken` if they are invalid, or overlap those of a present consumer."""
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
    """Sorted, each in bounds and the right way round, none overlapping another."""
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
    """Neighbours melted into one."""
    joined: list[HashRange] = []
    for first, last in ranges:
        if joined and joined[-1][1] + 1 == first:
            joined[-1] = (joined[-1][0], last)
        else:
            joined.append((first, last))
    return joined
