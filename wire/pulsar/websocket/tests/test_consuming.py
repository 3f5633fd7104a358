"""Consumers and readers: as many messages as are permitted, each once, until it is acknowledged."""

import zlib
from typing import Any

import pytest
import trio
import trio.testing

from magnetar.core.kernel.names import TopicName
from magnetar.wire.pulsar import commands_pb2 as pb
from magnetar.wire.pulsar.session.conftest import Stage, published, stage
from magnetar.wire.pulsar.tests import peer
from magnetar.wire.pulsar.websocket import consuming
from magnetar.wire.pulsar.websocket.consuming import _mask_of, _words_of
from magnetar.wire.pulsar.websocket.contents import base64, base64_decoded, position_of
from magnetar.wire.pulsar.websocket.tests.talker import CONSUMER, PRODUCER, READER, Talker, opened
from magnetar.wire.pulsar.wire import WireOptions

__all__ = ["stage"]

EARLY = f"{CONSUMER}?subscriptionInitialPosition=Earliest"


def payloads(documents: list[Any]) -> list[bytes]:
    return [base64_decoded(one["payload"]) for one in documents]


def ack(document: Any, type: str | None = None) -> dict[str, Any]:
    said = {"messageId": document["messageId"]}
    return said if type is None else {"type": type, **said}


def backlog(stage: Stage, topic: str = "t") -> int:
    found = stage.broker.topics[TopicName.parse(topic).full]
    return found.subscriptions["s"].cursor.backlog


async def batch_of(stage: Stage, *values: bytes, topic: str = "t") -> None:
    client = await stage.player()
    await client.says_one(peer.producer(1, 1, topic))
    about = peer.metadata(0, num_messages_in_batch=len(values))
    said = peer.send(1, 0, peer.batch(values), about=about, num_messages=len(values))
    await client.says(said)


async def first(stage: Stage, target: str) -> tuple[Talker, list[Any]]:
    """A WebSocket, and what comes at once."""
    talker = await opened(stage, target)
    return talker, [*talker.early, *await talker.hear()]


async def test_as_many_as_the_queue_has_room_for(stage: Stage) -> None:
    await published(stage, b"a", b"b", b"c", b"d")
    talker, heard = await first(stage, f"{EARLY}&receiverQueueSize=2")
    assert payloads(heard) == [b"a", b"b"]
    assert await talker.hear() == []
    (third,) = await talker.say(ack(heard[0]))
    assert payloads([third]) == [b"c"]
    (fourth,) = await talker.say(ack(heard[1], "negativeAcknowledge"))
    assert payloads([fourth]) == [b"d"]
    await talker.say(ack(third), ack(fourth))
    assert backlog(stage) == 1


async def test_paths_with_a_cluster(stage: Stage) -> None:
    """Of the first version, which old clients have."""
    parts = "persistent/public/standalone/default/t"
    consumer = await opened(stage, f"/ws/consumer/{parts}/s")
    producer = await opened(stage, f"/ws/producer/{parts}")
    reader = await opened(stage, f"/ws/reader/{parts}?messageId=earliest")
    (receipt,) = await producer.say({"payload": base64(b"a")})
    heard = [*await consumer.hear(), *await reader.hear()]
    assert payloads(heard) == [b"a"] * 2
    assert {one["messageId"] for one in heard} == {receipt["messageId"]}
    await consumer.say(ack(heard[0]))
    assert backlog(stage) == 0


async def test_names_and_a_priority(stage: Stage) -> None:
    shared = f"{CONSUMER}?subscriptionType=Shared"
    await opened(stage, f"{shared}&consumerName=me&priorityLevel=7")
    await opened(stage, shared)
    await opened(stage, f"{READER}?readerName=look")
    subscriptions = stage.broker.topics["persistent://public/default/t"].subscriptions
    assert set(subscriptions) == {"s", "look"}
    mine, other = subscriptions["s"].consumers
    assert (mine.name, mine.priority) == ("me", 7)
    assert (len(other.name), other.priority) == (5, 0), "one is made up"
    assert [each.name for each in subscriptions["look"].consumers] == ["look"]


async def test_what_is_pulled(stage: Stage) -> None:
    await published(stage, b"a", b"b", b"c", b"d")
    talker, heard = await first(stage, f"{EARLY}&pullMode=true")
    assert heard == []
    heard = await talker.say({"type": "permit", "permitMessages": 2})
    assert payloads(heard) == [b"a", b"b"]
    assert await talker.say(ack(heard[0]), ack(heard[1])) == []
    for nothing in (0, -1):
        assert await talker.say({"type": "permit", "permitMessages": nothing}) == []
    heard = await talker.say({"type": "permit", "permitMessages": 5})
    assert payloads(heard) == [b"c", b"d"]


async def test_a_batch_is_pulled_one_by_one(stage: Stage) -> None:
    talker = await opened(stage, f"{EARLY}&pullMode=true")
    await batch_of(stage, b"a", b"b", b"c")
    heard = []
    for _ in range(3):
        (one,) = await talker.say({"type": "permit", "permitMessages": 1})
        heard.append(one)
        assert await talker.hear() == []
    assert payloads(heard) == [b"a", b"b", b"c"]


async def test_a_batch_is_acknowledged_by_its_messages(stage: Stage) -> None:
    talker = await opened(stage, EARLY)
    await batch_of(stage, b"a", b"b", b"c")
    heard = await talker.hear()
    assert payloads(heard) == [b"a", b"b", b"c"]
    await talker.say(ack(heard[0]), ack(heard[2]))
    assert backlog(stage) == 1
    talker.session.closed("test")
    again, heard = await first(stage, EARLY)
    assert payloads(heard) == [b"b"]
    await again.say(ack(heard[0]))
    assert backlog(stage) == 0


async def test_what_waits_to_be_pulled_is_counted(stage: Stage) -> None:
    talker = await opened(stage, f"{EARLY}&pullMode=true")
    await batch_of(stage, b"a", b"b", b"c")
    await talker.say({"type": "permit", "permitMessages": 1})
    two = talker.held_bytes
    await talker.say({"type": "permit", "permitMessages": 1})
    assert 0 < 2 * talker.held_bytes == two
    talker.session.closed("test")
    assert talker.held_bytes == 0


async def test_what_is_pushed_does_not_wait(stage: Stage) -> None:
    talker = await opened(stage, EARLY)
    await batch_of(stage, b"a", b"b", b"c")
    assert len(await talker.hear()) == 3
    assert talker.held_bytes == 0


async def test_who_fetches_the_most_and_pulls_nothing_is_closed(stage: Stage) -> None:
    await stage.broker.catalog.create_partitioned(TopicName.parse("t"), 3)
    modest = await opened(
        stage, f"{CONSUMER.replace('/t/s', '/u/s')}?pullMode=true", held_bytes_max=4_000
    )
    await batch_of(stage, bytes(10), bytes(10), topic="u")
    await modest.say({"type": "permit", "permitMessages": 1})
    shared = f"{EARLY}&pullMode=true&subscriptionType=Shared"
    greedy = await opened(stage, shared, beside=modest)
    for number in range(2):
        await published(stage, bytes(1_500), topic=f"t-partition-{number}")
        await greedy.hear()
    assert 3_000 < greedy.held_bytes < 4_000
    await published(stage, bytes(1_500), topic="t-partition-2")
    await greedy.hear()
    assert greedy.closed == 1013
    assert modest.held_bytes < 2_000
    greedy.session.closed("test")
    _, heard = await first(stage, shared.replace("pullMode=true", "receiverQueueSize=3"))
    assert payloads(heard) == [bytes(1_500)] * 3
    (second,) = await modest.say({"type": "permit", "permitMessages": 1})
    assert payloads([second]) == [bytes(10)]


async def test_one_entry_that_is_too_much_itself(stage: Stage) -> None:
    await stage.broker.catalog.create_partitioned(TopicName.parse("t"), 2)
    await published(stage, bytes(1_500), topic="t-partition-0")
    talker = await opened(stage, f"{EARLY}&pullMode=true", held_bytes_max=1_000)
    await talker.hear()
    assert (talker.closed, talker.held_bytes) == (1013, 0)


@pytest.mark.parametrize(("size", "closed"), [(20_000, None), (20_001, 1011)])
async def test_what_expands_too_much_is_not_acknowledged(
    stage: Stage, size: int, closed: int | None
) -> None:
    client = await stage.player()
    await client.says_one(peer.producer(1, 1, "t"))
    about = peer.metadata(0, compression=pb.ZLIB, uncompressed_size=size)
    await client.says(peer.send(1, 0, zlib.compress(bytes(size)), about=about))
    talker = await Talker(stage, wire=WireOptions(message_bytes_max=10_000)).open(EARLY)
    heard = [*talker.early, *await talker.hear()]
    assert payloads(heard) == [bytes(size)] * (closed is None)
    assert (talker.closed, backlog(stage)) == (closed, 1)


@pytest.mark.parametrize("target", [EARLY, f"{READER}?messageId=earliest"])
async def test_what_cannot_be_read_is_passed_over(stage: Stage, target: str) -> None:
    client = await stage.player()
    await client.says_one(peer.producer(1, 1, "t"))
    about = peer.metadata(0, compression=pb.ZLIB, uncompressed_size=9)
    await client.says(peer.send(1, 0, b"not zlib", about=about), peer.send(1, 1, b"a"))
    talker, heard = await first(
        stage, f"{target}{'&' if '?' in target else '?'}receiverQueueSize=1"
    )
    assert payloads(heard) == [b"a"]
    assert talker.closed is None


async def test_nothing_is_held_for_readers(stage: Stage) -> None:
    talker = await opened(stage, READER)
    await batch_of(stage, b"a", b"b")
    assert payloads(await talker.hear()) == [b"a", b"b"]
    assert not talker.wire._dialogue._held


async def test_partitions_are_shared_out(stage: Stage) -> None:
    await stage.broker.catalog.create_partitioned(TopicName.parse("t"), 2)
    talker = await opened(stage, EARLY)
    for index in (0, 1):
        await published(stage, b"%d" % index, topic=f"t-partition-{index}")
    heard = await talker.hear()
    assert sorted(payloads(heard)) == [b"0", b"1"]
    await talker.say(*map(ack, heard))
    assert [backlog(stage, f"t-partition-{index}") for index in (0, 1)] == [0, 0]


async def test_partitions_that_are_added(
    stage: Stage, autojump_clock: trio.testing.MockClock
) -> None:
    await stage.broker.catalog.create_partitioned(TopicName.parse("t"), 1)
    talkers = [
        await opened(stage, CONSUMER),
        await opened(stage, READER),
        await opened(stage, f"{PRODUCER}?messageRoutingMode=RoundRobinPartition"),
    ]
    await stage.broker.catalog.grow_partitioned(TopicName.parse("t"), 2)
    await published(stage, b"added", topic="t-partition-1")
    stage.stores.clock.forward(61.0)
    await trio.sleep(61)
    heard = [[*await each.hear(), *await each.hear()] for each in talkers]
    assert [payloads(each) for each in heard] == [[b"added"], [b"added"], []]
    receipts = await talkers[2].say({"payload": ""}, {"payload": ""})
    assert [one["result"] for one in receipts] == ["ok", "ok"]
    assert {position_of(one["messageId"]).partition for one in receipts} == {0, 1}


async def test_partitions_are_added_and_what_was_read_does_not_come_again(
    stage: Stage, autojump_clock: trio.testing.MockClock
) -> None:
    """A subscription that is not durable begins anew with each unload."""
    await stage.broker.catalog.create_partitioned(TopicName.parse("t"), 1)
    await published(stage, b"before", topic="t-partition-0")
    talker = await opened(stage, f"{CONSUMER}?subscriptionMode=NonDurable")
    await stage.broker.catalog.grow_partitioned(TopicName.parse("t"), 2)
    await published(stage, b"added", topic="t-partition-1")
    stage.stores.clock.forward(61.0)
    await trio.sleep(61)
    assert payloads([*await talker.hear(), *await talker.hear()]) == [b"added"]
    for index in (0, 1):
        await stage.broker.unload(TopicName.parse(f"t-partition-{index}"))
    assert await talker.hear() == []
    await published(stage, b"after", topic="t-partition-0")
    assert payloads(await talker.hear()) == [b"after"]


async def test_partitions_are_pulled_exactly(stage: Stage) -> None:
    await stage.broker.catalog.create_partitioned(TopicName.parse("t"), 2)
    talker = await opened(stage, f"{EARLY}&pullMode=true")
    for index in (0, 1):
        await published(stage, b"x", b"y", topic=f"t-partition-{index}")
    assert await talker.hear() == []
    assert len(await talker.say({"type": "permit", "permitMessages": 3})) == 3
    assert len(await talker.say({"type": "permit", "permitMessages": 3})) == 1


async def test_what_is_not_acknowledged_comes_again(
    stage: Stage, autojump_clock: trio.testing.MockClock
) -> None:
    await published(stage, b"a")
    talker, heard = await first(
        stage, f"{EARLY}&subscriptionType=Shared&negativeAckRedeliveryDelay=5000"
    )
    assert await talker.say(ack(heard[0], "negativeAcknowledge")) == []
    stage.stores.clock.forward(6.0)
    await trio.sleep(6)
    (again,) = await talker.hear()
    assert (again["messageId"], again["redeliveryCount"]) == (heard[0]["messageId"], 1)


async def test_a_timeout(stage: Stage, autojump_clock: trio.testing.MockClock) -> None:
    await published(stage, b"a", b"b")
    talker, heard = await first(
        stage, f"{EARLY}&subscriptionType=Shared&ackTimeoutMillis=2000&receiverQueueSize=2"
    )
    await talker.say(ack(heard[0]))
    stage.stores.clock.forward(3.0)
    await trio.sleep(4)
    assert payloads(await talker.hear()) == [b"b"]


async def test_what_is_remembered_has_a_limit(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consuming, "HELD_MAX", 1)
    talker = await opened(stage, f"{EARLY}&subscriptionType=Shared")
    for _ in range(2):
        await batch_of(stage, b"a", b"b")
    heard = await talker.hear()
    assert len(talker.wire._dialogue._held) == 1
    again = await talker.say(*[ack(one, "negativeAcknowledge") for one in heard])
    assert len(again) >= 2, "the first ones come again at once"
    assert len(talker.wire._dialogue._due) == 1
    await talker.say(*map(ack, [*heard, *again]))
    assert backlog(stage) == 0


async def test_a_pulled_topic_has_so_many_partitions(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consuming, "PULLED_PARTITIONS_MAX", 1)
    await stage.broker.catalog.create_partitioned(TopicName.parse("t"), 2)
    talker = await Talker(stage).open(f"{CONSUMER}?pullMode=true")
    assert (talker.status, talker.reason) == (500, "at most 1 partitions")
    await opened(stage, CONSUMER)


async def test_the_end_of_a_topic(stage: Stage) -> None:
    await published(stage, b"a")
    talker, heard = await first(stage, EARLY)
    assert payloads(heard) == [b"a"]
    assert await talker.say({"type": "isEndOfTopic"}) == [{"endOfTopic": False}]
    topic: Any = stage.broker.topics["persistent://public/default/t"]
    await topic.terminate()
    await talker.say(ack(heard[0]))
    assert await talker.say({"type": "isEndOfTopic"}) == [{"endOfTopic": True}]


async def test_a_reader_reaches_the_end_without_acknowledgements(stage: Stage) -> None:
    await published(stage, b"a")
    await batch_of(stage, b"b", b"c")
    talker, heard = await first(stage, f"{READER}?messageId=earliest")
    assert payloads(heard) == [b"a", b"b", b"c"]
    assert await talker.say({"type": "isEndOfTopic"}) == [{"endOfTopic": False}]
    topic: Any = stage.broker.topics["persistent://public/default/t"]
    await topic.terminate()
    await talker.hear()
    assert await talker.say({"type": "isEndOfTopic"}) == [{"endOfTopic": True}]
    last = heard[2]["messageId"].replace("+", "%2B")
    late, heard = await first(stage, f"{READER}?messageId={last}")
    assert heard == []
    assert await late.say({"type": "isEndOfTopic"}) == [{"endOfTopic": True}]


async def test_unsubscribe(stage: Stage) -> None:
    talker = await opened(stage, CONSUMER)
    await talker.say({"type": "unsubscribe"})
    assert "s" not in stage.broker.topics["persistent://public/default/t"].subscriptions


@pytest.mark.parametrize(
    "said",
    [
        "{",
        {"messageId": "*"},
        {},
        {"type": "permit"},
        {"type": "permit", "permitMessages": 1 << 40},
        {"messageId": "CAAQABgF"},
        {"messageId": "CAAQACj/////Bw=="},
    ],
)
async def test_what_is_not_understood(stage: Stage, said: Any) -> None:
    await stage.broker.catalog.create_partitioned(TopicName.parse("t"), 2)
    talker = await opened(stage, CONSUMER)
    await talker.say(said)
    assert talker.closed == 1007
    assert talker.line.ending is not None


async def test_an_unload_is_survived(stage: Stage) -> None:
    await published(stage, b"a", b"b")
    talker, heard = await first(stage, f"{EARLY}&receiverQueueSize=2")
    await talker.say(ack(heard[0]))
    await stage.broker.unload(TopicName.parse("t"))
    assert payloads(await talker.hear()) == [b"b"]
    await published(stage, b"c")
    assert payloads(await talker.hear()) == [b"c"]


async def test_what_waits_during_an_unload_comes_once(stage: Stage) -> None:
    await stage.broker.catalog.create_partitioned(TopicName.parse("t"), 2)
    talker = await opened(stage, f"{EARLY}&pullMode=true")
    await published(stage, b"a", topic="t-partition-1")
    assert await talker.hear() == []
    dialogue = talker.wire._dialogue
    assert (len(dialogue._undecoded), len(dialogue._waiting)) == (1, 0), "it may expand"
    await stage.broker.unload(TopicName.parse("t-partition-1"))
    assert await talker.hear() == []
    heard = await talker.say({"type": "permit", "permitMessages": 5})
    assert payloads(heard) == [b"a"]


async def test_a_negative_acknowledgement_before_an_unload(
    stage: Stage, autojump_clock: trio.testing.MockClock
) -> None:
    await published(stage, b"a")
    target = f"{EARLY}&subscriptionType=Shared&negativeAckRedeliveryDelay=1000"
    talker, heard = await first(stage, target)
    await talker.say(ack(heard[0], "negativeAcknowledge"))
    await stage.broker.unload(TopicName.parse("t"))
    assert payloads(await talker.hear()) == [b"a"]
    stage.stores.clock.forward(2.0)
    await trio.sleep(3)
    assert await talker.hear() == []


async def test_a_reader_goes_on_where_it_is_asked_to(stage: Stage) -> None:
    await published(stage, b"a", b"b", b"c")
    _, heard = await first(stage, f"{READER}?messageId=earliest&receiverQueueSize=2")
    assert payloads(heard) == [b"a", b"b"]
    place = heard[0]["messageId"].replace("+", "%2B")
    talker, heard = await first(stage, f"{READER}?messageId={place}")
    assert payloads(heard) == [b"b", b"c"]
    await talker.say(*map(ack, heard))
    await stage.broker.unload(TopicName.parse("t"))
    await published(stage, b"d")
    assert payloads([*await talker.hear(), *await talker.hear()]) == [b"d"]
    talker, heard = await first(stage, READER)
    assert heard == []
    await published(stage, b"e")
    assert payloads(await talker.hear()) == [b"e"]


async def test_a_producer_and_a_consumer_cross(stage: Stage) -> None:
    talker = await opened(stage, CONSUMER)
    producer = await opened(stage, PRODUCER)
    await producer.say({"payload": "aGk=", "key": "k"})
    (heard,) = await talker.hear()
    assert (heard["payload"], heard["key"], heard["properties"]) == ("aGk=", "k", {})


def test_masks() -> None:
    for mask in (0, 1, 1 << 63, (1 << 130) - 1, 5 << 70):
        assert _mask_of(_words_of(mask, 131)) == mask


@pytest.mark.parametrize("name", ["priorityLevel", "receiverQueueSize", "ackTimeoutMillis"])
async def test_a_number_that_no_field_has_room_for_is_refused(stage: Stage, name: str) -> None:
    """The exception of protobuf would end the whole server."""
    for number, status in ((1 << 31, 400), ((1 << 31) - 1, 101)):
        target = f"{CONSUMER}?subscriptionType=Shared&{name}={number}"
        assert (await Talker(stage).open(target)).status == status
