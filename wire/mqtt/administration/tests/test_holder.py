"""What Pulsar's and Kafka's tools are told about MQTT's sessions."""

from __future__ import annotations

import pytest

from magnetar.core.kernel.errors import NotAllowed
from magnetar.core.topic.persistent_topic import PersistentTopic
from magnetar.wire.mqtt.administration.holder import SessionHolder
from magnetar.wire.mqtt.clients.hold import SUBSCRIPTION
from magnetar.wire.mqtt.conftest import Stage
from magnetar.wire.mqtt.tests.peer import V5, publish

FUNNEL = "persistent://public/default/mqtt"
LASTS = b"\x11\xff\xff\xff\xff"


async def funnel(stage: Stage) -> PersistentTopic:
    topic = (await stage.services.logs.open_for("t")).topic
    assert topic is not None
    return topic


async def test_the_name_is_held_once_the_front_is_open(stage: Stage) -> None:
    held = stage.broker.env.held
    for name in (SUBSCRIPTION, "$share/g/t"):
        assert "end a session" in str(held.refusal(name))
    assert held.refusal("mine") is None
    await stage.subscribed("d", ("t", 1), clean=False)
    with pytest.raises(NotAllowed):
        await (await funnel(stage)).subscription(SUBSCRIPTION)


async def test_clients_are_those_that_read_the_topic(stage: Stage) -> None:
    holder = SessionHolder(stage.services)
    assert holder.clients(FUNNEL, 100) == ()
    await stage.subscribed("a", ("t", 1), ("$share/g/t", 1), version=V5)
    await stage.subscribed("b", ("$share/g/t", 1))
    await stage.connected("reads nothing")
    assert [one.name for one in holder.clients(FUNNEL, 100)] == ["a", "b"]
    assert [one.version for one in holder.clients(FUNNEL, 100)] == ["MQTT 5.0", "MQTT 3.1.1"]
    assert len(holder.clients(FUNNEL, 1)) == 1


async def test_sessions_are_counted_in_rounds(stage: Stage) -> None:
    holder = SessionHolder(stage.services)
    assert holder.sessions(FUNNEL) is None
    for name in ("a", "b"):
        await (await stage.subscribed(name, ("t", 1), clean=False)).leaves()
    await stage.subscribed("c", ("t", 1), ("t/#", 1), clean=False)
    await stage.subscribed("d", ("t", 1))
    await holder.advance()
    assert holder.sessions(FUNNEL) == 4
    assert holder.sessions("persistent://public/default/other") == 0


async def test_groups_count_entries_that_are_not_acknowledged(stage: Stage) -> None:
    holder = SessionHolder(stage.services)
    assert holder.groups(FUNNEL, 100) == ()
    lasting = {"version": V5, "clean": False, "properties": LASTS}
    worker = await stage.subscribed("w", ("$share/g/t", 1), **lasting)
    writer = await stage.connected("p")
    await writer.says(publish("t", b"1", qos=1, number=1) + publish("t", b"2", qos=1, number=2))
    await writer.says(publish("t", b"3", qos=1, number=3))
    (group,) = holder.groups(FUNNEL, 100)
    assert (group.name, group.backlog, group.unacked, group.sessions) == ("$share/g/t", 2, 3, 1)
    assert [one.name for one in group.clients] == ["w"]
    await worker.acknowledges(*await worker.receive())
    await worker.leaves()
    (group,) = holder.groups(FUNNEL, 100)
    assert (group.backlog, group.unacked, group.clients) == (0, 0, [])
