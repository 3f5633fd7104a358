"""Rules change, and no session misses a message: connected, asleep, shared, and after a crash."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from magnetar.core.kernel.errors import BadVersion, StorageFull
from magnetar.core.kernel.names import TopicName
from magnetar.core.testing.bench import settled
from magnetar.core.testing.broker import Stores
from magnetar.core.topic.persistent_topic import PersistentTopic
from magnetar.wire.mqtt.clients.hold import SUBSCRIPTION
from magnetar.wire.mqtt.conftest import Client, Stage, serving
from magnetar.wire.mqtt.mapping.rules import MappingRule
from magnetar.wire.mqtt.tests.peer import V5, Received, publish, subscribe, unsubscribe

ORDERS = (MappingRule("orders/#", "orders"),)
LASTS = b"\x11\xff\xff\xff\xff"
SHARED = {"version": V5, "clean": False, "properties": LASTS}


async def change(stage: Stage, *rules: MappingRule) -> None:
    await stage.services.rule_changes.change(rules, None)


async def send(stage: Stage, *payloads: bytes, topic: str = "orders/1") -> None:
    writer = await stage.connected("writer")
    for number, payload in enumerate(payloads, 1):
        await writer.says(publish(topic, payload, qos=1, number=number))
    await writer.leaves()


def payloads(got: Sequence[Received]) -> list[bytes]:
    return [one.payload for one in got if one.kind == "PUBLISH"]


async def acknowledged(client: Client, *got: Received) -> list[bytes]:
    """All that a client gets, if it acknowledges everything."""
    found: list[Received] = []
    more = list(got) or await client.receive()
    while more:
        found += more
        more = await client.acknowledges(*(one for one in more if one.kind == "PUBLISH"))
    return payloads(found)


async def resumed(stage: Stage, name: str, **options: Any) -> list[bytes]:
    """What a session gets when its client comes back; the client leaves again."""
    client, (connack, *got) = await stage.connects(name, **{"clean": False, **options})
    assert connack.number == 1
    found = await acknowledged(client, *got) if got else []
    await client.leaves()
    return found


async def topic_of(stage: Stage, name: str) -> PersistentTopic:
    topic = (await stage.broker.topic(TopicName.parse(name))).stored
    assert topic is not None
    return topic


@asynccontextmanager
async def trimmed(stage: Stage, name: str) -> AsyncIterator[None]:
    """Afterwards, all that nobody needs is deleted from a topic."""
    yield
    for _ in range(3):
        await stage.services.hold.advance()
        await stage.forward(1)
    await stage.broker.housekeeping.trim(await topic_of(stage, name))


async def test_a_connected_client_reads_both(stage: Stage) -> None:
    reader = await stage.subscribed("r", ("orders/#", 1), ("other", 1))
    await send(stage, b"before")
    await change(stage, *ORDERS)
    await send(stage, b"after")
    await send(stage, b"other", topic="other")
    assert await acknowledged(reader) == [b"before", b"after", b"other"]
    assert (await topic_of(stage, "orders")).messages_in == 1
    assert (await topic_of(stage, "mqtt")).messages_in == 2


async def test_publishers_that_are_connected_use_the_new_rules(stage: Stage) -> None:
    """Their topics' logs are cached."""
    writer = await stage.connected("w")
    await writer.says(publish("orders/1", b"1", qos=1, number=1))
    await change(stage, *ORDERS)
    (answer,) = await writer.says(publish("orders/1", b"2", qos=1, number=2))
    assert answer.kind == "PUBACK"
    assert (await topic_of(stage, "orders")).messages_in == 1


async def test_a_session_that_sleeps_reads_both() -> None:
    stores = Stores()
    async with serving(stores) as stage:
        await (await stage.subscribed("s", ("orders/+", 1), clean=False)).leaves()
        await send(stage, b"before")
        await change(stage, *ORDERS)
        async with trimmed(stage, "orders"):
            await send(stage, *(b"%d" % number for number in range(35)))
        expected = [b"before", *(b"%d" % number for number in range(35))]
        assert sorted(await resumed(stage, "s")) == sorted(expected), "nothing was trimmed"
        assert await resumed(stage, "s") == []


async def test_a_session_does_not_get_what_was_there_before(stage: Stage) -> None:
    """The topic of a new rule may have messages of others."""
    await change(stage, *ORDERS)
    await send(stage, b"old")
    await change(stage)
    await (await stage.subscribed("s", ("orders/1", 1), clean=False)).leaves()
    await change(stage, *ORDERS)
    await send(stage, b"new")
    assert await resumed(stage, "s") == [b"new"]


async def test_shared_subscriptions_read_both_with_members_and_without(stage: Stage) -> None:
    worker = await stage.subscribed("1", ("$share/g/orders/#", 1), **SHARED)
    sleeper = await stage.subscribed("2", ("$share/h/orders/#", 1), **SHARED)
    await sleeper.leaves()
    await send(stage, b"before")
    await change(stage, *ORDERS)
    async with trimmed(stage, "orders"):
        await send(stage, *(b"%d" % number for number in range(15)))
    expected = sorted([b"before", *(b"%d" % number for number in range(15))])
    assert sorted(await acknowledged(worker)) == expected
    assert sorted(await resumed(stage, "2", **SHARED)) == expected
    assert await resumed(stage, "2", **SHARED) == []


async def test_a_group_without_unread_messages_leaves_the_former_log(stage: Stage) -> None:
    sleeper = await stage.subscribed("2", ("$share/h/orders/#", 1), **SHARED)
    await change(stage, *ORDERS)
    await sleeper.leaves()
    await resumed(stage, "2", **SHARED)
    (group,) = stage.services.groups.lasting()
    assert list(group.places()) == ["persistent://public/default/orders"]


@pytest.mark.parametrize("crash", [True, False])
async def test_after_a_restart(crash: bool) -> None:
    stores = Stores()
    async with serving(stores) as stage:
        await (await stage.subscribed("s", ("orders/#", 1), clean=False)).leaves()
        awake = await stage.subscribed("a", ("orders/#", 1), clean=False)
        await send(stage, b"before")
        await change(stage, *ORDERS)
        await send(stage, b"after")
        if not crash:
            await stage.services.stop()
        del awake
    async with serving(stores) as stage:
        await send(stage, b"later")
        assert (await topic_of(stage, "orders")).messages_in == 1
        for name in ("s", "a"):
            got = set(await resumed(stage, name))
            assert got == {b"before", b"after", b"later"}


async def test_rules_that_cannot_be_stored_change_nothing() -> None:
    stores = Stores()
    async with serving(stores) as stage:
        reader = await stage.subscribed("r", ("orders/#", 1))
        stored = stage.services.rule_changes.stored
        await stage.broker.metadata.put("/magnetar/mqtt-rules/public/default", b"{}", -1)
        with pytest.raises(BadVersion):
            await change(stage, *ORDERS)
        assert stored.record.rules is None
        await send(stage, b"x")
        assert await acknowledged(reader) == [b"x"]
        assert (await topic_of(stage, "mqtt")).messages_in == 1
        await stage.subscribed("q", ("orders/#", 1), clean=False)
        record = await stage.services.sessions.records.read("q")
        assert record is not None
        assert [one.log for one in record.places] == ["persistent://public/default/mqtt"]


async def test_the_version_counts(stage: Stage) -> None:
    changes = stage.services.rule_changes
    await changes.change(ORDERS, 0)
    with pytest.raises(BadVersion):
        await changes.change((), 0)
    assert stage.services.logs.rules.rules[0] == ORDERS[0]
    await changes.change(None, 1)
    assert changes.stored.record.changes == 2


async def test_a_subscription_that_is_made_meanwhile_reads_the_new_logs(stage: Stage) -> None:
    """SUBSCRIBE has found its logs, and waits for one to be opened, while the rules change."""
    await stage.services.hold.keep(await stage.services.logs.open_for("x"))
    client = await stage.connected("c")
    keep, waits = stage.services.hold.keep, []

    async def slow_keep(log: Any, *, whole: bool = False) -> None:
        if not waits:
            waits.append(True)
            await change(stage, *ORDERS)
        await keep(log, whole=whole)

    stage.services.hold.keep = slow_keep  # type: ignore[method-assign]
    (suback,) = await client.says(subscribe(("orders/#", 1)))
    assert suback.kind == "SUBACK"
    await send(stage, b"x")
    assert await acknowledged(client) == [b"x"]


async def test_replacing_a_subscription_keeps_its_place_in_former_logs(stage: Stage) -> None:
    """[MQTT-3.8.4-3]: no message is missed."""
    client = await stage.subscribed("c", ("orders/#", 1), version=V5, clean=False,
                                    properties=LASTS + b"\x21\0\x01")  # fmt: skip
    await send(stage, b"1", b"2", b"3")
    await change(stage, *ORDERS)
    await client.says(subscribe(("orders/#", 1), version=V5))
    await client.leaves()
    assert await resumed(stage, "c", version=V5, properties=LASTS) == [b"1", b"2", b"3"]


async def test_unsubscribing_leaves_all_logs(stage: Stage) -> None:
    client = await stage.subscribed("c", ("orders/#", 1), clean=False)
    await change(stage, *ORDERS)
    await client.says(unsubscribe("orders/#"))
    for name in ("orders", "mqtt"):
        log = stage.services.logs.find(f"persistent://public/default/{name}")
        assert log is not None
        assert not log.feed.is_read
    await send(stage, b"x")
    assert await client.receive() == []


async def test_keys_in_a_former_funnel_stay_topics(stage: Stage) -> None:
    """What Pulsar's and Kafka's clients have written there is still for its sessions."""
    await change(stage, *ORDERS)
    rules = stage.services.logs.rules
    orders = TopicName.parse("public/default/orders")
    await change(stage)
    assert rules.is_funnel(orders)
    assert not stage.services.logs.rules.is_funnel(orders)
    assert stage.services.logs.rules.has_keys(orders)


async def test_an_edited_configuration_is_a_change_of_the_rules() -> None:
    stores = Stores()
    async with serving(stores) as stage:
        await (await stage.subscribed("s", ("orders/#", 1), clean=False)).leaves()
        await (await stage.subscribed("t", ("$share/g/orders/#", 1), **SHARED)).leaves()
        await send(stage, b"before")
        await stage.services.stop()
    async with serving(stores, rules=ORDERS) as stage:
        async with trimmed(stage, "orders"):
            await send(stage, *(b"%d" % number for number in range(15)))
        expected = sorted([b"before", *(b"%d" % number for number in range(15))])
        assert sorted(await resumed(stage, "s")) == expected
        assert sorted(await resumed(stage, "t", **SHARED)) == expected
        await (await stage.subscribed("u", ("orders/#", 1), clean=False)).leaves()
        await stage.services.stop()
    async with serving(stores, rules=ORDERS) as stage:
        assert stage.services.rule_changes.stored.record.changes == 1, "there was no change"
        await send(stage, b"again")
        await stage.services.stop()
    async with serving(stores) as stage:
        await send(stage, b"back")
        assert sorted(await resumed(stage, "u")) == [b"again", b"back"]


EACH = (MappingRule("#", "{each}"),)


async def test_logs_of_single_topics_are_left(stage: Stage) -> None:
    """They have come while sessions slept, and the new rules do not name them."""
    await change(stage, *EACH)
    await (await stage.subscribed("s", ("orders/+", 1), clean=False)).leaves()
    await (await stage.subscribed("t", ("$share/g/orders/#", 1), **SHARED)).leaves()
    await (await stage.subscribed("u", ("other/+", 1), clean=False)).leaves()
    for number in range(3):
        await send(stage, b"%d" % number, topic=f"orders/{number}")
    await change(stage, *ORDERS)
    await send(stage, b"after")
    for name, options in (("s", {}), ("t", SHARED)):
        assert sorted(await resumed(stage, name, **options)) == [b"0", b"1", b"2", b"after"]
    assert await resumed(stage, "u") == []
    await (await stage.subscribed("v", ("orders/+", 1), clean=False)).leaves()
    assert await resumed(stage, "v") == [], "its subscription is newer"


async def test_topics_that_come_during_a_change_are_not_missed(stage: Stage) -> None:
    """A publisher makes a topic of its own after the sessions were told of the new rules."""
    await change(stage, *EACH)
    await (await stage.subscribed("s", ("orders/+", 1), clean=False)).leaves()
    stored = stage.services.rule_changes.stored
    store, late = stored.store, []

    async def store_late(record: Any) -> None:
        if not late:
            late.append(True)
            await send(stage, b"late", topic="orders/late")
        await store(record)

    stored.store = store_late  # type: ignore[method-assign]
    await change(stage, *ORDERS)
    assert stored.record.leaving is None
    await send(stage, b"after")
    assert sorted(await resumed(stage, "s")) == [b"after", b"late"]


async def test_a_crash_before_sessions_know_of_the_last_topics() -> None:
    stores = Stores()
    async with serving(stores) as stage:
        await change(stage, *EACH)
        await (await stage.subscribed("s", ("orders/+", 1), clean=False)).leaves()
        stored = stage.services.rule_changes.stored
        read, reads = stage.services.new_logs.read, []

        async def read_once(*, whole: bool) -> None:
            reads.append(True)
            if len(reads) > 1:
                raise StorageFull("no second time")
            await read(whole=whole)
            await send(stage, b"late", topic="orders/late")

        stage.services.new_logs.read = read_once  # type: ignore[method-assign]
        await change(stage, *ORDERS)
        assert stored.record.leaving == EACH
    async with serving(stores) as stage:
        assert stage.services.rule_changes.stored.record.leaving is None
        assert await resumed(stage, "s") == [b"late"]


async def test_stored_rules_count_more_than_the_configuration() -> None:
    stores = Stores()
    async with serving(stores, rules=ORDERS) as stage:
        await change(stage, MappingRule("orders/#", "elsewhere"))
    async with serving(stores, rules=ORDERS) as stage:
        assert stage.services.logs.rules.rules[0].topic == "elsewhere"
        await stage.services.rule_changes.change(None, None)
        assert stage.services.logs.rules.rules[0].topic == "orders"
    async with serving(stores, rules=ORDERS) as stage:
        assert stage.services.logs.rules.rules[0].topic == "orders"


async def test_nothing_is_stored_for_a_server_without_rules() -> None:
    stores = Stores()
    async with serving(stores):
        assert await stores.metadata.get("/magnetar/mqtt-rules/public/default") is None


async def test_a_former_log_is_held_as_long_as_a_session_has_messages_there(stage: Stage) -> None:
    await (await stage.subscribed("s", ("orders/#", 1), clean=False)).leaves()
    await send(stage, *(b"%d" % number for number in range(25)))
    async with trimmed(stage, "mqtt"):
        await change(stage, *ORDERS)
    assert len(await resumed(stage, "s")) == 25
    await resumed(stage, "s")
    await stage.services.hold.advance()
    await stage.services.hold.advance()
    assert SUBSCRIPTION not in (await topic_of(stage, "mqtt")).subscriptions
    assert SUBSCRIPTION in (await topic_of(stage, "orders")).subscriptions
    await settled()
