"""Pages that are made for all who ask for them."""

from __future__ import annotations

from collections.abc import AsyncIterator

import trio
import trio.testing

from magnetar.wire.http.limits.shared_pages import SharedPage, SharedPages


class Maker:
    """Makes pages with their number, each when it is allowed."""

    def __init__(self, size: int = 10) -> None:
        self.begun = 0
        self.allowed = trio.Semaphore(0)
        self.fails = False
        self._size = size

    async def make(self) -> AsyncIterator[bytes]:
        self.begun += 1
        text = b"%d" % self.begun
        await self.allowed.acquire()
        if self.fails:
            raise ValueError("no page")
        yield text
        yield b" " * (self._size - len(text))


def number_of(page: SharedPage) -> int:
    return int(b"".join(page.pieces))


async def test_who_asks_while_one_is_made_shares_the_next() -> None:
    pages, maker, found = SharedPages(100), Maker(), list[int]()

    async def ask() -> None:
        found.append(number_of(await pages.page(maker.make)))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask)
        await trio.testing.wait_all_tasks_blocked()
        for _ in range(10):
            nursery.start_soon(ask)
        await trio.testing.wait_all_tasks_blocked()
        assert maker.begun == 1
        maker.allowed.release()
        await trio.testing.wait_all_tasks_blocked()
        assert found == [1]
        assert maker.begun == 2
        maker.allowed.release()
    assert found == [1] + [2] * 10
    maker.allowed.release()
    assert number_of(await pages.page(maker.make)) == 3, "one is made for each question"
    assert pages.alive_bytes == 0, "nobody has one"


async def test_while_clients_hold_too_much_they_get_what_there_is() -> None:
    pages, maker = SharedPages(15), Maker()
    for _ in range(4):
        maker.allowed.release()
    first = await pages.page(maker.make)
    second = await pages.page(maker.make)
    assert (number_of(first), number_of(second), pages.alive_bytes) == (1, 2, 20)
    assert await pages.page(maker.make) is second
    del first
    assert pages.alive_bytes == 10
    third = await pages.page(maker.make)
    assert number_of(third) == 3
    del second, third
    assert pages.alive_bytes == 0
    assert number_of(await pages.page(maker.make)) == 4


async def test_who_waits_for_one_that_has_left_makes_it() -> None:
    pages, maker, found = SharedPages(100), Maker(), list[int]()
    leaves = trio.CancelScope()

    async def ask() -> None:
        found.append(number_of(await pages.page(maker.make)))

    async def leave() -> None:
        with leaves:
            await pages.page(maker.make)

    async with trio.open_nursery() as nursery:
        for each in (ask, leave, ask):
            nursery.start_soon(each)
            await trio.testing.wait_all_tasks_blocked()
        leaves.cancel()
        await trio.testing.wait_all_tasks_blocked()
        for _ in range(2):
            maker.allowed.release()
    assert found == [1, 2]


async def test_who_waits_for_one_that_failed_makes_another() -> None:
    pages, maker = SharedPages(100), Maker()
    maker.fails = True
    failed = list[str]()

    async def ask() -> None:
        try:
            await pages.page(maker.make)
        except ValueError as error:
            failed.append(str(error))

    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(ask)
            await trio.testing.wait_all_tasks_blocked()
        for _ in range(3):
            maker.allowed.release()
    assert failed == ["no page"] * 3
