"""A snapshot of the front."""

from __future__ import annotations

from magnetar.wire.mqtt.clients.statistics import MqttStatistics
from magnetar.wire.mqtt.conftest import Stage
from magnetar.wire.mqtt.tests.peer import V5, publish


async def test_what_there_is(stage: Stage) -> None:
    lasts = {"version": V5, "properties": b"\x11\xff\xff\xff\xff"}
    sleeper = await stage.subscribed("1", ("t", 1), **lasts)
    await sleeper.is_cut()
    client = await stage.subscribed("2", ("a/+", 1), ("$share/g/b", 0))
    await client.says(publish("r", b"kept", retain=True))
    now = stage.services.statistics()
    assert 250 < now.session_bytes < 1_000
    assert 4_000 < now.subscription_bytes < 5_000
    assert now == MqttStatistics(
        connected=1, connected_max=1, asleep=1, expired=0, waiting=0, waiting_bytes=0,
        session_bytes=now.session_bytes,
        session_bytes_stored=now.session_bytes_stored,
        subscriptions=2, subscription_bytes=now.subscription_bytes, shared_subscriptions=1,
        retained=1, retained_bytes=stage.services.retained.bytes,
    )  # fmt: skip
