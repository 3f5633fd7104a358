"""A producer: JSON in, receipts out, once each."""

from typing import Any

import pytest
import trio
import trio.testing

from magnetar.core.dispatch.murmur import murmur3
from magnetar.core.kernel.names import TopicName
from magnetar.wire.pulsar import commands_pb2 as pb
from magnetar.wire.pulsar.frames import split_tail
from magnetar.wire.pulsar.session.conftest import Stage, consumer, slow_stage, stage
from magnetar.wire.pulsar.tests import peer
from magnetar.wire.pulsar.websocket import exchange, producing
from magnetar.wire.pulsar.websocket.contents import base64, base64_decoded, position_of
from magnetar.wire.pulsar.websocket.producing import _java_hash
from magnetar.wire.pulsar.websocket.tests.talker import CONSUMER, PRODUCER, Talker, opened

__all__ = ["slow_stage", "stage"]


def metadata_of(received: peer.ReceivedFrame) -> pb.MessageMetadata:
    return pb.MessageMetadata.FromString(split_tail(received.tail).metadata)


def message(payload: bytes, **fields: Any) -> dict[str, Any]:
    return {"payload": base64(payload), **fields}


async def test_receipts_come_in_order_with_their_context(stage: Stage) -> None:
    talker = await opened(stage, f"{PRODUCER}?producerName=me")
    receipts = await talker.say(*[message(b"x", context=str(n)) for n in range(3)])
    assert [(one["result"], one["context"]) for one in receipts] == [
        ("ok", "0"),
        ("ok", "1"),
        ("ok", "2"),
    ]
    positions = [position_of(one["messageId"]) for one in receipts]
    assert [position.entry_id for position in positions] == [0, 1, 2]
    assert {position.partition for position in positions} == {-1}


async def test_what_a_client_of_the_binary_protocol_gets(stage: Stage) -> None:
    reader = await consumer(stage)
    talker = await opened(stage, f"{PRODUCER}?producerName=me&compressionType=ZSTD")
    await talker.say(
        message(b"hello", key="k", properties={"a": "b"}, replicationClusters=["r1", "r2"])
    )
    (received,) = await reader.receive()
    about = metadata_of(received)
    assert (about.producer_name, about.partition_key) == ("me", "k")
    assert [(pair.key, pair.value) for pair in about.properties] == [("a", "b")]
    assert list(about.replicate_to) == ["r1", "r2"]
    assert about.uncompressed_size == 5


async def test_what_is_not_to_be_replicated(stage: Stage) -> None:
    """It names a cluster that nobody has, whatever others it names, as Java's client does."""
    reader = await consumer(stage)
    talker = await opened(stage, PRODUCER)
    nowhere = {"disableReplication": True}
    await talker.say(
        message(b"1", **nowhere),
        message(b"2", **nowhere, replicationClusters=["r1"]),
        message(b"3", disableReplication=False),
    )
    received = await reader.receive()
    assert [list(metadata_of(each).replicate_to) for each in received] == [
        ["__local__"],
        ["__local__"],
        [],
    ]


@pytest.mark.parametrize(
    ("said", "result"),
    [
        ("{", "send-error:3"),
        ('{"payload": []}', "send-error:3"),
        ('{"payload": 7}', "send-error:7"),
        ('{"payload": "aGk=", "key": "\\ud800"}', "send-error:3"),
        ({"context": "c"}, "send-error:7"),
        ({"payload": "*"}, "send-error:7"),
        ({"payload": "aGk=", "eventTime": "now"}, "send-error:7"),
    ],
)
async def test_what_is_refused_alone(stage: Stage, said: Any, result: str) -> None:
    talker = await opened(stage, PRODUCER)
    answers = await talker.say(said, message(b"good"))
    assert [one["result"] for one in answers] == [result, "ok"]


async def test_a_message_that_is_too_large(stage: Stage) -> None:
    talker = await opened(stage, PRODUCER)
    talker.wire._dialogue._message_bytes_max = 100
    (answer,) = await talker.say(message(b"x" * 200))
    assert answer["result"] == "send-error:8"


async def test_no_receipt_before_it_is_stored(slow_stage: Stage) -> None:
    talker = Talker(slow_stage)
    await talker.open(f"{PRODUCER}?maxPendingMessages=2")
    slow_stage.stores.ledgers.sync()
    await talker.hear()
    answers = await talker.say(message(b"a"), message(b"b"), message(b"c"))
    assert [one["errorMsg"] for one in answers] == ["Producer send queue is full"]
    slow_stage.stores.ledgers.sync()
    assert [one["result"] for one in await talker.hear()] == ["ok", "ok"]


async def test_contexts_of_what_is_not_stored_have_a_limit(
    slow_stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(producing, "CONTEXT_LETTERS_MAX", 10)
    talker = await Talker(slow_stage).open(PRODUCER)
    slow_stage.stores.ledgers.sync()
    await talker.hear()
    for _ in range(2):
        said = [message(b"a", context="123456"), message(b"b", context="12345")]
        (refused,) = await talker.say(*said)
        assert (refused["context"], refused["result"]) == ("12345", "send-error:8")
        slow_stage.stores.ledgers.sync()
        assert [one["context"] for one in await talker.hear()] == ["123456"]


async def test_an_unload_is_survived(stage: Stage) -> None:
    talker = await opened(stage, PRODUCER)
    await talker.say(message(b"a"))
    await stage.broker.unload(TopicName.parse("t"))
    await talker.hear()
    (answer,) = await talker.say(message(b"b"))
    assert answer["result"] == "ok"


@pytest.mark.parametrize(("seconds", "closed"), [(0, 1011), (exchange.STEADY_MS // 1000, None)])
async def test_unloads_in_a_row(stage: Stage, seconds: int, closed: int | None) -> None:
    talkers = [await opened(stage, PRODUCER), await opened(stage, CONSUMER)]
    for _ in range(exchange.ATTEMPTS_MAX + 1):
        stage.stores.clock.forward(seconds)
        await stage.broker.unload(TopicName.parse("t"))
        for talker in talkers:
            await talker.hear()
    assert [talker.closed for talker in talkers] == [closed] * 2


async def test_a_topic_that_is_gone_ends_it(stage: Stage) -> None:
    talker = await opened(stage, PRODUCER)
    topic: Any = stage.broker.topics["persistent://public/default/t"]
    await topic.terminate()
    await talker.hear()
    assert talker.closed == 1011
    assert "terminated" in talker.reason


async def test_partitions(stage: Stage) -> None:
    await stage.broker.catalog.create_partitioned(TopicName.parse("t"), 3)
    talker = await opened(stage, f"{PRODUCER}?messageRoutingMode=RoundRobinPartition")
    receipts = await talker.say(*[message(b"x") for _ in range(3)])
    assert {position_of(one["messageId"]).partition for one in receipts} == {0, 1, 2}
    talker = await opened(stage, PRODUCER)
    receipts = await talker.say(*[message(b"x") for _ in range(3)])
    assert len({position_of(one["messageId"]).partition for one in receipts}) == 1
    receipts = await talker.say(*[message(b"x", key="k") for _ in range(3)])
    assert [position_of(one["messageId"]).partition for one in receipts] == [107 % 3] * 3


async def test_a_key_by_the_other_hash(stage: Stage) -> None:
    """That of C++'s client, in which `k` has another partition than in Java's."""
    await stage.broker.catalog.create_partitioned(TopicName.parse("t"), 3)
    talker = await opened(stage, f"{PRODUCER}?hashingScheme=Murmur3_32Hash")
    keys = ("k", "hello world")
    receipts = [(await talker.say(message(b"x", key=key)))[0] for key in keys]
    places = [position_of(one["messageId"]).partition for one in receipts]
    assert places == [(murmur3(key.encode()) & 0x7FFFFFFF) % 3 for key in keys]
    assert places != [_java_hash(key) % 3 for key in keys]


async def test_a_key_keeps_its_partition_while_that_is_reloaded(stage: Stage) -> None:
    await stage.broker.catalog.create_partitioned(TopicName.parse("t"), 3)
    talker = await opened(stage, PRODUCER)
    last = talker.wire._dialogue._partitions[107 % 3]
    last.ready = False
    (receipt,) = await talker.say(message(b"x", key="k"))
    assert receipt["errorMsg"] == "the topic is being loaded"
    last.ready = True
    (receipt,) = await talker.say(message(b"x", key="k"))
    assert position_of(receipt["messageId"]).partition == 107 % 3


async def test_where_it_goes_on_after_a_name_was_used(stage: Stage) -> None:
    reader = await consumer(stage)
    talker = await opened(stage, f"{PRODUCER}?producerName=me&initialSequenceId=41")
    await talker.say(message(b"a"))
    (received,) = await reader.receive()
    assert metadata_of(received).sequence_id == 42


async def test_messages_for_later(stage: Stage, autojump_clock: trio.testing.MockClock) -> None:
    """At a time, and after one."""
    clock = stage.stores.clock
    heard = await opened(stage, f"{CONSUMER}?subscriptionType=Shared")
    talker = await opened(stage, PRODUCER)
    at = clock.wall_ms() + 30_000
    receipts = await talker.say(
        message(b"after", deliverAfterMs=60_000), message(b"at", deliverAt=at), message(b"now")
    )
    assert [one["result"] for one in receipts] == ["ok"] * 3
    taken = [base64_decoded(one["payload"]) for one in await heard.hear()]
    for _ in range(2):
        clock.forward(31.0)
        await trio.sleep(31)
        taken += [base64_decoded(one["payload"]) for one in await heard.hear()]
    assert taken == [b"now", b"at", b"after"]


def test_javas_hash() -> None:
    assert _java_hash("") == 0
    assert _java_hash("k") == 107
    assert _java_hash("hello world") == 1794106052
    assert _java_hash("\U0001f600") == 1772899
    assert peer.EARLIEST
