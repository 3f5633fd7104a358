from collections import Counter
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnetar.core.dispatch.shared import TURN_ENTRIES_MAX, choose


@dataclass
class Taker:
    permits: int
    priority: int = 0
    name: str = ""


def deal(
    entries: int, consumers: list[Taker], counts: list[int] | None = None, turn: int = 0
) -> list[tuple[str, int, int]]:
    shares, _turn = choose(entries, counts, consumers, turn)
    return [(share.consumer.name, share.start, share.count) for share in shares]


def test_turns_of_twenty_go_round() -> None:
    a, b = Taker(100, name="a"), Taker(100, name="b")
    assert deal(50, [a, b]) == [("a", 0, 20), ("b", 20, 20), ("a", 40, 10)]
    assert deal(50, [a, b], turn=1) == [("b", 0, 20), ("a", 20, 20), ("b", 40, 10)]


def test_small_calls_go_round_too() -> None:
    consumers = [Taker(100, name=name) for name in "abc"]
    turn, found = 0, ""
    for _ in range(6):
        shares, turn = choose(1, None, consumers, turn)
        found += shares[0].consumer.name
    assert found == "abcabc"


def test_one_consumer_gets_everything_at_once() -> None:
    assert deal(1000, [Taker(700, name="a")]) == [("a", 0, 700)]


def test_permits_run_out() -> None:
    a, b = Taker(5, name="a"), Taker(30, name="b")
    assert deal(100, [a, b]) == [("a", 0, 5), ("b", 5, 30)]
    assert deal(10, [Taker(0), Taker(-3)]) == []
    assert deal(0, [a]) == []
    assert deal(10, []) == []


def test_a_worse_priority_gets_what_is_left() -> None:
    low, high = Taker(50, 1, "low"), Taker(25, 0, "high")
    assert deal(40, [low, high]) == [("high", 0, 25), ("low", 25, 15)]


def test_an_entry_goes_out_whole_and_permits_may_end_below_zero() -> None:
    a, b = Taker(10, name="a"), Taker(1, name="b")
    assert deal(4, [a, b], counts=[4, 4, 4, 100]) == [("a", 0, 3), ("b", 3, 1)]


@pytest.mark.parametrize("turn", range(4))
def test_nobody_is_left_out(turn: int) -> None:
    consumers = [Taker(1000, name=str(i)) for i in range(3)]
    got: Counter[str] = Counter()
    for name, _start, count in deal(600, consumers, turn=turn):
        got[name] += count
    assert got == {"0": 200, "1": 200, "2": 200}


TAKERS = st.lists(
    st.builds(Taker, permits=st.integers(-5, 80), priority=st.integers(0, 2)), max_size=6
)


@given(
    st.integers(0, 300),
    TAKERS,
    st.integers(0, 10),
    st.none() | st.lists(st.integers(1, 30), min_size=300, max_size=300),
)
def test_the_shares_are_fair_and_whole(
    entries: int, consumers: list[Taker], turn: int, counts: list[int] | None
) -> None:
    shares, _next = choose(entries, counts, consumers, turn)
    expected_start = 0
    left = {id(consumer): consumer.permits for consumer in consumers}
    for share in shares:
        assert share.start == expected_start
        expected_start += share.count
        for at in range(share.start, share.start + share.count):
            assert left[id(share.consumer)] > 0
            left[id(share.consumer)] -= 1 if counts is None else counts[at]
        better = [c for c in consumers if c.priority < share.consumer.priority]
        assert all(left[id(c)] <= 0 for c in better)
    assert expected_start <= entries
    if expected_start < entries:
        assert all(permits <= 0 for permits in left.values())
    assert len(shares) <= entries // TURN_ENTRIES_MAX + len(consumers) + 1
