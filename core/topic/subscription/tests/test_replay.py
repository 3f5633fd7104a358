"""Sets in order."""

from hypothesis import given
from hypothesis import strategies as st

from magnetar.core.topic.subscription.replay import Replay

POSITIONS = st.tuples(st.integers(0, 2), st.integers(0, 9))


@given(st.lists(st.tuples(st.booleans(), POSITIONS)), st.integers(1, 5))
def test_the_first_run_is_the_lowest(
    changes: list[tuple[bool, tuple[int, int]]], entries_max: int
) -> None:
    replay, model = Replay(), set()
    for comes, position in changes:
        if comes:
            replay.add(position)
            model.add(position)
        else:
            replay.discard(position)
            model.discard(position)
    assert set(replay) == model
    assert len(replay) == len(model)
    run = replay.first_run(entries_max)
    if not model:
        assert run is None
        return
    assert run is not None
    (ledger_id, first), count = run
    assert (ledger_id, first) == min(model)
    assert all((ledger_id, first + i) in model for i in range(count))
    assert count == entries_max or (ledger_id, first + count) not in model
    replay.clear()
    assert replay.first_run(1) is None


def test_coming_and_going_does_not_fill_memory() -> None:
    """An entry that comes back and is sent again, for hours."""
    replay = Replay()
    for _ in range(10_000):
        replay.add((0, 5))
        replay.discard((0, 5))
    assert len(replay._heap) < 100
    replay.add((0, 7))
    assert replay.first_run(5) == ((0, 7), 1)
