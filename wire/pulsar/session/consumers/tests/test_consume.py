"""Consumers at work as playbooks: receive, acknowledge, be sent again."""

import pytest

from magnetar.core.kernel.names import TopicName
from magnetar.core.policy.policies import TopicPolicies
from magnetar.core.policy.rates import DispatchRate, SubscriptionPolicies
from magnetar.wire.pulsar import commands_pb2 as pb
from magnetar.wire.pulsar.session.conftest import (
    Stage,
    consumer,
    ids,
    kinds,
    published,
)
from magnetar.wire.pulsar.tests import peer

SHARED, FAILOVER = pb.CommandSubscribe.SHARED, pb.CommandSubscribe.FAILOVER
NOBODY = (1 << 64) - 1


async def test_subscribe_flow_receive(stage: Stage) -> None:
    await published(stage, b"a", b"b", b"c")
    client = await consumer(stage, permits=0)
    assert await client.receive() == []
    received = await client.says(peer.flow(3, 2))
    assert ids(received) == [(0, 0), (0, 1)]
    assert [peer.open_tail(each.tail).payload for each in received] == [b"a", b"b"]
    assert all(each.body.consumer_id == 3 for each in received)
    assert ids(await client.says(peer.flow(3, 10))) == [(0, 2)]


async def test_a_receipt_for_an_acknowledgement_comes_after_storage(slow_stage: Stage) -> None:
    client = await slow_stage.player()
    await client.says_one(peer.producer(1, 1, "t"))
    await client.says(peer.send(1, 1))
    slow_stage.stores.ledgers.sync()
    await client.receive()
    await client.says_one(peer.subscribe(2, 3, "t", "s", initial_position=1))
    assert ids(await client.says(peer.flow(3, 10))) == [(0, 0)]
    assert await client.says(peer.ack(3, (0, 0))) == [], "nobody requested"
    assert await client.says(peer.ack(3, (0, 0), request_id=9)) == []
    slow_stage.stores.ledgers.sync()
    (received,) = await client.receive()
    assert (received.kind, received.body.request_id, received.body.consumer_id) == (
        "ACK_RESPONSE",
        9,
        3,
    )
    assert not received.body.HasField("error")


async def test_a_message_given_up_is_done_with_and_noted(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    await published(stage, b"a", b"b")
    client = await consumer(stage)
    await client.receive()
    for entry_id in range(2):
        await client.says(
            peer.ack(3, (0, entry_id), validation_error=pb.CommandAck.DECRYPTION_ERROR)
        )
    (topic,) = stage.broker.topics.values()
    assert topic.subscriptions["s"].cursor.backlog == 0
    assert caplog.text.count("DECRYPTION_ERROR") == 1


async def test_messages_say_since_when_they_are_asked_for(stage: Stage) -> None:
    """Java throws away what was on its way when it requested for everything again."""
    await published(stage, b"a", b"b")
    client = await consumer(stage, consumer_epoch=1)

    def epochs(received: list[peer.ReceivedFrame]) -> list[int]:
        return [each.body.consumer_epoch for each in received if each.kind == "MESSAGE"]

    assert epochs(await client.receive()) == [1, 1]
    again = await client.says(peer.redeliver(3, consumer_epoch=2), peer.flow(3, 10))
    assert epochs(again) == [2, 2]
    await client.says(peer.close_consumer(9, 3))
    plain = await consumer(stage)
    assert not any(each.body.HasField("consumer_epoch") for each in await plain.receive())


async def test_what_is_noted_with_a_position_is_stored_with_it(stage: Stage) -> None:
    """As functions do; it counts until more is acknowledged."""

    def noted(entry: int, *pairs: tuple[str, int]) -> bytes:
        properties = [pb.KeyLongValue(key=key, value=value) for key, value in pairs]
        return peer.ack(3, (0, entry), cumulative=True, properties=properties, request_id=1)

    async def kept() -> dict[str, int]:
        await stage.broker.unload(TopicName.parse("t"))
        topic = await stage.broker.topic(TopicName.parse("t"))
        return dict(topic.subscriptions["s"].cursor.position_properties)  # type: ignore[union-attr]

    await published(stage, *[b"x"] * 5)
    client = await consumer(stage)
    await client.says(noted(1, ("sequence", 7)), noted(0, ("sequence", 5)))
    assert await kept() == {"sequence": 7}, "the second acknowledged nothing new"
    client = await consumer(stage)
    await client.says(noted(2, ("x" * 10_001, 1)))
    assert await kept() == {}
    client = await consumer(stage)
    await client.says(noted(3, ("a", 1), ("b", (1 << 64) - 2)))
    assert await kept() == {"a": 1, "b": -2}
    client = await consumer(stage)
    await client.says(noted(4))
    assert await kept() == {}


async def test_unknown_consumers(stage: Stage) -> None:
    client = await stage.player()
    assert await client.says(peer.flow(9, 1), peer.ack(9, (0, 0)), peer.redeliver(9)) == []
    received = await client.says_one(peer.ack(9, (0, 0), request_id=1))
    assert (received.kind, bool(received.body.message)) == ("ACK_RESPONSE", True)
    assert kinds(await client.says(peer.close_consumer(2, 9))) == ["SUCCESS"]
    for request in (peer.unsubscribe(3, 9), peer.seek(4, 9), peer.get_last_message_id(5, 9)):
        received = await client.says_one(request)
        assert (received.kind, received.body.error) == ("ERROR", pb.ConsumerNotFound)


async def test_a_flow_of_nothing_makes_no_sense(stage: Stage) -> None:
    client = await consumer(stage)
    await client.says(peer.flow(3, 0))
    assert client.line.ending is not None


async def test_consumers_of_one_stalled_connection_do_not_each_pack_their_fill(
    stage: Stage,
) -> None:
    """What one of them has packed counts for the next at once, not only after a flush."""
    await published(stage, *[bytes(400_000)] * 4)
    client = await stage.player()
    for consumer_id in range(1, 9):
        subscription = f"s{consumer_id}"
        await client.says(
            peer.subscribe(consumer_id, consumer_id, "t", subscription, initial_position=1)
        )
    client.feed(*[peer.flow(consumer_id, 1_000) for consumer_id in range(1, 9)])
    assert len(ids(await client.receive())) < 8
    assert 2**20 < client.line.packed_bytes <= 2 * 2**20, "one turn of one consumer, not of eight"
    client.line.packed_bytes = 0
    client.line.congested = False
    client.session.relieved()
    assert ids(await client.receive()) != [], "and the others have their turn then"


async def test_redelivery_is_counted_where_it_is_shared(stage: Stage) -> None:
    await published(stage, b"a", b"b")
    client = await consumer(stage, sub_type=SHARED)
    assert len(ids(await client.receive())) == 2
    received = await client.says(peer.redeliver(3, (0, 1)))
    assert ids(received) == [(0, 1)]
    assert received[0].body.redelivery_count == 1
    received = await client.says(peer.redeliver(3))
    assert [each.body.redelivery_count for each in received] == [1, 2]


async def test_a_batch_acknowledged_in_part(stage: Stage) -> None:
    client = await stage.player()
    await client.says_one(peer.producer(1, 1, "t"))
    await client.says(peer.send_batch(1, 0, [b"x", b"y", b"z"]))
    await client.says_one(peer.subscribe(2, 3, "t", "s", initial_position=1, sub_type=SHARED))
    await client.says(peer.flow(3, 100))
    await client.says(peer.ack(3, peer.message_id(0, 0, ack_set=[0b101], batch_size=3)))
    (received,) = await client.says(peer.redeliver(3))
    assert list(received.body.ack_set) == [0b101]


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


async def test_a_congested_peer_is_delivered_to_again_once_it_is_relieved(stage: Stage) -> None:
    """Once it was not, if it had permits left and nothing to acknowledge."""
    client = await consumer(stage)
    await client.receive()
    client.line.congested = True
    await published(stage, b"a")
    assert ids(await client.receive()) == []
    client.line.congested = False
    client.session.relieved()
    assert ids(await client.receive()) == [(0, 0)]


async def test_who_has_acknowledged_is_known_to_read(stage: Stage) -> None:
    await published(stage, b"a")
    client = await consumer(stage)
    assert ids(await client.receive()) == [(0, 0)]
    client.line.congested = True
    await published(stage, b"b")
    await client.receive()
    assert not client.line.answers, "it has acknowledged nothing"
    await client.says(peer.ack(3, (0, 0)))
    await published(stage, b"c")
    await client.receive()
    assert client.line.answers


async def test_a_connection_that_is_gone_gives_everything_back(stage: Stage) -> None:
    await published(stage, b"a", b"b")
    a = await consumer(stage, sub_type=SHARED)
    assert len(ids(await a.receive())) == 2
    b = await consumer(stage, sub_type=SHARED)
    assert ids(await b.receive()) == []
    a.session.closed("gone")
    assert ids(await b.receive()) == [(0, 0), (0, 1)]
    assert await a.receive() == []


async def test_a_topic_that_stores_nothing(stage: Stage) -> None:
    client = await stage.player()
    name = "non-persistent://public/default/v"
    await client.says_one(peer.subscribe(1, 3, name, "s"))
    await client.says_one(peer.producer(2, 1, name))
    client.feed(peer.flow(3, 1))
    received = await client.says(peer.send(1, 0), peer.send(1, 1))
    assert sorted(kinds(received)) == ["MESSAGE", "SEND_RECEIPT", "SEND_RECEIPT"]
    assert kinds(await client.says(peer.ack(3, (0, 0), request_id=5))) == ["ACK_RESPONSE"]
    received = await client.says_one(peer.seek(6, 3, message_publish_time=1))
    assert received.body.error == pb.NotAllowedError
    assert kinds(await client.says(peer.unsubscribe(7, 3))) == ["SUCCESS"]


async def test_index_and_broker_time_for_clients_that_ask(stage: Stage) -> None:
    """They are the broker's own part before the message; where it is allowed, it is left there."""
    await published(stage, b"a", b"b")
    for allowed, requested in ((True, True), (True, False), (False, True)):
        client = stage.stranger(expose_broker_metadata=allowed)
        flags = pb.FeatureFlags(supports_broker_entry_metadata=requested)
        await client.says_one(peer.connect(feature_flags=flags))
        await client.says(peer.subscribe(1, 3, "t", f"r{allowed}{requested}", initial_position=1))
        received = await client.says(peer.flow(3, 10))
        assert len(received) == 2
        parts = [peer.open_tail(each.tail).broker for each in received]
        indexes = [part.index for part in parts if part is not None]
        assert indexes == ([0, 1] if allowed and requested else [])


async def test_one_subscription_is_slower_than_others(stage: Stage) -> None:
    await published(stage, *[b"x"] * 4)
    name, rate = TopicName.parse("t"), SubscriptionPolicies(DispatchRate(1))
    await stage.broker.catalog.set_topic_policies(
        name, TopicPolicies(subscription_rates={"s": rate})
    )
    await stage.broker.apply_policies(name.namespace)
    client = await consumer(stage)
    assert ids(await client.receive()) == [(0, 0)]
    other = await stage.player()
    await other.says(peer.subscribe(1, 3, "t", "other", initial_position=1))
    assert len(await other.says(peer.flow(3, 10))) == 4
