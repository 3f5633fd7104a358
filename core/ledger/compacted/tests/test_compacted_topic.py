"""Which compacted ledger a topic has, and how long a former one stays."""

from __future__ import annotations

import pytest

from magnetar.core.kernel.completion import Completion
from magnetar.core.kernel.errors import Conflict, Corrupted
from magnetar.core.ledger.compacted.compacted_topic import (
    CompactedTopic,
    CompactionProgress,
    CompactionState,
)
from magnetar.core.ledger.compacted.positions import PositionWriter
from magnetar.core.ledger.log import removal
from magnetar.core.ledger.log.chain import START
from magnetar.core.ledger.log.ledger_list_record import COMPACTED, CompactedLedger
from magnetar.core.ledger.log.managed_ledger import ManagedLedger
from magnetar.core.testing.bench import Bench, bench, settled


async def written(ledger: ManagedLedger, *positions: tuple[int, int]) -> CompactedLedger:
    """A ledger with an entry for each of these positions."""
    writer = await removal.create_beside(ledger)
    made = PositionWriter()
    for one in positions:
        made.add(one)
    stored = Completion[None]()
    entries = [b"%d:%d" % one for one in positions]
    writer.append([*entries, *made.finished()], stored.done)
    await stored.result()
    await writer.close()
    return CompactedLedger(writer.ledger_id, len(positions), 9, positions[-1], 7, 1)


async def opened(made: Bench) -> tuple[ManagedLedger, CompactedTopic]:
    ledger = await made.ledger()
    return ledger, CompactedTopic(made.storage, ledger)


async def test_what_is_named_is_read() -> None:
    async with bench() as made:
        ledger, topic = await opened(made)
        assert (topic.current, topic.horizon) == (None, START)
        new = await written(ledger, (3, 1), (3, 2), (5, 0))
        await topic.replace(new, None)
        assert (topic.current, topic.horizon) == (new, (5, 0))
        reader = topic.use(new)
        block = await reader.block((3, 2), 1000)
        assert block == ([(3, 2), (5, 0)], [b"3:2", b"5:0"], True)
        assert (await reader.block((3, 0), 1)).positions == [(3, 1)]
        assert await reader.block((5, 1), 1000) == ([], [], True)
        assert await reader.last() == ((5, 0), b"5:0")
        _, again = await opened(made)
        assert again.current == new


async def test_one_without_entries() -> None:
    async with bench() as made:
        _, topic = await opened(made)
        empty = CompactedLedger(-1, 0, 0, (4, 4), 5, 1)
        await topic.replace(empty, None)
        reader, other = topic.use(empty), topic.use(empty)
        assert await reader.block(START, 100) == ([], [], True)
        assert await reader.last() is None
        assert await reader.find_by_time(0) is None
        topic.leave(other)
        topic.leave(reader)


async def test_a_former_one_stays_while_it_is_read() -> None:
    async with bench() as made:
        ledger, topic = await opened(made)
        former, new = await written(ledger, (1, 0)), await written(ledger, (1, 0), (2, 0))
        await topic.replace(former, None)
        one, other = topic.use(former), topic.use(former)
        assert one is other
        for wrong in (None, new):
            with pytest.raises(Conflict):
                await topic.replace(new, wrong)
        assert topic.current == former
        await topic.replace(new, former)
        assert (await one.block(START, 100)).positions == [(1, 0)]
        topic.leave(one)
        await settled()
        assert former.ledger_id in made.ledgers.ledgers
        topic.leave(other)
        await settled()
        assert list(made.ledgers.ledgers) == [new.ledger_id]
        assert ledger.ledgers.doomed == frozenset()


async def test_the_next_owner_deletes_what_was_still_read() -> None:
    async with bench() as made:
        ledger, topic = await opened(made)
        former = await written(ledger, (1, 0))
        await topic.replace(former, None)
        topic.use(former)
        await topic.forget()
        assert topic.current is None
        assert former.ledger_id in made.ledgers.ledgers
        await opened(made)
        assert not made.ledgers.ledgers


async def test_a_property_that_is_none() -> None:
    async with bench() as made:
        ledger, topic = await opened(made)
        await ledger.set_property(COMPACTED, "1 2 x")
        with pytest.raises(Corrupted):
            assert topic.current


def test_statistics() -> None:
    last = CompactionProgress()
    assert last.state is CompactionState.NOT_RUN
    last.begin()
    assert last.state is CompactionState.RUNNING
    last.end("no room", 0, 10, 14)
    assert (last.state, last.last_error, last.failed_ms) == (CompactionState.ERROR, "no room", 14)
    last.begin()
    last.end("", 7, 20, 25)
    assert (last.state, last.last_error) == (CompactionState.SUCCESS, "")
    assert (last.removed, last.succeeded_ms, last.duration_ms, last.failed_ms) == (7, 25, 5, 14)
