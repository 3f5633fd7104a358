"""Batches of sinks: committed as a whole or not at all, once, whatever happens in between."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from itertools import count

import pytest
import trio
from trio.testing import MockClock

from magnetar.core.broker.broker import Broker
from magnetar.core.entry.kafka import form, record_batch
from magnetar.core.kernel.errors import Invalid, NotAllowed, NotCoordinator, StorageFailed
from magnetar.core.kernel.names import TopicName
from magnetar.core.testing.bench import settled
from magnetar.core.testing.broker import Stores, running
from magnetar.core.topic.persistent_topic import PersistentTopic
from magnetar.core.transactions.coordinator import TransactionCoordinator
from magnetar.core.transactions.sink_record import Attempt, attempt_of, is_open
from magnetar.core.transactions.sinks import ATTEMPTS_MAX, EPOCHS, Sinks

PATH = "/sinks"
LOG = TopicName.parse("t")
TIMEOUT_MS, IDLE_MS = 1_000, 100_000
writers: Iterator[int] = count(7)


class Served:
    """Sinks of a broker, and one topic that attempts write to."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.coordinator = TransactionCoordinator(broker, "/transactions", form, never)
        self.sinks = Sinks(broker, PATH, self.coordinator, next_writer, TIMEOUT_MS)

    async def open(self) -> None:
        self.topic = await self.broker.topic(LOG)
        assert isinstance(self.topic, PersistentTopic)
        await self.topic.begin_transactions()
        await self.coordinator.open()
        await self.sinks.open()
        await settled()

    async def write(self, batch: int, sink: str = "s") -> Attempt:
        """An attempt that has written."""
        found = await self.sinks.begin(sink, "q", batch, TIMEOUT_MS)
        assert found is not None
        async with self.coordinator.alone_with(found.name, settled=True) as slot:
            await self.coordinator.extend(slot, logs=[LOG.full])
        return attempt_of(found)

    async def commit(self, batch: int, *winners: Attempt, sink: str = "s") -> None:
        await self.sinks.commit(sink, "q", batch, winners)
        await settled()

    def states(self) -> list[str]:
        return sorted(found.state.value for found in self.coordinator.all())


async def never(_pending: object) -> None:
    raise AssertionError("nothing is pending")


async def next_writer() -> int:
    return next(writers)


@asynccontextmanager
async def serving(stores: Stores) -> AsyncIterator[Served]:
    async with running(stores) as broker:
        served = Served(broker)
        await served.open()
        yield served


async def ended(served: Served) -> dict[Attempt, bool]:
    """Of each attempt whose end is in the log, whether it is committed."""
    ledger, found = served.topic.ledger, {}
    position = ledger.chain.first
    while ledger.chain.has(position):
        part = await ledger.read(position, 100, 1 << 20)
        for at in range(len(part.payloads)):
            batch = form.batch_in(bytes(part.sent(at)))
            assert batch is not None
            of = record_batch.header_of(batch)
            attempt, committed = (of.producer_id, of.producer_epoch), record_batch.is_commit(batch)
            assert found.setdefault(attempt, committed) is committed, "decided in two ways"
        position = ledger.chain.normal((part.ledger_id, part.first_entry + len(part.payloads)))
    return found


# -- without failures -------------------------------------------------------------------------


async def test_winners_are_committed_and_all_others_aborted() -> None:
    async with serving(Stores()) as served:
        first, second, loser = [await served.write(0) for _ in range(3)]
        await served.commit(0, first, second)
        assert await ended(served) == {first: True, second: True, loser: False}
        assert served.states() == ["aborted", "committed", "committed"]


async def test_a_committed_batch_is_not_begun_again() -> None:
    async with serving(Stores()) as served:
        won = await served.write(3)
        await served.commit(3, won)
        for batch in (2, 3):
            assert await served.sinks.begin("s", "q", batch, TIMEOUT_MS) is None
        await served.commit(3, won)  # its answer was lost
        await served.commit(3, (99, 0))
        assert await ended(served) == {won: True}
        writer, epoch = await served.write(4)
        assert writer == won[0]
        assert epoch > won[1]


async def test_transactions_are_used_again() -> None:
    async with serving(Stores()) as served:
        for batch in range(5):
            await served.commit(batch, await served.write(batch), await served.write(batch))
        assert len(list(served.coordinator.all())) == 2
        assert len(await ended(served)) == 10


async def test_another_query_may_not_use_the_sink() -> None:
    async with serving(Stores()) as served:
        await served.commit(0, await served.write(0))
        with pytest.raises(NotAllowed, match="sink s is written by q, not by r"):
            await served.sinks.begin("s", "r", 1, TIMEOUT_MS)


async def test_an_operator_limits_the_time_out() -> None:
    async with serving(Stores()) as served:
        with pytest.raises(Invalid, match="transactions of 1 to 1000 ms"):
            await served.sinks.begin("s", "q", 1, TIMEOUT_MS + 1)


async def test_sinks_do_not_concern_each_other() -> None:
    async with serving(Stores()) as served:
        one, other = await served.write(0), await served.write(0, "s.1")
        await served.commit(0, one)
        assert await ended(served) == {one: True}
        await served.commit(0, other, sink="s.1")
        assert await ended(served) == {one: True, other: True}


async def test_losers_may_be_given_up_at_once() -> None:
    async with serving(Stores()) as served:
        kept, lost = await served.write(0), await served.write(0)
        await served.sinks.abort("s", "q", [lost])
        await settled()
        assert await ended(served) == {lost: False}
        await served.commit(0, kept)
        await served.sinks.abort("s", "q", [kept])
        assert await ended(served) == {lost: False, kept: True}


async def test_what_is_over_cannot_be_committed_and_nothing_else_is_with_it() -> None:
    async with serving(Stores()) as served:
        kept, lost = await served.write(0), await served.write(0)
        await served.sinks.abort("s", "q", [lost])
        await settled()
        with pytest.raises(NotAllowed, match=f"batch 0 of sink s cannot.*producer {lost[0]} "):
            await served.commit(0, kept, lost)
        assert await ended(served) == {lost: False}
        again = await served.write(0)
        await served.commit(0, kept, again)
        assert await ended(served) == {lost: False, kept: True, again: True}


async def test_a_late_request_of_an_attempt_that_is_over_begins_nothing() -> None:
    async with serving(Stores()) as served:
        writer, epoch = await served.write(0)
        await served.commit(0, (writer, epoch))
        found = served.coordinator.of_writer(writer)
        assert found is not None
        assert found.epoch == epoch + 1
        assert not served.coordinator.admits(writer, epoch, LOG.full)


async def test_what_is_silent_for_too_long_is_given_up(autojump_clock: MockClock) -> None:
    stores = Stores()
    async with serving(stores) as served, trio.open_nursery() as nursery:
        nursery.start_soon(served.coordinator.run, IDLE_MS)
        nursery.start_soon(served.sinks.run, IDLE_MS)
        idle = await served.sinks.begin("s", "q", 0, TIMEOUT_MS)
        assert idle is not None
        wrote = await served.write(0)
        for _ in range(3):
            stores.clock.forward(0.8)
            await served.sinks.renew("s")
            await trio.sleep(3)
            assert served.states() == ["empty", "ongoing"]
        stores.clock.forward(1.1)
        await trio.sleep(3)
        assert served.states() == ["aborted", "aborted"]
        assert await ended(served) == {wrote: False}
        nursery.cancel_scope.cancel()


async def test_unused_sinks_are_forgotten(autojump_clock: MockClock) -> None:
    stores = Stores()
    async with serving(stores) as served, trio.open_nursery() as nursery:
        await served.commit(0, await served.write(0))
        nursery.start_soon(served.coordinator.run, IDLE_MS)
        nursery.start_soon(served.sinks.run, IDLE_MS)
        await trio.sleep(3)
        assert await stores.metadata.children(PATH) == ["s"]
        stores.clock.forward(IDLE_MS / 1000 + 1)
        await trio.sleep(5)
        assert await stores.metadata.children(PATH) == []
        assert served.states() == []
        await served.commit(0, await served.write(0))
        nursery.cancel_scope.cancel()


async def test_a_sink_of_one_batch_leaves_nothing() -> None:
    stores = Stores()
    async with serving(stores) as served:
        await served.write(0)
        await served.sinks.forget("s")
        assert served.states() == ["ongoing"]
        await served.commit(0, await served.write(0))
        await served.sinks.forget("s")
        await served.sinks.forget("s")
        assert served.states() == []
        assert await stores.metadata.children(PATH) == []
        assert await stores.metadata.children("/transactions") == []


@pytest.mark.parametrize("task", [-1, ATTEMPTS_MAX])
async def test_a_task_of_a_number_that_there_is_not_has_none(task: int) -> None:
    """To ask again would not help, as it does where a server is overloaded."""
    async with serving(Stores()) as served:
        with pytest.raises(Invalid, match="from 0 to 9999"):
            await served.sinks.number("s", "q", 0, task)


async def test_tasks_that_number_their_rows_have_a_producer_and_batches_an_epoch() -> None:
    stores = Stores()
    async with serving(stores) as served:
        first = [await served.sinks.number("s", "q", 0, task) for task in (0, 1, 5)]
        assert [epoch for _, epoch in filter(None, first)] == [0, 0, 0]
        assert len({writer for writer, _ in filter(None, first)}) == 3
        await served.commit(0)
        assert await served.sinks.number("s", "q", 0, 1) is None
    async with serving(stores) as served:
        again = await served.sinks.number("s", "q", 7, 1)
        assert again == (first[1][0], 7)
        await served.commit(EPOCHS - 1)
        later = await served.sinks.number("s", "q", EPOCHS, 1)
        assert later is not None
        assert later[0] != first[1][0]
        assert later[1] == 0


# -- a crash after any write ------------------------------------------------------------------


class MortalStores(Stores):
    """Stores that fail for good at one of their writes, before or after it has happened."""

    def __init__(self, at: int, *, happens: bool) -> None:
        super().__init__()
        self.left, self.happens, self.dead = at, happens, False
        put = self.metadata.put

        async def mortal(path: str, value: bytes, expected: int) -> int:
            if not path.startswith((PATH, "/transactions")):
                return await put(path, value, expected)
            if not self.dead:
                if self.left:
                    self.left -= 1
                    return await put(path, value, expected)
                self.dead = True
                if self.happens:
                    await put(path, value, expected)
            raise StorageFailed("the process is gone")

        self.metadata.put = mortal  # type: ignore[method-assign]
        self._put = put

    def revive(self) -> None:
        self.metadata.put = self._put  # type: ignore[method-assign]


@pytest.mark.parametrize("happens", [False, True])
@pytest.mark.parametrize("written_again", [False, True])
async def test_a_crash_at_any_write_ends_in_exactly_once(
    autojump_clock: MockClock, happens: bool, written_again: bool
) -> None:
    """Its writer asks again; or is gone too, and another one writes the batch again."""
    for at in range(40):
        stores = MortalStores(at, happens=happens)
        made: list[Attempt] = []
        async with running(stores) as broker:
            served = Served(broker)
            await served.open()
            with suppress(StorageFailed), trio.move_on_after(60):
                while len(made) < 3:
                    made += [await served.write(0)]
                await served.commit(0, *made[:2])
            await settled()
        stores.revive()
        async with serving(stores) as served:
            winners = made[:2]
            if len(made) < 3 or written_again:
                found = await served.sinks.begin("s", "q", 0, TIMEOUT_MS)
                if found is not None:
                    winners = [await served.write(0), await served.write(0)]
            await served.commit(0, *winners)
            committed = [each for each, wins in (await ended(served)).items() if wins]
            assert len(committed) == 2, (at, committed)
            assert set(committed) in ({*made[:2]}, {*winners}), at
            assert not [each for each in served.coordinator.all() if is_open(each)]
        if not stores.dead:
            return
    raise AssertionError("there were more writes than were tried")


async def test_who_lost_a_sink_decides_nothing() -> None:
    """Another owner claims the record before it does anything; the first one hears of it."""
    stores = Stores()
    async with serving(stores) as first:
        won = await first.write(0)
        async with running(stores) as broker:
            second = Served(broker)
            await second.open()
            with pytest.raises(NotCoordinator):
                await first.sinks.commit("s", "q", 0, [won])
            await second.commit(0, won)
            assert await ended(second) == {won: True}
