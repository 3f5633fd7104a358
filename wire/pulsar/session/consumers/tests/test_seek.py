"""Where a subscription stands, as playbooks."""

from magnetar.wire.pulsar import commands_pb2 as pb
from magnetar.wire.pulsar.session.conftest import Stage, consumer, ids, kinds, published
from magnetar.wire.pulsar.tests import peer

SHARED, FAILOVER = pb.CommandSubscribe.SHARED, pb.CommandSubscribe.FAILOVER
NOBODY = (1 << 64) - 1


async def test_seek_is_close_and_then_success(stage: Stage) -> None:
    await published(stage, b"a", b"b", b"c")
    client = await consumer(stage)
    assert len(ids(await client.receive())) == 3
    await client.says(peer.ack(3, (0, 2), cumulative=True))
    received = await client.says(peer.seek(5, 3, message_id=peer.message_id(0, 1)))
    assert kinds(received) == ["CLOSE_CONSUMER", "SUCCESS"]
    assert (received[0].body.consumer_id, received[0].body.request_id) == (3, NOBODY)
    assert received[1].body.request_id == 5
    assert kinds(await client.says(peer.subscribe(6, 3, "t", "s"))) == ["SUCCESS"]
    assert ids(await client.says(peer.flow(3, 10))) == [(0, 1), (0, 2)]
    received = await client.says(peer.seek(7, 3, message_publish_time=1))
    assert kinds(received) == ["CLOSE_CONSUMER", "SUCCESS"]
    await client.says(peer.subscribe(8, 3, "t", "s"))
    assert len(ids(await client.says(peer.flow(3, 10)))) == 3
    received = await client.says_one(peer.seek(9, 3))
    assert received.body.error == pb.MetadataError


async def test_a_reader_keeps_its_place_over_its_own_seek(stage: Stage) -> None:
    await published(stage, b"a", b"b", b"c")
    start = peer.message_id(-1, -1)
    client = await consumer(stage, durable=False, start_message_id=start)
    assert len(ids(await client.receive())) == 3
    await client.says(peer.seek(5, 3, message_id=peer.message_id(0, 2)))
    await client.says_one(peer.subscribe(6, 3, "t", "s", durable=False, start_message_id=start))
    assert ids(await client.says(peer.flow(3, 10))) == [(0, 2)]
    await client.says(peer.close_consumer(7, 3))
    (topic,) = stage.broker.topics.values()
    assert topic.subscriptions == {}


async def test_the_last_message_id(stage: Stage) -> None:
    client = await consumer(stage)
    received = await client.says_one(peer.get_last_message_id(5, 3))
    assert received.body.last_message_id.ledger_id == peer.EARLIEST
    await client.says_one(peer.producer(6, 1, "t"))
    received = await client.says(peer.send_batch(1, 0, [b"x", b"y"]))
    received = await client.says_one(peer.get_last_message_id(7, 3))
    last = received.body.last_message_id
    assert (last.ledger_id, last.entry_id, last.batch_index) == (0, 0, 1)
    assert received.body.HasField("consumer_mark_delete_position")


async def test_the_last_message_may_have_been_trimmed(stage: Stage) -> None:
    client = await consumer(stage)
    await published(stage, b"a")
    await client.says(peer.ack(3, (0, 0)))
    (topic,) = stage.broker.topics.values()
    await topic.ledger.roll()  # type: ignore[union-attr]  # it is persistent
    await topic.ledger.trim([0])  # type: ignore[union-attr]  # the same
    received = await client.says_one(peer.get_last_message_id(5, 3))
    assert received.body.last_message_id.ledger_id == peer.EARLIEST, "there is nothing to be read"
