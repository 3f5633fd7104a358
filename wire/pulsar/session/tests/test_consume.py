"""Consumers as playbooks: subscribe, receive, acknowledge, seek, leave."""

from __future__ import annotations

from core.names import TopicName
from core.policies import AutoSubscriptionCreation, NamespacePolicies
from wire.pulsar import commands_pb2 as pb
from wire.pulsar.session.tests.conftest import Player, Stage
from wire.pulsar.tests import peer

SHARED, FAILOVER = pb.CommandSubscribe.SHARED, pb.CommandSubscribe.FAILOVER
NOBODY = (1 << 64) - 1


def kinds(heard: list[peer.Heard]) -> list[str]:
    return [each.kind for each in heard]


def ids(heard: list[peer.Heard]) -> list[tuple[int, int]]:
    """Of the messages among what was heard."""
    return [
        (each.body.message_id.ledger_id, each.body.message_id.entry_id)
        for each in heard
        if each.kind == "MESSAGE"
    ]


async def published(stage: Stage, *payloads: bytes, topic: str = "t") -> None:
    client = await stage.player()
    await client.says_one(peer.producer(1, 1, topic))
    heard = await client.says(*[peer.send(1, i, each) for i, each in enumerate(payloads)])
    assert kinds(heard) == ["SEND_RECEIPT"] * len(payloads)
    await client.says(peer.close_producer(2, 1))


async def consumer(stage: Stage, permits: int = 100, **fields: object) -> Player:
    """A client with one consumer, id 3, on subscription `s` of topic `t`, from the start."""
    client = await stage.player()
    said = {"initial_position": 1, **fields}
    heard = await client.says(peer.subscribe(1, 3, "t", "s", **said))
    assert heard[-1].kind == "SUCCESS", heard
    if permits:
        client.feed(peer.flow(3, permits))
    return client


async def test_subscribe_flow_receive(stage: Stage) -> None:
    await published(stage, b"a", b"b", b"c")
    client = await consumer(stage, permits=0)
    assert await client.hears() == []
    heard = await client.says(peer.flow(3, 2))
    assert ids(heard) == [(0, 0), (0, 1)]
    assert [peer.open_tail(each.tail).payload for each in heard] == [b"a", b"b"]
    assert all(each.body.consumer_id == 3 for each in heard)
    assert ids(await client.says(peer.flow(3, 10))) == [(0, 2)]


async def test_a_receipt_for_an_acknowledgement_comes_after_storage(slow_stage: Stage) -> None:
    client = await slow_stage.player()
    await client.says_one(peer.producer(1, 1, "t"))
    await client.says(peer.send(1, 1))
    slow_stage.stores.ledgers.sync()
    await client.hears()
    await client.says_one(peer.subscribe(2, 3, "t", "s", initial_position=1))
    assert ids(await client.says(peer.flow(3, 10))) == [(0, 0)]
    assert await client.says(peer.ack(3, (0, 0))) == [], "nobody asked"
    assert await client.says(peer.ack(3, (0, 0), request_id=9)) == []
    slow_stage.stores.ledgers.sync()
    (heard,) = await client.hears()
    assert (heard.kind, heard.body.request_id, heard.body.consumer_id) == ("ACK_RESPONSE", 9, 3)
    assert not heard.body.HasField("error")


async def test_unknown_consumers(stage: Stage) -> None:
    client = await stage.player()
    assert await client.says(peer.flow(9, 1), peer.ack(9, (0, 0)), peer.redeliver(9)) == []
    heard = await client.says_one(peer.ack(9, (0, 0), request_id=1))
    assert (heard.kind, bool(heard.body.message)) == ("ACK_RESPONSE", True)
    assert kinds(await client.says(peer.close_consumer(2, 9))) == ["SUCCESS"]
    for request in (peer.unsubscribe(3, 9), peer.seek(4, 9), peer.get_last_message_id(5, 9)):
        heard = await client.says_one(request)
        assert (heard.kind, heard.body.error) == ("ERROR", pb.ServiceNotReady)


async def test_a_flow_of_nothing_makes_no_sense(stage: Stage) -> None:
    client = await consumer(stage)
    await client.says(peer.flow(3, 0))
    assert client.line.ending is not None


async def test_redelivery_is_counted_where_it_is_shared(stage: Stage) -> None:
    await published(stage, b"a", b"b")
    client = await consumer(stage, sub_type=SHARED)
    assert len(ids(await client.hears())) == 2
    heard = await client.says(peer.redeliver(3, (0, 1)))
    assert ids(heard) == [(0, 1)]
    assert heard[0].body.redelivery_count == 1
    heard = await client.says(peer.redeliver(3))
    assert [each.body.redelivery_count for each in heard] == [1, 2]


async def test_a_batch_acknowledged_in_part(stage: Stage) -> None:
    client = await stage.player()
    await client.says_one(peer.producer(1, 1, "t"))
    await client.says(peer.send_batch(1, 0, [b"x", b"y", b"z"]))
    await client.says_one(peer.subscribe(2, 3, "t", "s", initial_position=1, sub_type=SHARED))
    await client.says(peer.flow(3, 100))
    await client.says(peer.ack(3, peer.message_id(0, 0, ack_set=[0b101], batch_size=3)))
    (heard,) = await client.says(peer.redeliver(3))
    assert list(heard.body.ack_set) == [0b101]


async def test_seek_is_close_and_then_success(stage: Stage) -> None:
    await published(stage, b"a", b"b", b"c")
    client = await consumer(stage)
    assert len(ids(await client.hears())) == 3
    await client.says(peer.ack(3, (0, 2), cumulative=True))
    heard = await client.says(peer.seek(5, 3, message_id=peer.message_id(0, 1)))
    assert kinds(heard) == ["CLOSE_CONSUMER", "SUCCESS"]
    assert (heard[0].body.consumer_id, heard[0].body.request_id) == (3, NOBODY)
    assert heard[1].body.request_id == 5
    assert kinds(await client.says(peer.subscribe(6, 3, "t", "s"))) == ["SUCCESS"]
    assert ids(await client.says(peer.flow(3, 10))) == [(0, 1), (0, 2)]
    heard = await client.says(peer.seek(7, 3, message_publish_time=1))
    assert kinds(heard) == ["CLOSE_CONSUMER", "SUCCESS"]
    await client.says(peer.subscribe(8, 3, "t", "s"))
    assert len(ids(await client.says(peer.flow(3, 10)))) == 3
    heard = await client.says_one(peer.seek(9, 3))
    assert heard.body.error == pb.MetadataError


async def test_a_reader_keeps_its_place_over_its_own_seek(stage: Stage) -> None:
    await published(stage, b"a", b"b", b"c")
    start = peer.message_id(-1, -1)
    client = await consumer(stage, durable=False, start_message_id=start)
    assert len(ids(await client.hears())) == 3
    await client.says(peer.seek(5, 3, message_id=peer.message_id(0, 2)))
    await client.says_one(peer.subscribe(6, 3, "t", "s", durable=False, start_message_id=start))
    assert ids(await client.says(peer.flow(3, 10))) == [(0, 2)]
    await client.says(peer.close_consumer(7, 3))
    (topic,) = stage.broker.topics.values()
    assert topic.subscriptions == {}


async def test_a_reader_begins_with_the_entry_it_names(stage: Stage) -> None:
    await published(stage, b"a", b"b", b"c")
    client = await consumer(stage, durable=False, start_message_id=peer.message_id(0, 1))
    assert ids(await client.hears()) == [(0, 1), (0, 2)]
    client = await stage.player()
    latest = peer.message_id((1 << 63) - 1, (1 << 48) - 1)
    await client.says_one(peer.subscribe(1, 3, "t", "r", durable=False, start_message_id=latest))
    assert ids(await client.says(peer.flow(3, 10))) == []


async def test_the_last_message_id(stage: Stage) -> None:
    client = await consumer(stage)
    heard = await client.says_one(peer.get_last_message_id(5, 3))
    assert heard.body.last_message_id.ledger_id == peer.EARLIEST
    await client.says_one(peer.producer(6, 1, "t"))
    heard = await client.says(peer.send_batch(1, 0, [b"x", b"y"]))
    heard = await client.says_one(peer.get_last_message_id(7, 3))
    last = heard.body.last_message_id
    assert (last.ledger_id, last.entry_id, last.batch_index) == (0, 0, 1)
    assert heard.body.HasField("consumer_mark_delete_position")


async def test_the_last_message_may_have_been_trimmed(stage: Stage) -> None:
    client = await consumer(stage)
    await published(stage, b"a")
    await client.says(peer.ack(3, (0, 0)))
    (topic,) = stage.broker.topics.values()
    await topic.ledger.roll()  # type: ignore[union-attr]  # it is persistent
    await topic.ledger.trim([0])  # type: ignore[union-attr]  # the same
    heard = await client.says_one(peer.get_last_message_id(5, 3))
    assert heard.body.last_message_id.ledger_id == peer.EARLIEST, "there is nothing to be read"


async def test_failover_says_who_is_active(stage: Stage) -> None:
    a = await stage.player()
    heard = await a.says(
        peer.subscribe(1, 3, "t-partition-0", "s", sub_type=FAILOVER, consumer_name="b")
    )
    assert kinds(heard) == ["ACTIVE_CONSUMER_CHANGE", "SUCCESS"]
    assert heard[0].body.is_active
    b = await stage.player()
    heard = await b.says(
        peer.subscribe(1, 3, "t-partition-0", "s", sub_type=FAILOVER, consumer_name="a")
    )
    assert heard[0].body.is_active
    (heard_a,) = await a.hears()
    assert not heard_a.body.is_active
    b.session.closed("gone")
    (heard_a,) = await a.hears()
    assert heard_a.body.is_active


async def test_only_exclusive_means_no_activity(stage: Stage) -> None:
    client = await stage.player()
    assert kinds(await client.says(peer.subscribe(1, 3, "t", "s"))) == ["SUCCESS"]
    other = await stage.player()
    heard = await other.says_one(peer.subscribe(1, 3, "t", "s"))
    assert heard.body.error == pb.ConsumerBusy


async def test_the_end_of_a_topic_is_told_to_java_alone(stage: Stage) -> None:
    await published(stage, b"a")
    java = await stage.player("Pulsar-Java-v4.0.0")
    other = await stage.player("Pulsar-CPP-v4.2.0")
    for client, name in ((java, "j"), (other, "c")):
        await client.says_one(peer.subscribe(1, 3, "t", name, initial_position=1))
        await client.says(peer.flow(3, 10))
    (topic,) = stage.broker.topics.values()
    await topic.terminate()  # type: ignore[union-attr]  # it is persistent
    assert kinds(await java.says(peer.ack(3, (0, 0)))) == ["REACHED_END_OF_TOPIC"]
    assert await other.says(peer.ack(3, (0, 0))) == []


async def test_unsubscribe(stage: Stage) -> None:
    a = await consumer(stage, sub_type=SHARED)
    b = await consumer(stage, sub_type=SHARED)
    heard = await a.says_one(peer.unsubscribe(5, 3))
    assert (heard.kind, heard.body.error) == ("ERROR", pb.NotAllowedError)
    await b.says(peer.close_consumer(5, 3))
    assert kinds(await a.says(peer.unsubscribe(6, 3))) == ["SUCCESS"]
    (topic,) = stage.broker.topics.values()
    assert topic.subscriptions == {}


async def test_unsubscribe_by_force_sends_the_others_away(stage: Stage) -> None:
    a = await consumer(stage, sub_type=SHARED)
    b = await consumer(stage, sub_type=SHARED)
    assert kinds(await a.says(peer.unsubscribe(5, 3, force=True))) == ["SUCCESS"]
    assert kinds(await b.hears()) == ["CLOSE_CONSUMER"]


async def test_a_reader_may_unsubscribe(stage: Stage) -> None:
    client = await consumer(stage, durable=False)
    assert kinds(await client.says(peer.unsubscribe(5, 3))) == ["SUCCESS"]


async def test_a_repeated_request_is_answered_again(stage: Stage) -> None:
    client = await stage.player()
    heard = await client.says(peer.subscribe(1, 3, "t", "s"), peer.subscribe(2, 3, "t", "s"))
    assert [(h.kind, h.body.request_id) for h in heard] == [("ERROR", 2), ("SUCCESS", 1)]
    assert kinds(await client.says(peer.subscribe(4, 3, "t", "s"))) == ["SUCCESS"]
    (topic,) = stage.broker.topics.values()
    assert len(topic.subscriptions["s"].consumers) == 1


async def test_closed_while_it_is_being_attached(stage: Stage) -> None:
    """Once such a consumer stayed attached, and an exclusive subscription taken."""
    client = await stage.player()
    heard = await client.says(
        peer.subscribe(1, 3, "t", "s", durable=False), peer.close_consumer(2, 3)
    )
    assert kinds(heard) == ["SUCCESS"]
    (topic,) = stage.broker.topics.values()
    assert topic.subscriptions == {}
    assert kinds(await client.says(peer.subscribe(4, 3, "t", "s"))) == ["SUCCESS"]


async def test_what_may_not_be_subscribed_to(stage: Stage) -> None:
    await stage.broker.catalog.set_policies(
        (await stage.broker.topic(TopicName.parse("t"))).name.namespace,
        NamespacePolicies(auto_subscription_creation=AutoSubscriptionCreation(False)),
    )
    stage.broker.policies_changed(TopicName.parse("t").namespace)
    client = await stage.player()
    heard = await client.says_one(peer.subscribe(1, 3, "t", "s"))
    assert heard.body.error == pb.SubscriptionNotFound
    heard = await client.says_one(peer.subscribe(2, 3, "t", "r", durable=False))
    assert heard.kind == "SUCCESS", "a reader creates nothing"
    heard = await client.says_one(peer.subscribe(3, 4, "missing", "s", force_topic_creation=False))
    assert heard.body.error == pb.TopicNotFound
    heard = await client.says_one(
        peer.subscribe(5, 4, "t", "r2", durable=False, sub_type=SHARED, read_compacted=True)
    )
    assert heard.body.error == pb.NotAllowedError


async def test_a_congested_peer_is_delivered_to_again_once_it_is_relieved(stage: Stage) -> None:
    """Once it was not, if it had permits left and nothing to acknowledge."""
    client = await consumer(stage)
    await client.hears()
    client.line.congested = True
    await published(stage, b"a")
    assert ids(await client.hears()) == []
    client.line.congested = False
    client.session.relieved()
    assert ids(await client.hears()) == [(0, 0)]


async def test_a_connection_that_is_gone_gives_everything_back(stage: Stage) -> None:
    await published(stage, b"a", b"b")
    a = await consumer(stage, sub_type=SHARED)
    assert len(ids(await a.hears())) == 2
    b = await consumer(stage, sub_type=SHARED)
    assert ids(await b.hears()) == []
    a.session.closed("gone")
    assert ids(await b.hears()) == [(0, 0), (0, 1)]
    assert await a.hears() == []


async def test_a_subscribe_of_a_connection_that_is_gone_attaches_nobody(stage: Stage) -> None:
    client = await stage.player()
    client.feed(peer.subscribe(1, 3, "t", "s", durable=False))
    client.session.closed("gone")
    await client.hears()
    (topic,) = stage.broker.topics.values()
    assert topic.subscriptions == {}


async def test_a_topic_that_stores_nothing(stage: Stage) -> None:
    client = await stage.player()
    name = "non-persistent://public/default/v"
    await client.says_one(peer.subscribe(1, 3, name, "s"))
    await client.says_one(peer.producer(2, 1, name))
    client.feed(peer.flow(3, 1))
    heard = await client.says(peer.send(1, 0), peer.send(1, 1))
    assert sorted(kinds(heard)) == ["MESSAGE", "SEND_RECEIPT", "SEND_RECEIPT"]
    assert kinds(await client.says(peer.ack(3, (0, 0), request_id=5))) == ["ACK_RESPONSE"]
    heard = await client.says_one(peer.seek(6, 3, message_publish_time=1))
    assert heard.body.error == pb.NotAllowedError
    assert kinds(await client.says(peer.unsubscribe(7, 3))) == ["SUCCESS"]
