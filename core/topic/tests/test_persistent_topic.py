"""A topic from load to delete: producers and epochs, subscriptions, readers, closing."""

import pytest
import trio

from magnetar.core.kernel.errors import (
    NotAllowed,
    NotReady,
    ProducerBusy,
    QuotaHeld,
    StorageFailed,
    StorageFull,
    SubscriptionNotFound,
    Terminated,
)
from magnetar.core.ledger.log.chain import START
from magnetar.core.ledger.log.managed_ledger import LogState
from magnetar.core.testing.bench import Bench, Outcome, settled
from magnetar.core.testing.client import ClientConsumer, ClientProducer, attached
from magnetar.core.topic.backlog import slowest
from magnetar.core.topic.persistent_topic import READER_KEPT_MS, PersistentTopic
from magnetar.core.topic.subscription.consumer import ConsumerRequest
from magnetar.core.topic.subscription.subscription import SubscriptionType

EXCLUSIVE = SubscriptionType.EXCLUSIVE


def read(topic: PersistentTopic, name: str = "r") -> ClientConsumer:
    """A reader from the start."""
    client = ClientConsumer()
    subscription = topic.reader(name, START)
    request = ConsumerRequest(name="")
    client.consumer = topic.attach(subscription, 1, request, EXCLUSIVE, client)
    client.flow(100)
    return client


async def test_what_is_loaded_again_is_what_was_there(desk: Bench) -> None:
    topic = await desk.topic()
    a = await attached(topic, EXCLUSIVE, subscription="s/1")
    places = await desk.published(topic, b"x", b"y")
    a.ack(places[0])
    await topic.close()
    assert a.events == ["closed"]
    outcome = Outcome()
    topic.publish([b"z"], None, outcome)
    assert isinstance(outcome.result, NotReady)
    again = await desk.topic()
    assert again.subscriptions["s/1"].cursor.mark_delete == places[0]
    b = await attached(again, EXCLUSIVE, subscription="s/1")
    await desk.dispatch()
    assert b.take() == [places[1]]


async def test_a_load_that_fails_half_way_may_be_tried_again(desk: Bench) -> None:
    topic = await desk.topic()
    await attached(topic, EXCLUSIVE)
    await desk.published(topic, b"x")
    get = desk.metadata.get

    async def fail(path: str) -> object:
        if path.endswith("/s"):
            raise StorageFailed("no")
        return await get(path)

    desk.metadata.get = fail  # type: ignore[method-assign, assignment]
    with pytest.raises(StorageFailed):
        await desk.topic()
    desk.metadata.get = get  # type: ignore[method-assign]
    again = await desk.topic()
    assert again.subscriptions["s"].cursor.backlog == 1


async def test_producers_are_limited_and_quotas_send_them_away(desk: Bench) -> None:
    topic = await desk.topic(max_producers_per_topic=1)
    a = ClientProducer("a")
    await topic.attach_producer(a.producer)
    with pytest.raises(ProducerBusy):
        await topic.attach_producer(ClientProducer("b").producer)
    topic.hit_quota(QuotaHeld("full"))
    assert a.events[-1] == "closed"
    with pytest.raises(QuotaHeld):
        topic.check_producer()
    topic.hit_quota(None)
    topic.check_producer()


async def test_a_full_disk_refuses_producers_and_nobody_else(desk: Bench) -> None:
    topic = await desk.topic()
    early, late = ClientProducer("early"), ClientProducer("late")
    await topic.attach_producer(early.producer)
    places = await desk.published(topic, b"x")
    desk.ledgers.full = True
    with pytest.raises(StorageFull):
        await topic.attach_producer(late.producer)
    assert topic.producers.all() == [early.producer], "who is there hears of it when it writes"
    assert early.events == [("granted", None)]
    outcome = Outcome()
    topic.publish([b"y"], None, outcome)
    await settled()
    assert isinstance(outcome.result, StorageFull)
    reader = read(topic)
    await desk.dispatch()
    assert reader.take() == places
    desk.ledgers.full = False
    assert await topic.attach_producer(late.producer)


async def test_nobody_writes_a_terminated_topic(desk: Bench) -> None:
    topic = await desk.topic()
    places = await desk.published(topic, b"x")
    assert await topic.terminate() == places[0]
    with pytest.raises(Terminated):
        topic.check_producer()
    assert (await desk.topic()).ledger.terminated


async def test_subscriptions_are_created_where_they_may_be(desk: Bench) -> None:
    topic = await desk.topic(max_subscriptions_per_topic=1)
    with pytest.raises(SubscriptionNotFound):
        await topic.subscription("s", create=False)
    await desk.published(topic, b"x")
    found = await topic.subscription("s", properties={"a": "b"})
    assert found.cursor.backlog == 0, "a new one begins at the end"
    assert await topic.subscription("s", create=False) is found
    with pytest.raises(NotAllowed):
        await topic.subscription("t")
    with pytest.raises(NotAllowed):
        topic.reader("s", START)


async def test_unsubscribe(desk: Bench) -> None:
    topic = await desk.topic()
    a = await attached(topic, EXCLUSIVE)
    with pytest.raises(NotAllowed):
        await topic.unsubscribe("s", force=False)
    await topic.unsubscribe("s", force=True)
    assert a.events == ["closed"]
    assert not topic.ledger._tailed
    assert (await desk.topic()).subscriptions == {}
    with pytest.raises(SubscriptionNotFound):
        await topic.unsubscribe("s", force=True)


async def test_an_unsubscribe_that_fails_leaves_the_subscription(desk: Bench) -> None:
    topic = await desk.topic()
    await topic.subscription("s")
    delete = desk.metadata.delete

    async def fail(path: str, expected: int | None = None) -> None:
        raise StorageFailed("no")

    desk.metadata.delete = fail  # type: ignore[method-assign]
    with pytest.raises(StorageFailed):
        await topic.unsubscribe("s", force=True)
    desk.metadata.delete = delete  # type: ignore[method-assign]
    await attached(topic, EXCLUSIVE)


async def test_a_reader_leaves_nothing_behind(desk: Bench) -> None:
    topic = await desk.topic()
    places = await desk.published(topic, b"x", b"y")
    client = read(topic)
    await desk.dispatch()
    assert client.take() == places
    topic.detach(client.consumer)
    assert topic.subscriptions == {}
    assert await desk.metadata.children(topic.ledger.path) == []


async def test_a_reader_is_kept_over_its_own_seek_and_not_for_ever(desk: Bench) -> None:
    topic = await desk.topic()
    places = await desk.published(topic, b"x", b"y")
    client = read(topic)
    subscription = topic.subscriptions["r"]
    topic.keep(subscription)
    await subscription.seek(places[0])
    assert client.events == ["closed"]
    back = read(topic)
    await desk.dispatch()
    assert back.take() == [places[1]], "its cursor was kept, its start is not asked again"
    topic.forget_readers()
    assert "r" in topic.subscriptions
    topic.keep(subscription)
    await subscription.seek(places[0])
    topic.forget_readers()
    assert "r" in topic.subscriptions
    desk.clock.forward(READER_KEPT_MS / 1000)
    topic.forget_readers()
    assert topic.subscriptions == {}


async def test_a_reader_that_came_back_and_leaves_is_forgotten_at_once(desk: Bench) -> None:
    topic = await desk.topic()
    read(topic)
    subscription = topic.subscriptions["r"]
    topic.keep(subscription)
    await subscription.seek(START)
    topic.detach(read(topic).consumer)
    assert topic.subscriptions == {}


async def test_a_reader_holds_no_ledger_and_goes_on_behind_what_was_trimmed(desk: Bench) -> None:
    topic = await desk.topic()
    await desk.published(topic, *[b"x"] * 10)
    client = read(topic)
    places = await desk.published(topic, *[b"y"] * 3)
    assert slowest(topic) is None
    await topic.ledger.trim([0])
    await desk.dispatch()
    assert client.take() == places


async def test_delete_forgets_everything(desk: Bench) -> None:
    topic = await desk.topic()
    a = await attached(topic, EXCLUSIVE)
    p = ClientProducer("p")
    await topic.attach_producer(p.producer)
    await desk.published(topic, b"x")
    await desk.flush_cursors()
    await topic.delete()
    assert (a.events, p.events[-1]) == (["closed"], "closed")
    assert desk.ledgers.ledgers == {}
    assert await desk.metadata.children("/managed-ledgers") == []


async def test_a_topic_lost_to_another_owner_is_fenced(desk: Bench) -> None:
    topic = await desk.topic()
    await desk.published(await desk.topic(), b"x")
    with pytest.raises(Exception, match="another owner"):
        await topic.ledger.set_property("a", "b")
    assert topic.fenced
    assert topic.ledger.state is LogState.CLOSED
    with pytest.raises(NotReady):
        topic.check_producer()


async def test_it_knows_when_it_came_into_being(desk: Bench) -> None:
    topic = await desk.topic()
    born_ms = topic.created_ms
    assert born_ms == desk.clock.wall_ms()
    await desk.published(topic, b"x")
    desk.clock.forward(100)
    await topic.close()
    again = await desk.topic()
    assert again.created_ms == born_ms
    assert again.rates.per_second.entries == 0
    await again.ledger.set_property("magnetar.created-ms", None)  # as older versions left it
    await again.close()
    assert (await desk.topic()).created_ms == desk.clock.wall_ms()


async def test_batches_are_entries(desk: Bench) -> None:
    topic = await desk.topic()
    outcome = Outcome()
    topic.publish([b"xy", b"z"], [10, 5], outcome)
    await settled()
    assert topic.inflow() == (15, 3, 0, 2)
    writes = topic.ledger.writes
    assert (writes.entries, writes.bytes) == (2, 3)


@pytest.mark.parametrize("ending", ["close", "delete"])
async def test_a_subscription_that_is_just_being_created_is_not_overlooked(
    desk: Bench, ending: str
) -> None:
    """Its cursor would be stored after the topic is gone, or unknown to the next owner."""
    topic = await desk.topic()
    put, may_put = desk.metadata.put, trio.Event()

    async def wait(path: str, value: bytes, expected: int) -> int:
        await may_put.wait()
        return await put(path, value, expected)

    desk.metadata.put = wait  # type: ignore[method-assign, assignment]
    async with trio.open_nursery() as nursery:
        nursery.start_soon(topic.subscription, "s")
        await settled()
        nursery.start_soon(getattr(topic, ending))
        await settled()
        assert topic.fenced
        assert topic.ledger.state is not LogState.CLOSED
        may_put.set()
    desk.metadata.put = put  # type: ignore[method-assign]
    left = await desk.metadata.children(topic.ledger.path)
    assert left == ([] if ending == "delete" else ["s"])
    again = await desk.topic()
    assert list(again.subscriptions) == left


async def test_a_subscription_of_a_topic_that_is_unloaded_is_not_deleted(desk: Bench) -> None:
    """It may be the next owner's by now."""
    topic = await desk.topic()
    await topic.subscription("s")
    await topic.close()
    with pytest.raises(NotReady):
        await topic.unsubscribe("s", force=True)
    assert list((await desk.topic()).subscriptions) == ["s"]


async def test_an_internal_topic_is_read_and_not_changed(desk: Bench) -> None:
    topic = await desk.topic("pulsar/system/__state")
    await desk.published(topic, b"a")
    with pytest.raises(NotAllowed, match="__state is internal"):
        topic.check_producer()
    with pytest.raises(NotAllowed, match="internal"):
        await topic.subscription("s")
    with pytest.raises(NotAllowed, match="internal"):
        await topic.terminate()
    with pytest.raises(NotAllowed, match="internal"):
        await topic.begin_transactions()
    assert topic.reader("r", START).cursor.backlog == 1
