"""Two brokers on one metadata store and one ledger store, each of which thinks that it owns all.

That is the worst that can become of ownership: whoever is replaced has not heard of it. Of each
durable thing two of them write, one goes on, the other one hears that it is fenced, and nothing
that was answered is lost or written over.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable

import pytest
import trio
from trio.testing import MockClock

from magnetar.core.broker.broker import Broker
from magnetar.core.cluster.ownership import OwnershipTable, Peer
from magnetar.core.entry.form import MarkKind, TransactionMark
from magnetar.core.entry.kafka import form, record_batch
from magnetar.core.entry.record import Record
from magnetar.core.kernel.completion import Completion
from magnetar.core.kernel.errors import BadVersion, BrokerError, Fenced, NotCoordinator, NotReady
from magnetar.core.kernel.names import NamespaceName, TopicName
from magnetar.core.ledger.log.chain import START, Position
from magnetar.core.policy.policies import NamespacePolicies, TopicPolicies
from magnetar.core.ports.metadata_store import Versioned
from magnetar.core.testing.bench import settled
from magnetar.core.testing.broker import Stores, running
from magnetar.core.testing.client import attached
from magnetar.core.testing.entries import entry
from magnetar.core.topic.persistent_topic import PersistentTopic
from magnetar.core.topic.subscription.subscription import SubscriptionType
from magnetar.core.topic.topic import Topic
from magnetar.core.transactions.coordinator import TransactionCoordinator
from magnetar.core.transactions.transaction import PendingCommit, Transaction, TransactionState

T = TopicName.parse("t")
DEFAULT = NamespaceName.parse("public/default")
PATH = "/transactions"


@pytest.fixture
def stores() -> Stores:
    return Stores()


@pytest.fixture
async def brokers(stores: Stores) -> AsyncIterator[tuple[Broker, Broker]]:
    async with running(stores) as one, running(stores) as other:
        yield one, other


async def loaded(broker: Broker) -> PersistentTopic:
    topic = await broker.topic(T)
    assert isinstance(topic, PersistentTopic)
    return topic


async def published(topic: PersistentTopic, payload: bytes) -> None:
    """Raises what a producer hears."""
    waiting = Completion[Position]()
    topic.publish([payload], None, waiting.done)
    await settled()
    await waiting.result()


async def entries(topic: PersistentTopic) -> list[bytes]:
    """All that is stored, in order."""
    found, chain = [], topic.ledger.chain
    position = chain.first
    while chain.has(position):
        part = await topic.ledger.read(position, 100, 1 << 20)
        found += [bytes(part.sent(at)) for at in range(len(part.payloads))]
        position = chain.normal((part.ledger_id, part.first_entry + len(part.payloads)))
    return found


async def test_of_two_who_write_a_topic_one_goes_on(brokers: tuple[Broker, Broker]) -> None:
    one, other = brokers
    before = await loaded(one)
    await published(before, b"before")
    after = await loaded(other)
    await published(after, b"after")
    with pytest.raises(BrokerError):
        await published(before, b"too late")
    await settled()
    assert one.topics == {}, "put away"
    await published(after, b"goes on")
    assert await entries(after) == [b"before", b"after", b"goes on"]


async def test_a_topic_that_goes_back_and_forth_loses_nothing(
    brokers: tuple[Broker, Broker],
) -> None:
    """Whoever is refused looks the topic up again, as producers do."""
    answered = []
    for number in range(40):
        payload = b"%d" % number
        for _ in range(5):
            topic = await loaded(brokers[number // 3 % 2])
            try:
                await published(topic, payload)
            except (Fenced, NotReady):
                await settled()
                continue
            answered.append(payload)
            break
    assert len(answered) == 40
    assert await entries(await loaded(brokers[1])) == answered, "the last one has it all"


async def test_indexes_go_on_where_they_were(brokers: tuple[Broker, Broker]) -> None:
    one, other = brokers
    await published(await loaded(one), b"a")
    topic = await loaded(other)
    await published(topic, b"b")
    assert (topic.ledger.first_index, topic.ledger.next_index) == (0, 2)


async def test_of_two_who_create_a_topic_one_goes_on(stores: Stores) -> None:
    answers = []

    async def create(broker: Broker) -> None:
        try:
            await published(await loaded(broker), b"x")
        except BrokerError as error:
            answers.append(type(error))

    async with running(stores) as one, running(stores) as other:
        async with trio.open_nursery() as nursery:
            for broker in (one, other):
                nursery.start_soon(create, broker)
        await settled()
        found = await entries(await loaded(one))
    assert len(found) == 2 - len(answers)


async def test_a_cursor_that_was_taken_over_is_not_moved(brokers: tuple[Broker, Broker]) -> None:
    one, other = brokers
    before = await loaded(one)
    for payload in (b"a", b"b", b"c"):
        await published(before, payload)
    client = await attached(before, SubscriptionType.SHARED)
    after = await loaded(other)
    theirs = after.subscriptions["s"].cursor
    theirs.ack_to((0, 1))
    await theirs.saved()
    ours = before.subscriptions["s"].cursor
    ours.ack_to((0, 0))
    with pytest.raises(Fenced):
        await ours.saved()
    await settled()
    assert client.events[-1] == "closed"
    assert one.topics == {}
    assert theirs.mark_delete == (0, 1)
    assert (await loaded(one)).subscriptions["s"].cursor.mark_delete == (0, 1)


async def test_a_subscription_is_created_by_one(brokers: tuple[Broker, Broker]) -> None:
    one, other = brokers
    before, after = await loaded(one), await loaded(other)
    await after.subscription("s", start=START)
    with pytest.raises(Fenced):
        await before.subscription("s", start=START)
    await settled()
    assert one.topics == {}
    await after.unsubscribe("s", force=False)
    assert (await loaded(one)).subscriptions == {}


async def test_a_subscription_is_not_deleted_by_who_lost_it(
    brokers: tuple[Broker, Broker],
) -> None:
    one, other = brokers
    before = await loaded(one)
    await before.subscription("s", start=START)
    after = await loaded(other)
    cursor = after.subscriptions["s"].cursor
    cursor.properties["owner"] = "other"
    cursor.ack_to((0, 0))
    await cursor.saved()
    with pytest.raises(Fenced):
        await before.unsubscribe("s", force=False)
    assert (await loaded(other)).subscriptions["s"] is after.subscriptions["s"]
    await other.unload(T)
    assert "s" in (await loaded(other)).subscriptions


async def test_deduplication_goes_on_with_what_the_new_owner_knows(stores: Stores) -> None:
    async with (
        running(stores, deduplication=True) as one,
        running(stores, deduplication=True) as other,
    ):
        before = await loaded(one)
        waiting = Completion[Position]()
        before.publish_once("p", 5, [entry(sequence_id=5)], None, waiting.done)
        await waiting.result()
        after = await loaded(other)
        assert after.last_sequence_of("p") == 5
        waiting = Completion[Position]()
        after.publish_once("p", 6, [entry(sequence_id=6)], None, waiting.done)
        await waiting.result()
        await one.unload(T)  # saves nothing over what is the other one's
        await other.unload(T)
        assert (await loaded(other)).last_sequence_of("p") == 6


# -- transactions ------------------------------------------------------------------------------


async def keep(_promises: Iterable[PendingCommit]) -> None:
    """There are none."""


async def begun(coordinator: TransactionCoordinator, writer: int = 7) -> None:
    async with coordinator.alone_with("n", settled=True) as place:
        if place.transaction is None:
            await coordinator.store(place, Transaction("n", writer, 0, 1000))
        await coordinator.extend(place, logs=[T.full])


async def test_a_transaction_is_decided_by_one(
    stores: Stores, brokers: tuple[Broker, Broker]
) -> None:
    ours, theirs = (TransactionCoordinator(broker, PATH, form, keep) for broker in brokers)
    topic = await loaded(brokers[1])
    await topic.begin_transactions()
    await begun(ours)
    await theirs.open()
    async with theirs.alone_with("n", settled=True) as place:
        await theirs.decide(place, commit=True)
    await settled()
    assert topic.ledger.chain.entries == 1, "marked"
    async with ours.alone_with("n", settled=True) as place:
        assert place.transaction is not None
        assert place.transaction.state is TransactionState.ONGOING
        with pytest.raises(NotCoordinator):
            await ours.decide(place, commit=False)
    assert ours.find("n") is None
    assert ours.of_writer(7) is None
    assert not ours.admits(7, 0, T.full)
    async with ours.alone_with("n", settled=True) as place:
        assert place.transaction is not None
        assert place.transaction.state is TransactionState.COMMITTED, "loaded anew"


def part(writer: int, value: bytes) -> bytes:
    """A message in a transaction."""
    plain = record_batch.batch_of([Record(0, 1000, None, value)], 0, 1)
    header = record_batch.header_of(plain)._replace(
        attributes=record_batch.TRANSACTIONAL, producer_id=writer, producer_epoch=0
    )
    return form.wrapped(record_batch.joined(header, plain[record_batch.HEADER_BYTES :]), 1, 1000)


async def test_a_replaced_coordinator_marks_nothing_more(
    autojump_clock: MockClock, brokers: tuple[Broker, Broker], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The new one has ended the transaction, and its writer has begun the next one."""
    one, other = brokers
    ours, theirs = (TransactionCoordinator(broker, PATH, form, keep) for broker in brokers)
    await (await loaded(other)).begin_transactions()
    await begun(ours)
    paused, load = trio.Event(), one.topic

    async def slow_load(name: TopicName, *, create: bool = True) -> Topic:
        await paused.wait()
        return await load(name, create=create)

    monkeypatch.setattr(one, "topic", slow_load)
    async with ours.alone_with("n", settled=True) as place:
        await ours.decide(place, commit=True)
    await settled()
    await theirs.open()
    await begun(theirs)
    topic = await loaded(other)
    index = topic.transactions.index
    await published(topic, part(7, b"next"))
    index.wrote(7, topic.ledger.next_index - 1, topic.ledger.chain.confirmed, 1000)
    paused.set()
    await trio.sleep(10)  # it would try again
    assert ours.find("n") is None
    assert [form.transaction_mark(sent) for sent in await entries(await loaded(one))] == [
        TransactionMark(7, MarkKind.COMMIT),
        TransactionMark(7, MarkKind.PART),
    ]


async def test_a_transaction_is_begun_by_one(brokers: tuple[Broker, Broker]) -> None:
    ours, theirs = (TransactionCoordinator(broker, PATH, form, keep) for broker in brokers)
    async with ours.alone_with("n", settled=True) as place:
        await begun(theirs, writer=8)
        with pytest.raises(NotCoordinator):
            await ours.store(place, Transaction("n", 7, 0, 1000))
    assert ours.find("n") is None
    found = theirs.find("n")
    assert found is not None
    assert found.writer == 8


async def test_whoever_waits_for_a_lost_transaction_gets_the_new_one(
    brokers: tuple[Broker, Broker],
) -> None:
    ours, theirs = (TransactionCoordinator(broker, PATH, form, keep) for broker in brokers)
    await (await loaded(brokers[1])).begin_transactions()
    await begun(ours)
    seen: list[TransactionState] = []

    async def wait() -> None:
        async with ours.alone_with("n", settled=True) as place:
            assert place.transaction is not None
            seen.append(place.transaction.state)

    async with trio.open_nursery() as nursery, ours.alone_with("n", settled=True) as place:
        nursery.start_soon(wait)
        async with theirs.alone_with("n", settled=True) as their_place:
            await theirs.decide(their_place, commit=False)
        await settled()
        with pytest.raises(NotCoordinator):
            await ours.extend(place, participants=["g"])
    assert seen == [TransactionState.ABORTED]


async def test_an_end_that_another_one_carries_out_ends_here(
    brokers: tuple[Broker, Broker],
) -> None:
    """Both find a decision, and carry it out: it is the same one."""
    first, ours, theirs = (
        TransactionCoordinator(broker, PATH, form, keep) for broker in (brokers[0], *brokers)
    )
    await (await loaded(brokers[0])).begin_transactions()
    await begun(first)
    async with first.alone_with("n", settled=True) as place:
        await place.record.write(
            Transaction("n", 7, 0, 1000, state=TransactionState.COMMITTING, logs=(T.full,))
        )
    async with trio.open_nursery() as nursery:
        nursery.start_soon(ours.open)
        nursery.start_soon(theirs.open)
    with trio.fail_after(10):
        for coordinator in (ours, theirs):
            async with coordinator.alone_with("n", settled=True) as place:
                assert place.transaction is not None
                assert place.transaction.state is TransactionState.COMMITTED


# -- what nobody owns --------------------------------------------------------------------------


async def test_policies_are_changed_upon_what_was_read(brokers: tuple[Broker, Broker]) -> None:
    ours, theirs = (broker.catalog for broker in brokers)
    async with ours.changing(DEFAULT), theirs.changing(DEFAULT):
        for catalog in (ours, theirs):
            await catalog.policies(DEFAULT)
            await catalog.topic_policies(T)
        await ours.set_policies(DEFAULT, NamespacePolicies(message_ttl_seconds=1))
        await ours.set_topic_policies(T, TopicPolicies(max_producers_per_topic=1))
        with pytest.raises(BadVersion):
            await theirs.set_policies(DEFAULT, NamespacePolicies(message_ttl_seconds=2))
        with pytest.raises(BadVersion):
            await theirs.set_topic_policies(T, TopicPolicies(max_producers_per_topic=2))
    assert (await theirs.policies(DEFAULT)).message_ttl_seconds == 1
    assert (await theirs.topic_policies(T)).max_producers_per_topic == 1


async def test_a_topic_has_one_id(stores: Stores, brokers: tuple[Broker, Broker]) -> None:
    get, found = stores.metadata.get, []

    async def slow(path: str) -> Versioned | None:
        read = await get(path)
        await settled()
        return read

    async def ask(broker: Broker) -> None:
        found.append(await broker.topic_ids.of(T))

    stores.metadata.get = slow  # type: ignore[method-assign]
    async with trio.open_nursery() as nursery:
        for broker in brokers:
            nursery.start_soon(ask, broker)
    stores.metadata.get = get  # type: ignore[method-assign]
    assert len(set(found)) == 1
    assert await brokers[0].topic_ids.name_of(found[0]) == T
    (kept,) = await stores.metadata.children("/magnetar/topics-by-id")
    assert kept == found[0].hex()


# -- starting ----------------------------------------------------------------------------------


async def test_a_start_touches_nothing_of_another_owner(stores: Stores) -> None:
    peer = Peer(1)
    table = OwnershipTable(peer)
    table.transactions["n"] = peer
    table.topics[T.full] = peer
    async with running(stores) as owner:
        coordinator = TransactionCoordinator(owner, PATH, form, keep)
        await (await loaded(owner)).begin_transactions()
        await begun(coordinator)
        async with coordinator.alone_with("n", settled=True) as place:
            decided = Transaction(
                "n", 7, 0, 1000, state=TransactionState.COMMITTING, logs=(T.full,)
            )
            await place.record.write(decided)
        before = dict(stores.metadata._values)
        async with running(stores, table) as other:
            theirs = TransactionCoordinator(other, PATH, form, keep)
            await theirs.open()
            await settled()
            assert list(theirs.all()) == []
            assert other.topics == {}
            with pytest.raises(NotCoordinator):
                async with theirs.alone_with("n", settled=True):
                    raise AssertionError("not ours")
            await other.stop()
        assert stores.metadata._values == before
