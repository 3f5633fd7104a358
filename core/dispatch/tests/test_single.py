from collections import Counter
from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from magnetar.core.dispatch import single
from magnetar.core.kernel.names import TopicName


@dataclass
class Someone:
    name: str
    priority: int = 0


A, B, C = Someone("a"), Someone("b"), Someone("c")


def test_nobody_and_the_only_one() -> None:
    assert single.active([], "t") is None
    assert single.active([C], "t") is C


def test_partitions_spread_over_the_consumers_by_name() -> None:
    chosen = [single.active([C, A, B], f"persistent://p/d/t-partition-{i}") for i in range(6)]
    assert chosen == [A, B, C, A, B, C]
    assert single.active([B, A], TopicName.parse("t-partition-1")) is B


def test_a_better_priority_comes_first() -> None:
    worse = [Someone(name, 1) for name in "0123"]
    for i in range(4):
        assert single.active([*worse, C, B], f"t-partition-{i}") in (B, C)
        assert single.active([*worse, C, B], f"topic-{i}") in (B, C)


def test_topics_spread_too() -> None:
    found = Counter(
        single.active([A, B, C], f"public/default/persistent/t{i}").name for i in range(300)
    )
    assert set(found) == {"a", "b", "c"}
    assert min(found.values()) > 50


@given(st.permutations([A, B, C, Someone("d"), Someone("e", 2)]), st.text(max_size=20))
def test_who_came_first_does_not_matter(order: list[Someone], topic: str) -> None:
    assert single.active(order, topic) is single.active(sorted(order, key=lambda s: s.name), topic)


@given(st.text(max_size=20))
def test_who_leaves_moves_nobody_else(topic: str) -> None:
    before = single.active([A, B, C], topic)
    for gone in (A, B, C):
        if gone is not before:
            left = [someone for someone in (A, B, C) if someone is not gone]
            assert single.active(left, topic) is before or "-partition-" in topic
