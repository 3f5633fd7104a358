"""Whoever attaches to a topic that is on its way out gets the next one, in the same request."""

from functools import partial

import pytest
import trio

from magnetar.core.broker.attachment import ATTACH_SECONDS, NameCounts, attach
from magnetar.core.kernel.errors import BrokerError, ConsumerBusy, NotReady, TopicNotFound
from magnetar.core.kernel.names import TopicName
from magnetar.core.policy.values import AutoTopicCreation
from magnetar.core.testing.bench import settled
from magnetar.core.testing.broker import Stores, running
from magnetar.core.topic.persistent_topic import PersistentTopic
from magnetar.core.topic.topic import Topic

A = TopicName.parse("a")


class Comer:
    """Subscribes to whatever topic it is given."""

    def __init__(self) -> None:
        self.tried: list[Topic] = []
        self.attached: Topic | None = None

    async def take_place(self, topic: Topic) -> None:
        self.tried.append(topic)
        assert isinstance(topic, PersistentTopic)
        await topic.subscription("s")
        self.attached = topic


async def test_a_topic_that_is_being_unloaded_is_waited_for() -> None:
    stores = Stores(sync_at_once=False)
    async with running(stores) as broker, trio.open_nursery() as nursery:
        old = await broker.topic(A)
        old.publish([b"x"], None, lambda _result: None)
        await settled()
        comer = Comer()
        nursery.start_soon(broker.unload, A)
        await settled()
        assert old.fenced
        nursery.start_soon(attach, broker, A, comer.take_place)
        await settled()
        assert comer.tried == []
        stores.ledgers.sync()
        await settled()
        assert comer.attached is broker.topics[A.full]
        assert comer.attached is not old
        assert (A.full in broker.attaching, broker._locks) == (False, {})


async def test_a_topic_that_is_fenced_after_it_was_found_is_tried_no_more() -> None:
    async with running() as broker:
        comer = Comer()

        async def take_place(topic: Topic) -> None:
            if not comer.tried:
                await broker.unload(A)
            await comer.take_place(topic)

        await attach(broker, A, take_place)
        assert len(comer.tried) == 2
        assert comer.attached is broker.topics[A.full]


@pytest.mark.parametrize("allowed", [True, False])
async def test_a_topic_deleted_meanwhile_is_created_anew_if_that_is_allowed(allowed: bool) -> None:
    stores = Stores()
    async with running(stores, auto_topic_creation=AutoTopicCreation(allowed)) as broker:
        old = await broker.topic(A, by_order=True)
        delete, may_go = stores.metadata.delete, trio.Event()

        async def wait(path: str, expected: int | None = None) -> None:
            await may_go.wait()
            await delete(path, expected)

        stores.metadata.delete = wait  # type: ignore[method-assign]
        comer, refusals = Comer(), list[BrokerError]()

        async def come() -> None:
            try:
                await attach(broker, A, comer.take_place)
            except BrokerError as error:
                refusals.append(error)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(partial(broker.delete, A, force=True))
            await settled()
            assert old.fenced
            nursery.start_soon(come)
            await settled()
            assert (comer.tried, refusals) == ([], [])
            may_go.set()
        assert old not in comer.tried
        assert (comer.attached is not None) is allowed
        assert [type(refusal) for refusal in refusals] == ([] if allowed else [TopicNotFound])
        assert await broker.exists(A) is allowed


async def test_nobody_waits_for_ever(autojump_clock: object) -> None:
    stores = Stores(sync_at_once=False)
    async with running(stores) as broker:
        old = await broker.topic(A)
        old.publish([b"x"], None, lambda _result: None)
        await settled()
        comer = Comer()
        broker.spawn(broker.unload, A)
        await settled()
        begun = trio.current_time()
        with pytest.raises(NotReady):
            await attach(broker, A, comer.take_place)
        assert trio.current_time() - begun == pytest.approx(ATTACH_SECONDS)
        assert comer.tried == []
        assert A.full not in broker.attaching


async def test_a_topic_that_is_fenced_again_and_again_is_given_up(autojump_clock: object) -> None:
    async with running() as broker:
        tries: list[Topic] = []

        async def take_place(topic: Topic) -> None:
            tries.append(topic)
            await trio.sleep(ATTACH_SECONDS / 3)
            await broker.unload(A)
            raise NotReady("the topic is being unloaded")

        with pytest.raises(NotReady):
            await attach(broker, A, take_place)
        assert len(tries) == 3


async def test_what_an_open_topic_refuses_is_refused() -> None:
    async with running() as broker:
        tries: list[Topic] = []

        async def take_place(topic: Topic) -> None:
            tries.append(topic)
            raise ConsumerBusy("no")

        with pytest.raises(ConsumerBusy):
            await attach(broker, A, take_place)
        assert len(tries) == 1


async def test_a_server_that_stops_lets_nobody_wait() -> None:
    async with running() as broker:

        async def take_place(topic: Topic) -> None:
            await broker.stop()
            await Comer().take_place(topic)

        with pytest.raises(NotReady, match="stopping"):
            await attach(broker, A, take_place)


def test_marks_are_there_as_long_as_anybody_holds_one() -> None:
    marks = NameCounts()
    with marks.one_more("a"):
        with marks.one_more("a"):
            assert "a" in marks
        assert "a" in marks
        assert "b" not in marks
    assert "a" not in marks
