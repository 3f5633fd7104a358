"""Words within words."""

from __future__ import annotations

import pytest

from magnetar.wire.kafka.groups.classic import consumer_protocol


@pytest.mark.parametrize("version", range(4))
def test_what_is_written_is_read(version: int) -> None:
    said = consumer_protocol.subscription({"b", "a"}, version)
    assert consumer_protocol.version_of(said) == version
    found = consumer_protocol.subscription_in(said)
    assert found is not None
    assert (found.topics, found.owned_partitions) == (["a", "b"], [])
    task = consumer_protocol.assignment_in(
        consumer_protocol.assignment({"a": [0, 2], "b": [1]}, version)
    )
    assert task is not None
    held = [(one.topic, one.partitions) for one in task.assigned_partitions]
    assert held == [("a", [0, 2]), ("b", [1])]


@pytest.mark.parametrize(
    "data", [b"", b"\0", b"\xff\xff\0\0\0\0", bytes(consumer_protocol.BYTES_MAX + 1)]
)
def test_nonsense(data: bytes) -> None:
    assert consumer_protocol.subscription_in(data) is None
    assert consumer_protocol.assignment_in(data) is None


def test_a_version_to_come_is_spoken_to_in_the_last_we_know() -> None:
    newer = b"\0\x09" + consumer_protocol.subscription({"a"}, 3)[2:]
    assert consumer_protocol.version_of(newer) == 3
    assert consumer_protocol.subscription_in(newer) == consumer_protocol.subscription_in(
        consumer_protocol.subscription({"a"}, 3)
    )
