"""Words within words."""

from __future__ import annotations

import pytest

from magnetar.wire.kafka.groups import inner


@pytest.mark.parametrize("version", range(4))
def test_what_is_written_is_read(version: int) -> None:
    said = inner.subscription({"b", "a"}, version)
    assert inner.version_of(said) == version
    found = inner.subscription_in(said)
    assert found is not None
    assert (found.topics, found.owned_partitions) == (["a", "b"], [])
    task = inner.assignment_in(inner.assignment({"a": [0, 2], "b": [1]}, version))
    assert task is not None
    held = [(one.topic, one.partitions) for one in task.assigned_partitions]
    assert held == [("a", [0, 2]), ("b", [1])]


@pytest.mark.parametrize("data", [b"", b"\0", b"\xff\xff\0\0\0\0", bytes(inner.BYTES_MAX + 1)])
def test_nonsense(data: bytes) -> None:
    assert inner.subscription_in(data) is None
    assert inner.assignment_in(data) is None


def test_a_version_to_come_is_spoken_to_in_the_last_we_know() -> None:
    newer = b"\0\x09" + inner.subscription({"a"}, 3)[2:]
    assert inner.version_of(newer) == 3
    assert inner.subscription_in(newer) == inner.subscription_in(inner.subscription({"a"}, 3))
