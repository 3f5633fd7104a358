from functools import partial

import pytest
import trio
import trio.testing

from magnetar.bookie.cluster.lease import take_lease
from magnetar.core.kernel.errors import AlreadyExists, StorageFailed
from magnetar.core.metadata.memory import MemoryMetadata
from magnetar.core.testing.metadata import ignore_loss, overwrite, remove


class Waits:
    """How often somebody was said to wait."""

    count = 0

    async def held(self) -> None:
        self.count += 1
        await trio.lowlevel.checkpoint()


async def take(store: MemoryMetadata, waits: Waits, seconds: float = 10) -> None:
    await take_lease(store, "/l", b"us", ignore_loss, wait_seconds=seconds, held=waits.held)


async def test_what_nobody_has_is_taken_at_once(autojump_clock) -> None:
    store, waits = MemoryMetadata(), Waits()
    await take(store, waits)
    assert (await store.get("/l")).value == b"us"
    assert (waits.count, trio.current_time()) == (0, 0)


async def test_it_is_taken_when_the_former_one_ends(nursery, autojump_clock) -> None:
    store, waits = MemoryMetadata(), Waits()
    await store.lease("/l", b"they", ignore_loss)
    nursery.start_soon(take, store, waits)
    await trio.testing.wait_all_tasks_blocked()
    await overwrite(store, "/l", b"they, still")
    await trio.testing.wait_all_tasks_blocked()
    assert waits.count == 2
    await remove(store, "/l")
    await trio.testing.wait_all_tasks_blocked()
    assert (await store.get("/l")).value == b"us"


async def test_one_that_ends_while_it_is_said_is_not_missed(autojump_clock) -> None:
    store = MemoryMetadata()
    await store.lease("/l", b"they", ignore_loss)
    await take_lease(
        store, "/l", b"us", ignore_loss, wait_seconds=10, held=partial(remove, store, "/l")
    )
    assert (await store.get("/l")).value == b"us"
    assert trio.current_time() == 0


async def test_the_wait_has_an_end(autojump_clock) -> None:
    store, waits = MemoryMetadata(), Waits()
    await store.lease("/l", b"they", ignore_loss)
    with pytest.raises(AlreadyExists):
        await take(store, waits, 5)
    assert trio.current_time() == 5
    assert (await store.get("/l")).value == b"they"


class Away(MemoryMetadata):
    """A store that answers nothing for a while, and then says so, as ours of ZooKeeper does."""

    seconds = 30.0

    async def lease(self, path, value, lost) -> None:
        if self.seconds:
            with trio.CancelScope(shield=True):
                await trio.sleep(self.seconds)
            raise StorageFailed("it has not answered")
        await super().lease(path, value, lost)


async def test_a_store_that_is_away_says_nothing_of_others(autojump_clock) -> None:
    with pytest.raises(StorageFailed, match="not answered"):
        await take(Away(), Waits(), 30)


async def test_the_wait_begins_when_the_other_one_is_seen(nursery, autojump_clock) -> None:
    store, waits = Away(), Waits()
    await MemoryMetadata.lease(store, "/l", b"they", ignore_loss)

    async def come_back() -> None:
        await trio.sleep(28)
        store.seconds = 0
        await trio.sleep(30)
        await remove(store, "/l")

    nursery.start_soon(come_back)
    with pytest.raises(StorageFailed):
        await take(store, waits, 29)
    await take(store, waits, 29)
    assert (trio.current_time(), (await store.get("/l")).value) == (58, b"us")
