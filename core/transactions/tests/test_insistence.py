"""Steps are repeated until they succeed, or until somebody else has the transaction."""

from __future__ import annotations

from itertools import pairwise

import pytest
import trio
from trio.testing import MockClock

from magnetar.core.cluster.owned_record import OwnedRecord
from magnetar.core.kernel.errors import StorageFailed
from magnetar.core.metadata.memory import MemoryMetadata
from magnetar.core.transactions.insistence import (
    RETRY_SECONDS,
    RETRY_SECONDS_MAX,
    STEPS_AT_ONCE,
    Step,
    insist,
    insist_on_all,
)
from magnetar.core.transactions.slot import TransactionSlot


@pytest.fixture
def slot() -> TransactionSlot:
    return TransactionSlot("t", OwnedRecord(MemoryMetadata(), "/t", repr, eval))  # type: ignore[arg-type]  # not written


async def test_it_is_tried_again_less_and_less_often(
    slot: TransactionSlot, autojump_clock: MockClock
) -> None:
    del autojump_clock
    times: list[float] = []

    async def step() -> None:
        times.append(trio.current_time())
        if len(times) < 10:
            raise StorageFailed("not yet")

    await insist(slot, step)
    pauses = [later - before for before, later in pairwise(times)]
    assert pauses[0] == pytest.approx(RETRY_SECONDS)
    assert pauses == sorted(pauses)
    assert pauses[-1] == pytest.approx(RETRY_SECONDS_MAX)


@pytest.mark.parametrize("at_once", [False, True])
async def test_there_is_an_end_when_another_coordinator_has_it(
    slot: TransactionSlot, at_once: bool
) -> None:
    tried = 0

    async def step() -> None:
        nonlocal tried
        tried += 1
        slot.lost = True
        raise StorageFailed("not ours")

    slot.lost = at_once
    await insist(slot, step)
    assert tried == (not at_once)


async def test_all_are_carried_out_and_not_too_many_at_once(slot: TransactionSlot) -> None:
    running, most, done = 0, 0, set[int]()

    def numbered(number: int) -> Step:
        async def step() -> None:
            nonlocal running, most
            running += 1
            most = max(most, running)
            await trio.lowlevel.checkpoint()
            running -= 1
            done.add(number)

        return step

    for count in (0, 1, 3 * STEPS_AT_ONCE):
        done.clear()
        await insist_on_all(slot, [numbered(number) for number in range(count)])
        assert len(done) == count
    assert most == STEPS_AT_ONCE
