"""How many ledgers, and names of their topics, the server is asked for at once."""

from __future__ import annotations

from magnetar.spark_connector import service
from magnetar.spark_connector.service import LEDGERS_AT_ONCE, NAMED_BYTES_AT_ONCE


def test_ledgers_are_asked_for_in_portions() -> None:
    wanted = {"a": range(LEDGERS_AT_ONCE - 1), "b": range(3), "c": range(2)}
    first, second = service._portions(wanted)
    assert first == {"a": list(range(LEDGERS_AT_ONCE - 1)), "b": [0]}
    assert second == {"b": [1, 2], "c": [0, 1]}
    assert list(service._portions({})) == []


def test_long_names_make_portions_smaller() -> None:
    """A server takes 1 MiB of a question."""
    name_bytes = 300
    wanted = {f"{each:0{name_bytes // 2}}é" + "é" * 74: [each] for each in range(5_000)}
    portions = list(service._portions(wanted))
    assert sum(map(len, portions)) == 5_000
    largest = max(sum(len(name.encode()) for name in portion) for portion in portions)
    assert NAMED_BYTES_AT_ONCE <= largest < NAMED_BYTES_AT_ONCE + name_bytes
