"""Administration of partitioned topics and namespaces."""

from collections.abc import AsyncIterator

import pytest
import trio

from magnetar.core.broker import administration
from magnetar.core.broker.attachment import attach
from magnetar.core.broker.broker import Broker, BrokerSettings
from magnetar.core.broker.catalog import PARTITIONED
from magnetar.core.broker.topic_list import topics_of
from magnetar.core.kernel.clock import SystemClock
from magnetar.core.kernel.errors import (
    AlreadyExists,
    BrokerError,
    NamespaceNotFound,
    NotAllowed,
    NotFound,
    StorageFailed,
    TopicNotFound,
)
from magnetar.core.kernel.names import NamespaceName, TopicName
from magnetar.core.ledger.log.chain import START
from magnetar.core.metadata.memory import MemoryMetadata
from magnetar.core.policy.policies import Effective, NamespacePolicies, TopicPolicies
from magnetar.core.policy.values import AutoTopicCreation, SchemaStrategy
from magnetar.core.schema.schema import SchemaKind, TopicSchema
from magnetar.core.testing.bench import settled
from magnetar.core.testing.broker import Stores, running
from magnetar.core.testing.client import ClientProducer, attached
from magnetar.core.testing.ledgers import MemoryLedgers
from magnetar.core.testing.turns import counted_turns
from magnetar.core.topic.persistent_topic import PersistentTopic
from magnetar.core.topic.subscription.subscription import SubscriptionType
from magnetar.core.topic.topic import Topic

NAMESPACE = NamespaceName.parse("public/default")
A = TopicName.parse("a")
B = TopicName.parse("b")


class RefusingMetadata(MemoryMetadata):
    """One record of it cannot be written."""

    refused = ""

    async def put(self, path: str, value: bytes, expected: int) -> int:
        if path == self.refused:
            raise StorageFailed("the disk is full")
        return await super().put(path, value, expected)


@pytest.fixture
async def broker() -> AsyncIterator[Broker]:
    defaults = Effective(auto_topic_creation=AutoTopicCreation(False))
    settings = BrokerSettings(defaults=defaults)
    made = Broker(settings, MemoryLedgers(), MemoryMetadata(), SystemClock(), lambda: None)
    async with trio.open_nursery() as nursery:
        await nursery.start(made.run)
        yield made
        nursery.cancel_scope.cancel()


async def test_a_topic_is_created_by_order_where_nobody_else_may(broker: Broker) -> None:
    with pytest.raises(TopicNotFound):
        await broker.topic(A)
    await administration.create_topic(broker, A)
    assert await broker.exists(A)
    with pytest.raises(AlreadyExists):
        await administration.create_topic(broker, A)
    with pytest.raises(NotAllowed, match="Partition metadata not found"):
        await administration.create_topic(broker, A.partition(0))


async def test_all_partitions_are_there_at_once(broker: Broker) -> None:
    await administration.create_partitioned(broker, A, 3)
    assert await topics_of(broker, NAMESPACE) == [A.partition(i).full for i in range(3)]
    await administration.grow_partitioned(broker, A, 4)
    assert [topic.name for topic in await administration.loaded(broker, A)] == [
        A.partition(index) for index in range(4)
    ]
    with pytest.raises(AlreadyExists):
        await administration.create_partitioned(broker, A, 3)
    with pytest.raises(AlreadyExists):
        await administration.create_topic(broker, A)


async def test_new_partitions_have_the_subscriptions_of_the_first(broker: Broker) -> None:
    await administration.create_partitioned(broker, A, 1)
    first = (await broker.topic(A.partition(0))).stored
    assert first is not None
    await first.subscription("durable", properties={"a": "b"})
    first.reader("reader", START)
    counted = await first.subscription("by-number")
    counted.cursor.set_position_properties({"commit": 1})
    await administration.grow_partitioned(broker, A, 3)
    for number in (1, 2):
        found = (await broker.topic(A.partition(number))).stored
        assert found is not None
        assert set(found.subscriptions) == {"durable"}
        cursor = found.subscriptions["durable"].cursor
        assert (cursor.properties, cursor.mark_delete) == ({"a": "b"}, START)


async def test_a_growth_that_fails_half_way_may_be_repeated() -> None:
    """Nobody uses partitions beyond the number, and nothing that they have is lost."""
    stores = Stores()
    stores.metadata = metadata = RefusingMetadata()
    async with running(stores) as broker:
        await administration.create_partitioned(broker, A, 1)
        await (await broker.topic(A.partition(0))).subscription("s")
        path = f"{PARTITIONED}/{A.managed_ledger}"
        metadata.refused = path
        with pytest.raises(StorageFailed):
            await administration.grow_partitioned(broker, A, 2)
        metadata.refused = ""
        assert await broker.catalog.partitions(A) == 1
        with pytest.raises(NotAllowed):
            await broker.topic(A.partition(1))
        first = await broker.topic(A.partition(0))
        await first.unsubscribe("s", force=True)
        await first.subscription("t")
        await administration.grow_partitioned(broker, A, 3)
        assert await broker.catalog.partitions(A) == 3
        for topic in await administration.loaded(broker, A):
            assert set(topic.subscriptions) == {"t"}


async def test_what_a_growth_left_goes_with_the_topic() -> None:
    stores = Stores()
    stores.metadata = metadata = RefusingMetadata()
    async with running(stores) as broker:
        await administration.create_partitioned(broker, A, 1)
        await (await broker.topic(A.partition(0))).subscription("s")
        metadata.refused = f"{PARTITIONED}/{A.managed_ledger}"
        with pytest.raises(StorageFailed):
            await administration.grow_partitioned(broker, A, 3)
        metadata.refused = ""
        await administration.delete_partitioned(broker, A, force=True)
        assert await topics_of(broker, NAMESPACE) == []
        await administration.create_partitioned(broker, A, 3)
        for topic in await administration.loaded(broker, A):
            assert not topic.subscriptions


async def test_no_partition_is_added_while_its_topic_is_deleted(broker: Broker) -> None:
    await administration.create_partitioned(broker, A, 1)
    with broker.going.one_more(A.full), pytest.raises(TopicNotFound):
        await broker.add_partition(A.partition(1))
    assert not await broker.exists(A.partition(1))


async def test_a_partitioned_topic_in_use_stays_whole(broker: Broker) -> None:
    await administration.create_partitioned(broker, A, 2)
    topic = await broker.topic(A.partition(1))
    assert isinstance(topic, PersistentTopic)
    await attached(topic, SubscriptionType.SHARED)
    with pytest.raises(NotAllowed, match="has producers or consumers"):
        await administration.delete_partitioned(broker, A, force=False)
    assert len(await topics_of(broker, NAMESPACE)) == 2
    await administration.delete_partitioned(broker, A, force=True)
    assert await topics_of(broker, NAMESPACE) == []
    with pytest.raises(NotFound):
        await administration.partitions_of(broker, A)


async def test_a_namespace_goes_when_it_is_empty_or_by_force(broker: Broker) -> None:
    await administration.create_topic(broker, A)
    with pytest.raises(AlreadyExists):
        await administration.delete_namespace(broker, NAMESPACE, force=False)
    await administration.delete_tenant(broker, "public", force=True)
    assert await broker.catalog.tenants() == ["pulsar"]
    assert broker.topics == {}


async def test_a_namespace_goes_with_topics_that_are_not_listed(broker: Broker) -> None:
    """Those of Pulsar's brokers do not keep it; whatever else begins like them does."""
    kept, mine = [
        TopicName.parse(f"{NAMESPACE}/{local}") for local in ("__change_events", "__mine")
    ]
    await administration.create_topic(broker, mine)
    await administration.create_topic(broker, kept)
    assert await topics_of(broker, NAMESPACE) == []
    with pytest.raises(AlreadyExists):
        await administration.delete_namespace(broker, NAMESPACE, force=False)
    await administration.delete_topic(broker, mine, force=True)
    await administration.delete_namespace(broker, NAMESPACE, force=False)
    assert broker.topics == {}
    assert await broker.metadata.children(NAMESPACE.managed_ledgers) == []


async def test_topics_go_and_their_namespace_stays(broker: Broker) -> None:
    await administration.delete_topics(broker, NAMESPACE, force=False)
    await administration.create_topic(broker, A)
    await administration.create_partitioned(broker, TopicName.parse("p"), 2)
    with pytest.raises(AlreadyExists):
        await administration.delete_topics(broker, NAMESPACE, force=False)
    assert len(await topics_of(broker, NAMESPACE)) == 3
    await administration.delete_topics(broker, NAMESPACE, force=True)
    assert await topics_of(broker, NAMESPACE) == []
    assert not await broker.catalog.partitioned_of(NAMESPACE)
    assert await broker.catalog.policies(NAMESPACE) is not None
    with pytest.raises(NotAllowed):
        await administration.delete_topics(broker, NamespaceName.parse("pulsar/system"), force=True)


async def test_unloading_a_namespace_keeps_what_is_in_it(broker: Broker) -> None:
    await administration.create_topic(broker, A)
    await administration.unload_namespace(broker, NAMESPACE)
    assert broker.topics == {}
    assert await broker.exists(A)


class Returning:
    """A producer whose client comes back at once when it is sent away."""

    def __init__(self, broker: Broker, name: TopicName) -> None:
        self.broker, self.name = broker, name
        self.refusals: list[BrokerError] = []
        self.places = 0

    async def come(self) -> None:
        try:
            await attach(self.broker, self.name, self.take_place)
        except BrokerError as error:
            self.refusals.append(error)

    async def take_place(self, topic: Topic) -> None:
        came = ClientProducer(f"p{self.places}")
        came.closed_by_broker = self.sent_away  # type: ignore[method-assign]
        await topic.attach_producer(came.producer)
        self.places += 1

    def sent_away(self) -> None:
        self.broker.spawn(self.come)


@pytest.mark.parametrize("whole", ["namespace", "partitioned topic"])
async def test_nobody_creates_anew_what_is_being_deleted_as_a_whole(whole: str) -> None:
    """Once a namespace was gone and topics were in it, created by those it had sent away."""
    creation = AutoTopicCreation(whole == "namespace")
    async with running(auto_topic_creation=creation) as broker:
        names = [A, B] if whole == "namespace" else [A.partition(0), A.partition(1)]
        if whole != "namespace":
            await administration.create_partitioned(broker, A, 2)
        clients = [Returning(broker, name) for name in names]
        for client in clients:
            await client.come()
        if whole == "namespace":
            await administration.delete_namespace(broker, NAMESPACE, force=True)
        else:
            await administration.delete_partitioned(broker, A, force=True)
        await settled()
        assert [client.places for client in clients] == [1, 1]
        refused = [type(refusal) for client in clients for refusal in client.refusals]
        assert set(refused) <= {TopicNotFound, NamespaceNotFound}
        assert len(refused) == 2
        assert broker.topics == {}
        assert await broker.metadata.children("/managed-ledgers") == []


INTERNAL = TopicName.parse("persistent://pulsar/system/__state")


async def test_internal_topics_are_changed_by_nobody(broker: Broker) -> None:
    with pytest.raises(TopicNotFound):
        await broker.topic(INTERNAL)
    await broker.topic(INTERNAL, by_order=True)  # as its service does
    for refused in (
        administration.create_topic(broker, INTERNAL),
        administration.create_partitioned(broker, INTERNAL, 3),
        administration.grow_partitioned(broker, INTERNAL, 3),
        administration.delete_topic(broker, INTERNAL, force=True),
        administration.delete_partitioned(broker, INTERNAL, force=True),
        administration.set_topic_policies(broker, INTERNAL, TopicPolicies()),
    ):
        with pytest.raises(NotAllowed, match="__state is internal"):
            await refused
    assert await broker.exists(INTERNAL)


async def test_internal_topics_are_not_created_for_clients() -> None:
    async with running() as broker:
        with pytest.raises(TopicNotFound):
            await broker.topic(INTERNAL)
        with pytest.raises(TopicNotFound):
            await broker.partitions_or_create(INTERNAL, create=True)


async def test_the_namespace_of_internal_topics_is_not_deleted(broker: Broker) -> None:
    other = NamespaceName.parse("pulsar/other")
    await broker.catalog.create_namespace(other, NamespacePolicies())
    for refused in (
        administration.delete_namespace(broker, INTERNAL.namespace, force=False),
        administration.delete_namespace(broker, INTERNAL.namespace, force=True),
        administration.delete_tenant(broker, "pulsar", force=True),
    ):
        with pytest.raises(NotAllowed, match="pulsar/system"):
            await refused
    assert await broker.catalog.namespaces("pulsar") == ["pulsar/other", "pulsar/system"]


@pytest.mark.parametrize("partitions", [0, 2])
async def test_schemas_stay_while_a_namesake_has_them(broker: Broker, partitions: int) -> None:
    """Once the deletion of an idle non-persistent topic took those of the persistent one."""
    volatile = TopicName.parse("non-persistent://public/default/a")
    if partitions:
        await administration.create_partitioned(broker, A, partitions)
    else:
        await administration.create_topic(broker, A)
    text = TopicSchema(SchemaKind.STRING, b"")
    await broker.schemas.add(A, text, SchemaStrategy.FULL)
    await broker.topic(volatile, by_order=True)
    await broker.delete(volatile)
    assert (await broker.schemas.versions(A)).count == 1
    delete = administration.delete_partitioned if partitions else administration.delete_topic
    await delete(broker, A, force=True)
    assert (await broker.schemas.versions(A)).count == 0


async def test_others_run_while_names_of_many_partitions_are_made(broker: Broker) -> None:
    many = 5 * administration.NAMES_PER_REST + 1
    await broker.catalog.create_partitioned(A, many)
    async with counted_turns() as turns:
        names = await administration.partitions_of(broker, A)
        assert turns.count >= 3
    assert [each.partition_index for each in names] == list(range(many))
