"""The memory for entries that are read for consumers."""

from __future__ import annotations

import trio
import trio.testing

from magnetar.core.ledger.read.loaded_entries import (
    LATE_SECONDS,
    SHARE_BYTES_MIN,
    LoadedEntries,
)

BYTES_MAX = 64 * SHARE_BYTES_MIN
HALF = BYTES_MAX // 2


class Source:
    """Holds a run."""

    def __init__(self, memory: LoadedEntries) -> None:
        self._memory = memory
        self.forgotten = 0

    def forget(self) -> None:
        self.forgotten += 1
        self._memory.let_go(self)


def test_the_oldest_runs_are_let_go_of() -> None:
    memory = LoadedEntries(BYTES_MAX)
    sources = [Source(memory) for _ in range(5)]
    for each in sources:
        memory.hold(each, BYTES_MAX // 3)
    assert [each.forgotten for each in sources] == [1, 1, 0, 0, 0]
    assert memory.held_bytes == 3 * (BYTES_MAX // 3)
    memory.let_go(sources[3])
    memory.let_go(sources[3])
    memory.hold(sources[2], 1)
    memory.hold(sources[2], 2)
    assert memory.held_bytes == BYTES_MAX // 3 + 2


def test_the_one_that_came_last_is_held_however_large_it_is() -> None:
    memory = LoadedEntries(BYTES_MAX)
    small, large = Source(memory), Source(memory)
    memory.hold(small, 1)
    memory.hold(large, 2 * BYTES_MAX)
    assert (small.forgotten, large.forgotten) == (1, 0)


async def test_loads_are_the_shorter_the_more_there_are() -> None:
    memory = LoadedEntries(BYTES_MAX)
    assert memory.share == BYTES_MAX
    memory.hold(Source(memory), 1)
    await memory.begin(1)
    assert memory.share == BYTES_MAX // 3
    for _ in range(1000):
        memory.hold(Source(memory), 1)
    assert memory.share == SHARE_BYTES_MIN


async def test_loads_wait_for_their_turn() -> None:
    memory, loads = LoadedEntries(BYTES_MAX), dict[str, int]()

    async def load(name: str, size: int) -> None:
        loads[name] = await memory.begin(size)

    await load("larger than all", 2 * BYTES_MAX)
    async with trio.open_nursery() as nursery:
        for name, size in (("a", HALF - 1), ("b", HALF), ("c", 1)):
            nursery.start_soon(load, name, size)
            await trio.testing.wait_all_tasks_blocked()
        assert list(loads) == ["larger than all"]
        memory.end(loads["larger than all"])
        await trio.testing.wait_all_tasks_blocked()
        assert list(loads)[1:] == ["a"], "nobody passes those who wait"
        memory.end(loads["a"])
        await trio.testing.wait_all_tasks_blocked()
        assert list(loads)[2:] == ["b"]
        memory.end(loads["b"])
    memory.end(loads["c"])
    assert memory.expected_bytes == 0


async def test_one_that_takes_long_holds_up_nobody(autojump_clock: trio.testing.MockClock) -> None:
    memory = LoadedEntries(BYTES_MAX)
    hangs = await memory.begin(HALF)
    autojump_clock.jump(LATE_SECONDS / 2)
    other = await memory.begin(HALF)
    assert trio.current_time() < 2 * LATE_SECONDS
    assert memory.expected_bytes == HALF, "it counts no more"
    memory.end(hangs)
    assert memory.expected_bytes == HALF
    memory.end(other)
    assert memory.expected_bytes == 0


async def test_who_is_cancelled_while_it_waits_holds_up_nobody() -> None:
    memory = LoadedEntries(BYTES_MAX)
    first = await memory.begin(HALF)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(memory.begin, HALF)
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    memory.end(first)
    with trio.fail_after(1):
        await memory.begin(HALF)
