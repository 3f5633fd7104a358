"""Topics that show the messages of another one."""

from __future__ import annotations

import pytest

from magnetar.core.broker import administration, schema_admission
from magnetar.core.broker.broker import Broker
from magnetar.core.broker.rate_sampler import count_aborted
from magnetar.core.kernel.completion import Completion
from magnetar.core.kernel.errors import (
    AlreadyExists,
    BrokerError,
    Fenced,
    NotAllowed,
    NotReady,
    TopicNotFound,
)
from magnetar.core.kernel.names import MANAGED_LEDGERS, TopicName
from magnetar.core.ledger import formats
from magnetar.core.ledger.log.chain import START, Position
from magnetar.core.policy.values import InactiveTopics
from magnetar.core.ports.metadata_store import ABSENT
from magnetar.core.schema.schema import SchemaKind, TopicSchema
from magnetar.core.testing.bench import settled
from magnetar.core.testing.broker import Stores, running
from magnetar.core.testing.client import attached
from magnetar.core.testing.entries import entry
from magnetar.core.topic import log_start
from magnetar.core.topic.persistent_topic import PersistentTopic
from magnetar.core.topic.shadow_topic import SHADOW as NOTE
from magnetar.core.topic.shadow_topic import (
    SHADOW_SOURCE,
    ShadowTopic,
    new_record,
    shadows_noted,
    source_in,
    source_named,
)
from magnetar.core.topic.subscription.subscription import SubscriptionType

SOURCE = TopicName.parse("source")
SHADOW = TopicName.parse("shadow")
EXCLUSIVE = SubscriptionType.EXCLUSIVE


async def loaded(broker: Broker, name: TopicName) -> PersistentTopic:
    topic = (await broker.topic(name)).stored
    assert topic is not None
    return topic


async def pair(broker: Broker) -> tuple[PersistentTopic, ShadowTopic]:
    """A source and its shadow."""
    source = await loaded(broker, SOURCE)
    await administration.create_shadow(broker, SHADOW, SOURCE)
    shadow = await loaded(broker, SHADOW)
    assert isinstance(shadow, ShadowTopic)
    return source, shadow


async def published(topic: PersistentTopic, *texts: bytes) -> None:
    waiting = Completion[Position]()
    topic.publish([entry(text) for text in texts], None, waiting.done)
    await settled()
    await waiting.result()


async def read(topic: PersistentTopic) -> int:
    """How many entries can be read from its beginning."""
    chain, found = topic.ledger.chain, 0
    position = chain.first
    while chain.has(position):
        part = await topic.ledger.read(position, 100, 1 << 20)
        found += len(part.payloads)
        position = chain.normal((part.ledger_id, part.first_entry + len(part.payloads)))
    return found


def test_a_partition_shows_the_partition_of_the_same_number() -> None:
    properties = {SHADOW_SOURCE: SOURCE.full}
    assert source_named({}, SHADOW) is None
    assert source_named(properties, SHADOW) == SOURCE
    assert source_named(properties, SHADOW.partition(3)) == SOURCE.partition(3)
    assert source_in(new_record(SOURCE, 1_000), SHADOW) == SOURCE
    assert source_in(b"", SHADOW) is None


async def test_it_shows_what_its_source_has_and_gets() -> None:
    async with running() as broker:
        source = await loaded(broker, SOURCE)
        await published(source, b"before")
        _, shadow = await pair(broker)
        subscription = await shadow.subscription("s", start=START)
        assert subscription.cursor.backlog == 1
        await published(source, b"after", b"later")
        assert subscription.cursor.backlog == 3
        assert await read(shadow) == 3
        assert shadow.ledger.chain is source.ledger.chain
        assert shadow.ledger.confirmed_index == source.ledger.confirmed_index == 3


async def test_consumers_are_told_of_what_is_new() -> None:
    async with running() as broker:
        source, shadow = await pair(broker)
        client, other = await attached(shadow, EXCLUSIVE), await attached(source, EXCLUSIVE)
        broker.dispatch()
        await published(source, b"new")
        broker.dispatch()
        assert client.got == other.got == [(0, 0)]
        other.ack((0, 0))
        assert shadow.subscriptions["s"].cursor.backlog == 1, "a subscription of its own"


async def test_cursors_are_its_own_and_last() -> None:
    stores = Stores()
    async with running(stores) as broker:
        source, shadow = await pair(broker)
        await published(source, b"a", b"b", b"c")
        subscription = await shadow.subscription("s", start=START)
        first = shadow.ledger.chain.first
        subscription.cursor.ack_to(first)
        await subscription.cursor.saved()
        assert source.subscriptions == {}
        await broker.stop()
    async with running(stores) as broker:
        again = await loaded(broker, SHADOW)
        assert isinstance(again, ShadowTopic)
        assert again.subscriptions["s"].cursor.mark_delete == first
        assert again.subscriptions["s"].cursor.backlog == 2


async def test_nothing_is_published_to_it() -> None:
    async with running() as broker:
        source, shadow = await pair(broker)
        with pytest.raises(NotAllowed, match="read only"):
            shadow.check_producer()
        results: list[object] = []
        shadow.publish([entry(b"x")], None, results.append)
        assert isinstance(results[0], NotAllowed)
        with pytest.raises(NotAllowed):
            await shadow.begin_transactions()
        with pytest.raises(NotAllowed, match="Terminate"):
            await shadow.terminate()
        with pytest.raises(NotAllowed):
            await log_start.truncate([shadow])
        with pytest.raises(NotAllowed):
            await log_start.begin_at(shadow, 0, START)
        assert await read(source) == 0
        assert not shadow.fenced


async def test_it_holds_back_nothing_of_its_source() -> None:
    async with running() as broker:
        source, shadow = await pair(broker)
        await published(source, b"a", b"b")
        subscription = await shadow.subscription("s", start=START)
        await log_start.truncate([source])
        assert source.ledger.chain.segments == []
        assert subscription.cursor.backlog == 0
        await published(source, b"c")
        assert subscription.cursor.backlog == 1
        assert await read(shadow) == 1


async def test_it_trims_nothing_of_its_source() -> None:
    async with running() as broker:
        source, shadow = await pair(broker)
        await source.subscription("s", start=START)
        await published(source, b"a", b"b")
        await source.ledger.roll()
        await broker.housekeeping.tend(shadow)
        assert await read(source) == 2


async def test_it_is_unloaded_with_its_source_and_loads_it() -> None:
    async with running() as broker:
        source, shadow = await pair(broker)
        await published(source, b"a")
        subscription = await shadow.subscription("s", start=START)
        subscription.cursor.ack_to(shadow.ledger.chain.first)
        await broker.unload(SOURCE)
        assert shadow.fenced
        await settled()
        assert broker.topics == {}
        assert source.shadows == []
        again = await loaded(broker, SHADOW)
        assert set(broker.topics) == {SOURCE.full, SHADOW.full}
        assert again.subscriptions["s"].cursor.backlog == 0


async def test_it_leaves_its_source_loaded() -> None:
    async with running() as broker:
        source, _ = await pair(broker)
        await broker.unload(SHADOW)
        assert source.shadows == []
        assert set(broker.topics) == {SOURCE.full}
        assert not source.fenced


async def test_a_source_with_shadows_is_in_use() -> None:
    unused = InactiveTopics(max_inactive_duration_seconds=60)
    stores = Stores()
    async with running(stores, inactive_topics=unused) as broker:
        source, shadow = await pair(broker)
        assert not source.idle(caught_up_is_enough=True)
        assert not shadow.idle(caught_up_is_enough=True)
        assert not source.in_use
        await attached(shadow, EXCLUSIVE)
        assert source.in_use
        await broker.unload(SHADOW)
        stores.clock.forward(60)
        await broker.housekeeping.tend(source)
        assert await broker.exists(SOURCE), "its shadow is there, if it is not loaded"
        await broker.delete(SHADOW)
        await broker.housekeeping.tend(source)
        assert not await broker.exists(SOURCE)


async def test_without_its_source_it_can_only_be_deleted() -> None:
    stores = Stores()
    async with running(stores) as broker:
        source, shadow = await pair(broker)
        await published(source, b"a")
        await shadow.subscription("s", start=START)
        await broker.delete(SOURCE)
        await settled()
        assert broker.topics == {}
        with pytest.raises(TopicNotFound, match="source"):
            await broker.topic(SHADOW)
        assert broker.topics == {}, "its source was not created"
        await broker.delete(SHADOW)
        assert broker.topics == {}
        assert not await broker.exists(SHADOW)
        left = [path for path in stores.metadata._values if "shadow" in path]
        assert left == []


async def test_a_new_source_of_that_name_is_its_source() -> None:
    async with running() as broker:
        source, shadow = await pair(broker)
        await published(source, b"a", b"b")
        await shadow.subscription("s", start=START)
        await broker.delete(SOURCE)
        await settled()
        source = await loaded(broker, SOURCE)
        await published(source, b"c")
        again = await loaded(broker, SHADOW)
        assert again.subscriptions["s"].cursor.backlog == 1
        assert await read(again) == 1


async def test_deleting_a_shadow_leaves_its_source() -> None:
    async with running() as broker:
        source, shadow = await pair(broker)
        await published(source, b"a")
        await shadow.subscription("s", start=START)
        await broker.delete(SHADOW)
        assert not await broker.exists(SHADOW)
        assert await read(source) == 1
        assert source.shadows == []
        assert shadows_noted(source.ledger.properties) == []


async def test_notes_of_shadows_that_are_gone_do_not_stay_for_one_that_lives() -> None:
    unused = InactiveTopics(max_inactive_duration_seconds=60)
    stores = Stores()
    async with running(stores, inactive_topics=unused) as broker:
        source, _ = await pair(broker)
        for number in range(3):
            await source.ledger.set_property(f"{NOTE}persistent://public/default/{number}", "")
        await broker.unload(SHADOW)
        stores.clock.forward(60)
        await broker.housekeeping.tend(source)
        assert shadows_noted(source.ledger.properties) == [SHADOW]


async def test_its_name_is_taken_once() -> None:
    async with running() as broker:
        await pair(broker)
        with pytest.raises(AlreadyExists):
            await administration.create_shadow(broker, SHADOW, SOURCE)
        with pytest.raises(AlreadyExists):
            await administration.create_shadow(broker, SOURCE, SOURCE)
        with pytest.raises(AlreadyExists):
            await administration.create_topic(broker, SHADOW)


async def test_sources_that_cannot_be() -> None:
    async with running() as broker:
        await pair(broker)
        other = TopicName.parse("other")
        for source, error in (
            (TopicName.parse("nowhere"), TopicNotFound),
            (SHADOW, NotAllowed),
            (TopicName.parse("non-persistent://public/default/v"), NotAllowed),
            (other, TopicNotFound),
        ):
            with pytest.raises(error):
                await administration.create_shadow(broker, other, source)
            assert not await broker.exists(other)


@pytest.mark.parametrize("said", [SHADOW.full, "persistent://public/default/second"])
async def test_records_that_go_in_a_circle(said: str) -> None:
    """As no request makes them."""
    stores = Stores()
    async with running(stores) as broker:
        second = TopicName.parse("second")
        for name, source in ((SHADOW, TopicName.parse(said)), (second, SHADOW)):
            record = new_record(source, 1)
            path = f"{MANAGED_LEDGERS}/{name.managed_ledger}"
            await stores.metadata.put(path, record, ABSENT)
        for name in (SHADOW, second):
            with pytest.raises(NotAllowed):
                await broker.topic(name)
        for name in (SHADOW, second):
            await broker.delete(name)
        assert broker.topics == {}


async def test_partitions() -> None:
    async with running() as broker:
        await administration.create_partitioned(broker, SOURCE, 2)
        shown = {SHADOW_SOURCE: SOURCE.full}
        with pytest.raises(NotAllowed, match="2 partitions"):
            await administration.create_partitioned(broker, SHADOW, 3, shown)
        with pytest.raises(NotAllowed, match="2 partitions"):
            await administration.create_shadow(broker, SHADOW, SOURCE)
        await administration.create_partitioned(broker, SHADOW, 2, shown)
        source, shadow = [await loaded(broker, name.partition(1)) for name in (SOURCE, SHADOW)]
        await published(source, b"a")
        assert await read(shadow) == 1
        assert await read(await loaded(broker, SHADOW.partition(0))) == 0
        with pytest.raises(NotAllowed):
            await administration.grow_partitioned(broker, SHADOW, 3)
        await administration.grow_partitioned(broker, SOURCE, 3)
        await administration.grow_partitioned(broker, SHADOW, 3)
        await published(await loaded(broker, SOURCE.partition(2)), b"b")
        assert await read(await loaded(broker, SHADOW.partition(2))) == 1


async def test_a_source_that_is_unloaded_while_its_shadow_is_loaded() -> None:
    stores = Stores()
    async with running(stores) as broker:
        await pair(broker)
        await broker.unload(SHADOW)
        source = await loaded(broker, SOURCE)
        shadow = ShadowTopic(broker.env, SHADOW, broker.settings.defaults, source)

        source.fenced = True
        with pytest.raises(NotReady):
            await shadow.load()
        assert shadow.fenced
        assert source.shadows == []


async def test_ledgers_that_its_record_names_are_left_alone() -> None:
    """Pulsar lists the source's ledgers in the shadow's record, too."""
    stores = Stores()
    async with running(stores) as broker:
        source = await loaded(broker, SOURCE)
        await published(source, b"a")
        ids = [one.ledger_id for one in source.ledger.chain.segments]
        record = formats.encode_managed_ledger(
            formats.ManagedLedgerInfo(
                ledgers=[formats.LedgerEntryInfo(ids[0], 0, 0, 0, {}, b"")],
                terminated=None,
                properties={SHADOW_SOURCE: SOURCE.full},
            )
        )
        await stores.metadata.put(f"{MANAGED_LEDGERS}/{SHADOW.managed_ledger}", record, ABSENT)
        shadow = await loaded(broker, SHADOW)
        await published(source, b"b")
        assert await read(shadow) == 2
        await broker.delete(SHADOW)
        await published(source, b"c")
        assert await read(source) == 3
        assert not isinstance(source, ShadowTopic)
        with pytest.raises(BrokerError):
            await broker.topic(SHADOW, create=False)


async def test_it_looks_for_no_duplicates() -> None:
    """Its source does: the whole log would be replayed here each time it is loaded."""
    stores = Stores()
    async with running(stores, deduplication=True) as broker:
        source, shadow = await pair(broker)
        assert source.deduplication.on
        assert not shadow.deduplication.on
        shadow.set_policies(broker.settings.defaults)
        await settled()
        assert not shadow.deduplication.on


async def test_it_waits_for_its_sources_transactions() -> None:
    async with running() as broker:
        source, shadow = await pair(broker)
        await source.begin_transactions()
        assert shadow.ledger.transactions is source.ledger.transactions
        client = await attached(shadow, EXCLUSIVE)
        key = 7
        waiting = Completion[Position]()
        source.publish([entry(b"x")], None, source.in_transaction(key, waiting.done))
        await settled()
        await waiting.result()
        broker.dispatch()
        assert client.got == []
        await broker.delete(SHADOW, force=True)
        assert source.transactions.present


@pytest.mark.parametrize("said", ["a//b", "", "persistent://nobody/nowhere/t"])
async def test_a_source_that_cannot_be_found(said: str) -> None:
    """Others wrote the record, or the namespace is gone: the shadow can be deleted."""
    stores = Stores()
    async with running(stores) as broker:
        record = formats.encode_managed_ledger(
            formats.ManagedLedgerInfo(ledgers=[], terminated=None, properties={SHADOW_SOURCE: said})
        )
        path = f"{MANAGED_LEDGERS}/{SHADOW.managed_ledger}"
        await stores.metadata.put(path, record, ABSENT)
        with pytest.raises(TopicNotFound):
            await broker.topic(SHADOW)
        await broker.delete(SHADOW)
        assert await stores.metadata.get(path) is None


async def test_a_creation_that_fails_leaves_nothing() -> None:
    async with running() as broker:
        other = TopicName.parse("public/nowhere/other")
        with pytest.raises(BrokerError):
            await administration.create_shadow(broker, SHADOW, other)
        assert not await broker.exists(SHADOW)


async def test_who_takes_the_log_over_ends_the_shadow() -> None:
    async with running() as broker:
        source, shadow = await pair(broker)
        source.ledger.fence(Fenced("taken over"))
        assert shadow.fenced
        await settled()
        assert broker.topics == {}


async def test_it_adds_no_schema() -> None:
    async with running() as broker:
        _, shadow = await pair(broker)
        schema = TopicSchema(SchemaKind.STRING, b"", {})
        with pytest.raises(NotAllowed):
            await schema_admission.admit_producer(broker, shadow, schema)
        await schema_admission.admit_consumer(broker, shadow, schema)
        assert (await broker.schemas.versions(SHADOW)).latest is None
        assert (await broker.schemas.versions(SOURCE)).latest is None


async def test_what_is_aborted_is_counted_once() -> None:
    async with running() as broker:
        source, _ = await pair(broker)
        source.ledger.transactions.aborted.append((0, 1, 7))
        await count_aborted(broker)
        assert broker.env.aborted.count == 1


async def test_the_tail_is_cached_for_it() -> None:
    async with running() as broker:
        source, shadow = await pair(broker)
        reader = source.reader("r", START)
        await shadow.subscription("s", start=START)
        source._drop(reader)
        await published(source, b"a")
        assert shadow.ledger.cached((0, 0)) is not None


async def test_a_rate_may_be_relative_to_what_its_source_gets() -> None:
    async with running() as broker:
        source, shadow = await pair(broker)
        await published(source, b"a", b"b")
        assert shadow.inflow() == source.inflow()
        assert shadow.inflow().messages == 2
