"""Room is asked for, taken and given back."""

import pytest

from magnetar.wire.kafka.groups.memory_budget import GroupMemory, size_of


def test_room() -> None:
    memory = GroupMemory(10)
    assert memory.has(10)
    assert not memory.has(11)
    memory.take(8)
    assert not memory.has(3)
    assert memory.has(-1)
    memory.take(-8)
    assert memory.used_bytes == 0
    with pytest.raises(AssertionError):
        memory.take(-1)


def test_what_is_loaded_is_taken_in_any_case() -> None:
    memory = GroupMemory(10)
    memory.take(20)
    assert not memory.has(1)
    memory.take(-12)
    assert memory.has(2)


def test_sizes_are_not_too_small() -> None:
    assert size_of([("\U0001f30d" * 10, b"x" * 10)]) >= 50
    assert size_of([("", b"")] * 10) >= 1000
