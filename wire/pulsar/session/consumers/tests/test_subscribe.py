"""Consumers come and go, as playbooks."""

from typing import Any

import pytest

from magnetar.core.kernel.names import TopicName
from magnetar.core.policy.policies import NamespacePolicies
from magnetar.core.policy.values import AutoSubscriptionCreation
from magnetar.core.topic.persistent_topic import PersistentTopic
from magnetar.core.topic.subscription.subscription import PersistentSubscription
from magnetar.wire.pulsar import commands_pb2 as pb
from magnetar.wire.pulsar.session.conftest import Stage, consumer, ids, kinds, published
from magnetar.wire.pulsar.tests import peer

SHARED, FAILOVER = pb.CommandSubscribe.SHARED, pb.CommandSubscribe.FAILOVER
T = TopicName.parse("t")
NOBODY = (1 << 64) - 1
NOT_STORED = "non-persistent://public/default/n"


async def test_a_reader_begins_with_the_entry_it_names(stage: Stage) -> None:
    await published(stage, b"a", b"b", b"c")
    client = await consumer(stage, durable=False, start_message_id=peer.message_id(0, 1))
    assert ids(await client.receive()) == [(0, 1), (0, 2)]
    client = await stage.player()
    latest = peer.message_id((1 << 63) - 1, (1 << 48) - 1)
    await client.says_one(peer.subscribe(1, 3, "t", "r", durable=False, start_message_id=latest))
    assert ids(await client.says(peer.flow(3, 10))) == []


async def test_failover_says_who_is_active(stage: Stage) -> None:
    await stage.broker.catalog.create_partitioned(T, 1)
    a = await stage.player()
    received = await a.says(
        peer.subscribe(1, 3, "t-partition-0", "s", sub_type=FAILOVER, consumer_name="b")
    )
    # in this order: Go's client knows no consumer before, and drops what is said of it
    assert kinds(received) == ["SUCCESS", "ACTIVE_CONSUMER_CHANGE"]
    assert received[1].body.is_active
    b = await stage.player()
    received = await b.says(
        peer.subscribe(1, 3, "t-partition-0", "s", sub_type=FAILOVER, consumer_name="a")
    )
    assert kinds(received) == ["SUCCESS", "ACTIVE_CONSUMER_CHANGE"]
    assert received[1].body.is_active
    (heard_a,) = await a.receive()
    assert not heard_a.body.is_active
    b.session.closed("gone")
    (heard_a,) = await a.receive()
    assert heard_a.body.is_active


async def test_a_client_for_go_hears_so_with_its_first_permits(stage: Stage) -> None:
    """It reads on before it has noted the consumer, and drops what is said of it meanwhile."""
    await stage.broker.catalog.create_partitioned(T, 1)
    client = await stage.player("Pulsar-Go-v0.19.0")
    requested = peer.subscribe(1, 3, "t-partition-0", "s", sub_type=FAILOVER)
    assert kinds(await client.says(requested)) == ["SUCCESS"]
    (received,) = await client.says(peer.flow(3, 10))
    assert received.body.is_active
    assert await client.says(peer.flow(3, 10)) == []


async def test_who_stands_by_hears_so_once_it_is_attached(stage: Stage) -> None:
    await stage.broker.catalog.create_partitioned(T, 1)
    for topic in ("persistent://public/default/t-partition-0", "non-persistent://public/default/v"):
        a, b = await stage.player(), await stage.player()
        requested = peer.subscribe(1, 3, topic, "s", sub_type=FAILOVER, consumer_name="a")
        assert (await a.says(requested))[1].body.is_active
        requested = peer.subscribe(1, 3, topic, "s", sub_type=FAILOVER, consumer_name="a")
        received = await b.says(requested)
        assert kinds(received) == ["SUCCESS", "ACTIVE_CONSUMER_CHANGE"]
        assert not received[1].body.is_active


async def test_only_exclusive_means_no_activity(stage: Stage) -> None:
    client = await stage.player()
    assert kinds(await client.says(peer.subscribe(1, 3, "t", "s"))) == ["SUCCESS"]
    other = await stage.player()
    other.feed(peer.subscribe(1, 3, "t", "s"))
    assert kinds(await client.receive()) == ["PING"], "is it still there?"
    client.feed(peer.pong())
    (received,) = await other.receive()
    assert received.body.error == pb.ConsumerBusy


async def test_unsubscribe(stage: Stage) -> None:
    a = await consumer(stage, sub_type=SHARED)
    b = await consumer(stage, sub_type=SHARED)
    received = await a.says_one(peer.unsubscribe(5, 3))
    assert (received.kind, received.body.error) == ("ERROR", pb.MetadataError)
    await b.says(peer.close_consumer(5, 3))
    assert kinds(await a.says(peer.unsubscribe(6, 3))) == ["SUCCESS"]
    (topic,) = stage.broker.topics.values()
    assert topic.subscriptions == {}


async def test_unsubscribe_by_force_sends_the_others_away(stage: Stage) -> None:
    a = await consumer(stage, sub_type=SHARED)
    b = await consumer(stage, sub_type=SHARED)
    assert kinds(await a.says(peer.unsubscribe(5, 3, force=True))) == ["SUCCESS"]
    assert kinds(await b.receive()) == ["CLOSE_CONSUMER"]


async def test_a_reader_may_unsubscribe(stage: Stage) -> None:
    client = await consumer(stage, durable=False)
    assert kinds(await client.says(peer.unsubscribe(5, 3))) == ["SUCCESS"]


async def test_a_repeated_request_is_answered_again(stage: Stage) -> None:
    client = await stage.player()
    received = await client.says(peer.subscribe(1, 3, "t", "s"), peer.subscribe(2, 3, "t", "s"))
    assert [(h.kind, h.body.request_id) for h in received] == [("ERROR", 2), ("SUCCESS", 1)]
    assert kinds(await client.says(peer.subscribe(4, 3, "t", "s"))) == ["SUCCESS"]
    (topic,) = stage.broker.topics.values()
    assert len(topic.subscriptions["s"].consumers) == 1


async def test_closed_while_it_is_being_attached(stage: Stage) -> None:
    """Once such a consumer stayed attached, and an exclusive subscription taken."""
    client = await stage.player()
    received = await client.says(
        peer.subscribe(1, 3, "t", "s", durable=False), peer.close_consumer(2, 3)
    )
    assert kinds(received) == ["SUCCESS"]
    assert not stage.broker.topics, "nothing was done for it"
    assert kinds(await client.says(peer.subscribe(4, 3, "t", "s"))) == ["SUCCESS"]


async def test_what_may_not_be_subscribed_to(stage: Stage) -> None:
    await stage.broker.catalog.set_policies(
        (await stage.broker.topic(TopicName.parse("t"))).name.namespace,
        NamespacePolicies(auto_subscription_creation=AutoSubscriptionCreation(False)),
    )
    await stage.broker.apply_policies(TopicName.parse("t").namespace)
    client = await stage.player()
    received = await client.says_one(peer.subscribe(1, 3, "t", "s"))
    assert received.body.error == pb.SubscriptionNotFound
    received = await client.says_one(peer.subscribe(2, 3, "t", "r", durable=False))
    assert received.kind == "SUCCESS", "a reader creates nothing"
    received = await client.says_one(
        peer.subscribe(3, 4, "missing", "s", force_topic_creation=False)
    )
    assert received.body.error == pb.TopicNotFound
    received = await client.says_one(
        peer.subscribe(5, 4, "t", "r2", durable=False, sub_type=SHARED, read_compacted=True)
    )
    assert received.body.error == pb.NotAllowedError


async def test_who_may_read_compacted(stage: Stage) -> None:
    """Nothing is made for a subscription that may not."""
    client = await stage.player()
    await client.says_one(peer.producer(1, 1, "t"))
    for request, (topic, kind) in enumerate(
        [("t", SHARED), ("t", pb.CommandSubscribe.KEY_SHARED), (NOT_STORED, FAILOVER)]
    ):
        sent = peer.subscribe(request, 3, topic, "s", sub_type=kind, read_compacted=True)
        assert (await client.says_one(sent)).body.error == pb.NotAllowedError
    topic = await stage.broker.topic(TopicName.parse("t"))
    assert isinstance(topic, PersistentTopic)
    assert topic.subscriptions == {}
    for request, kind in enumerate([pb.CommandSubscribe.EXCLUSIVE, FAILOVER], 10):
        name = f"s{request}"
        sent = peer.subscribe(request, request, "t", name, sub_type=kind, read_compacted=True)
        assert "SUCCESS" in kinds(await client.says(sent))


async def test_a_subscribe_of_a_connection_that_is_gone_attaches_nobody(stage: Stage) -> None:
    client = await stage.player()
    client.feed(peer.subscribe(1, 3, "t", "s", durable=False))
    client.session.closed("gone")
    await client.receive()
    assert not stage.broker.topics, "nothing was done for it"


@pytest.mark.parametrize("durable", [True, False])
async def test_a_subscribe_during_an_unload_is_answered_when_it_is_over(
    slow_stage: Stage, durable: bool
) -> None:
    """Once "not ready", which some clients take for an end."""
    other = await slow_stage.player()
    await other.says_one(peer.producer(1, 7, "t"))
    other.feed(peer.send(7, 0))
    (old,) = slow_stage.broker.topics.values()
    slow_stage.broker.spawn(slow_stage.broker.unload, old.name)
    await other.receive()
    client = await slow_stage.player()
    assert await client.says(peer.subscribe(1, 3, "t", "s", durable=durable)) == []
    slow_stage.stores.ledgers.sync()
    assert kinds(await client.receive()) == ["SUCCESS"]
    (topic,) = slow_stage.broker.topics.values()
    assert topic is not old
    assert len(topic.subscriptions["s"].consumers) == 1


async def test_a_topic_unloaded_under_a_subscribe_is_loaded_again(stage: Stage) -> None:
    topic = await stage.broker.topic(TopicName.parse("t"))
    assert isinstance(topic, PersistentTopic)
    create = topic.subscription

    async def unloaded(*args: Any, **options: Any) -> PersistentSubscription:
        made = await create(*args, **options)
        await stage.broker.unload(topic.name)
        return made

    topic.subscription = unloaded  # type: ignore[method-assign]
    client = await stage.player()
    assert kinds(await client.says(peer.subscribe(1, 3, "t", "s"))) == ["SUCCESS"]
    (again,) = stage.broker.topics.values()
    assert len(again.subscriptions["s"].consumers) == 1
    assert client.session.consumers.coming == {}


async def test_whoever_gives_up_while_the_topic_is_unloaded_is_not_attached(
    slow_stage: Stage,
) -> None:
    other = await slow_stage.player()
    await other.says_one(peer.producer(1, 7, "t"))
    other.feed(peer.send(7, 0))
    (old,) = slow_stage.broker.topics.values()
    slow_stage.broker.spawn(slow_stage.broker.unload, old.name)
    await other.receive()
    client = await slow_stage.player()
    assert await client.says(peer.subscribe(1, 3, "t", "s")) == []
    received = await client.says_one(peer.close_consumer(2, 3))
    assert (received.kind, received.body.request_id) == ("SUCCESS", 2)
    slow_stage.stores.ledgers.sync()
    assert await client.receive() == []
    (topic,) = slow_stage.broker.topics.values()
    assert topic.subscriptions == {}


async def test_a_reader_may_begin_by_age(stage: Stage) -> None:
    writer = await stage.player()
    await writer.says_one(peer.producer(1, 7, "t"))
    for number in range(3):
        about = peer.metadata(number, publish_time=stage.broker.clock.wall_ms())
        await writer.says_one(peer.send(7, number, about=about))
        stage.stores.clock.forward(60)
    client = await stage.player()
    age = {"start_message_rollback_duration_sec": 130, "durable": False}
    await client.says_one(peer.subscribe(1, 3, "t", "r", **age))
    assert ids(await client.says(peer.flow(3, 10))) == [(0, 1), (0, 2)]
