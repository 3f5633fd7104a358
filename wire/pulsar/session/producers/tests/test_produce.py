"""Producers as playbooks: given these bytes, expect these."""

import pytest

from magnetar.core.kernel.errors import Fenced, StorageFailed
from magnetar.core.kernel.names import NamespaceName, TopicName
from magnetar.core.link.memory.pauses import PAUSE_PUBLISHES
from magnetar.core.policy.policies import NamespacePolicies
from magnetar.core.topic.persistent_topic import PersistentTopic
from magnetar.core.topic.publishing.producer import Producer
from magnetar.core.topic.topic import Topic
from magnetar.wire.pulsar import commands_pb2 as pb
from magnetar.wire.pulsar.session.conftest import Player, Stage, kinds
from magnetar.wire.pulsar.tests import peer

EXCLUSIVE, WAIT, FENCE = pb.EXCLUSIVE_ACCESS, pb.WAIT_FOR_EXCLUSIVE, pb.EXCLUSIVE_WITH_FENCING


async def test_attach_and_publish(stage: Stage) -> None:
    client = await stage.player()
    received = await client.says_one(peer.producer(1, 7, "t"))
    assert received.kind == "PRODUCER_SUCCESS"
    assert (received.body.request_id, received.body.producer_ready) == (1, True)
    assert received.body.producer_name.startswith("standalone-")
    assert not received.body.HasField("topic_epoch")
    first, second = await client.says(peer.send(7, 10), peer.send_batch(7, 11, [b"a", b"b"]))
    assert [(h.kind, h.body.producer_id) for h in (first, second)] == [("SEND_RECEIPT", 7)] * 2
    assert (first.body.sequence_id, second.body.sequence_id) == (10, 11)
    assert second.body.highest_sequence_id == 12
    ids = [(h.body.message_id.ledger_id, h.body.message_id.entry_id) for h in (first, second)]
    assert ids == [(0, 0), (0, 1)]


async def test_receipts_come_after_storage(slow_stage: Stage) -> None:
    client = await slow_stage.player()
    await client.says_one(peer.producer(1, 7, "t"))
    assert await client.says(peer.send(7, 1), peer.send(7, 2)) == []
    slow_stage.stores.ledgers.sync()
    assert kinds(await client.receive()) == ["SEND_RECEIPT"] * 2


async def test_a_producer_is_closed_when_all_it_sent_is_stored(slow_stage: Stage) -> None:
    client = await slow_stage.player()
    await client.says_one(peer.producer(1, 7, "t"))
    assert await client.says(peer.send(7, 1), peer.close_producer(2, 7)) == []
    slow_stage.stores.ledgers.sync()
    assert kinds(await client.receive()) == ["SEND_RECEIPT", "SUCCESS"]
    assert kinds(await client.says(peer.close_producer(3, 7))) == ["SUCCESS"]


async def test_a_repeated_request_is_answered_again(stage: Stage) -> None:
    client = await stage.player()
    first = await client.says_one(peer.producer(1, 7, "t", producer_access_mode=EXCLUSIVE))
    again = await client.says_one(peer.producer(2, 7, "t", producer_access_mode=EXCLUSIVE))
    assert (first.body.topic_epoch, again.body.topic_epoch) == (0, 0)
    assert first.body.producer_name == again.body.producer_name
    received = await client.says(peer.producer(3, 8, "u"), peer.producer(4, 8, "u"))
    assert kinds(received) == ["ERROR", "PRODUCER_SUCCESS"]
    assert (received[0].body.request_id, received[0].body.error) == (4, pb.ServiceNotReady)


async def test_the_exclusive_modes(stage: Stage) -> None:
    a, b, c = [await stage.player() for _ in range(3)]
    received = await a.says_one(peer.producer(1, 1, "t", producer_access_mode=EXCLUSIVE))
    assert received.body.topic_epoch == 0
    received = await b.says_one(peer.producer(1, 1, "t", producer_access_mode=EXCLUSIVE))
    assert (received.kind, received.body.error) == ("ERROR", pb.ProducerFenced)
    received = await b.says_one(peer.producer(2, 1, "t"))
    assert received.body.error == pb.ProducerBusy
    received = await b.says_one(peer.producer(3, 1, "t", producer_access_mode=WAIT))
    assert (received.body.request_id, received.body.producer_ready) == (3, False)
    assert not received.body.HasField("topic_epoch")
    again = await b.says_one(peer.producer(4, 1, "t", producer_access_mode=WAIT))
    assert not again.body.producer_ready, "it still waits, however often it asks"
    assert kinds(await a.says(peer.close_producer(2, 1))) == ["SUCCESS"]
    (granted,) = await b.receive()
    assert (granted.body.request_id, granted.body.producer_ready) == (3, True)
    assert granted.body.topic_epoch == 1
    received = await c.says_one(peer.producer(1, 1, "t", producer_access_mode=FENCE))
    assert received.body.topic_epoch == 2
    assert kinds(await b.receive()) == ["CLOSE_PRODUCER"]
    assert await b.says(peer.send(1, 5)) == [], "it was on its way: no mistake"
    assert b.line.ending is None


async def test_who_waits_may_not_publish(stage: Stage) -> None:
    a, b = await stage.player(), await stage.player()
    await a.says_one(peer.producer(1, 1, "t"))
    await b.says_one(peer.producer(1, 1, "t", producer_access_mode=WAIT))
    assert await b.says(peer.send(1, 1)) == []
    assert b.line.ending is not None


async def test_who_gives_up_waiting_is_not_granted(stage: Stage) -> None:
    a, b = await stage.player(), await stage.player()
    await a.says_one(peer.producer(1, 1, "t"))
    await b.says_one(peer.producer(1, 1, "t", producer_access_mode=WAIT))
    assert kinds(await b.says(peer.close_producer(2, 1))) == ["SUCCESS"]
    await a.says_one(peer.close_producer(2, 1))
    assert await b.receive() == []
    await a.says_one(peer.producer(3, 1, "t", producer_access_mode=EXCLUSIVE))


async def test_closed_while_it_is_being_attached(stage: Stage) -> None:
    """Once such a producer stayed attached, and its name busy."""
    client = await stage.player()
    received = await client.says(
        peer.producer(1, 7, "t", producer_name="mine"), peer.close_producer(2, 7)
    )
    assert kinds(received) == ["SUCCESS"]
    assert len(client.session.producers) == 0
    received = await client.says(peer.producer(3, 7, "t", producer_name="mine"))
    assert kinds(received) == ["PRODUCER_SUCCESS"]


async def test_a_message_of_nobody_ends_the_connection(stage: Stage) -> None:
    client = await stage.player()
    assert await client.says(peer.send(99, 1)) == []
    assert client.line.ending is not None


async def test_a_damaged_message_is_refused_and_the_next_is_not(stage: Stage) -> None:
    client = await stage.player()
    await client.says_one(peer.producer(1, 7, "t"))
    damaged = bytearray(peer.send(7, 1))
    damaged[-1] ^= 1
    received = await client.says(bytes(damaged), peer.send(7, 2))
    assert kinds(received) == ["SEND_ERROR", "SEND_RECEIPT"]
    assert (received[0].body.error, received[0].body.sequence_id) == (pb.ChecksumError, 1)


async def test_a_terminated_topic(stage: Stage) -> None:
    client = await stage.player()
    await client.says_one(peer.producer(1, 7, "t"))
    (topic,) = stage.broker.topics.values()
    await topic.terminate()  # type: ignore[union-attr]  # it is persistent
    assert kinds(await client.receive()) == ["CLOSE_PRODUCER"]
    assert await client.says(peer.send(7, 1)) == [], "it was on its way"
    received = await client.says(peer.producer(2, 7, "t"))
    assert received[0].body.error == pb.TopicTerminatedError


async def test_trouble_in_storage_refuses_once_and_lets_go(slow_stage: Stage) -> None:
    client = await slow_stage.player()
    await client.says_one(peer.producer(1, 7, "t"))
    await client.says(peer.send(7, 1))
    client.feed(peer.send(7, 2))
    slow_stage.stores.ledgers.ledgers[0].fail(StorageFailed("disk"))
    received = await client.receive()
    assert kinds(received) == ["SEND_ERROR"]
    assert (received[0].body.error, received[0].body.sequence_id) == (pb.PersistenceError, 1)
    assert client.session.producers.limit.pending_messages == 0
    assert kinds(await client.says(peer.producer(2, 7, "t"))) == ["PRODUCER_SUCCESS"]


async def test_a_full_disk_refuses_with_a_code_that_clients_retry(stage: Stage) -> None:
    client = await stage.player()
    await client.says_one(peer.producer(1, 7, "t"))
    stage.stores.ledgers.full = True
    received = await client.says_one(peer.producer(2, 8, "t"))
    assert (received.kind, received.body.error) == ("ERROR", pb.PersistenceError)
    assert "disk is full" in received.body.message
    received = await client.says_one(peer.send(7, 1))
    assert (received.kind, received.body.error) == ("SEND_ERROR", pb.PersistenceError)
    received = await client.says_one(peer.producer(3, 9, "non-persistent://public/default/n"))
    assert received.kind == "PRODUCER_SUCCESS", "that one stores nothing"
    assert kinds(await client.says(peer.subscribe(4, 1, "t", "s"))) == ["SUCCESS"]
    stage.stores.ledgers.full = False
    assert kinds(await client.says(peer.producer(5, 7, "t"))) == ["PRODUCER_SUCCESS"]


async def test_an_unloaded_topic_closes_its_producers(stage: Stage) -> None:
    client = await stage.player()
    await client.says_one(peer.producer(1, 7, "t"))
    (topic,) = stage.broker.topics.values()
    await stage.broker.unload(topic.name)
    (received,) = await client.says(peer.send(7, 1))
    assert (received.kind, received.body.request_id) == ("CLOSE_PRODUCER", (1 << 64) - 1)
    assert client.line.ending is None
    assert kinds(await client.says(peer.producer(2, 7, "t"))) == ["PRODUCER_SUCCESS"]


async def test_a_topic_unloaded_under_a_producer_that_comes_is_loaded_again(stage: Stage) -> None:
    """Once "not ready", which some clients take for an end; closed meanwhile, nobody comes."""
    name = TopicName.parse("t")
    for closes in (False, True):
        topic = await stage.broker.topic(name)
        client = await stage.player()

        async def unloaded(
            producer: Producer,
            topic: Topic = topic,
            client: Player = client,
            closes: bool = closes,
        ) -> bool:
            await stage.broker.unload(name)
            if closes:
                client.feed(peer.close_producer(2, 7))
            return await type(topic).attach_producer(topic, producer)  # type: ignore[arg-type]

        topic.attach_producer = unloaded  # type: ignore[method-assign]
        received = await client.says(peer.producer(1, 7, "t"))
        expected = ("SUCCESS", 2) if closes else ("PRODUCER_SUCCESS", 1)
        assert [(each.kind, each.body.request_id) for each in received] == [expected]
        (again,) = stage.broker.topics.values()
        assert again is not topic
        assert len(again.producers) == (0 if closes else 1)
        assert len(client.session.producers) == (0 if closes else 1), "none is being attached"
        await stage.broker.unload(name)


@pytest.mark.parametrize("stores", [True, False])
async def test_a_topic_unloaded_while_an_epoch_is_stored_is_loaded_again(
    stage: Stage, stores: bool
) -> None:
    """Once the client heard that a producer was closed that it did not have yet, and no answer."""
    topic = await stage.broker.topic(TopicName.parse("t"))
    assert isinstance(topic, PersistentTopic)

    async def unloaded(_key: str, _value: str) -> None:
        await stage.broker.unload(topic.name)
        if not stores:
            raise Fenced("the topic is being unloaded")

    topic.ledger.set_property = unloaded  # type: ignore[method-assign]
    client = await stage.player()
    received = await client.says(peer.producer(1, 7, "t", producer_access_mode=EXCLUSIVE))
    assert kinds(received) == ["PRODUCER_SUCCESS"]
    (again,) = stage.broker.topics.values()
    assert again is not topic
    assert len(again.producers) == 1


async def test_encryption_where_it_is_required(stage: Stage) -> None:
    policies = NamespacePolicies(encryption_required=True)
    await stage.broker.catalog.set_policies(NamespaceName.parse("public/default"), policies)
    client = await stage.player()
    received = await client.says_one(peer.producer(1, 7, "t"))
    assert (received.body.error, received.body.message[:25]) == (
        pb.MetadataError,
        "Encryption is required in",
    )
    await client.says_one(peer.producer(2, 7, "t", encrypted=True))
    received = await client.says_one(peer.send(7, 1))
    assert (received.kind, received.body.message) == ("SEND_ERROR", "Messages must be encrypted")


async def test_the_refusal_of_plain_text_waits_for_the_receipts_before_it(
    slow_stage: Stage,
) -> None:
    policies = NamespacePolicies(encryption_required=True)
    await slow_stage.broker.catalog.set_policies(NamespaceName.parse("public/default"), policies)
    client = await slow_stage.player()
    await client.says_one(peer.producer(2, 7, "t", encrypted=True))
    about = peer.metadata(1, encryption_keys=[pb.EncryptionKeys(key="k", value=b"v")])
    assert await client.says(peer.send(7, 1, about=about)) == []
    assert await client.says(peer.send(7, 2)) == []
    slow_stage.stores.ledgers.sync()
    assert kinds(await client.receive()) == ["SEND_RECEIPT", "SEND_ERROR"]


async def test_an_initial_subscription_holds_what_is_published(stage: Stage) -> None:
    client = await stage.player()
    await client.says_one(peer.producer(1, 7, "t", initial_subscription_name="s"))
    await client.says_one(peer.send(7, 1))
    (topic,) = stage.broker.topics.values()
    assert topic.subscriptions["s"].cursor.backlog == 1


async def test_too_much_on_its_way_pauses_reading_until_half_of_it_is_stored(
    slow_stage: Stage,
) -> None:
    client = await slow_stage.player(pending_messages_max=4)
    await client.says_one(peer.producer(1, 7, "t"))
    await client.says(*[peer.send(7, i) for i in range(3)])
    assert not client.line.paused
    await client.says(peer.send(7, 3))
    assert client.line.paused == PAUSE_PUBLISHES
    slow_stage.stores.ledgers.sync()
    await client.receive()
    assert not client.line.paused


async def test_a_connection_that_is_gone_leaves_nothing_attached(slow_stage: Stage) -> None:
    client = await slow_stage.player()
    await client.says_one(peer.producer(1, 7, "t"))
    await client.says(peer.send(7, 1))
    client.feed(peer.producer(2, 8, "t"))
    client.session.closed("gone")
    slow_stage.stores.ledgers.sync()
    assert await client.receive() == []
    (topic,) = slow_stage.broker.topics.values()
    assert len(topic.producers) == 0


@pytest.mark.parametrize("name", ["", "a/b", "persistent://x"])
async def test_names_that_may_not_exist(stage: Stage, name: str) -> None:
    client = await stage.player()
    received = await client.says_one(peer.producer(1, 7, name))
    assert received.body.error == pb.InvalidTopicName
