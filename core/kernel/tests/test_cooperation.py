"""Long work rests when it is time, and misses no item; long lists are made one at a time."""

import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from magnetar.core.kernel.cooperation import WORK_SECONDS, Cooperative, KeyedLocks, ListLock


class StepsOfThisTask(trio.abc.Instrument):
    """How often the loop came back to this task.

    Turns of another task beside it would not do: trio shuffles who is first in a round.
    """

    def __init__(self) -> None:
        self._task = trio.lowlevel.current_task()
        self.steps = 0

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        self.steps += task is self._task


async def test_all_in_order() -> None:
    assert [one async for one in Cooperative(range(1_000))] == list(range(1_000))
    assert [one async for one in Cooperative(())] == []


async def rests(clock: MockClock, seconds_each: float, items_max: int = 100) -> int:
    """The rests while ten items take so long each."""
    counted = StepsOfThisTask()
    trio.lowlevel.add_instrument(counted)
    async for _ in Cooperative(range(10), items_max):
        clock.jump(seconds_each)
    return counted.steps


async def test_others_have_their_turn_when_it_is_time(mock_clock: MockClock) -> None:
    assert await rests(mock_clock, WORK_SECONDS) == 10


async def test_what_is_quick_is_done_at_once(mock_clock: MockClock) -> None:
    assert await rests(mock_clock, WORK_SECONDS / 100) == 0


async def test_a_rest_comes_after_so_many_items(mock_clock: MockClock) -> None:
    assert await rests(mock_clock, 0, items_max=1) == 10
    assert await rests(mock_clock, 0, items_max=4) == 2
    assert await rests(mock_clock, 0, items_max=10) == 1


class Rounds(trio.abc.Instrument):
    """How many rounds the loop had."""

    def __init__(self) -> None:
        self.count = 0

    def before_io_wait(self, _timeout: float) -> None:
        self.count += 1


async def test_one_of_many_works_in_a_round(mock_clock: MockClock) -> None:
    """So those who wait beside them wait for a step of one."""
    rounds = Rounds()
    worked: list[int] = []

    async def work() -> None:
        async for _ in Cooperative(range(10)):
            mock_clock.jump(WORK_SECONDS)
            worked.append(rounds.count)

    async with trio.open_nursery() as nursery:
        for _ in range(20):
            nursery.start_soon(work)
        await trio.lowlevel.checkpoint()
        trio.lowlevel.add_instrument(rounds)
    behind_the_first = worked[20:]
    assert len(behind_the_first) == 180
    assert len(set(behind_the_first)) == 180


async def test_who_is_cancelled_leaves_the_turn_to_others(mock_clock: MockClock) -> None:
    done: list[int] = []
    scopes = [trio.CancelScope() for _ in range(5)]

    async def work(place: int) -> None:
        with scopes[place]:
            async for _ in Cooperative(range(10)):
                mock_clock.jump(WORK_SECONDS)
            done.append(place)

    async with trio.open_nursery() as nursery:
        for place in range(5):
            nursery.start_soon(work, place)
        await trio.lowlevel.checkpoint()
        for place in range(4):
            scopes[place].cancel()
            await trio.lowlevel.checkpoint()
    assert 4 in done


class Client:
    """A client and its connection, as a list sees them."""

    def __init__(self) -> None:
        self.gone = self.congested = False
        self.room = trio.Event()
        self.made = 0

    @property
    def connection(self) -> "Client":
        return self

    def share(self) -> int:
        return 1

    async def make(self) -> int:
        await wait_all_tasks_blocked()
        self.made += 1
        return self.made

    def relieved(self) -> None:
        self.room.set()
        self.room = trio.Event()

    async def ask(self, lock: ListLock) -> int | None:
        return await lock.make(self, lambda: self.room.wait, self.make)


async def test_one_list_is_made_at_a_time() -> None:
    lock, first, second = ListLock(), Client(), Client()
    async with trio.open_nursery() as nursery, lock.lock:
        for client in (first, second):
            nursery.start_soon(client.ask, lock)
        await wait_all_tasks_blocked()
        assert (first.made, second.made) == (0, 0)
    assert (first.made, second.made) == (1, 1)


async def test_a_client_that_takes_nothing_holds_up_nobody() -> None:
    lock, slow, quick = ListLock(), Client(), Client()
    slow.congested = True
    async with trio.open_nursery() as nursery:
        nursery.start_soon(slow.ask, lock)
        await wait_all_tasks_blocked()
        assert await quick.ask(lock) == 1
        assert slow.made == 0
        slow.congested = False
        slow.relieved()
    assert slow.made == 1


async def test_nothing_is_made_for_a_client_that_leaves() -> None:
    lock, client = ListLock(), Client()
    client.congested = True
    async with trio.open_nursery() as nursery:
        nursery.start_soon(client.ask, lock)
        await wait_all_tasks_blocked()
        client.gone = True
        client.relieved()
    assert client.made == 0
    assert await client.ask(lock) is None


async def test_one_task_at_a_time_has_the_turn_with_a_key() -> None:
    turns: KeyedLocks[str] = KeyedLocks()
    done: list[str] = []
    end = trio.Event()

    async def take(name: str) -> None:
        async with turns.at("a"):
            done.append(name)
            await end.wait()
            done.append(f"{name} ends")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(take, "1")
        await wait_all_tasks_blocked()
        nursery.start_soon(take, "2")
        await wait_all_tasks_blocked()
        assert done == ["1"]
        assert "a" in turns
        async with turns.at("b"):
            assert "b" in turns
        end.set()
    assert done == ["1", "1 ends", "2", "2 ends"]
    assert not any(map(turns.__contains__, "ab")), "locks that nobody has are gone"
