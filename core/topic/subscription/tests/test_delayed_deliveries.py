"""What waits for its time: in order of time, and in little memory."""

import sys

from hypothesis import given
from hypothesis import strategies as st

from magnetar.core.topic.subscription.delayed_deliveries import DelayedDeliveries

POSITIONS = st.tuples(st.integers(0, 2), st.integers(0, 40))


@given(
    st.lists(st.tuples(POSITIONS, st.integers(0, 20)), max_size=20),
    st.sets(POSITIONS),
    st.integers(0, 20),
    st.integers(0, 30),
)
def test_what_is_due_comes_soonest_first(
    given_: list[tuple[tuple[int, int], int]],
    done_with: set[tuple[int, int]],
    now_ms: int,
    entries_max: int,
) -> None:
    delayed, model = DelayedDeliveries(), {}
    for position, due_ms in given_:
        delayed.add(position, due_ms)
        model.setdefault(position, due_ms)
    for position in done_with:
        delayed.discard(position)
        model.pop(position, None)
    assert sorted(delayed) == sorted(model)
    assert all((position in delayed) == (position in model) for position in [*model, *done_with])
    due = delayed.take_due(now_ms, entries_max)
    expected = sorted(at for at in model.values() if at <= now_ms)[:entries_max]
    assert [model.pop(position) for position in due] == expected
    assert delayed.next_due_ms == min(model.values(), default=None)
    assert (len(delayed), sorted(delayed)) == (len(model), sorted(model))
    delayed.clear()
    assert (len(delayed), list(delayed), delayed.next_due_ms) == (0, [], None)


def test_coming_and_going_does_not_fill_memory() -> None:
    """One entry that is put off again and again, over many ledgers."""
    delayed = DelayedDeliveries()
    for step in range(10_000):
        delayed.add((step, 5), step)
        delayed.discard((step, 5))
    assert len(delayed._heap) < 100
    assert not delayed._ledgers


def test_many_take_little_memory() -> None:
    delayed, count = DelayedDeliveries(), 50_000
    for entry_id in range(count):
        delayed.add((7, entry_id), 1_800_000_000_000 + entry_id)
    heap = sys.getsizeof(delayed._heap) + sum(map(sys.getsizeof, delayed._heap))
    maps = sum(sys.getsizeof(each.bits) for each in delayed._ledgers.values())
    assert (heap + maps) / count < 64
