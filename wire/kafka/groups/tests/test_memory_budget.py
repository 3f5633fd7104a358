"""Room is asked for, taken and given back."""

import pytest

from magnetar.wire.kafka.groups.memory_budget import GroupMemory, size_of


def test_room() -> None:
    room = GroupMemory(10)
    assert room.has(10)
    assert not room.has(11)
    room.take(8)
    assert not room.has(3)
    assert room.has(-1)
    room.take(-8)
    assert room.used_bytes == 0
    with pytest.raises(AssertionError):
        room.take(-1)


def test_what_is_loaded_is_taken_in_any_case() -> None:
    room = GroupMemory(10)
    room.take(20)
    assert not room.has(1)
    room.take(-12)
    assert room.has(2)


def test_sizes_are_not_too_small() -> None:
    assert size_of([("\U0001f30d" * 10, b"x" * 10)]) >= 50
    assert size_of([("", b"")] * 10) >= 1000
