"""Everything is given once, to somebody who wants it, and as evenly as can be."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnetar.wire.kafka.groups.consumer.assignors import (
    ASSIGNORS,
    Targets,
    TopicIdPartition,
    spread,
    uniform,
)

TOPICS = [b"a", b"b", b"c"]
SIZES = st.fixed_dictionaries({topic: st.integers(0, 7) for topic in TOPICS})
WISHES = st.dictionaries(st.text("mn", min_size=1, max_size=3), st.sets(st.sampled_from(TOPICS)))


def check(wishes: dict[str, set[bytes]], sizes: dict[bytes, int], given: Targets) -> None:
    assert set(given) == set(wishes)
    for member, partitions in given.items():
        assert {topic for topic, _ in partitions} <= wishes[member]
    expected = {topic for topics in wishes.values() for topic in topics}
    everything = [partition for partitions in given.values() for partition in partitions]
    assert sorted(everything) == [(t, n) for t in sorted(expected) for n in range(sizes[t])]


@pytest.mark.parametrize("assign", ASSIGNORS.values())
@given(wishes=WISHES, sizes=SIZES)
def test_everything_once(assign: Callable[..., Targets], wishes, sizes) -> None:
    check(wishes, sizes, assign(wishes, sizes, {}))


@given(WISHES, SIZES, WISHES, SIZES)
def test_uniform_keeps_what_it_can(wishes, sizes, later, larger) -> None:
    before = uniform(wishes, sizes, {})
    assert uniform(wishes, sizes, before) == before
    check(later, larger, uniform(later, larger, before))


@given(st.integers(1, 9), SIZES, st.integers(1, 9))
def test_equal_wishes_are_met_equally(members: int, sizes, later: int) -> None:
    def wishes(count: int) -> dict[str, set[bytes]]:
        return {f"m{number}": set(TOPICS) for number in range(count)}

    held: dict[str, set[TopicIdPartition]] = {}
    for count in (members, later):
        before, held = held, uniform(wishes(count), sizes, held)
        counts = [len(partitions) for partitions in held.values()]
        assert max(counts) - min(counts) <= 1
    moved = sum(len(held[one] - before.get(one, set())) for one in held if one in before)
    total = sum(sizes.values())
    assert members != later or not moved
    if later > members:
        newcomers = sum(len(held[one]) for one in held if one not in before)
        assert sum(len(before[one] - held[one]) for one in before) == newcomers
    assert moved <= total


def test_neighbours() -> None:
    found = spread({"x": {b"a", b"b"}, "y": {b"a", b"b"}, "z": {b"b"}}, {b"a": 3, b"b": 3}, {})
    assert found == {
        "x": {(b"a", 0), (b"a", 1), (b"b", 0)},
        "y": {(b"a", 2), (b"b", 1)},
        "z": {(b"b", 2)},
    }


def test_different_wishes_are_evened_out() -> None:
    found = uniform({"x": {b"a", b"b"}, "y": {b"b"}}, {b"a": 4, b"b": 4}, {})
    assert {one: len(partitions) for one, partitions in found.items()} == {"x": 4, "y": 4}
