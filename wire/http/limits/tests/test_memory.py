"""Room for so many bytes, and for one more than that if it is the only one."""

import trio

from magnetar.wire.http.limits.memory import SHORT_TOPICS, Memory, Pool


def test_there_is_room_up_to_the_limit() -> None:
    pool = Pool(100)
    assert pool.take(60)
    assert pool.take(40)
    assert not pool.take(1)
    pool.give_back(60)
    assert pool.take(60)
    assert pool.used == 100


def test_one_that_is_larger_has_room_while_it_is_alone() -> None:
    pool = Pool(100)
    assert pool.take(300)
    assert not pool.take(1)
    pool.give_back(300)
    assert pool.take(99)
    assert not pool.take(2)


def test_one_that_grows_beyond_the_limit_has_to_be_alone() -> None:
    pool = Pool(100)
    assert pool.take(80)
    assert pool.take(80, had=80)
    assert not pool.take(10)
    pool.give_back(160)
    assert pool.take(50)
    assert pool.take(50)
    assert not pool.take(50, had=50)


async def test_of_long_answers_one_is_made_at_a_time(autojump_clock: object) -> None:
    memory = Memory()
    made: list[str] = []

    async def make(name: str, topics: int) -> None:
        async with memory.turn(topics):
            made.append(f"{name} begun")
            await trio.sleep(1)
            made.append(name)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(make, "long", SHORT_TOPICS + 1)
        await trio.sleep(0.1)
        nursery.start_soon(make, "longer", 2_000)
        nursery.start_soon(make, "short", SHORT_TOPICS)
    assert made == ["long begun", "short begun", "long", "longer begun", "short", "longer"]
