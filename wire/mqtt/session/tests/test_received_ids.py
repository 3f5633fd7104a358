"""Packet identifiers that wait for PUBREL."""

from __future__ import annotations

from magnetar.wire.mqtt.session.received_ids import ReceivedIds


def test_received_identifiers() -> None:
    ids = ReceivedIds([5, 1, 65_535])
    assert ids.all() == [1, 5, 65_535]
    assert ids.count == 3
    assert 5 in ids
    assert 4 not in ids
    ids.add(5)
    assert ids.discard(5)
    assert not ids.discard(5)
    assert (ids.all(), ids.count) == ([1, 65_535], 2)
