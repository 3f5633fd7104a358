"""Counters begin at 0."""

from magnetar.wire.mqtt.traffic import Traffic


def test_counters_begin_at_0() -> None:
    traffic = Traffic()
    assert {getattr(traffic, name) for name in Traffic.__slots__} == {0}
