"""Changes without a task: the same as by tasks, or not done at all."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
import trio
import trio.testing
from trio.testing import MockClock

from magnetar.core.broker.broker import Broker
from magnetar.core.entry.pulsar import form
from magnetar.core.kernel.completion import Completion
from magnetar.core.kernel.errors import (
    BrokerError,
    NotAllowed,
    NotCoordinator,
    NotReady,
    StorageFull,
)
from magnetar.core.kernel.names import TopicName
from magnetar.core.metadata.memory import MemoryMetadata
from magnetar.core.ports.metadata_store import PutDone
from magnetar.core.testing.bench import settled
from magnetar.core.testing.broker import Stores, running
from magnetar.core.testing.metadata import overwrite
from magnetar.core.topic.persistent_topic import PersistentTopic
from magnetar.core.transactions import topic_transactions
from magnetar.core.transactions.coordinator import DELETE_SECONDS
from magnetar.core.transactions.topic_transactions import RECORDS, TopicTransactions
from magnetar.core.transactions.transaction_id import TransactionId

SOURCE, TARGET = TopicName.parse("source"), TopicName.parse("target")
ASKS = (TARGET.full,), ((SOURCE.full, "s"),)


def everybody(_owner: str) -> bool:
    return True


def nobody(owner: str) -> bool:
    return owner == "nobody"


def never(error: BrokerError | None) -> None:
    pytest.fail(f"called, with {error!r}")


async def begun(transactions: TopicTransactions, broker: Broker) -> TransactionId:
    """Over both topics."""
    for name in (SOURCE, TARGET):
        topic = await broker.topic(name)
        assert isinstance(topic, PersistentTopic)
    key = await transactions.begin(3, 60_000, "me")
    await transactions.add_topics(key, ASKS[0], everybody)
    await transactions.add_subscriptions(key, ASKS[1], everybody)
    return key


async def test_what_is_added_is_stored_and_answered() -> None:
    """The first ones begin a transaction, and both are one write of it."""
    stores = Stores()
    async with running(stores) as broker:
        transactions = TopicTransactions(broker, form)
        at_once = transactions.at_once
        before = await begun(transactions, broker)
        key = await transactions.begin(3, 60_000, "me")
        late: list[Callable[[], None]] = []
        broker.gather = lambda gathered: late.append(gathered.write)
        topics, subscriptions = Completion[None](), Completion[None]()
        assert at_once.add_topics(key, ASKS[0], everybody, topics.done)
        assert at_once.add_subscriptions(key, ASKS[1], everybody, subscriptions.done)
        with pytest.raises(NotAllowed):
            transactions.check_publish(key, TARGET, everybody)
        assert not at_once.end(key, everybody, commit=True, done=never), "not before them"
        (write,) = late
        write()
        await topics.result()
        await subscriptions.result()
        transactions.check_publish(key, TARGET, everybody)
        transactions.check_acknowledge(key, SOURCE, "s", everybody)
        stored = await stores.metadata.get(f"{RECORDS}/3.{key[1]}")
        assert stored is not None
        assert stored.version == 0
        for each in (key, before):
            ended = Completion[None]()
            assert at_once.end(each, everybody, commit=True, done=ended.done)
            await ended.result()


async def test_what_takes_a_task_is_not_added(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topic_transactions, "NAMES_MAX", 3)
    async with running() as broker, trio.open_nursery() as nursery:
        transactions = TopicTransactions(broker, form)
        at_once = transactions.at_once
        key = await begun(transactions, broker)
        for topics in (["unknown"], ["not loaded", TARGET.full], ["a//b"], [TARGET.full] * 4):
            assert not at_once.add_topics(key, topics, everybody, never)
        assert not at_once.add_topics(key, ASKS[0], nobody, never)
        assert not at_once.add_topics((3, 77), ASKS[0], everybody, never)
        # somebody has the turn
        async with transactions._coordinator.alone_with(f"3.{key[1]}", settled=False):
            assert not at_once.add_subscriptions(key, ASKS[1], everybody, never)
            assert not at_once.end(key, everybody, commit=True, done=never)
        # and a task waits for a plain call
        added, refused = Completion[None](), Completion[None]()
        assert at_once.add_subscriptions(key, [(SOURCE.full, "t")], everybody, added.done)
        nursery.start_soon(lambda: transactions.end(key, everybody, commit=False))
        await added.result()
        await settled()
        assert transactions.find(key) is None
        # what is wrong with one is said to that one
        key = await begun(transactions, broker)
        names = [(SOURCE.full, name) for name in "ab"]
        assert at_once.add_subscriptions(key, names, everybody, refused.done)
        with pytest.raises(NotAllowed):
            await refused.result()
        assert transactions.find(key) is not None


async def test_those_behind_an_error_are_left_to_a_task() -> None:
    """Another coordinator has the transaction: the first one hears that from the store, and the
    next one finds it out.
    """
    stores = Stores()
    async with running(stores) as broker:
        transactions = TopicTransactions(broker, form)
        key = await begun(transactions, broker)
        await overwrite(stores.metadata, f"{RECORDS}/3.{key[1]}", b"another's")
        outcomes = [Completion[None]() for _ in range(2)]
        for name, each in zip("tu", outcomes, strict=True):
            added = [(SOURCE.full, name)]
            assert transactions.at_once.add_subscriptions(key, added, everybody, each.done)
        for each in outcomes:
            with pytest.raises(NotCoordinator):
                await each.result()
        assert transactions.find(key) is None


async def test_an_end_is_behind_what_came_before_it_whatever_fails() -> None:
    """The first write fails for lack of room; what has waited for it is added before the end, which
    waits for the turn, and what comes behind that is not added any more.
    """

    class Full(MemoryMetadata):
        waits: Callable[[BrokerError], None] | None = None

        def put_at_once(self, path: str, value: bytes, expected: int, done: PutDone) -> bool:
            self.waits = partial(done, 0)
            return True

    stores = Stores()
    stores.metadata = store = Full()
    async with running(stores) as broker, trio.open_nursery() as nursery:
        transactions = TopicTransactions(broker, form)
        key = await begun(transactions, broker)
        first, second = Completion[None](), Completion[None]()
        for name, each in (("t", first), ("u", second)):
            asked = [(SOURCE.full, name)]
            assert transactions.at_once.add_subscriptions(key, asked, everybody, each.done)
        nursery.start_soon(partial(transactions.end, key, everybody, commit=True))
        await trio.testing.wait_all_tasks_blocked()
        late = [(SOURCE.full, "v")]
        assert not transactions.at_once.add_subscriptions(key, late, everybody, never)
        assert store.waits is not None
        store.waits(StorageFull("no room"))
        with pytest.raises(StorageFull):
            await first.result()
        with pytest.raises(BrokerError):
            await transactions.add_subscriptions(key, late, everybody)
        await second.result()


async def test_a_store_that_writes_by_tasks_is_left_alone() -> None:
    class Slow(MemoryMetadata):
        puts_at_once = False

    stores = Stores()
    stores.metadata = Slow()
    async with running(stores) as broker:
        transactions = TopicTransactions(broker, form)
        key = await begun(transactions, broker)
        assert not transactions.at_once.add_topics(key, ASKS[0], everybody, never)
        assert not transactions.at_once.end(key, everybody, commit=True, done=never)
        await transactions.end(key, everybody, commit=True)


@pytest.mark.parametrize("commit", [True, False])
async def test_an_end_without_a_task(commit: bool, autojump_clock: MockClock) -> None:
    """A commit that everybody sees has no task at all; an abort is seen when it is stored."""
    stores = Stores()
    async with running(stores) as broker:
        transactions = TopicTransactions(broker, form)
        key = await begun(transactions, broker)
        waiting = Completion[None]()
        assert transactions.at_once.end(key, everybody, commit=commit, done=waiting.done)
        assert not transactions.at_once.end(key, everybody, commit=commit, done=never)
        transactions.check_publish(key, TARGET, everybody)  # it is not stored yet
        await waiting.result()
        assert transactions.find(key) is None
        assert transactions.counts[3].committed == commit
        assert not transactions.at_once.end(key, everybody, commit=commit, done=never)
        await trio.sleep(2 * DELETE_SECONDS)
        assert await stores.metadata.children(RECORDS) == []


async def test_an_end_that_is_seen_later_is_answered_by_a_task(autojump_clock: MockClock) -> None:
    async with running() as broker:
        transactions = TopicTransactions(broker, form)
        keys = [await begun(transactions, broker) for _ in range(2)]
        first, second = Completion[None](), Completion[None]()
        async with broker._alone_with(TARGET):
            await broker._put_away(broker.topics[TARGET.full])
            assert transactions.at_once.end(keys[0], everybody, commit=True, done=first.done)
            with pytest.raises(NotReady, match="committing, but not everywhere yet"):
                await first.result()
            assert transactions.at_once.end(keys[1], everybody, commit=True, done=second.done)
        await second.result()


async def test_an_end_without_a_task_is_for_what_is_ready() -> None:
    """Everything else is found out by a task, and so is what is wrong."""
    stores = Stores()
    async with running(stores) as broker:
        transactions = TopicTransactions(broker, form)
        empty = await transactions.begin(0, 60_000, "me")
        for key in (empty, (0, 77)):
            assert not transactions.at_once.end(key, everybody, commit=True, done=never)
        key = await begun(transactions, broker)
        assert not transactions.at_once.end(key, nobody, commit=True, done=never)
        await overwrite(stores.metadata, f"{RECORDS}/3.{key[1]}", b"another's")
        waiting = Completion[None]()
        assert transactions.at_once.end(key, everybody, commit=True, done=waiting.done)
        with pytest.raises(NotCoordinator):
            await waiting.result()
