"""SUBSCRIBE and UNSUBSCRIBE, and the retained messages that follow."""

from __future__ import annotations

from typing import Any

import pytest

from magnetar.core.kernel.errors import NotReady
from magnetar.core.testing.bench import settled
from magnetar.wire.mqtt.conftest import Stage, serving
from magnetar.wire.mqtt.mapping.rules import MappingRule
from magnetar.wire.mqtt.tests import peer
from magnetar.wire.mqtt.tests.peer import V5, publish, subscribe, unsubscribe

NO_LOCAL, AS_PUBLISHED, IF_NEW, NEVER = 4, 8, 16, 32


async def test_each_filter_has_its_code(stage: Stage) -> None:
    """[MQTT-3.8.4-5], [MQTT-3.8.4-6]: in the order of the filters."""
    client = await stage.connected(version=V5)
    (suback,) = await client.says(
        subscribe(
            ("a", 2), ("b/#/c", 1), ("$share/g/", 1), ("a+", 0), ("$share/g/d", 0), version=V5
        )
    )
    assert suback.reasons == (2, 0x8F, 0x8F, 0x8F, 0)
    old = await stage.connected("old")
    (suback,) = await old.says(subscribe(("a", 2), ("b/#/c", 1)))
    assert suback.reasons == (2, 0x80)


async def test_too_many_subscriptions() -> None:
    async with serving(subscriptions_max=2) as stage:
        client = await stage.connected(version=V5)
        (suback,) = await client.says(subscribe(("a", 0), ("b", 0), ("c", 0), ("a", 1), version=V5))
        assert suback.reasons == (0, 0, 0x97, 1)


async def test_the_filters_of_a_session_have_a_size() -> None:
    """3.8.4: 0x97 in 5.0, 0x80 before. What UNSUBSCRIBE frees, and what a session has when it is
    resumed, counts.
    """
    async with serving(subscriptions_size_max=400) as stage:
        long, other = "x" * 300, "y" * 300
        client = await stage.connected("c", version=V5, properties=b"\x11\0\0\0\x64")
        (suback,) = await client.says(
            subscribe((long, 1), (other, 1), ("a", 1), (long, 2), version=V5)
        )
        assert suback.reasons == (1, 0x97, 1, 2)
        await client.leaves()
        client = await stage.connected("c", version=V5, clean=False)
        (suback,) = await client.says(subscribe((other, 1), version=V5))
        assert suback.reasons == (0x97,)
        await client.says(unsubscribe(long, version=V5))
        (suback,) = await client.says(subscribe((other, 1), version=V5))
        assert suback.reasons == (1,)
        old = await stage.connected("old")
        (suback,) = await old.says(subscribe((long, 1), (other, 1)))
        assert suback.reasons == (1, 0x80)


async def test_the_subscriptions_of_all_clients_have_one_budget() -> None:
    """Long filters of many clients, and what they free when they leave."""
    async with serving(subscriptions_bytes_max=100_000) as stage:
        long = "x" * 20_000
        first, second = [await stage.connected(name, version=V5) for name in "12"]
        (suback,) = await first.says(subscribe((long, 0), ("a", 1), version=V5))
        assert suback.reasons == (0, 1)
        (suback,) = await second.says(subscribe((long, 0), ("a", 1), version=V5))
        assert suback.reasons == (0x97, 1)
        await first.is_cut()
        (suback,) = await second.says(subscribe((long, 0), version=V5))
        assert suback.reasons == (0,)
        await second.says(unsubscribe(long, "a", version=V5))
        assert stage.services.matcher.bytes == 0


async def test_overlapping_filters_give_one_copy(stage: Stage) -> None:
    """[MQTT-3.3.4-2], [MQTT-3.3.4-3], [MQTT-3.3.4-4]: with the highest QoS and all identifiers."""
    reader = await stage.connected("r", version=V5)
    await reader.says(subscribe(("a/#", 0), version=V5, properties=b"\x0b\x01"))
    await reader.says(subscribe(("a/+", 2), version=V5, properties=b"\x0b\x02"))
    writer = await stage.connected("w")
    await writer.says(publish("a/b", b"x", qos=1, number=1))
    (only,) = await reader.receive()
    assert only.qos == 1
    assert sorted((only.properties[0:2], only.properties[2:4])) == [b"\x0b\x01", b"\x0b\x02"]


async def test_topic_aliases_to_a_client_that_accepts_them(stage: Stage) -> None:
    """[MQTT-3.1.2-26], [MQTT-3.3.2-11]: as many as it accepts, each with its topic at first."""
    reader = await stage.connected("r", version=V5, properties=b"\x22\0\x02")
    await reader.says(subscribe(("#", 1), version=V5))
    writer = await stage.connected("w", version=V5)
    sent = ["a", "b", "c", "b", "a", "c"]
    for number, topic in enumerate(sent, 1):
        await writer.says(publish(topic, b"x", qos=1, number=number, version=V5))
    got = await reader.receive()
    assert [(one.topic, one.properties) for one in got] == [
        ("a", b"\x23\0\x01"), ("b", b"\x23\0\x02"), ("c", b""),
        ("", b"\x23\0\x02"), ("", b"\x23\0\x01"), ("c", b""),
    ]  # fmt: skip


async def test_no_topic_aliases_to_others(stage: Stage) -> None:
    """[MQTT-3.1.2-27]"""
    reader = await stage.subscribed("r", ("#", 1), version=V5)
    writer = await stage.connected("w", version=V5)
    for _ in range(2):
        await writer.says(publish("a", b"x", version=V5))
    assert [(one.topic, one.properties) for one in await reader.receive()] == [("a", b"")] * 2


async def test_a_repeated_filter_replaces_the_subscription(stage: Stage) -> None:
    """[MQTT-3.8.4-3]"""
    reader = await stage.subscribed("r", ("t", 2))
    await reader.says(subscribe(("t", 0)))
    writer = await stage.connected("w")
    await writer.says(publish("t", b"x", qos=1, number=1))
    (only,) = await reader.receive()
    assert only.qos == 0


async def test_no_local_and_retain_as_published(stage: Stage) -> None:
    """[MQTT-3.8.3-3], [MQTT-3.3.1-12], [MQTT-3.3.1-13]"""
    client = await stage.subscribed("c", ("a", NO_LOCAL), ("b", AS_PUBLISHED), version=V5)
    other = await stage.connected("o", version=V5)
    packets = [publish(name, b"x", version=V5, retain=True) for name in ("a", "b")]
    own = await client.says(*packets)
    assert [(one.topic, one.retain) for one in own] == [("b", True)]
    await other.says(*packets)
    got = await client.receive()
    assert [(one.topic, one.retain) for one in got] == [("a", False), ("b", True)]


async def test_unsubscribe_is_by_the_exact_filter(stage: Stage) -> None:
    """[MQTT-3.10.4-1], [MQTT-3.10.4-2], [MQTT-3.11.3-2]"""
    client = await stage.subscribed("c", ("a/#", 0), ("a/b", 0), version=V5)
    (unsuback,) = await client.says(unsubscribe("a/#", "a/c", "a/+", version=V5))
    assert unsuback.reasons == (0, 0x11, 0x11)
    writer = await stage.connected("w")
    await writer.says(publish("a/b", b"1"), publish("a/c", b"2"))
    assert [one.payload for one in await client.receive()] == [b"1"]


async def test_nothing_comes_after_unsubscribing_from_all(stage: Stage) -> None:
    client = await stage.subscribed("c", ("a", 1))
    await client.says(unsubscribe("a"))
    writer = await stage.connected("w")
    await writer.says(publish("a", b"1", qos=1, number=1))
    assert await client.receive() == []
    assert stage.services.matcher.count == 0


async def test_retained_messages_of_a_wildcard(stage: Stage) -> None:
    """[MQTT-3.3.1-8], [MQTT-3.3.1-6]: all matches, without those that were removed."""
    writer = await stage.connected("w")
    for n in range(5):
        await writer.says(publish(f"r/{n}", b"%d" % n, qos=n % 3, number=n + 1, retain=True))
    await writer.says(publish("r/3", b"", retain=True), publish("r/4", b"new", retain=True))
    reader = await stage.connected("r")
    suback, *retained = await reader.says(subscribe(("r/+", 1)))
    assert suback.kind == "SUBACK"
    assert sorted((one.topic, one.payload, one.qos, one.retain) for one in retained) == [
        ("r/0", b"0", 0, True), ("r/1", b"1", 1, True), ("r/2", b"2", 1, True),
        ("r/4", b"new", 0, True),
    ]  # fmt: skip


@pytest.mark.parametrize(("options", "first", "second"), [(0, 1, 1), (IF_NEW, 1, 0), (NEVER, 0, 0)])
async def test_retain_handling(stage: Stage, options: int, first: int, second: int) -> None:
    """[MQTT-3.3.1-9], [MQTT-3.3.1-10], [MQTT-3.3.1-11]"""
    writer = await stage.connected("w")
    await writer.says(publish("r", b"x", retain=True))
    reader = await stage.connected("r", version=V5)
    for expected in (first, second):
        _, *retained = await reader.says(subscribe(("r", options), version=V5))
        assert len(retained) == expected


async def test_more_retained_messages_than_the_window(stage: Stage) -> None:
    writer = await stage.connected("w")
    for n in range(10):
        await writer.says(publish(f"r/{n}", b"%d" % n, qos=1, number=n + 1, retain=True))
    reader = await stage.connected("r", version=V5, properties=b"\x21\0\x03")
    _, *sent = await reader.says(subscribe(("r/#", 2), version=V5))
    got = []
    while sent:
        assert len(sent) <= 3
        got += sent
        sent = await reader.acknowledges(*sent)
    assert sorted(one.payload for one in got) == [b"%d" % n for n in range(10)]


async def test_subscriptions_to_topics_of_their_own() -> None:
    async with serving(rules=(MappingRule("old/#", "{each}"),)) as stage:
        writer = await stage.connected("w")
        await writer.says(publish("old/1", b"0", qos=1, number=1))
        reader = await stage.subscribed("r", ("old/+", 1), ("persistent://public/default/x", 1))
        await writer.says(
            publish("old/1", b"1", qos=1, number=1),
            publish("persistent://public/default/x", b"2", qos=1, number=2),
        )
        got = await reader.receive()
        assert sorted((one.topic, one.payload) for one in got) == [
            ("old/1", b"1"), ("persistent://public/default/x", b"2")
        ]  # fmt: skip


async def test_a_namespace_that_does_not_exist(stage: Stage) -> None:
    client = await stage.connected(version=V5)
    (suback,) = await client.says(subscribe(("persistent://a/b/c", 0), ("t", 0), version=V5))
    assert suback.reasons == (0x8F, 0)


async def test_the_server_is_told_by_a_peer_that_speaks_in_pieces(stage: Stage) -> None:
    client = stage.stranger()
    data = peer.connect("c") + subscribe(("t", 0)) + publish("t", b"x")
    held, answers = b"", []
    for byte in data:
        held += bytes((byte,))
        held = held[client.wire.feed(held) :]
        for event in client.wire.take_events():
            client.session.handle(event)
    answers = await client.receive()
    assert [one.kind for one in answers] == ["CONNACK", "SUBACK", "PUBLISH"]


async def test_a_subscription_that_fails_is_none(stage: Stage) -> None:
    """[MQTT-3.9.3-2]"""
    client = await stage.connected("d", clean=False)
    stored: Any = stage.services.groups
    store = stored._stored.store

    async def fails(*_: Any) -> None:
        raise NotReady("it moves")

    stored._stored.store = fails
    (suback,) = await client.says(subscribe(("$share/g/t", 1)))
    assert suback.reasons == (0x80,)
    stored._stored.store = store
    assert stage.services.groups.names() == []
    assert stage.services.statistics().subscriptions == 0
    (suback,) = await client.says(subscribe(("$share/g/t", 1)))
    assert suback.reasons == (1,)


async def test_a_client_that_is_gone_joins_no_group(stage: Stage) -> None:
    for number in range(3):
        client = await stage.connected(f"c{number}", clean=False)
        client.feed(subscribe((f"$share/g{number}/x", 1)))
        await client.is_cut()
    await settled()
    assert stage.services.groups.names() == []
    assert stage.services.groups.lasting() == []


async def test_a_log_that_is_unloaded_while_a_client_subscribes(stage: Stage) -> None:
    hold: Any = stage.services.hold
    keep = hold.keep

    async def unloads(log: Any, **options: Any) -> None:
        hold.keep = keep
        await keep(log, **options)
        await stage.broker.unload(log.name)

    hold.keep = unloads
    client = await stage.subscribed("c", ("t", 1))
    writer = await stage.connected("w")
    await writer.says(publish("t", b"x", qos=1, number=1))
    assert [one.payload for one in await client.receive()] == [b"x"]


async def test_unsubscribe_of_a_connection_that_has_closed(stage: Stage) -> None:
    former = await stage.subscribed("d", ("$share/g/t", 1), clean=False)
    former.feed(unsubscribe("$share/g/t"))
    former.session.closed("the peer closed")  # before the task has begun
    client, _ = await stage.connects("d", clean=False)
    writer = await stage.connected("w")
    await writer.says(publish("t", b"x", qos=1, number=1))
    assert [one.payload for one in await client.receive()] == [b"x"]
    assert stage.services.groups.find("$share/g/t") is not None
