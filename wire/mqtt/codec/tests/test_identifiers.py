"""Packet identifiers of runs."""

from __future__ import annotations

import pytest

from magnetar.wire.mqtt.codec.identifiers import as_range


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        ([], []),
        ([7], [7]),
        ([7, 8], range(7, 9)),
        ([65_534, 65_535, 1], [65_534, 65_535, 1]),
        ([1, 3, 2, 4], [1, 3, 2, 4]),
        ([1, 1, 3], [1, 1, 3]),
    ],
)
def test_consecutive_ones_are_a_range(ids: list[int], expected: object) -> None:
    assert as_range(ids) == expected
