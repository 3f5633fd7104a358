"""Identifiers of QoS 2: absent, storing, stored, and the memory that they take."""

import pytest

from magnetar.wire.mqtt.budget import MemoryBudget
from magnetar.wire.mqtt.errors import PacketError
from magnetar.wire.mqtt.session.pending_run import PendingRun
from magnetar.wire.mqtt.session.unreleased import ID_BYTES, Unreleased


@pytest.fixture
def memory() -> MemoryBudget:
    return MemoryBudget(10 * ID_BYTES)


@pytest.fixture
def ids(memory: MemoryBudget) -> Unreleased:
    return Unreleased(memory)


def run_of(ids: Unreleased, *numbers: int) -> PendingRun:
    """A run that is about to be stored."""
    run = PendingRun(None)
    run.twos = list(numbers)
    ids.begin(numbers)
    ids.take_memory(run)
    return run


def test_one_is_a_duplicate_until_it_is_released(ids: Unreleased, memory: MemoryBudget) -> None:
    run_of(ids, 7)
    assert (ids.is_storing(7), ids.is_stored(7), ids.are_new([7]), ids.count) == (
        True,
        False,
        False,
        1,
    )
    ids.are_stored([7])
    assert (ids.is_storing(7), ids.is_stored(7), ids.are_new([7]), ids.count) == (
        False,
        True,
        False,
        1,
    )
    assert memory.bytes == ID_BYTES
    assert ids.release([7, 8]) == [7]
    assert (ids.are_new([7]), ids.count, memory.bytes) == (True, 0, 0)


def test_one_that_is_there_twice_is_not_new(ids: Unreleased) -> None:
    assert ids.are_new([1, 2])
    assert not ids.are_new([1, 2, 1])


def test_one_that_has_failed_may_come_again(ids: Unreleased, memory: MemoryBudget) -> None:
    ids.have_failed(run_of(ids, 1, 2))
    assert (ids.are_new([1, 2]), ids.count, memory.bytes) == (True, 0, 0)


def test_memory_is_that_of_all(ids: Unreleased, memory: MemoryBudget) -> None:
    other = Unreleased(memory)
    assert other.resume([1, 2, 3, 4, 5, 6, 1])
    assert memory.bytes == 6 * ID_BYTES
    with pytest.raises(PacketError, match="no memory for unreleased messages"):
        run_of(ids, *range(1, 6))
    assert not ids.resume(range(1, 6))
    assert not ids.stored.count
    other.close()
    assert memory.bytes == 0
    assert ids.resume(range(1, 6))


def test_what_is_resumed_twice_takes_memory_once(ids: Unreleased, memory: MemoryBudget) -> None:
    assert ids.resume([1, 2])
    assert ids.resume([2, 3])
    assert memory.bytes == 3 * ID_BYTES


def test_a_run_that_fails_after_the_end_gives_nothing_back_twice(
    ids: Unreleased, memory: MemoryBudget
) -> None:
    run = run_of(ids, 1)
    ids.close()
    ids.have_failed(run)
    assert memory.bytes == 0
