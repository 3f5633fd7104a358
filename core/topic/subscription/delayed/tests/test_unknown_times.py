"""Blocks of entries whose times are not kept."""

from magnetar.core.topic.subscription.delayed.unknown_times import UnknownTimes
from magnetar.core.topic.subscription.replay import STALE_MAX


def test_a_block_is_read_when_its_soonest_entry_is_due() -> None:
    unknown = UnknownTimes()
    assert (unknown.soonest_ms, unknown.wanted) == (None, None)
    for position, due_ms in [((3, 1030), 50), ((3, 1025), 90), ((3, 5), 70), ((4, 1025), 60)]:
        unknown.add(position, due_ms)
    assert unknown.soonest_ms == 50
    unknown.take_out()
    assert unknown.wanted == ((3, 1025), 6)
    assert unknown.soonest_ms == 60
    assert unknown.discard((3, 1025))
    assert not unknown.discard((3, 1025))
    assert unknown.wanted == ((3, 1030), 1)
    assert unknown.discard((3, 1030))
    assert unknown.wanted is None
    unknown.take_out()
    assert unknown.wanted == ((4, 1025), 1)


def test_what_is_put_off_again_while_its_block_is_read() -> None:
    """It is in a block of its own, with its own time: what is being read comes to an end."""
    unknown = UnknownTimes()
    unknown.add((3, 1), 10)
    unknown.add((3, 2), 20)
    unknown.take_out()
    assert unknown.discard((3, 1))
    unknown.add((3, 1), 100)
    assert unknown.wanted == ((3, 2), 1)
    assert unknown.discard((3, 2))
    assert (unknown.wanted, unknown.soonest_ms) == (None, 100)


def test_what_is_removed_is_not_read() -> None:
    unknown = UnknownTimes()
    for entry_id in (0, 1023, 1024, 2047, 5000):
        unknown.add((3, entry_id), 10)
    unknown.take_out()
    unknown.add((9, 0), 30)
    unknown.discard_to((3, 1024))
    assert unknown.wanted is None, "all of the first block"
    unknown.take_out()
    assert unknown.wanted == ((3, 2047), 1)
    unknown.discard_to((3, 2046))
    assert unknown.wanted == ((3, 2047), 1)
    unknown.discard_to((8, 0))
    assert (unknown.wanted, unknown.soonest_ms) == (None, 30)
    unknown.discard((9, 0))
    assert unknown.soonest_ms is None
    unknown.take_out()
    assert unknown.wanted is None
    unknown.add((1, 1), 1)
    unknown.clear()
    assert (unknown.soonest_ms, unknown._blocks) == (None, {})


def test_several_of_a_block_at_once() -> None:
    unknown = UnknownTimes()
    unknown.add((3, 1026), 50)
    unknown.add((3, 1030), 40, 0b1001)
    unknown.take_out()
    assert unknown.wanted == ((3, 1026), 8)
    assert [unknown.discard((3, entry_id)) for entry_id in (1026, 1030, 1031, 1033)] == [
        True, True, False, True,
    ]  # fmt: skip
    assert unknown.wanted is None


def test_coming_and_going_does_not_fill_memory() -> None:
    unknown = UnknownTimes()
    for step in range(1_000):
        unknown.add((step, 5), step)
        unknown.discard((step, 5))
    for due_ms in range(1_000, 0, -1):
        unknown.add((0, due_ms), due_ms)
    assert len(unknown._heap) <= 2 * len(unknown._blocks) + STALE_MAX + 1
    assert unknown.soonest_ms == 1
