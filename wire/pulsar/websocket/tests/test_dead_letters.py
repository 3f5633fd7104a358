"""What was delivered too often goes to another topic, and is acknowledged when it is stored."""

import zlib
from typing import Any

import pytest
import trio
import trio.testing

from magnetar.wire.pulsar import commands_pb2 as pb
from magnetar.wire.pulsar.frames import split_tail
from magnetar.wire.pulsar.session.conftest import Player, Stage, published, stage
from magnetar.wire.pulsar.tests import peer
from magnetar.wire.pulsar.websocket import dead_letters
from magnetar.wire.pulsar.websocket.tests.talker import CONSUMER, READER, Talker, opened
from magnetar.wire.pulsar.websocket.tests.test_consuming import ack, backlog, first, payloads
from magnetar.wire.pulsar.wire import WireOptions

__all__ = ["stage"]

TARGET = (
    f"{CONSUMER}?subscriptionType=Shared&subscriptionInitialPosition=Earliest"
    "&negativeAckRedeliveryDelay=0&maxRedeliverCount=1"
)


async def test_it_goes_there(stage: Stage, autojump_clock: trio.testing.MockClock) -> None:
    await published(stage, b"bad", b"good")
    talker, heard = await first(stage, f"{TARGET}&receiverQueueSize=2")
    assert payloads(heard) == [b"bad", b"good"]
    await talker.say(ack(heard[1]))
    heard = await talker.say(ack(heard[0], "negativeAcknowledge"))
    assert (payloads(heard), heard[0]["redeliveryCount"]) == ([b"bad"], 1)
    assert await talker.say(ack(heard[0], "negativeAcknowledge")) == []
    assert backlog(stage) == 0
    dead = READER.replace("/t", "/t-s-DLQ") + "?messageId=earliest"
    _, heard = await first(stage, dead)
    assert payloads(heard) == [b"bad"]
    properties = heard[0]["properties"]
    assert properties["REAL_TOPIC"] == "persistent://public/default/t"
    assert properties["REAL_SUBSCRIPTION"] == "s"
    await published(stage, b"more")
    assert payloads(await talker.hear()) == [b"more"]


async def test_another_name(stage: Stage) -> None:
    await published(stage, b"bad")
    talker, heard = await first(stage, f"{TARGET}&deadLetterTopic=grave")
    for _ in range(2):
        heard = await talker.say(ack(heard[0], "negativeAcknowledge"))
    assert backlog(stage) == 0
    assert "persistent://public/default/grave" in stage.broker.topics
    assert await opened(stage, CONSUMER.replace("/s", "/other"))


async def sent(stage: Stage, payload: bytes, **about: Any) -> None:
    client = await stage.player()
    await client.says_one(peer.producer(1, 1, "t"))
    (receipt,) = await client.says(peer.send(1, 0, payload, about=peer.metadata(0, **about)))
    assert receipt.kind == "SEND_RECEIPT"


async def buried(talker: Talker, document: Any) -> None:
    """Have a message delivered too often."""
    (again,) = await talker.say(ack(document, "negativeAcknowledge"))
    assert await talker.say(ack(again, "negativeAcknowledge")) == []


async def graves(stage: Stage) -> Player:
    """A consumer of the dead letters."""
    client = await stage.player()
    await client.says(peer.subscribe(1, 3, "grave", "x", initial_position=1))
    client.feed(peer.flow(3, 100))
    return client


async def test_what_is_compressed_stays_so(stage: Stage) -> None:
    payload = b"a" * 200_000
    await sent(stage, zlib.compress(payload), compression=pb.ZLIB, uncompressed_size=len(payload))
    target = f"{TARGET}&deadLetterTopic=grave"
    talker = await Talker(stage, wire=WireOptions(message_bytes_max=100_000)).open(target)
    (document,) = await talker.hear() or talker.early
    await buried(talker, document)
    assert backlog(stage) == 0
    (letter,) = await (await graves(stage)).receive()
    assert zlib.decompress(split_tail(letter.tail).payload) == payload


async def test_what_is_too_long_is_not_acknowledged(stage: Stage) -> None:
    await sent(stage, b"a" * 1_000)
    target = f"{TARGET}&deadLetterTopic=grave"
    talker = await Talker(stage, wire=WireOptions(message_bytes_max=1_050)).open(target)
    (document,) = await talker.hear() or talker.early
    await buried(talker, document)
    assert (talker.closed, backlog(stage)) == (1011, 1)


async def test_what_is_encrypted_can_be_read_by_its_ends(stage: Stage) -> None:
    keys = [pb.EncryptionKeys(key="mine", value=b"secret")]
    said = {"encryption_param": b"iv", "compression": pb.LZ4, "uncompressed_size": 7}
    await sent(stage, b"sealed", encryption_keys=keys, num_messages_in_batch=3, **said)
    talker, heard = await first(stage, f"{TARGET}&deadLetterTopic=grave")
    await buried(talker, heard[0])
    assert backlog(stage) == 0
    (letter,) = await (await graves(stage)).receive()
    parts = split_tail(letter.tail)
    about = pb.MessageMetadata.FromString(parts.metadata)
    assert (parts.payload, list(about.encryption_keys)) == (b"sealed", keys)
    assert {name: getattr(about, name) for name in said} == said
    assert about.num_messages_in_batch == 3
    assert {"REAL_TOPIC", "ORIGIN_MESSAGE_ID"} < {pair.key for pair in about.properties}


async def test_how_much_is_under_way_has_a_limit(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dead_letters, "BYTES_MAX", 1)
    await published(stage, b"a", b"b", b"c")
    talker, heard = await first(stage, f"{TARGET}&deadLetterTopic=grave")
    again = await talker.say(*[ack(one, "negativeAcknowledge") for one in heard])
    assert await talker.say(*[ack(one, "negativeAcknowledge") for one in again]) == []
    assert await talker.hear() == []
    assert await talker.hear() == []
    assert backlog(stage) == 0
    letters = await (await graves(stage)).receive()
    assert sorted(bytes(split_tail(one.tail).payload) for one in letters) == [b"a", b"b", b"c"]
