"""Words within words."""

from __future__ import annotations

import pytest

from magnetar.wire.kafka.groups.classic import embedded


@pytest.mark.parametrize("version", range(4))
def test_what_is_written_is_read(version: int) -> None:
    said = embedded.subscription({"b", "a"}, version)
    assert embedded.version_of(said) == version
    found = embedded.subscription_in(said)
    assert found is not None
    assert (found.topics, found.owned_partitions) == (["a", "b"], [])
    task = embedded.assignment_in(embedded.assignment({"a": [0, 2], "b": [1]}, version))
    assert task is not None
    held = [(one.topic, one.partitions) for one in task.assigned_partitions]
    assert held == [("a", [0, 2]), ("b", [1])]


@pytest.mark.parametrize("data", [b"", b"\0", b"\xff\xff\0\0\0\0", bytes(embedded.BYTES_MAX + 1)])
def test_nonsense(data: bytes) -> None:
    assert embedded.subscription_in(data) is None
    assert embedded.assignment_in(data) is None


def test_a_version_to_come_is_spoken_to_in_the_last_we_know() -> None:
    newer = b"\0\x09" + embedded.subscription({"a"}, 3)[2:]
    assert embedded.version_of(newer) == 3
    assert embedded.subscription_in(newer) == embedded.subscription_in(
        embedded.subscription({"a"}, 3)
    )
