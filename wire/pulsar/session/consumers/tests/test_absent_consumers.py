"""Questions about consumers whose topic goes: put to the consumer that comes in its place."""

import pytest
import trio
from trio.testing import MockClock

from magnetar.core.broker.attachment import ATTACH_SECONDS
from magnetar.core.kernel.names import TopicName
from magnetar.core.ledger.read.tail_cache import Slice
from magnetar.core.topic.persistent_topic import PersistentTopic
from magnetar.wire.pulsar import commands_pb2 as pb
from magnetar.wire.pulsar.session.conftest import Stage, consumer, kinds, published
from magnetar.wire.pulsar.session.consumers import absent_consumers
from magnetar.wire.pulsar.tests import peer

T = TopicName.parse("t")
QUESTIONS = {
    "GET_LAST_MESSAGE_ID_RESPONSE": [peer.get_last_message_id(5, 3)],
    "CONSUMER_STATS_RESPONSE": [peer.consumer_stats(5, 3)],
    "SUCCESS": [peer.seek(5, 3, message_id=peer.message_id(0, 1))],
}


@pytest.mark.parametrize("answer", QUESTIONS)
async def test_a_question_waits_for_who_was_sent_away(stage: Stage, answer: str) -> None:
    await published(stage, b"a", b"b")
    client = await consumer(stage)
    await client.receive()
    await stage.broker.unload(T)
    assert kinds(await client.says(*QUESTIONS[answer])) == ["CLOSE_CONSUMER"]
    received = await client.says(peer.subscribe(6, 3, "t", "s"))
    assert (received[0].kind, received[0].body.request_id) == ("SUCCESS", 6)
    assert (received[-1].kind, received[-1].body.request_id) == (answer, 5)
    assert len(client.session.consumers.absent) == (1 if answer == "SUCCESS" else 0), (
        "a seek sends away"
    )


async def test_a_question_in_the_middle_of_an_unload(slow_stage: Stage) -> None:
    """The consumer is gone already, the topic is not, and the next one cannot be loaded yet."""
    client = await consumer(slow_stage)
    writer = await slow_stage.player()
    await writer.says_one(peer.producer(1, 1, "t"))
    await writer.says(peer.send(1, 0, b"x"))
    slow_stage.broker.spawn(slow_stage.broker.unload, T)
    assert kinds(await client.receive()) == ["CLOSE_CONSUMER"]
    again = peer.subscribe(6, 3, "t", "s")
    assert await client.says(peer.get_last_message_id(5, 3), again) == []
    slow_stage.stores.ledgers.sync()
    success, last = await client.receive()
    assert success.kind == "SUCCESS"
    assert (last.body.last_message_id.ledger_id, last.body.last_message_id.entry_id) == (0, 0)


async def test_a_topic_that_goes_while_it_is_asked(stage: Stage) -> None:
    await published(stage, b"a")
    client = await consumer(stage, permits=0)
    topic = stage.broker.topics[T.full]
    assert isinstance(topic, PersistentTopic)
    read = topic.ledger.read

    async def read_late(*place: object) -> Slice:
        await stage.broker.unload(T)
        return await read((99, 0), 1, 1)

    topic.ledger.read = read_late  # type: ignore[method-assign, assignment]
    assert kinds(await client.says(peer.get_last_message_id(5, 3))) == ["CLOSE_CONSUMER"]
    received = await client.says(peer.subscribe(6, 3, "t", "s"))
    assert kinds(received) == ["SUCCESS", "GET_LAST_MESSAGE_ID_RESPONSE"]


async def test_nobody_waits_for_ever(stage: Stage, autojump_clock: MockClock) -> None:
    client = await consumer(stage)
    await stage.broker.unload(T)
    begun = trio.current_time()
    client.feed(peer.get_last_message_id(5, 3))
    await trio.sleep(ATTACH_SECONDS + 1)
    closed, refused = await client.receive()
    assert (closed.kind, refused.body.error) == ("CLOSE_CONSUMER", pb.ServiceNotReady)
    assert trio.current_time() - begun < ATTACH_SECONDS + 2


async def test_who_closes_its_consumer_waits_no_more(stage: Stage) -> None:
    client = await consumer(stage)
    await stage.broker.unload(T)
    await client.says(peer.get_last_message_id(5, 3))
    success, refused = await client.says(peer.close_consumer(6, 3))
    assert (success.kind, refused.body.error) == ("SUCCESS", pb.ConsumerNotFound)


async def test_what_never_was_is_not_waited_for(stage: Stage) -> None:
    client = await stage.player()
    received = await client.says(
        peer.get_last_message_id(5, 99),
        peer.seek(6, 99, message_publish_time=1),
        peer.unsubscribe(7, 99),
    )
    results = {each.body.request_id: (each.kind, each.body.error) for each in received}
    assert results == dict.fromkeys((5, 6, 7), ("ERROR", pb.ConsumerNotFound))


async def test_who_unsubscribes_does_not_come_back_first(stage: Stage) -> None:
    client = await consumer(stage)
    await stage.broker.unload(T)
    received = await client.says(peer.unsubscribe(5, 3))
    assert kinds(received) == ["CLOSE_CONSUMER", "SUCCESS"]
    topic = stage.broker.topics[T.full]
    assert topic.subscriptions == {}


async def test_a_connection_remembers_so_many(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(absent_consumers, "AWAY_MAX", 2)
    client = await stage.player()
    for number in range(3):
        await client.says(peer.subscribe(number, number, "t", f"s{number}"))
    await stage.broker.unload(T)
    assert len(client.session.consumers.absent) == 2
    received = await client.says(peer.get_last_message_id(5, 0))
    assert received[-1].body.error == pb.ConsumerNotFound
    client.session.closed("it went")
    assert len(client.session.consumers.absent) == 0
