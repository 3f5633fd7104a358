"""The last entry that consumers are delivered, and how much of the log is read to find it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from magnetar.core.entry.pulsar import form
from magnetar.core.ledger.log.chain import START, Position
from magnetar.core.ledger.read.losses import Losses
from magnetar.core.ledger.read.tail_cache import Slice
from magnetar.core.testing.bench import Bench, IndexedOutcome, bench, settled
from magnetar.core.testing.entries import entry, part
from magnetar.core.topic.last_message import LOOKED_AT_ONCE
from magnetar.core.topic.persistent_topic import PersistentTopic

TXN = (3, 4)


async def write(topic: PersistentTopic, txn: tuple[int, int]) -> Position:
    outcome = IndexedOutcome(topic.ledger)
    topic.publish([part(txn)], None, outcome)
    await settled()
    assert isinstance(outcome.result, tuple)
    topic.transactions.index.wrote(txn, outcome.index, outcome.result, 1)
    return outcome.result


async def end(topic: PersistentTopic, txn: tuple[int, int], *, committed: bool) -> None:
    await topic.end_transaction(form, txn, 0, committed=committed)


@pytest.fixture
def rounds(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many entries each round of reading has returned."""
    seen: list[int] = []
    read: Callable[..., Awaitable[Slice]] = Losses.read_round

    async def reading(self: Losses, *asked: object) -> Slice:
        found = await read(self, *asked)
        seen.append(len(found.payloads))
        return found

    monkeypatch.setattr(Losses, "read_round", reading)
    return seen


async def test_without_transactions_nothing_is_read(desk: Bench, rounds: list[int]) -> None:
    topic = await desk.topic()
    assert await topic.transactions.last.find() == topic.ledger.chain.confirmed
    places = await desk.published(topic, *[entry()] * 5)
    assert await topic.transactions.last.find() == places[-1]
    assert rounds == []


async def test_what_is_searched_is_not_searched_again(desk: Bench, rounds: list[int]) -> None:
    """A reader asks each time whether there is more, and a million entries may be aborted."""
    topic = await desk.topic()
    (place,) = await desk.published(topic, entry())
    await topic.begin_transactions()
    for number in range(2 * LOOKED_AT_ONCE):
        await write(topic, (1, number))
        await end(topic, (1, number), committed=False)
    find = topic.transactions.last.find
    assert await find() == place
    assert sum(rounds) == 4 * LOOKED_AT_ONCE + 1
    rounds.clear()
    assert await find() == place
    assert rounds == []
    await write(topic, TXN)
    await end(topic, TXN, committed=False)
    assert await find() == place
    assert sum(rounds) == 2


async def test_who_asks_at_the_same_time_reads_once(desk: Bench, rounds: list[int]) -> None:
    topic = await desk.topic()
    await topic.begin_transactions()
    for number in range(10):
        await write(topic, (1, number))
        await end(topic, (1, number), committed=False)
    async with trio.open_nursery() as nursery:
        for _ in range(5):
            nursery.start_soon(topic.transactions.last.find)
    assert sum(rounds) == 20


async def test_who_gives_up_leaves_the_search_to_the_next(desk: Bench) -> None:
    topic = await desk.topic()
    await topic.begin_transactions()
    place = await write(topic, TXN)
    await end(topic, TXN, committed=True)
    with trio.CancelScope() as scope:
        scope.cancel()
        await topic.transactions.last.find()
    assert await topic.transactions.last.find() == place


@given(
    st.lists(
        st.tuples(st.sampled_from(["plain", "write", "commit", "abort", "ask"]), st.integers(1, 2)),
        max_size=30,
    )
)
@settings(max_examples=50, deadline=None)
def test_it_is_the_last_that_is_delivered(story: list[tuple[str, int]]) -> None:
    """Against what each entry came to; ledgers have three entries."""

    async def play() -> None:
        async with bench() as desk:
            topic = await desk.topic()
            await topic.begin_transactions()
            entries: list[tuple[Position, int]] = []
            open_ones: dict[int, Position] = {}
            aborted: set[Position] = set()
            for what, number in [*story, ("ask", 0)]:
                if what == "plain":
                    entries.append(((await desk.published(topic, entry()))[0], 0))
                elif what == "write":
                    place = await write(topic, (number, len(entries)))
                    await end(topic, (number, len(entries)), committed=True)
                    entries.append((place, 0))
                    place = await write(topic, (number, 0))
                    open_ones.setdefault(number, place)
                    entries.append((place, number))
                elif what != "ask":
                    await end(topic, (number, 0), committed=what == "commit")
                    open_ones.pop(number, None)
                    if what == "abort":
                        aborted |= {place for place, who in entries if who == number}
                    entries = [(place, 0 if who == number else who) for place, who in entries]
                else:
                    limit = min(open_ones.values(), default=(1 << 62, 0))
                    shown = [
                        place for place, _ in entries if place < limit and place not in aborted
                    ]
                    assert await topic.transactions.last.find() == max(shown, default=START)

    trio.run(play)
