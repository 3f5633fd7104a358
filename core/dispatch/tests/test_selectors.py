from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from magnetar.core.dispatch.selectors import (
    HASHES,
    RANGES_PER_CONSUMER_MAX,
    Halving,
    Ring,
    Selector,
    Sticky,
)
from magnetar.core.kernel.errors import HashRangeTaken


@dataclass(eq=False)
class Someone:
    name: str


def owners(selector: Selector[Someone], step: int = 37) -> list[Someone | None]:
    return [selector.select(hash_) for hash_ in range(0, HASHES, step)]


AUTOMATIC: list[Callable[[], Selector[Someone]]] = [Ring, Halving]


@pytest.mark.parametrize("kind", AUTOMATIC)
@settings(max_examples=25, deadline=None)
@given(changes=st.lists(st.integers(0, 5), min_size=1, max_size=10))
def test_only_what_a_consumer_gains_or_loses_changes_hands(
    kind: Callable[[], Selector[Someone]], changes: list[int]
) -> None:
    selector = kind()
    everybody = [Someone(f"c{i // 2}") for i in range(6)]  # two of each name
    present: set[int] = set()
    for i in changes:
        before = owners(selector)
        if i in present:
            present.discard(i)
            selector.remove(everybody[i])
            moved = {
                old for old, new in zip(before, owners(selector), strict=True) if old is not new
            }
            assert moved <= {everybody[i]}
        else:
            present.add(i)
            selector.add(everybody[i], ())
            moved = {
                new for old, new in zip(before, owners(selector), strict=True) if old is not new
            }
            assert moved <= {everybody[i]}
        assert set(owners(selector)) <= {everybody[i] for i in present} or not present
        ranges = sorted(r for i in present for r in selector.ranges_of(everybody[i]))
        if present:
            assert ranges[0][0] == (1 if kind is Ring else 0), "as in Apache's stats"
            assert ranges[-1][1] == HASHES - 1
        for (_, last), (first, _) in pairwise(ranges):
            assert last + 1 == first


@pytest.mark.parametrize("kind", AUTOMATIC)
def test_ranges_say_what_select_does(kind: Callable[[], Selector[Someone]]) -> None:
    selector = kind()
    for name in "abc":
        selector.add(Someone(name), ())
    for consumer in {id(c): c for c in owners(selector) if c is not None}.values():
        for first, last in selector.ranges_of(consumer):
            assert selector.select(first) is selector.select(last) is consumer


@pytest.mark.parametrize("kind", AUTOMATIC)
def test_the_division_is_roughly_even(kind: Callable[[], Selector[Someone]]) -> None:
    selector = kind()
    for i in range(4):
        selector.add(Someone(f"consumer-{i}"), ())
    shares = Counter(owner.name for owner in owners(selector) if owner is not None)
    assert len(shares) == 4
    assert min(shares.values()) > sum(shares.values()) * 0.12


def test_nobody_owns_anything_while_nobody_is_there() -> None:
    for selector in (Ring[Someone](), Halving[Someone](), Sticky[Someone]()):
        assert selector.select(5) is None
        selector.remove(Someone("a"))
        assert selector.ranges_of(Someone("a")) == []


def test_halving_takes_the_lower_half_of_the_largest() -> None:
    selector = Halving[Someone]()
    a, b, c = Someone("a"), Someone("b"), Someone("c")
    selector.add(a, ())
    selector.add(b, ())
    assert selector.ranges_of(b) == [(0, 32767)]
    assert selector.ranges_of(a) == [(32768, 65535)]
    selector.add(c, ())
    assert selector.ranges_of(c) == [(0, 16383)]
    selector.remove(a)
    assert selector.ranges_of(b) == [(16384, 65535)]
    selector.remove(c)
    assert selector.ranges_of(b) == [(0, 65535)]


def test_sticky_ranges() -> None:
    selector = Sticky[Someone]()
    a, b = Someone("a"), Someone("b")
    selector.add(a, [(100, 200), (0, 9)])
    selector.add(b, [(10, 99), (65535, 65535)])
    for hash_, owner in [
        (0, a),
        (9, a),
        (10, b),
        (99, b),
        (100, a),
        (200, a),
        (201, None),
        (65535, b),
    ]:
        assert selector.select(hash_) is owner
    assert selector.ranges_of(a) == [(0, 9), (100, 200)]
    selector.remove(a)
    assert selector.select(0) is None
    assert selector.select(10) is b


@pytest.mark.parametrize(
    "ranges",
    [
        [],
        [(5, 4)],
        [(-1, 4)],
        [(0, 65536)],
        [(0, 5), (5, 9)],
        [(0, 1000)],
        [(150, 150)],
        [(0, 100)],
        [(200, 300)],
        [(0, 0)] * (RANGES_PER_CONSUMER_MAX + 1),
    ],
)
def test_sticky_ranges_that_cannot_be(ranges: list[tuple[int, int]]) -> None:
    selector = Sticky[Someone]()
    selector.add(Someone("a"), [(100, 200)])
    with pytest.raises(HashRangeTaken):
        selector.add(Someone("b"), ranges)
    assert selector.select(0) is None
    assert selector.ranges_of(Someone("b")) == []


def test_halving_ends_where_nothing_is_left_to_halve() -> None:
    selector = Halving[Someone]()
    selector._lasts = list(range(HASHES))  # as after 65,536 consumers, which would take minutes
    selector._owners = [Someone("a")] * HASHES
    with pytest.raises(HashRangeTaken):
        selector.add(Someone("b"), ())


def test_the_same_names_own_the_same_ranges_as_on_apaches_broker() -> None:
    """ReceivedFrame from Apache Pulsar 4.2.4: three consumers, two of one name, in this order."""
    ring = Ring[Someone]()
    everybody = [Someone("a"), Someone("b"), Someone("a")]
    for someone in everybody:
        ring.add(someone, ())
    found = [ring.ranges_of(someone) for someone in everybody]
    assert [len(ranges) for ranges in found] == [65, 73, 66]
    assert [ranges[:6] for ranges in found] == [
        [(79, 403), (1295, 1535), (2893, 3254), (3573, 3615), (4129, 4372), (5002, 6269)],
        [(1, 78), (404, 637), (1536, 1942), (2174, 2642), (2683, 2848), (3616, 3975)],
        [(638, 1294), (1943, 2173), (2643, 2682), (2849, 2892), (3255, 3572), (3976, 4069)],
    ]
    assert [ranges[-1] for ranges in found] == [(64647, 64884), (64885, 65535), (63709, 64646)]


def test_a_namesake_has_points_of_its_own_whoever_left() -> None:
    ring = Ring[Someone]()
    first, second, third = Someone("a"), Someone("a"), Someone("a")
    ring.add(first, ())
    ring.add(second, ())
    ring.remove(first)
    ring.add(third, ())
    shares = [sum(last - start for start, last in ring.ranges_of(one)) for one in (second, third)]
    assert min(shares) > HASHES // 4


def test_more_points_divide_more_evenly() -> None:
    spreads = []
    for points in (1, 100, 2_000):
        ring = Ring[Someone](points)
        pair = [Someone("a"), Someone("b")]
        for someone in pair:
            ring.add(someone, ())
        sizes = [sum(last - start + 1 for start, last in ring.ranges_of(one)) for one in pair]
        spreads.append(abs(sizes[0] - sizes[1]))
    assert spreads[2] < HASHES // 50
    assert max(spreads[1:]) < spreads[0]


def test_halved_keys_fall_as_they_fell_before_whatever_consumers_are_called() -> None:
    """On the ring three keys fall to one of two consumers in a quarter of all cases, as three coins
    do: which case it is depends on names, and clients make those up. Halved it depends on the keys.
    """
    keys = (b"key-0", b"key-1", b"key-2")
    fell = set()
    for number in range(50):
        halving = Halving[Someone]()
        pair = [Someone(f"a{number}"), Someone(f"b{number}")]
        for someone in pair:
            halving.add(someone, ())
        fell.add(tuple(halving.select(halving.hash_of(key)) is pair[0] for key in keys))
    assert len(fell) == 1
    assert len(set(*fell)) == 2
