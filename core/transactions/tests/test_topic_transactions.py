"""Transactions over topics and subscriptions: who may use them, and what crashes leave of them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from magnetar.core.broker.broker import Broker
from magnetar.core.cluster.ownership import OwnershipTable, Peer
from magnetar.core.entry.pulsar import form
from magnetar.core.kernel.completion import Completion
from magnetar.core.kernel.errors import (
    NotAllowed,
    NotCoordinator,
    NotReady,
    Overloaded,
    StorageFailed,
    TransactionConflict,
    TransactionNotFound,
    WrongTransactionState,
)
from magnetar.core.kernel.names import TopicName
from magnetar.core.ledger.log.chain import Position
from magnetar.core.ledger.read.transaction_index import ALL_ABORTED_MAX
from magnetar.core.testing.bench import settled
from magnetar.core.testing.broker import Stores, running
from magnetar.core.testing.client import ClientConsumer, attached
from magnetar.core.testing.entries import entry, part
from magnetar.core.testing.ledgers import MemoryLedger
from magnetar.core.topic.persistent_topic import PersistentTopic
from magnetar.core.topic.subscription.subscription import SubscriptionType
from magnetar.core.transactions import topic_transactions
from magnetar.core.transactions.coordinator import DELETE_SECONDS
from magnetar.core.transactions.topic_transactions import TopicTransactions
from magnetar.core.transactions.transaction import TransactionState
from magnetar.core.transactions.transaction_id import TransactionId

SOURCE, TARGET = TopicName.parse("source"), TopicName.parse("target")


def everybody(_owner: str) -> bool:
    return True


def nobody(owner: str) -> bool:
    return owner == "nobody"


async def topic_of(broker: Broker, name: TopicName) -> PersistentTopic:
    topic = await broker.topic(name)
    assert isinstance(topic, PersistentTopic)
    return topic


async def publish(topic: PersistentTopic, key: TransactionId | None, text: bytes) -> Position:
    waiting = Completion[Position]()
    done = waiting.done if key is None else topic.in_transaction(key, waiting.done)
    topic.publish([entry(text) if key is None else part(key, text)], None, done)
    return await waiting.result()


async def begun(transactions: TopicTransactions) -> TransactionId:
    """Over both topics."""
    key = await transactions.begin(3, 60_000, "me")
    await transactions.add_topics(key, [TARGET.full], everybody)
    await transactions.add_subscriptions(key, [(SOURCE.full, "s")], everybody)
    return key


async def delivered(broker: Broker, consumer: ClientConsumer) -> list[bytes]:
    await settled()
    broker.dispatch()
    await settled()
    broker.dispatch()
    return [payload[-1:] for payload in consumer.payloads]


async def test_ids_are_given_once() -> None:
    stores = Stores()
    keys = []
    for _ in range(2):
        async with running(stores) as broker:
            transactions = TopicTransactions(broker, form)
            keys += [await transactions.begin(number, 1000, "") for number in (0, 0, 15)]
    assert [key[0] for key in keys] == [0, 0, 15] * 2
    assert len({key[1] for key in keys}) == 6


async def test_coordinators_have_numbers() -> None:
    async with running() as broker:
        transactions = TopicTransactions(broker, form)
        for number in (-1, 16, 1 << 63):
            with pytest.raises(NotCoordinator):
                await transactions.begin(number, 1000, "")


async def test_only_its_owner_may_use_it() -> None:
    async with running() as broker:
        transactions = TopicTransactions(broker, form)
        key = await begun(transactions)
        with pytest.raises(TransactionNotFound, match="neither the owner"):
            transactions.check_publish(key, TARGET, nobody)
        with pytest.raises(TransactionNotFound):
            transactions.check_acknowledge(key, SOURCE, "s", nobody)
        for refused in (
            transactions.add_topics(key, [SOURCE.full], nobody),
            transactions.add_subscriptions(key, [(SOURCE.full, "t")], nobody),
            transactions.end(key, nobody, commit=True),
        ):
            with pytest.raises(TransactionNotFound):
                await refused
        transactions.check_publish(key, TARGET, everybody)
        await transactions.end(key, everybody, commit=True)


async def test_it_is_used_where_it_is_added_and_until_it_ends() -> None:
    async with running() as broker:
        transactions = TopicTransactions(broker, form)
        key = await begun(transactions)
        transactions.check_publish(key, TARGET, everybody)
        transactions.check_acknowledge(key, SOURCE, "s", everybody)
        with pytest.raises(NotAllowed):
            transactions.check_publish(key, SOURCE, everybody)
        with pytest.raises(NotAllowed):
            transactions.check_acknowledge(key, SOURCE, "t", everybody)
        await transactions.end(key, everybody, commit=False)
        assert transactions.find(key) is None
        with pytest.raises(TransactionNotFound):
            transactions.check_publish(key, TARGET, everybody)
        with pytest.raises(TransactionNotFound):
            await transactions.end(key, everybody, commit=False)
        assert [each async for each in transactions.all()] == []


async def test_a_decision_is_repeated_and_not_changed() -> None:
    """While it is carried out: a topic is being loaded, which takes as long as the test wants."""
    async with running() as broker, trio.open_nursery() as nursery:
        transactions = TopicTransactions(broker, form)
        await topic_of(broker, TARGET)
        key = await begun(transactions)
        async with broker._alone_with(TARGET):
            await broker._put_away(broker.topics[TARGET.full])
            nursery.start_soon(lambda: transactions.end(key, everybody, commit=True))
            await settled()
            found = transactions.find(key)
            assert found is not None
            assert found.state is TransactionState.COMMITTING
            with pytest.raises(WrongTransactionState):
                await transactions.end(key, everybody, commit=False)
            with pytest.raises(WrongTransactionState):
                transactions.check_publish(key, TARGET, everybody)
            nursery.start_soon(lambda: transactions.end(key, everybody, commit=True))
            await settled()
        await settled()
        assert transactions.find(key) is None


async def test_an_end_that_takes_too_long_is_decided_and_may_be_repeated(
    autojump_clock: MockClock,
) -> None:
    """A topic cannot be loaded for a while; meanwhile its client waits with a deadline."""
    async with running() as broker:
        transactions = TopicTransactions(broker, form)
        await topic_of(broker, TARGET)
        key = await begun(transactions)
        async with broker._alone_with(TARGET):
            await broker._put_away(broker.topics[TARGET.full])
            began = trio.current_time()
            for _ in range(2):
                with pytest.raises(NotReady, match=r"\(3,.*committing"):
                    await transactions.end(key, everybody, commit=True)
            assert trio.current_time() - began == pytest.approx(60, abs=1)
            with pytest.raises(WrongTransactionState):
                await transactions.end(key, everybody, commit=False)
        await transactions.end(key, everybody, commit=True)
        assert transactions.find(key) is None


async def test_there_are_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topic_transactions, "OPEN_MAX", 1)
    monkeypatch.setattr(topic_transactions, "NAMES_MAX", 2)
    async with running() as broker:
        transactions = TopicTransactions(broker, form)
        key = await begun(transactions)
        with pytest.raises(Overloaded):
            await transactions.begin(0, 1000, "")
        await transactions.add_topics(key, [TARGET.full], everybody)  # it is there already
        with pytest.raises(NotAllowed):
            await transactions.add_topics(key, [SOURCE.full], everybody)
        await transactions.end(key, everybody, commit=True)
        await settled()  # its record is deleted
        await transactions.begin(0, 1000, "")


async def test_what_is_added_at_once_is_stored_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients ask for a topic and a subscription at the same time; each has an answer of its own,
    and what one may not have the others may.
    """
    monkeypatch.setattr(topic_transactions, "NAMES_MAX", 3)
    stores = Stores()
    async with running(stores) as broker:
        transactions = TopicTransactions(broker, form)
        key = await transactions.begin(0, 60_000, "me")
        path = f"{topic_transactions.RECORDS}/{key[0]}.{key[1]}"
        outcomes: dict[str, object] = {}

        async def add(name: str, *topics: str) -> None:
            try:
                if topics:
                    await transactions.add_topics(key, topics, everybody)
                else:
                    await transactions.add_subscriptions(key, [(SOURCE.full, name)], everybody)
            except NotAllowed as error:
                outcomes[name] = error
            else:
                outcomes[name] = True

        async with trio.open_nursery() as nursery:
            nursery.start_soon(add, "s")
            nursery.start_soon(add, "many", *(f"t{number}" for number in range(3)))
            nursery.start_soon(add, "target", TARGET.full)
            nursery.start_soon(add, "t")
        assert {name for name, found in outcomes.items() if found is True} == {"s", "t", "target"}
        assert isinstance(outcomes["many"], NotAllowed)
        found = transactions.find(key)
        assert found is not None
        assert (len(found.participants), found.logs) == (2, (TARGET.full,))
        stored = await broker.metadata.get(path)
        assert stored is not None
        assert stored.version < 2, "four requests, of which some wait for their topics"
        assert not transactions._additions
        for name in ("s", "t"):
            transactions.check_acknowledge(key, SOURCE, name, everybody)


async def test_names_are_bounded_for_all_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Thousands of names of 4 KB in each of 50,000 transactions would be a terabyte."""
    long = "persistent://public/default/" + "t" * 3_970
    monkeypatch.setattr(topic_transactions, "NAMES_BYTES_MAX", 20_000)
    monkeypatch.setattr(topic_transactions, "ALL_NAMES_BYTES_MAX", 30_000)
    async with running() as broker:
        transactions = TopicTransactions(broker, form)
        keys = [await transactions.begin(0, 60_000, "") for _ in range(3)]
        for name in "abcd":
            await transactions.add_subscriptions(keys[0], [(long, name)], everybody)
        with pytest.raises(NotAllowed):
            await transactions.add_subscriptions(keys[0], [(long, "e")], everybody)
        with pytest.raises(NotAllowed):
            await transactions.add_subscriptions(keys[1], [("source", "e" * 20_000)], everybody)
        await transactions.add_topics(keys[1], [long], everybody)
        for name in "ab":
            await transactions.add_subscriptions(keys[2], [(long, name)], everybody)
        with pytest.raises(Overloaded):
            await transactions.add_subscriptions(keys[2], [(long, "c")], everybody)
        await transactions.end(keys[0], everybody, commit=False)
        await transactions.add_subscriptions(keys[2], [(long, "c")], everybody)


async def test_the_record_of_the_longest_names_fits_into_a_znode() -> None:
    """Letters of four bytes, and topics that are named otherwise than in full, too."""
    stores = Stores()
    async with running(stores) as broker:
        transactions = TopicTransactions(broker, form)
        key = await transactions.begin(0, 60_000, "me")

        async def add(first: int) -> None:
            names = ["\N{FROG FACE}" * 200 + str(number) for number in range(first, first + 50)]
            await transactions.add_topics(key, names, everybody)

        for times in range(7):
            await add(50 * times)
        with pytest.raises(NotAllowed, match="too long names"):
            await add(350)
        record = await stores.metadata.get(f"{topic_transactions.RECORDS}/0.{key[1]}")
        assert record is not None
        assert 800_000 < len(record.value) < 1_000_000, "as `zookeeper/store.py` allows"


async def test_its_time_ends_it(autojump_clock: MockClock) -> None:
    stores = Stores()
    async with running(stores) as broker, trio.open_nursery() as nursery:
        transactions = TopicTransactions(broker, form)
        nursery.start_soon(transactions.run)
        target = await topic_of(broker, TARGET)
        key = await transactions.begin(0, 5_000, "")
        await transactions.add_topics(key, [TARGET.full], everybody)
        await publish(target, key, b"x")
        assert key in target.ledger.transactions.open
        stores.clock.forward(4)
        await trio.sleep(3)
        assert transactions.find(key) is not None
        stores.clock.forward(2)
        await trio.sleep(3)
        assert transactions.find(key) is None
        assert not target.ledger.transactions.open
        counts = transactions.counts[0]
        assert (counts.begun, counts.committed, counts.aborted, counts.timed_out) == (1, 0, 1, 1)
        nursery.cancel_scope.cancel()


async def test_one_that_includes_nothing_is_not_stored(autojump_clock: MockClock) -> None:
    """Its end, its time and a crash leave nothing of it."""
    stores = Stores()
    async with running(stores) as broker, trio.open_nursery() as nursery:
        transactions = TopicTransactions(broker, form)
        nursery.start_soon(transactions.run)
        ended, late, left = [await transactions.begin(0, ms, "me") for ms in (9_000, 1_000, 9_000)]
        assert {key async for key, _ in transactions.all()} == {ended, late, left}
        await transactions.end(ended, everybody, commit=True)
        stores.clock.forward(2)
        await trio.sleep(3)
        assert [key async for key, _ in transactions.all()] == [left]
        for key in (ended, late):
            with pytest.raises(TransactionNotFound):
                await transactions.add_topics(key, [TARGET.full], everybody)
        assert await stores.metadata.children(topic_transactions.RECORDS) == []
        counts = transactions.counts[0]
        assert (counts.begun, counts.committed, counts.aborted, counts.timed_out) == (3, 1, 1, 1)
        nursery.cancel_scope.cancel()
    async with running(stores) as broker:
        transactions = TopicTransactions(broker, form)
        await transactions.open()
        with pytest.raises(TransactionNotFound):
            await transactions.end(left, everybody, commit=True)


async def test_it_is_asked_who_owns_it_before_it_includes_anything() -> None:
    other = Peer(7)
    ownership = OwnershipTable(other)
    async with running(Stores(), ownership=ownership) as broker:
        transactions = TopicTransactions(broker, form)
        key = await transactions.begin(0, 1_000, "")
        ownership.transactions[f"0.{key[1]}"] = other
        with pytest.raises(NotCoordinator):
            await transactions.add_topics(key, [TARGET.full], everybody)


async def test_records_of_what_is_over_are_deleted_together(autojump_clock: MockClock) -> None:
    stores = Stores()
    async with running(stores) as broker:
        transactions = TopicTransactions(broker, form)
        keys = [await begun(transactions) for _ in range(3)]
        for key in keys:
            await transactions.end(key, everybody, commit=True)
        assert len(await stores.metadata.children(topic_transactions.RECORDS)) == 3
        await trio.sleep(2 * DELETE_SECONDS)
        assert await stores.metadata.children(topic_transactions.RECORDS) == []


async def test_a_topic_with_too_many_aborted_ones_is_not_added() -> None:
    async with running() as broker:
        transactions = TopicTransactions(broker, form)
        key = await begun(transactions)
        await topic_of(broker, TARGET)
        broker.env.aborted.count = ALL_ABORTED_MAX
        other = await transactions.begin(0, 60_000, "me")
        with pytest.raises(NotAllowed, match="too many aborted"):
            await transactions.add_topics(other, [TARGET.full], everybody)
        await transactions.end(other, everybody, commit=True)
        await transactions.end(key, everybody, commit=True)


async def test_what_is_deleted_has_no_part_in_the_end() -> None:
    async with running() as broker:
        transactions = TopicTransactions(broker, form)
        source, target = await topic_of(broker, SOURCE), await topic_of(broker, TARGET)
        await source.subscription("s")
        key = await begun(transactions)
        await publish(target, key, b"x")
        await source.unsubscribe("s", force=True)
        await broker.delete(TARGET, force=True)
        await transactions.end(key, everybody, commit=True)
        assert transactions.find(key) is None


@pytest.mark.parametrize("kind", list(SubscriptionType))
async def test_a_message_is_acknowledged_in_one(kind: SubscriptionType) -> None:
    async with running() as broker:
        transactions = TopicTransactions(broker, form)
        source = await topic_of(broker, SOURCE)
        place = await publish(source, None, b"m")
        consumer = await attached(source, kind)
        subscription = source.subscriptions["s"]
        assert await delivered(broker, consumer) == [b"m"]
        first, second = await begun(transactions), await begun(transactions)
        subscription.hold(consumer.consumer, first, [(*place, place[1])], [])
        with pytest.raises(TransactionConflict):
            subscription.hold(consumer.consumer, second, [(*place, place[1])], [])
        consumer.nack()
        assert await delivered(broker, consumer) == [b"m"], "nobody gets it meanwhile"
        await transactions.end(first, everybody, commit=False)
        assert await delivered(broker, consumer) == [b"m", b"m"]
        subscription.hold(consumer.consumer, second, [(*place, place[1])], [])
        await transactions.end(second, everybody, commit=True)
        assert subscription.cursor.backlog == 0
        consumer.nack()
        assert await delivered(broker, consumer) == [b"m", b"m"]


# -- crashes ------------------------------------------------------------------------------------


class Crash:
    """Ends all writes of the stores after so many of them; the last one may be stored unheard."""

    def __init__(self, stores: Stores, patch: pytest.MonkeyPatch, writes: int, unheard: bool):
        self.left, self.unheard = writes, unheard
        self.over = trio.Event()
        """Set when nobody is left who waits, since writers do not let themselves be cancelled."""
        metadata, append = stores.metadata, MemoryLedger.append

        def lets_through() -> bool:
            self.left -= 1
            return self.left >= 0

        def limited(write: Callable[..., Any]) -> Callable[..., Any]:
            async def written(*args: Any) -> Any:
                if lets_through():
                    return await write(*args)
                if self.left == -1 and self.unheard:
                    await write(*args)
                await self.over.wait()
                raise StorageFailed("the power is gone")

            return written

        def appended(ledger: MemoryLedger, payloads: Any, done: Any, headers: Any = None) -> int:
            if lets_through():
                return append(ledger, payloads, done, headers)
            if self.left == -1 and self.unheard:
                return append(ledger, payloads, lambda _error: None, headers)
            return len(ledger.entries)

        for name in ("put", "delete", "next"):
            patch.setattr(metadata, name, limited(getattr(metadata, name)))
        patch.setattr(MemoryLedger, "append", appended)


@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize("unheard", [True, False])
async def test_a_crash_at_any_write_leaves_it_whole(commit: bool, unheard: bool) -> None:
    """Whatever was stored last: what was answered holds, and all of it is there, or nothing. A
    commit is answered before the markers are stored.
    """
    outcomes, ended = set(), 0
    for writes in range(100):
        told, outcome, was_cut = await _one_life(writes, commit=commit, unheard=unheard)
        outcomes.add(outcome)
        ended += "ended" in told
        if not was_cut:
            break
    else:
        pytest.fail("it never ended")
    assert writes > 6, "there are so many writes at least"
    assert ended == (3 if commit else 1), "it was cut before the marker and the cursor, too"
    assert outcomes == {"open", "not begun", "over"}


async def _one_life(writes: int, *, commit: bool, unheard: bool) -> tuple[list[str], str, bool]:
    stores, told = Stores(), list[str]()
    keys: list[TransactionId] = []
    with pytest.MonkeyPatch.context() as patch:
        async with running(stores) as broker, trio.open_nursery() as nursery:
            source, target = await topic_of(broker, SOURCE), await topic_of(broker, TARGET)
            place = await publish(source, None, b"m")
            await target.subscription("s", start=(-1, -1))
            consumer = await attached(source, SubscriptionType.SHARED)
            await delivered(broker, consumer)
            crash = Crash(stores, patch, writes, unheard)

            async def work() -> None:
                transactions = TopicTransactions(broker, form)
                keys.append(await transactions.begin(3, 60_000, "me"))
                told.append("begun")
                await transactions.add_topics(keys[0], [TARGET.full], everybody)
                await publish(target, keys[0], b"x")
                told.append("published")
                await transactions.add_subscriptions(keys[0], [(SOURCE.full, "s")], everybody)
                subscription = source.subscriptions["s"]
                subscription.hold(consumer.consumer, keys[0], [(*place, place[1])], [])
                await subscription.cursor.saved()
                told.append("acknowledged")
                await transactions.end(keys[0], everybody, commit=commit)
                told.append("ended")

            async def life() -> None:
                with suppress(StorageFailed):
                    await work()

            nursery.start_soon(life)
            await settled()
            if "ended" in told:
                assert not target.ledger.transactions.open
                assert source.subscriptions["s"].cursor.acks.is_acked(place) is commit
            nursery.cancel_scope.cancel()
            crash.over.set()
    outcome = await _next_life(stores, keys, told, place, commit=commit)
    return told, outcome, crash.left < 0


async def _next_life(
    stores: Stores, keys: list[TransactionId], told: list[str], place: Position, *, commit: bool
) -> str:
    async with running(stores) as broker:
        transactions = TopicTransactions(broker, form)
        await transactions.open()
        await settled()
        outcome = "not begun"
        if keys:
            found = transactions.find(keys[0])
            outcome = "over" if found is None else "open"
            if found is not None:
                assert found.state is TransactionState.ONGOING, "a decision is carried out"
                assert "ended" not in told
                await transactions.end(keys[0], everybody, commit=commit)
        async for _, left in transactions.all():  # begun, and nobody heard
            await transactions.end(topic_transactions.id_of(left), everybody, commit=False)
        source, target = await topic_of(broker, SOURCE), await topic_of(broker, TARGET)
        assert not target.ledger.transactions.open
        reader = await attached(target, SubscriptionType.EXCLUSIVE)
        seen = await delivered(broker, reader)
        acknowledged = source.subscriptions["s"].cursor.acks.is_acked(place)
        assert not source.subscriptions["s"].cursor.pending
        if "ended" in told:
            assert outcome == "over"
        if "acknowledged" in told:
            assert seen == ([b"x"] if commit else [])
            assert acknowledged is commit
        elif "published" in told:
            assert seen == ([b"x"] if commit else [])
        again = await attached(source, SubscriptionType.SHARED)
        assert await delivered(broker, again) == ([] if acknowledged else [b"m"])
        return outcome
