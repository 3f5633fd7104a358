"""Transactions decided once, and carried out whatever happens in between."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
import trio
from trio.testing import MockClock

from magnetar.core.broker.broker import Broker
from magnetar.core.entry.kafka import form
from magnetar.core.kernel.errors import (
    BrokerError,
    Corrupted,
    Fenced,
    NotCoordinator,
    NotReady,
    Overloaded,
    StorageFailed,
)
from magnetar.core.kernel.names import TopicName
from magnetar.core.ports.ledger_store import Done
from magnetar.core.testing.bench import settled
from magnetar.core.testing.broker import Stores, running
from magnetar.core.testing.metadata import overwrite
from magnetar.core.topic.persistent_topic import PersistentTopic
from magnetar.core.transactions.coordinator import (
    DELETE_SECONDS,
    TransactionCoordinator,
)
from magnetar.core.transactions.kind import TransactionKind
from magnetar.core.transactions.transaction import PendingCommit, Transaction, TransactionState

PATH = "/transactions"
NAMES = [TopicName.parse(f"t{number}") for number in range(3)]
LOGS = [name.full for name in NAMES]


class Keeper:
    """Carries out pending commits, once its failures are used up."""

    def __init__(self) -> None:
        self.kept: list[str] = []
        self.failures = 0
        self.failure: BrokerError = NotReady("not yet")

    async def __call__(self, pending: Iterable[PendingCommit]) -> None:
        if self.failures:
            self.failures -= 1
            raise self.failure
        self.kept += [commit.participant for commit in pending]


async def topics_of(broker: Broker) -> list[PersistentTopic]:
    found = []
    for name in NAMES:
        topic = await broker.topic(name)
        assert isinstance(topic, PersistentTopic)
        await topic.begin_transactions()
        found.append(topic)
    return found


async def begun(coordinator: TransactionCoordinator, name: str = "n") -> None:
    async with coordinator.alone_with(name, settled=True) as slot:
        if slot.transaction is None:
            await coordinator.store(slot, Transaction(name, 7, 0, 1000))
        await coordinator.extend(
            slot, logs=LOGS, participants=["g"], pending=[PendingCommit("g", b"1")]
        )


async def decide(coordinator: TransactionCoordinator, *, commit: bool, name: str = "n") -> None:
    async with coordinator.alone_with(name, settled=True) as slot:
        await coordinator.decide(slot, commit=commit)


def state_of(coordinator: TransactionCoordinator, name: str = "n") -> TransactionState | None:
    found = coordinator.find(name)
    return found.state if found is not None else None


@pytest.mark.parametrize("commit", [True, False])
async def test_an_end_reaches_every_log_and_participant(commit: bool) -> None:
    keeper = Keeper()
    async with running() as broker:
        coordinator = TransactionCoordinator(broker, PATH, form, keeper)
        topics = await topics_of(broker)
        await begun(coordinator)
        assert state_of(coordinator) is TransactionState.ONGOING
        await decide(coordinator, commit=commit)
        await settled()
        assert state_of(coordinator) is (
            TransactionState.COMMITTED if commit else TransactionState.ABORTED
        )
        assert [topic.ledger.chain.entries for topic in topics] == [1, 1, 1]
        assert keeper.kept == (["g"] if commit else [])
        found = coordinator.find("n")
        assert found is not None
        assert (found.logs, found.participants, found.pending) == ((), (), ())


async def test_only_who_is_in_it_may_write() -> None:
    async with running() as broker:
        coordinator = TransactionCoordinator(broker, PATH, form, Keeper())
        await topics_of(broker)
        await begun(coordinator)
        assert coordinator.admits(7, 0, LOGS[0])
        assert not coordinator.admits(7, 1, LOGS[0])
        assert not coordinator.admits(8, 0, LOGS[0])
        assert not coordinator.admits(7, 0, "persistent://public/default/other")
        await decide(coordinator, commit=True)
        assert not coordinator.admits(7, 0, LOGS[0])


@pytest.mark.parametrize("commit", [True, False])
async def test_what_was_decided_before_a_crash_is_carried_out_after_it(commit: bool) -> None:
    stores, keeper = Stores(sync_at_once=False), Keeper()
    async with running(stores) as broker:
        coordinator = TransactionCoordinator(broker, PATH, form, keeper)
        await topics_of(broker)
        await begun(coordinator)
        await decide(coordinator, commit=commit)
        await settled()
        assert state_of(coordinator) in (TransactionState.COMMITTING, TransactionState.ABORTING)
    stores = _after_a_crash(stores)
    async with running(stores) as broker:
        coordinator = TransactionCoordinator(broker, PATH, form, keeper)
        await coordinator.open()
        await settled()
        assert state_of(coordinator) is (
            TransactionState.COMMITTED if commit else TransactionState.ABORTED
        )
        topics = await topics_of(broker)
        assert [topic.ledger.chain.entries for topic in topics] == [1, 1, 1]
        assert keeper.kept == (["g"] if commit else [])


def _after_a_crash(stores: Stores) -> Stores:
    """What was not confirmed is gone; from now on everything is at once."""
    again = Stores()
    again.metadata = stores.metadata
    return again


async def test_a_transaction_that_goes_on_is_there_after_a_crash() -> None:
    stores = Stores()
    async with running(stores) as broker:
        coordinator = TransactionCoordinator(broker, PATH, form, Keeper())
        await topics_of(broker)
        await begun(coordinator)
    async with running(stores) as broker:
        coordinator = TransactionCoordinator(broker, PATH, form, Keeper())
        await coordinator.open()
        assert state_of(coordinator) is TransactionState.ONGOING
        assert coordinator.admits(7, 0, LOGS[2])


@pytest.mark.parametrize(
    "failure", [NotReady("not yet"), NotCoordinator("of the group"), Overloaded("full")]
)
async def test_the_next_transaction_begins_when_pending_commits_are_carried_out(
    autojump_clock: MockClock, failure: BrokerError
) -> None:
    """Whatever the reason is for which a participant refuses: the outcome has been reported."""
    keeper = Keeper()
    keeper.failures, keeper.failure = 3, failure
    async with running() as broker:
        coordinator = TransactionCoordinator(broker, PATH, form, keeper)
        await topics_of(broker)
        await begun(coordinator)
        await decide(coordinator, commit=True)
        with trio.fail_after(60):
            await begun(coordinator)
        assert keeper.kept == ["g"]
        assert state_of(coordinator) is TransactionState.ONGOING


async def test_a_topic_that_is_gone_holds_nobody_up() -> None:
    async with running() as broker:
        coordinator = TransactionCoordinator(broker, PATH, form, Keeper())
        await topics_of(broker)
        await begun(coordinator)
        await broker.delete(NAMES[1], force=True)
        await decide(coordinator, commit=True)
        await settled()
        assert state_of(coordinator) is TransactionState.COMMITTED


async def test_what_takes_too_long_is_aborted_and_its_writer_fenced(
    autojump_clock: MockClock,
) -> None:
    stores = Stores()
    async with running(stores) as broker, trio.open_nursery() as nursery:
        coordinator = TransactionCoordinator(broker, PATH, form, Keeper())
        await topics_of(broker)
        await begun(coordinator)
        nursery.start_soon(coordinator.run, 3_600_000)
        await trio.sleep(5)
        assert state_of(coordinator) is TransactionState.ONGOING
        stores.clock.forward(1.1)
        await trio.sleep(5)
        assert state_of(coordinator) is TransactionState.ABORTED
        found = coordinator.find("n")
        assert found is not None
        assert found.epoch == 1
        nursery.cancel_scope.cancel()


async def test_names_that_nobody_uses_are_forgotten(autojump_clock: MockClock) -> None:
    stores = Stores()
    async with running(stores) as broker, trio.open_nursery() as nursery:
        coordinator = TransactionCoordinator(broker, PATH, form, Keeper())
        await topics_of(broker)
        await begun(coordinator, "old")
        await decide(coordinator, commit=True, name="old")
        nursery.start_soon(coordinator.run, 10_000)
        await trio.sleep(5)
        assert state_of(coordinator, "old") is TransactionState.COMMITTED
        stores.clock.forward(11)
        await trio.sleep(5)
        assert coordinator.find("old") is None
        assert coordinator.of_writer(7) is None
        assert await stores.metadata.children(PATH) == []
        nursery.cancel_scope.cancel()


async def test_names_of_a_transaction_that_is_lost_are_counted_off_once(
    autojump_clock: MockClock,
) -> None:
    """Another coordinator writes the record while the decision is carried out."""
    stores = Stores()
    async with running(stores) as broker:
        kind = TransactionKind(is_reused=False)
        coordinator = TransactionCoordinator(broker, PATH, form, Keeper(), kind)
        await topics_of(broker)
        await begun(coordinator)
        assert coordinator.names_bytes > 0
        await decide(coordinator, commit=True)
        record = await stores.metadata.get(f"{PATH}/n")
        assert record is not None
        await overwrite(stores.metadata, f"{PATH}/n", record.value)
        await settled()
        assert coordinator.find("n") is None
        assert coordinator.names_bytes == 0
        await coordinator.open()
        await settled()
        assert coordinator.names_bytes == 0, "it is loaded, and ends"
        await trio.sleep(2 * DELETE_SECONDS)
        assert await stores.metadata.children(PATH) == []


class Participants:
    """Show commits at once, and are asked to store them."""

    def __init__(self) -> None:
        self.asked: list[Done] = []
        self.settled: list[str] = []

    def store(self, found: Transaction, name: str, done: Done) -> None:
        assert found.state is TransactionState.COMMITTING
        self.asked.append(done)

    async def settle(self, found: Transaction, name: str) -> None:
        self.settled.append(name)

    def kind(self) -> TransactionKind:
        return TransactionKind(
            show=lambda found, name: True, store=self.store, settle=self.settle, is_reused=False
        )


async def shown(coordinator: TransactionCoordinator) -> None:
    """A commit that all see."""
    async with coordinator.alone_with("n", settled=True) as slot:
        await coordinator.store(slot, Transaction("n", 7, 0, 1000))
        await coordinator.extend(slot, logs=LOGS, participants=["g", "h"])
    await decide(coordinator, commit=True)
    await settled()
    assert coordinator.find("n") is None


@pytest.mark.parametrize("failure", [None, StorageFailed("the disk is full")])
async def test_a_commit_that_all_see_is_over_when_all_have_stored_it(
    autojump_clock: MockClock, failure: BrokerError | None
) -> None:
    """At once and without a task; one follows if that fails, and does all of it again."""
    stores, participants = Stores(), Participants()
    async with running(stores) as broker:
        coordinator = TransactionCoordinator(broker, PATH, form, Keeper(), participants.kind())
        topics = await topics_of(broker)
        await shown(coordinator)
        assert [topic.ledger.chain.entries for topic in topics] == [1, 1, 1]
        participants.asked[0](failure)
        await trio.sleep(2 * DELETE_SECONDS)
        assert await stores.metadata.children(PATH) == ["n"], "one is left"
        participants.asked[1](None)
        await trio.sleep(2 * DELETE_SECONDS)
        assert await stores.metadata.children(PATH) == []
        again = failure is not None
        assert [topic.ledger.chain.entries for topic in topics] == [1 + again] * 3
        assert participants.settled == (["g", "h"] if again else [])
        assert coordinator.size == 0


async def test_a_log_that_is_taken_over_is_marked_by_who_has_it(autojump_clock: MockClock) -> None:
    """The append fails, where nothing was verified; then the record is looked at."""
    stores, participants = Stores(), Participants()
    async with running(stores) as broker:
        coordinator = TransactionCoordinator(broker, PATH, form, Keeper(), participants.kind())
        topics = await topics_of(broker)
        async with coordinator.alone_with("n", settled=True) as slot:
            await coordinator.store(slot, Transaction("n", 7, 0, 1000))
            await coordinator.extend(slot, logs=LOGS)
        topics[1].ledger.fence(Fenced("another owner"))
        async with coordinator.alone_with("n", settled=True) as slot:
            await coordinator.decide(slot, commit=True)
            record = await stores.metadata.get(f"{PATH}/n")
            assert record is not None
            await overwrite(stores.metadata, f"{PATH}/n", record.value)
        await settled()
        assert slot.lost
        assert coordinator.size == 0
        assert topics[1].ledger.chain.entries == 0


async def test_what_cannot_be_stored_did_not_happen(monkeypatch: pytest.MonkeyPatch) -> None:
    stores = Stores()
    async with running(stores) as broker:
        coordinator = TransactionCoordinator(broker, PATH, form, Keeper())
        await topics_of(broker)
        await begun(coordinator)

        async def failing(*_args: object) -> int:
            raise StorageFailed("no")

        with monkeypatch.context() as patch:
            patch.setattr(stores.metadata, "put", failing)
            with pytest.raises(StorageFailed):
                await decide(coordinator, commit=True)
        assert state_of(coordinator) is TransactionState.ONGOING
        await decide(coordinator, commit=False)
        await settled()
        assert state_of(coordinator) is TransactionState.ABORTED


async def test_a_decision_of_which_nobody_heard_is_not_changed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The store wrote it, and the connection broke before it could say so."""
    stores, keeper = Stores(), Keeper()
    async with running(stores) as broker:
        coordinator = TransactionCoordinator(broker, PATH, form, keeper)
        await topics_of(broker)
        await begun(coordinator)
        put = stores.metadata.put

        async def unheard(path: str, value: bytes, expected: int) -> int:
            await put(path, value, expected)
            raise StorageFailed("nobody knows")

        with monkeypatch.context() as patch:
            patch.setattr(stores.metadata, "put", unheard)
            with pytest.raises(StorageFailed):
                await decide(coordinator, commit=True)
        async with coordinator.alone_with("n", settled=False) as slot:
            assert slot.transaction is not None
            assert slot.transaction.decided
        async with coordinator.alone_with("n", settled=True) as slot:
            assert slot.transaction is not None
            assert slot.transaction.state is TransactionState.COMMITTED
        assert keeper.kept == ["g"]


@pytest.mark.parametrize("data", [b"", b"[]", b"\xff\xfe", b"\x93\x01\x02\x03"])
async def test_a_record_that_cannot_be_read_fails_its_transaction_alone(data: bytes) -> None:
    stores = Stores()
    async with running(stores) as broker:
        await topics_of(broker)
        await begun(TransactionCoordinator(broker, PATH, form, Keeper()))
        await overwrite(stores.metadata, f"{PATH}/damaged", data)
        coordinator = TransactionCoordinator(broker, PATH, form, Keeper())
        await coordinator.open()
        assert state_of(coordinator) is TransactionState.ONGOING
        with pytest.raises(Corrupted, match="damaged cannot be read"):
            await begun(coordinator, "damaged")
        await decide(coordinator, commit=True)
