"""What every topic does for sessions and tools, whether it stores its messages or not."""

from __future__ import annotations

import pytest

from magnetar.core.kernel.errors import NotReady
from magnetar.core.kernel.rates import Inflow
from magnetar.core.testing import note_form
from magnetar.core.testing.bench import Bench, Outcome, settled
from magnetar.core.testing.client import ClientConsumer, ClientProducer
from magnetar.core.topic.subscription.consumer import ConsumerRequest
from magnetar.core.topic.subscription.subscription import SubscriptionType
from magnetar.core.topic.topic import Topic


@pytest.fixture(params=["persistent", "non-persistent"])
async def topic(desk: Bench, request: pytest.FixtureRequest) -> Topic:
    return await desk.topic() if request.param == "persistent" else await desk.unstored()


async def published(topic: Topic, *payloads: bytes) -> object:
    outcome = Outcome()
    topic.publish(list(payloads), None, outcome)
    await settled()
    return outcome.result


async def test_what_is_published_comes_to_who_is_there(desk: Bench, topic: Topic) -> None:
    client = ClientConsumer()
    subscription = await topic.subscription("s")
    assert topic.subscriptions == {"s": subscription}
    request = ConsumerRequest("c")
    client.consumer = topic.attach(subscription, 1, request, SubscriptionType.SHARED, client)
    client.flow(10)
    assert await published(topic, b"a", b"b") == (0, 0)
    await desk.dispatch()
    assert client.got == [(0, 0), (0, 1)]
    assert (topic.messages_in, topic.bytes_in) == (2, topic.inflow().bytes)
    assert subscription.outflow().messages == 2
    assert subscription.statistics() is not None
    assert topic.in_use
    topic.detach(client.consumer)
    assert not subscription.consumers
    await topic.unsubscribe("s", force=True) if topic.subscriptions else None
    assert not topic.in_use
    assert topic.outflow_before.messages == 2


async def test_a_subscription_that_has_ended_takes_nobody(topic: Topic) -> None:
    subscription = await topic.subscription("s")
    await topic.unsubscribe("s", force=True)
    with pytest.raises(NotReady):
        topic.attach(
            subscription, 1, ConsumerRequest("c"), SubscriptionType.SHARED, ClientConsumer()
        )


async def test_producers_come_and_go(topic: Topic) -> None:
    producer = ClientProducer("p").producer
    topic.check_producer()
    assert await topic.attach_producer(producer)
    assert not topic.idle(caught_up_is_enough=True)
    assert topic.last_sequence_of("p") == -1
    outcome = Outcome()
    topic.publish_once("p", 7, [b"x"], None, outcome)
    await settled()
    assert outcome.result == (0, 0)
    topic.detach_producer(producer)
    assert topic.idle(caught_up_is_enough=True)


async def test_a_transaction_that_never_was_ends_without_a_trace(topic: Topic) -> None:
    await topic.end_transaction(note_form, 7, 0, committed=True)
    assert topic.inflow() == Inflow()


async def test_who_is_put_away_lets_nobody_in(topic: Topic) -> None:
    subscription = await topic.subscription("s")
    await topic.close()
    assert topic.fenced
    assert isinstance(await published(topic, b"x"), NotReady)
    with pytest.raises(NotReady):
        topic.check_producer()
    with pytest.raises(NotReady):
        await topic.subscription("s")
    with pytest.raises(NotReady):
        topic.attach(
            subscription, 1, ConsumerRequest("c"), SubscriptionType.SHARED, ClientConsumer()
        )


async def test_only_one_of_both_is_stored(desk: Bench) -> None:
    stored, unstored = await desk.topic(), await desk.unstored()
    await published(stored, b"x")
    await published(unstored, b"x")
    assert stored.stored is stored
    assert unstored.stored is None
    assert stored.storage_size > 0
    assert unstored.storage_size == 0
    assert (stored.sequences, unstored.sequences) == (None, None)
    assert (await desk.topic("d", deduplication=True)).sequences is not None
