"""Which topics are loaded, and what happens when many ask at once."""

import pytest
import trio
from trio.testing import MockClock

from magnetar.core.broker.sweep_work import DISPATCH_SECONDS_MAX
from magnetar.core.broker.topic_list import topics_of
from magnetar.core.kernel.errors import (
    NamespaceNotFound,
    NotAllowed,
    NotReady,
    StorageFailed,
    TopicNotFound,
)
from magnetar.core.kernel.names import NamespaceName, TopicName
from magnetar.core.ledger.log.managed_ledger import LogState
from magnetar.core.metadata.memory import MemoryMetadata
from magnetar.core.policy.policies import NamespacePolicies
from magnetar.core.policy.values import AutoTopicCreation
from magnetar.core.ports.metadata_store import Versioned
from magnetar.core.testing.bench import settled, stored
from magnetar.core.testing.broker import Stores, running
from magnetar.core.testing.client import attached
from magnetar.core.testing.metadata import overwrite
from magnetar.core.topic.non_persistent_topic import NonPersistentTopic
from magnetar.core.topic.persistent_topic import PersistentTopic
from magnetar.core.topic.subscription.subscription import PersistentSubscription, SubscriptionType

A = TopicName.parse("a")
VOLATILE = TopicName.parse("non-persistent://public/default/v")
DEFAULT = NamespaceName.parse("public/default")
SHARED = SubscriptionType.SHARED


async def test_one_load_however_many_ask() -> None:
    async with running() as broker:
        found: list[object] = []

        async def ask() -> None:
            found.append(await broker.topic(A))

        async with trio.open_nursery() as nursery:
            for _ in range(10):
                nursery.start_soon(ask)
        assert len(found) == 10
        assert len(set(map(id, found))) == 1
        assert broker._locks == {}


async def test_asking_in_vain_leaves_nothing_behind() -> None:
    """Once a lock per name anybody ever asked for."""
    async with running(auto_topic_creation=AutoTopicCreation(False)) as broker:
        for i in range(5):
            with pytest.raises(TopicNotFound):
                await broker.topic(TopicName.parse(f"t{i}"))
        with pytest.raises(NamespaceNotFound):
            await broker.topic(TopicName.parse("public/nowhere/t"))
        assert (broker._locks, broker.topics) == ({}, {})


async def test_a_load_that_fails_may_be_tried_again() -> None:
    stores = Stores()
    async with running(stores) as broker:
        put = stores.metadata.put

        async def fail(path: str, value: bytes, expected: int) -> int:
            raise StorageFailed("no")

        stores.metadata.put = fail  # type: ignore[method-assign]
        with pytest.raises(StorageFailed):
            await broker.topic(A)
        stores.metadata.put = put  # type: ignore[method-assign]
        assert not (await broker.topic(A)).fenced


async def test_partitions_are_what_was_promised() -> None:
    async with running() as broker:
        await broker.catalog.create_partitioned(A, 2)
        assert (await broker.topic(A.partition(1))).name == A.partition(1)
        with pytest.raises(NotAllowed, match="with max allowed 2 partitions"):
            await broker.topic(A.partition(2))
        for asked in ({"create": False}, {"any_name": True}):
            with pytest.raises(TopicNotFound):
                await broker.topic(A.partition(2), **asked)
        with pytest.raises(NotAllowed):
            await broker.topic(A)
        assert await broker.partitions_or_create(A, create=True) == 2
        assert await broker.partitions_or_create(A.partition(0), create=True) == 0
        assert await topics_of(broker, DEFAULT) == [A.partition(i).full for i in range(2)]


@pytest.mark.parametrize("domain", ["persistent", "non-persistent"])
async def test_a_partition_of_no_topic_is_created_where_any_name_is(domain: str) -> None:
    stores, name = Stores(), TopicName.parse(f"{domain}://public/default/x-partition-3")
    async with running(stores) as broker:
        with pytest.raises(NotAllowed, match="Partition metadata not found"):
            await broker.topic(name)
        with pytest.raises(TopicNotFound):
            await broker.topic(name, create=False)
        assert not await broker.exists(name)
        await broker.topic(name, any_name=True)
        await broker.unload(name)
        if name.persistent:
            assert (await broker.topic(name)).name == name, "it is there"
    async with running(stores, auto_topic_creation=AutoTopicCreation(False)) as broker:
        with pytest.raises(TopicNotFound):
            await broker.topic(name.base.partition(4))


async def test_topics_without_partitions_are_created_by_attaching_only() -> None:
    async with running() as broker:
        assert await broker.partitions_or_create(A, create=True) == 0
        assert not await broker.exists(A)
        await broker.topic(A)
        assert await broker.exists(A)


async def test_partitioned_topics_are_created_by_being_asked_for() -> None:
    creation = AutoTopicCreation(True, "partitioned", 3)
    async with running(auto_topic_creation=creation) as broker:
        with pytest.raises(TopicNotFound):
            await broker.partitions_or_create(A, create=False)
        assert await broker.partitions_or_create(A, create=True) == 3


async def test_whoever_asks_at_the_same_moment_gets_the_same_answer() -> None:
    """All consumers of a topic may start together, before anybody has created it."""
    stores, results = Stores(), list[int]()
    put, may_put = stores.metadata.put, trio.Event()

    async def slow(path: str, value: bytes, expected: int) -> int:
        await may_put.wait()
        return await put(path, value, expected)

    creation = AutoTopicCreation(True, "partitioned", 3)
    async with running(stores, auto_topic_creation=creation) as broker:

        async def ask() -> None:
            results.append(await broker.partitions_or_create(A, create=True))

        stores.metadata.put = slow  # type: ignore[method-assign]
        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(ask)
            await settled()
            may_put.set()
        assert results == [3, 3, 3]


async def test_nothing_is_created_where_that_is_switched_off() -> None:
    async with running(auto_topic_creation=AutoTopicCreation(False)) as broker:
        for name in (A, VOLATILE):
            with pytest.raises(TopicNotFound):
                await broker.topic(name)
        with pytest.raises(TopicNotFound):
            await broker.partitions_or_create(A, create=True)
        await broker.topic(A, by_order=True)
        assert await broker.partitions_or_create(A, create=False) == 0


async def test_no_more_topics_than_allowed() -> None:
    async with running(max_topics_per_namespace=1) as broker:
        await broker.topic(A)
        with pytest.raises(NotAllowed):
            await broker.topic(TopicName.parse("b"))
        await broker.topic(A)


async def test_unloaded_and_loaded_again() -> None:
    async with running() as broker:
        topic = await broker.topic(A)
        assert isinstance(topic, PersistentTopic)
        client = await attached(topic, SHARED)
        places = await stored(topic.ledger, b"x", b"y")
        client.ack(places[0])
        await broker.unload(A)
        await broker.unload(A)
        assert client.events == ["closed"]
        assert broker.topics == {}
        again = await broker.topic(A)
        assert isinstance(again, PersistentTopic)
        assert again is not topic
        assert again.subscriptions["s"].cursor.mark_delete == places[0]


async def test_whoever_asks_during_an_unload_waits_for_its_end() -> None:
    """Once both were there, and the unload then threw the fresh one out of the books."""
    stores = Stores(sync_at_once=False)
    async with running(stores) as broker:
        old = await broker.topic(A)
        assert isinstance(old, PersistentTopic)
        old.publish([b"x"], None, lambda _result: None)
        await settled()
        found: list[object] = []

        async def ask() -> None:
            found.append(await broker.topic(A))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(broker.unload, A)
            await settled()
            nursery.start_soon(ask)
            await settled()
            assert found == []
            stores.ledgers.sync()
        assert found == [broker.topics[A.full]]
        assert found != [old]
        assert old.ledger.state is LogState.CLOSED


async def test_what_was_left_half_closed_is_put_away_first() -> None:
    async with running() as broker:
        topic = await broker.topic(A)
        assert isinstance(topic, PersistentTopic)
        client = await attached(topic, SHARED)
        topic.fenced = True
        again = await broker.topic(A)
        assert again is not topic
        assert client.events == ["closed"]
        assert topic.ledger.state is LogState.CLOSED


async def test_a_topic_taken_over_by_another_owner_is_let_go() -> None:
    stores = Stores()
    async with running(stores) as broker:
        topic = await broker.topic(A)
        assert isinstance(topic, PersistentTopic)
        client = await attached(topic, SHARED)
        found = await stores.metadata.get(topic.ledger.path)
        assert found is not None
        await overwrite(stores.metadata, topic.ledger.path, found.value)
        topic.publish([b"x"], None, lambda _result: None)
        await settled()
        assert client.events == ["closed"]
        assert broker.topics == {}
        assert not (await broker.topic(A)).fenced


async def test_delete() -> None:
    stores = Stores()
    async with running(stores) as broker:
        topic = await broker.topic(A)
        assert isinstance(topic, PersistentTopic)
        await attached(topic, SHARED)
        with pytest.raises(NotAllowed):
            await broker.delete(A)
        assert not await broker.delete(A, force=True, only_if=lambda _topic: False)
        assert not topic.fenced
        assert await broker.delete(A, force=True)
        assert not await broker.exists(A)
        with pytest.raises(TopicNotFound):
            await broker.delete(A)


async def test_a_delete_that_failed_may_be_tried_again() -> None:
    stores = Stores()
    async with running(stores) as broker:
        topic = await broker.topic(A)
        assert isinstance(topic, PersistentTopic)
        await topic.subscription("s")
        await topic.subscription("t")
        delete, failures = stores.metadata.delete, [StorageFailed("no")]

        async def fail(path: str, expected: int) -> None:
            if path.endswith("/t") and failures:
                raise failures.pop()
            await delete(path, expected)

        stores.metadata.delete = fail  # type: ignore[method-assign]
        with pytest.raises(StorageFailed):
            await broker.delete(A, force=True)
        again = await broker.topic(A)
        assert list(again.subscriptions) == ["t"]
        await broker.delete(A, force=True)
        assert await stores.metadata.children("/managed-ledgers") == []


async def test_stopping_unloads_everything_and_loads_nothing_more() -> None:
    stores = Stores()
    async with running(stores) as broker:
        for name in (A, VOLATILE):
            await broker.topic(name)
        await broker.stop()
        assert broker.topics == {}
        with pytest.raises(NotReady):
            await broker.topic(A)
    async with running(stores) as broker:
        assert await topics_of(broker, DEFAULT) == [A.full]
        await broker.topic(A, create=False)


async def test_volatile_topics_are_there_while_they_are_loaded() -> None:
    async with running() as broker:
        topic = await broker.topic(VOLATILE)
        assert isinstance(topic, NonPersistentTopic)
        assert await broker.exists(VOLATILE)
        assert await topics_of(broker, DEFAULT) == [VOLATILE.full]
        await broker.delete(VOLATILE)
        assert not await broker.exists(VOLATILE)


async def test_policies_reach_loaded_topics_and_their_subscriptions() -> None:
    async with running(max_unacked_per_consumer=1) as broker:
        topic = await broker.topic(A)
        assert isinstance(topic, PersistentTopic)
        await broker.topic(VOLATILE)
        client = await attached(topic, SHARED, permits=1)
        places = await stored(topic.ledger, b"x", b"y", b"z")
        broker.dispatch()
        client.flow(10)
        policies = NamespacePolicies(max_unacked_per_consumer=0)
        await broker.catalog.set_policies(DEFAULT, policies)
        await broker.apply_policies(DEFAULT)
        await settled()
        broker.dispatch()
        assert client.got == places


class DistantMetadata(MemoryMetadata):
    """A store over a network."""

    async def get(self, path: str) -> Versioned | None:
        await trio.sleep(1)
        return await super().get(path)


async def test_policies_are_in_force_when_the_change_is_answered(
    autojump_clock: MockClock,
) -> None:
    stores = Stores()
    stores.metadata = DistantMetadata()
    async with running(stores) as broker:
        topic = await broker.topic(A)
        assert isinstance(topic, PersistentTopic)
        await broker.catalog.set_policies(DEFAULT, NamespacePolicies(max_unacked_per_consumer=7))
        await broker.apply_policies(DEFAULT)
        assert topic.policies.max_unacked_per_consumer == 7


async def test_policies_of_a_namespace_that_is_gone_do_not_end_the_server() -> None:
    async with running() as broker:
        await broker.topic(A)
        await broker.catalog.delete_namespace(DEFAULT)
        await broker.apply_policies(DEFAULT)
        await settled()
        assert A.full in broker.topics


async def test_a_mistake_of_ours_costs_one_subscription(caplog: pytest.LogCaptureFixture) -> None:
    async with running() as broker:
        topic = await broker.topic(A)
        assert isinstance(topic, PersistentTopic)
        broken = await attached(topic, SHARED, subscription="broken")
        fine = await attached(topic, SHARED, subscription="fine")

        def fail() -> bool:
            raise AssertionError("a mistake")

        subscription = topic.subscriptions["broken"]
        assert subscription.dispatcher is not None
        subscription.dispatcher.dispatch = fail  # type: ignore[method-assign]
        places = await stored(topic.ledger, b"x")
        broker.dispatch()
        assert (broken.events, fine.got) == (["closed"], places)
        assert "a mistake" in caplog.text


async def test_acknowledgements_are_stored_before_long(autojump_clock: object) -> None:
    stores = Stores()
    async with running(stores) as broker:
        topic = await broker.topic(A)
        assert isinstance(topic, PersistentTopic)
        client = await attached(topic, SHARED)
        places = await stored(topic.ledger, b"x")
        client.ack(places[0])
        await trio.sleep(broker.settings.cursor_flush_seconds * 2)
    async with running(stores) as broker:
        again = await broker.topic(A)
        assert isinstance(again, PersistentTopic)
        assert again.subscriptions["s"].cursor.mark_delete == places[0]


async def test_many_subscriptions_do_not_hold_up_the_sweep() -> None:
    stores, served = Stores(), list[str]()
    async with running(stores) as broker:
        topic = await broker.topic(A)
        assert isinstance(topic, PersistentTopic)
        for name in "abc":
            await attached(topic, SubscriptionType.SHARED, subscription=name)
            subscription = topic.subscriptions[name]

            def slowly(subscription: PersistentSubscription = subscription) -> bool:
                subscription.is_dirty = False
                served.append(subscription.name)
                stores.clock.forward(DISPATCH_SECONDS_MAX * 0.6)
                return False

            subscription.dispatch = slowly  # type: ignore[method-assign]
        broker.dispatch()
        assert served == ["a", "b"]
        topic.subscriptions["a"].schedule()
        broker.dispatch()
        assert served == ["a", "b", "c", "a"], "who had to wait is first"
        broker.dispatch()
        assert len(served) == 4
