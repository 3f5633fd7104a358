"""Where a subscription stands, as playbooks."""

from magnetar.core.entry.pulsar.metadata import message_count
from magnetar.core.kernel.names import TopicName
from magnetar.core.testing.bench import Outcome, settled
from magnetar.core.testing.entries import batch, entry
from magnetar.core.topic.persistent_topic import PersistentTopic
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


# -- reading compacted ----------------------------------------------------------------------------


async def compacted(stage: Stage, *sent: bytes) -> PersistentTopic:
    """A topic with these entries, which is compacted, and then deleted from the log."""
    topic = await stage.broker.topic(TopicName.parse("t"))
    assert isinstance(topic, PersistentTopic)
    for one in sent:
        topic.publish([one], [message_count(one)[0]], Outcome())
        await settled()
    stage.broker.housekeeping.compactor.request(topic)
    await settled()
    await topic.ledger.roll()
    await topic.ledger.trim([one.ledger_id for one in topic.ledger.chain.segments])
    return topic


async def test_compacted_messages_are_sought_though_the_log_has_lost_them(stage: Stage) -> None:
    sent = [entry(b"x", key=b"%d" % (at % 4), published_ms=10 + at) for at in range(8)]
    await compacted(stage, *sent)
    start = peer.message_id(0, 5)
    options = {"durable": False, "read_compacted": True, "start_message_id": start}
    client = await consumer(stage, **options)
    assert ids(await client.receive()) == [(0, 5), (0, 6), (0, 7)]
    places = {
        "by id": peer.seek(5, 3, message_id=peer.message_id(0, 6)),
        "by time": peer.seek(6, 3, message_publish_time=16),
        "of one that is compacted out": peer.seek(7, 3, message_id=peer.message_id(0, 2)),
    }
    expected = {"by id": 2, "by time": 2, "of one that is compacted out": 4}
    for place, seek in places.items():
        assert kinds(await client.says(seek)) == ["CLOSE_CONSUMER", "SUCCESS"]
        await client.says_one(peer.subscribe(8, 3, "t", "s", **options))
        assert len(ids(await client.says(peer.flow(3, 10)))) == expected[place], place


async def test_the_last_compacted_message(stage: Stage) -> None:
    """Where the log ends with what is compacted out, the last id is that of what a reader gets."""
    pairs = [(b"a", b"1"), (b"b", b"2"), (b"c", b"3")]
    topic = await compacted(stage, batch(pairs), entry(b"", key=b"c"))
    client = await consumer(stage, read_compacted=True)
    await client.receive()
    received = await client.says(peer.get_last_message_id(5, 3))
    last = received[-1].body.last_message_id
    assert (last.ledger_id, last.entry_id, last.batch_index) == (0, 0, 1)
    topic.publish([entry(b"x", key=b"d")], [1], Outcome())
    await client.receive()
    received = await client.says(peer.get_last_message_id(6, 3))
    last = received[-1].body.last_message_id
    assert (last.ledger_id > 0, last.entry_id, last.batch_index) == (True, 0, -1)


async def test_batches_say_which_messages_are_left(stage: Stage) -> None:
    pairs = [(b"a", b"1"), (b"b", b"2"), (b"a", b"3"), (b"c", b"4")]
    await compacted(stage, batch(pairs), entry(b"5", key=b"b"))
    client = await consumer(stage, read_compacted=True)
    received = [one for one in await client.receive() if one.kind == "MESSAGE"]
    assert [list(one.body.ack_set) for one in received] == [[0b1100], []]
