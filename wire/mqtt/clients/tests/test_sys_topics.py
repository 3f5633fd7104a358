"""The topics under `$SYS`, as monitors of mosquitto read them."""

from __future__ import annotations

import math

import pytest

from magnetar.core.testing.clock import FixedClock
from magnetar.wire.mqtt.clients.statistics import MqttStatistics
from magnetar.wire.mqtt.clients.sys_topics import SysTopics
from magnetar.wire.mqtt.conftest import Stage, serving
from magnetar.wire.mqtt.delivery.feed import FeedReader
from magnetar.wire.mqtt.delivery.matcher import Matcher
from magnetar.wire.mqtt.options import MqttOptions
from magnetar.wire.mqtt.tests.peer import V5, Received, publish, subscribe
from magnetar.wire.mqtt.traffic import Traffic

SYS = "$SYS/broker/"


def values(got: list[Received]) -> dict[str, bytes]:
    return {one.topic: one.payload for one in got if one.kind == "PUBLISH"}


async def test_a_new_subscription_gets_all_values_as_retained(stage: Stage) -> None:
    await stage.subscribed("other", ("a", 0), ("b/+", 1))
    client = await stage.connected("monitor", version=V5)
    _, *got = await client.says(subscribe(("$SYS/#", 2), version=V5, properties=b"\x0b\x07"))
    assert all(one.retain and one.qos == 0 and one.properties == b"\x0b\x07" for one in got)
    found = values(got)
    assert found[SYS + "clients/connected"] == b"2"
    assert found[SYS + "clients/total"] == b"2"
    assert found[SYS + "subscriptions/count"] == b"3"
    assert found[SYS + "messages/received"] == b"4"
    assert found[SYS + "version"] == b"Magnetar"
    assert found[SYS + "uptime"].endswith(b" seconds")


async def test_later_only_what_has_changed(stage: Stage) -> None:
    client = await stage.connected("m")
    await client.says(subscribe((SYS + "clients/+", 1), (SYS + "version", 1)))
    stage.services.sys_topics.publish()
    first = await client.receive()
    assert len(values(first)) == 8
    assert not any(one.retain for one in first)
    stage.services.sys_topics.publish()
    assert await client.receive() == []
    await stage.connected("another")
    stage.services.sys_topics.publish()
    assert values(await client.receive()) == {
        SYS + "clients/active": b"2",
        SYS + "clients/connected": b"2",
        SYS + "clients/total": b"2",
        SYS + "clients/maximum": b"2",
    }


async def test_counters_follow_the_traffic(stage: Stage) -> None:
    reader = await stage.subscribed("r", ("t", 1))
    writer = await stage.connected("w")
    await writer.says(*(publish("t", b"x", qos=1, number=n) for n in range(1, 11)))
    await reader.acknowledges(*await reader.receive())
    traffic = stage.services.traffic
    assert (traffic.publishes_received, traffic.publishes_sent) == (10, 10)
    assert traffic.packets_received == 2 + 1 + 10 + 10
    assert traffic.packets_sent == 2 + 1 + 10 + 10
    assert traffic.bytes_sent > 100 < traffic.bytes_received
    assert traffic.connections == 2


async def test_names_that_monitors_use(stage: Stage) -> None:
    """All that mosquitto 2.0.11 publishes, but for its heap; meanings are those of mosquitto(8)."""
    sleeper = await stage.subscribed("s", ("t/#", 1), clean=False)
    await sleeper.leaves()
    writer = await stage.connected("w")
    await writer.says(
        publish("t/1", b"12345", qos=1, number=1, retain=True), publish("t/2", b"", qos=1, number=2)
    )
    await stage.services.hold.advance()
    reader = await stage.subscribed("r", ("t/1", 0))
    sent = sum(one.size for one in await reader.receive())
    monitor = await stage.connected("m")
    found = values((await monitor.says(subscribe(("$SYS/#", 0))))[1:])
    expected = {
        "clients/active": b"3",
        "clients/inactive": b"1",
        "messages/stored": b"3",
        "store/messages/count": b"3",
        "publish/bytes/received": b"%d" % (2 + 2 + 3 + 2 + 5 + 2 + 2 + 3 + 2),
    }
    assert {name: found[SYS + name] for name in expected} == expected
    assert int(found[SYS + "store/messages/bytes"]) > 10
    assert int(found[SYS + "publish/bytes/sent"]) >= sent
    stage.services.sys_topics.publish()
    loads = values(await monitor.receive())
    for minutes, weight in ((1, 60), (5, 300), (15, 900)):
        average = float(loads[f"{SYS}load/connections/{minutes}min"])
        assert average == pytest.approx(4 * 6 * (1 - math.exp(-10 / weight)), abs=0.01)
    await sleeper.is_cut()
    client, (_, *messages) = await stage.connects("s", clean=False)
    await client.acknowledges(*messages)
    await stage.forward(1)  # its record is stored
    await stage.services.hold.advance()
    assert stage.services.statistics().waiting == 0


@pytest.mark.parametrize("filter", ["#", "+/broker/version", "+/#"])
async def test_wildcards_of_the_first_level_do_not_match(stage: Stage, filter: str) -> None:
    """[MQTT-4.7.2-1]"""
    client = await stage.subscribed("m", (filter, 0))
    stage.services.sys_topics.publish()
    assert await client.receive() == []


async def test_clients_cannot_publish_there(stage: Stage) -> None:
    client = await stage.connected("c", version=V5)
    for topic in (SYS + "version", "$SYS"):
        (puback,) = await client.says(publish(topic, b"x", qos=1, number=1, version=V5))
        assert puback.reasons == (0x90,)
    (puback,) = await client.says(publish("$SYSTEM/x", b"x", qos=1, number=1, version=V5))
    assert puback.reasons in ((), (0,))
    _, (connack,) = await stage.connects("w", version=V5, will=("$SYS/x", b"", 0, False))
    assert connack.reasons == (0x90,)


async def test_a_shared_subscription(stage: Stage) -> None:
    filter = "$share/g/$SYS/broker/version"
    clients = [await stage.subscribed(str(number), (filter, 1)) for number in (1, 2)]
    stage.services.sys_topics.publish()
    got = [one for client in clients for one in await client.receive()]
    assert values(got) == {SYS + "version": b"Magnetar"}


def test_averages_are_of_a_minute() -> None:
    traffic, clock = Traffic(), FixedClock()
    matcher: Matcher[FeedReader] = Matcher()
    now = MqttStatistics(*[0] * len(MqttStatistics.__struct_fields__))
    topics = SysTopics(clock, matcher, traffic, lambda: now, MqttOptions())
    for _ in range(360):  # an hour with 5 publishes a second
        traffic.publishes_received += 50
        topics.publish()
    found = {name: float(value) for name, value in topics._values.items() if "load/p" in name}
    for minutes in (1, 5, 15):
        assert found[f"{SYS}load/publish/received/{minutes}min"] == pytest.approx(300, rel=0.02)
        assert found[f"{SYS}load/publish/sent/{minutes}min"] == 0
    for _ in range(6):  # a minute without
        topics.publish()
    value = float(topics._values[SYS + "load/publish/received/1min"])
    assert value == pytest.approx(300 / 2.718, rel=0.02)


async def test_they_can_be_turned_off() -> None:
    async with serving(sys_interval_seconds=0) as stage:
        client = await stage.connected("m")
        assert [one.kind for one in await client.says(subscribe(("$SYS/#", 0)))] == ["SUBACK"]
