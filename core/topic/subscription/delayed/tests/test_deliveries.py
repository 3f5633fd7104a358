"""What waits for its time: each comes when it is due, however few times are known."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnetar.core.topic.subscription.delayed import deliveries
from magnetar.core.topic.subscription.delayed.deliveries import DelayedDeliveries
from magnetar.core.topic.subscription.delayed.memory import DelayedMemory

Position = tuple[int, int]
POSITIONS = st.tuples(st.integers(0, 2), st.integers(0, 2_100))


def delayed_of(known_max: int = 1_000) -> DelayedDeliveries:
    return DelayedDeliveries(DelayedMemory(), known_max)


def read_again(
    delayed: DelayedDeliveries, times: dict[Position, int], now_ms: int
) -> tuple[int, list[Position]]:
    """Read from `times` what is wanted; returns how many entries that were, and those due."""
    total, due = 0, list[Position]()
    while (wanted := delayed.to_read(now_ms)) is not None:
        (ledger_id, first), count = wanted
        portion = [times.get((ledger_id, first + at), 0) for at in range(min(count, 100))]
        due += delayed.learn((ledger_id, first), portion, now_ms)
        total += len(portion)
    return total, due


@given(
    st.lists(st.tuples(POSITIONS, st.integers(1, 20)), max_size=30),
    st.sets(POSITIONS),
    st.integers(0, 20),
    st.integers(0, 30),
)
def test_what_is_due_comes_soonest_first(
    given_: list[tuple[Position, int]],
    done_with: set[Position],
    now_ms: int,
    entries_max: int,
) -> None:
    delayed, model = delayed_of(), dict[Position, int]()
    for position, due_ms in given_:
        delayed.add(position, due_ms)
        model.setdefault(position, due_ms)
    for position in done_with:
        delayed.discard(position)
        model.pop(position, None)
    assert all((position in delayed) == (position in model) for position in [*model, *done_with])
    due = delayed.take_due(now_ms, entries_max)
    expected = sorted(at for at in model.values() if at <= now_ms)[:entries_max]
    assert [model.pop(position) for position in due] == expected
    assert delayed.next_look_ms == min(model.values(), default=None)
    assert len(delayed) == len(model)
    delayed.clear()
    assert (len(delayed), delayed.known, delayed.next_look_ms) == (0, 0, None)


@given(
    st.dictionaries(POSITIONS, st.integers(1, 20_000), max_size=30),
    st.sets(POSITIONS, max_size=10),
    POSITIONS,
    st.sampled_from([1, 2, 5, 2_000]),
    st.lists(st.integers(1, 20_000), max_size=4),
)
def test_all_come_in_time_however_few_times_are_known(
    times: dict[Position, int],
    done_with: set[Position],
    passed: Position,
    known_max: int,
    looks: list[int],
) -> None:
    """The owner looks at any moments, and some entries are acknowledged in between."""
    delayed, model = delayed_of(known_max), dict(times)
    for position, due_ms in times.items():
        delayed.add(position, due_ms)
        assert delayed.known <= known_max
    for number, now_ms in enumerate(sorted([*looks, 20_000])):
        came = set[Position]()
        while (due := delayed.take_due(now_ms, 7)) or (
            due := read_again(delayed, times, now_ms)[1]
        ):
            assert came.isdisjoint(due)
            came.update(due)
        assert came == {position for position, due_ms in model.items() if due_ms <= now_ms}
        assert delayed.known <= known_max
        assert (delayed.next_look_ms or now_ms + 1) > now_ms
        model = {position: due_ms for position, due_ms in model.items() if position not in came}
        for position in done_with:
            delayed.discard(position)
            model.pop(position, None)
        if number == 1:
            delayed.discard_to(passed)
            model = {position: due_ms for position, due_ms in model.items() if position > passed}
        assert len(delayed) == len(model)
    assert (len(delayed), delayed.known, delayed._unknown._blocks) == (0, 0, {})


@pytest.mark.parametrize(("random_delays", "times_each"), [(False, 1.1), (True, 6)])
def test_how_often_entries_are_read_again(random_delays: bool, times_each: float) -> None:
    """Five times as many as may be known: with one delay once, else a few times."""
    count, known_max = 50_000, 10_000
    delayed, pick = delayed_of(known_max), random.Random(3)
    hour_ms = 3_600_000
    dues = [pick.randrange(hour_ms, 2 * hour_ms) if random_delays else hour_ms + at
            for at in range(count)]  # fmt: skip
    times = {(0, at): due_ms for at, due_ms in enumerate(dues)}
    for position, due_ms in times.items():
        delayed.add(position, due_ms)
    read, came, now_ms = 0, 0, 0
    while len(delayed):
        soonest = delayed.next_look_ms
        assert soonest is not None
        now_ms = max(now_ms, soonest)
        more, due = read_again(delayed, times, now_ms)
        due += delayed.take_due(now_ms, count)
        read += more
        came += len(due)
        assert all(times[position] <= now_ms for position in due)
    assert came == count
    assert read <= count * times_each


def test_members_that_are_gone_are_not_taken() -> None:
    delayed = delayed_of(10_000)
    for at in range(5_000):
        delayed.add((0, at), at)
    delayed.discard_to((0, 4_899))
    assert len(delayed) == 100
    found: list[Position] = []
    while delayed.is_due(5_000):
        found += delayed.take_due(5_000, 50)
    assert found == [(0, at) for at in range(4_900, 5_000)]


def test_a_block_is_not_read_ahead_while_others_fill_the_memory() -> None:
    memory = DelayedMemory(deliveries.BLOCK_ENTRIES + 100)
    delayed, other = DelayedDeliveries(memory, 1_000_000), DelayedDeliveries(memory, 1_000_000)
    delayed.add((0, 0), 100_000)
    delayed.put_off()
    assert delayed.next_look_ms == 100_000 - deliveries.AHEAD_MS
    for at in range(101):
        other.add((0, at), 10**9)
    assert delayed.next_look_ms == 100_000
    assert delayed.to_read(99_999) is None
    assert delayed.to_read(100_000) == ((0, 0), 1)


def test_a_block_is_read_ahead_while_there_is_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deliveries, "BLOCK_ENTRIES", 2)
    delayed = delayed_of(known_max=4)
    for at in range(6):
        delayed.add((0, at), 100_000 + at)
    assert (delayed.known, len(delayed)) == (3, 6)
    soonest = delayed._unknown.soonest_ms
    assert soonest is not None
    ahead = soonest - deliveries.AHEAD_MS
    assert delayed.to_read(ahead) is None, "no room"
    delayed.discard((0, 0))
    delayed.discard((0, 1))
    assert delayed.next_look_ms == ahead
    assert delayed.to_read(ahead - 1) is None
    assert delayed.to_read(ahead) is not None
    assert delayed.next_look_ms == 100_005, "the block is being read"


def test_what_was_never_read_is_read_when_the_soonest_of_it_may_be_due() -> None:
    delayed = delayed_of(5_000)
    delayed.add((3, 1026), 90_000)
    delayed.add_unread((3, 1024), 0b1101, 50_000)
    delayed.add_unread((3, 2048), 0, 10)
    assert (len(delayed), delayed.known, (3, 1025) in delayed) == (3, 1, False)
    assert delayed.next_look_ms == 50_000 - deliveries.AHEAD_MS
    times = {(3, 1024): 60_000, (3, 1026): 90_000, (3, 1027): 50_000}
    total, due = read_again(delayed, times, 45_000)
    assert (total, due, delayed.known) == (4, [], 3)
    assert delayed.take_due(60_000, 9) == [(3, 1027), (3, 1024)]
    assert delayed.take_due(90_000, 9) == [(3, 1026)]
