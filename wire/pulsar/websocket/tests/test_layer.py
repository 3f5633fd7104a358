"""From the request to the last frame: what opens, what is refused and how, what ends."""

import tracemalloc
from typing import Any

import pytest
import trio
import trio.testing
from wsproto.connection import Connection, ConnectionType
from wsproto.events import BytesMessage, CloseConnection, Ping, TextMessage

from magnetar.core.cluster.ownership import OwnershipTable, Peer
from magnetar.core.kernel.errors import PeerLeft
from magnetar.core.kernel.names import TopicName
from magnetar.core.testing.bench import settled
from magnetar.core.testing.broker import Stores, running
from magnetar.wire.pulsar.session.conftest import Stage, guarded_stage, published, stage
from magnetar.wire.pulsar.websocket import layer
from magnetar.wire.pulsar.websocket.contents import base64_decoded
from magnetar.wire.pulsar.websocket.tests.talker import (
    CONSUMER,
    PRODUCER,
    READER,
    Talker,
    opened,
)

REQUEST = (
    f"GET {PRODUCER} HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
).encode()
"""With the key of RFC 6455 1.3."""

__all__ = ["guarded_stage", "stage"]


@pytest.mark.parametrize("target", [PRODUCER, CONSUMER, READER])
async def test_it_opens(stage: Stage, target: str) -> None:
    talker = await opened(stage, target)
    topic = stage.broker.topics["persistent://public/default/t"]
    assert topic.in_use
    talker.session.closed("test")
    assert not topic.producers
    assert not any(each.consumers for each in topic.subscriptions.values())


@pytest.mark.parametrize(
    ("target", "status"),
    [
        ("/ws/v2/producer/persistent/nobody/nowhere/t", 404),
        ("/ws/v2/other/persistent/public/default/t", 404),
        ("/ws/v2/consumer/persistent/public/default/t", 400),
        (f"{PRODUCER}?compressionType=RAR", 400),
        (f"{PRODUCER}?hashingScheme=x", 400),
        (f"{PRODUCER}?messageRoutingMode=x", 400),
        (f"{PRODUCER}?encryptionKeys=mine", 400),
        (f"{PRODUCER}?sendTimeoutMillis=soon", 400),
        (f"{CONSUMER}?subscriptionType=x", 400),
        (f"{CONSUMER}?subscriptionInitialPosition=x", 400),
        (f"{CONSUMER}?receiverQueueSize=-1", 400),
        (f"{CONSUMER}?maxRedeliverCount=0", 400),
        (f"{PRODUCER}?producerName=%20", 400),
        (f"{PRODUCER}?initialSequenceId=-2", 400),
        (f"{PRODUCER}?batchingEnabled=true&batchingMaxMessages=x", 400),
        (f"{PRODUCER}?batchingEnabled=true&batchingMaxPublishDelay=0", 400),
        (f"{CONSUMER}?receiverQueueSize=%205", 400),
        (f"{CONSUMER}?receiverQueueSize=1_0", 400),
        (f"{CONSUMER}?ackTimeoutMillis=999", 400),
        (f"{CONSUMER}?consumerName=", 400),
        (f"{CONSUMER}?deadLetterTopic=t", 400),
        (f"{CONSUMER}?deadLetterTopic=a/b&maxRedeliverCount=1", 400),
        (f"{READER}?messageId=x", 400),
    ],
)
async def test_what_is_refused(stage: Stage, target: str, status: int) -> None:
    talker = await Talker(stage).open(target)
    assert (talker.status, bool(talker.reason)) == (status, True)
    assert talker.error is not None or talker.line.ending is not None
    assert not any(topic.in_use for topic in stage.broker.topics.values())


@pytest.mark.parametrize(
    "target",
    [
        f"{PRODUCER}?initialSequenceId=-1",
        f"{PRODUCER}?maxPendingMessages=x",
        f"{PRODUCER}?batchingMaxMessages=x&batchingMaxPublishDelay=0",
        f"{PRODUCER}?batchingEnabled=true&batchingMaxMessages=-1",
        f"{CONSUMER}?ackTimeoutMillis=0&receiverQueueSize=%2B5",
        f"{CONSUMER}?ackTimeoutMillis=1000",
        f"{READER}?readerName=",
    ],
)
async def test_what_is_not_refused(stage: Stage, target: str) -> None:
    """As by Apache's service (4.2.4, as seen)."""
    assert (await Talker(stage).open(target)).status == 101


async def test_a_name_that_is_taken(stage: Stage) -> None:
    for target in (f"{PRODUCER}?producerName=me", CONSUMER):
        there = await opened(stage, target)
        talker = await Talker(stage).open(target)
        await there.hear()  # it is asked whether it is there
        await talker.hear()
        assert talker.status == 409


async def test_a_peer_that_is_gone_makes_room(
    stage: Stage, autojump_clock: trio.testing.MockClock
) -> None:
    there = await opened(stage, CONSUMER)
    there.answers_pings = False
    talker = await Talker(stage).open(CONSUMER)
    await there.hear()
    await trio.sleep(6)
    await talker.hear()
    assert (talker.status, there.pings) == (101, 1)


async def test_a_topic_that_is_terminated(stage: Stage) -> None:
    topic: Any = await stage.broker.topic(TopicName.parse("t"))
    await topic.terminate()
    talker = await Talker(stage).open(PRODUCER)
    assert talker.status == 503


async def test_a_foreign_page(stage: Stage) -> None:
    talker = await Talker(stage).open(PRODUCER, {"origin": "http://evil"})
    assert talker.status == 403
    talker = await Talker(stage).open(PRODUCER, {"origin": "http://good"})
    assert talker.status == 101


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"GET /ws/v2/x HTTP/1.1\r\nHost: x\r\n\r\n", 426),
        (b"GET /ws/ HTTP/1.1\r\n\r\n", 400),
        (b"GET /ws/\xff HTTP/9\r\n\r\n", 400),
        (b"GET /ws/" + b"x" * 20_000, 431),
    ],
)
async def test_what_is_no_request(stage: Stage, head: bytes, status: int) -> None:
    talker = Talker(stage)
    talker.feed(head)
    assert talker.error is not None
    answer = b"".join(talker.wire.take_outgoing())
    assert answer.startswith(b"HTTP/1.1 %d " % status)
    assert b'"reason"' in answer


async def test_a_request_in_pieces(stage: Stage) -> None:
    whole = Talker(stage)
    for at in range(len(REQUEST)):
        whole.feed(REQUEST[at : at + 1])
    answer = b""
    for _ in range(4):
        await settled()
        answer += b"".join(whole.wire.take_outgoing())
    assert answer.startswith(b"HTTP/1.1 101 ")
    assert b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" in answer  # RFC 6455 1.3


async def test_frames_that_come_too_early_are_heard_later(stage: Stage) -> None:
    talker = Talker(stage)
    peer = Connection(ConnectionType.CLIENT)
    early = peer.send(TextMessage('{"payload": ""}'))
    talker.feed(REQUEST + early)
    answer = b""
    for _ in range(4):
        await settled()
        answer += b"".join(map(bytes, talker.wire.take_outgoing()))
    assert b'"result":"ok"' in answer


async def test_too_much_too_early(stage: Stage) -> None:
    talker = Talker(stage)
    talker.feed(REQUEST)
    talker.feed(b"x" * (layer.EARLY_BYTES_MAX + 1))
    assert talker.error is not None


async def test_pings_and_the_end(stage: Stage) -> None:
    talker = await opened(stage, PRODUCER)
    talker.send(Ping(b"x"))
    assert b"x" in b"".join(talker.wire.take_outgoing())
    talker.session.quiet()
    await talker.hear()
    assert talker.pings == 1
    assert talker.line.ending is None
    talker.send(CloseConnection(1000))
    assert isinstance(talker.error, PeerLeft)
    await talker.hear()
    assert talker.closed == 1000


async def test_bytes_are_no_json(stage: Stage) -> None:
    talker = await opened(stage, PRODUCER)
    talker.send(BytesMessage(b"{}"))
    await talker.hear()
    assert talker.closed == 1003
    assert talker.line.ending is not None


async def test_a_message_that_is_too_long(stage: Stage) -> None:
    talker = await opened(stage, PRODUCER)
    limit = talker.wire._document_size_max
    for _ in range(3):
        talker.send(TextMessage("x" * (limit // 2), message_finished=False))
    await talker.hear()
    assert talker.closed == 1009


async def test_a_message_in_fragments(stage: Stage) -> None:
    talker = await opened(stage, PRODUCER)
    for piece, last in (('{"pay', False), ('load": "aGk', False), ('="}', True)):
        talker.send(TextMessage(piece, message_finished=last))
    (receipt,) = await talker.hear()
    assert receipt["result"] == "ok"
    assert talker.wire.bytes_held == 0


async def test_small_fragments_take_what_is_counted(stage: Stage) -> None:
    talker = await opened(stage, PRODUCER)
    talker.send(TextMessage('{"pay', message_finished=False))
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    for _ in range(2_000):
        talker.send(TextMessage("abcd", message_finished=False))
    taken = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert talker.wire.bytes_held == 8_005
    assert taken < 3 * talker.wire.bytes_held


async def test_half_a_message_goes_with_its_connection(stage: Stage) -> None:
    """No garbage collector is waited for: the memory that it takes is not counted any more."""
    talker = await opened(stage, PRODUCER)
    talker.send(TextMessage("x" * 4_000_000, message_finished=False))
    assert talker.wire.bytes_held >= 4_000_000
    tracemalloc.start()
    try:
        talker.send(TextMessage("x" * 2_000_000, message_finished=False))
        held, _ = tracemalloc.get_traced_memory()
        talker.session.closed("the peer is gone")
        left, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert talker.wire.bytes_held == 0
    assert held - left >= 5_000_000


async def test_how_much_is_translated_at_a_time(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(layer, "TRANSLATED_BYTES_MAX", 1)
    values = [b"%d" % number for number in range(20)]
    talker = await opened(stage, f"{CONSUMER}?subscriptionInitialPosition=Earliest")
    await published(stage, *values)
    await settled()
    stage.broker.dispatch()
    heard = talker._take()
    assert (len(heard), talker.line.kept_bytes > 0) == (1, True)
    talker.line.outbox.append(b"what the peer has not taken")
    kept = talker.line.kept_bytes
    assert (talker._take(), talker.line.kept_bytes) == ([], kept)
    talker.line.outbox.clear()
    while talker.wire._unheard:
        heard += talker._take()
    assert [base64_decoded(one["payload"]) for one in heard] == values


async def test_a_flood_of_nothing(stage: Stage) -> None:
    talker = await opened(stage, PRODUCER)
    for _ in range(layer.IDLE_FRAMES_MAX + 1):
        if talker.error is None:
            talker.send(Ping())
    assert talker.error is not None


async def test_who_it_is(guarded_stage: Stage) -> None:
    await guarded_stage.permit(somebody="produce", reader="consume")
    for target, headers, status in (
        (PRODUCER, {}, 401),
        (PRODUCER, {"authorization": "Bearer somebody"}, 101),
        (f"{PRODUCER}?token=somebody", {}, 101),
        (PRODUCER, {"authorization": "Bearer reader"}, 403),
        (CONSUMER, {"authorization": "Bearer somebody"}, 403),
        (CONSUMER, {"authorization": "Bearer reader"}, 101),
        (READER, {"authorization": "Bearer reader"}, 101),
        (PRODUCER, {"authorization": "Bearer root"}, 101),
    ):
        talker = await Talker(guarded_stage).open(target, headers)
        assert talker.status == status, (target, headers, talker.reason)


@pytest.mark.parametrize(("code", "status"), [(1013, 503), (1011, 500)])
async def test_what_closes_it_before_it_opens(stage: Stage, code: int, status: int) -> None:
    talker = Talker(stage)
    talker.wire.feed(
        b"GET %s HTTP/1.1\r\nhost: a\r\nupgrade: websocket\r\nconnection: upgrade\r\n"
        b"sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\nsec-websocket-version: 13\r\n\r\n"
        % CONSUMER.encode()
    )
    talker.wire.close(code, "too much")
    (refusal,) = talker.wire.take_outgoing()
    assert refusal.startswith(b"HTTP/1.1 %d " % status)
    assert refusal.endswith(b'{"reason":"too much"}')
    assert talker.line.ending == "WebSocket: too much"


async def test_a_topic_of_another_broker() -> None:
    peer = Peer(1, {"pulsar": "b:1", "http": "b:2"})
    table = OwnershipTable(peer)
    table.topics["persistent://public/default/t"] = peer
    stores = Stores()
    async with running(stores, table) as broker:
        for target in (PRODUCER, CONSUMER, READER):
            talker = await Talker(Stage(stores, broker)).open(target)
            assert talker.status == 503
            assert "b:2" in talker.reason


async def test_a_right_that_is_taken(guarded_stage: Stage) -> None:
    await guarded_stage.permit(somebody="produce")
    talker = await Talker(guarded_stage).open(f"{PRODUCER}?token=somebody")
    await guarded_stage.permit()
    talker.session.session.rights_changed()
    await talker.hear()
    assert talker.closed == 1011
    assert not guarded_stage.broker.topics["persistent://public/default/t"].producers


async def test_what_is_due_when_the_client_has_ended(
    stage: Stage, autojump_clock: trio.testing.MockClock
) -> None:
    await published(stage, b"a")
    target = f"{CONSUMER}?subscriptionInitialPosition=Earliest&ackTimeoutMillis=1000"
    talker = await opened(stage, target)
    await talker.hear()
    talker.wire.inner.close()
    stage.stores.clock.forward(2.0)
    await trio.sleep(3)
    await talker.hear()
    assert (talker.closed, talker.line.ending is not None) == (1011, True)
