from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.dispatch.selectors import (
    HASHES,
    RANGES_PER_CONSUMER_MAX,
    Halving,
    Ring,
    Selector,
    Sticky,
)
from core.errors import HashRangeTaken


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
            assert ranges[0][0] == 0
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
