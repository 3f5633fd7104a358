"""The place of the one gateway, and what becomes of it when a session ends."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from magnetar.core.kernel.errors import StorageFailed
from magnetar.core.metadata.memory import MemoryMetadata
from magnetar.core.ports.metadata_store import ABSENT
from magnetar.core.testing.metadata import ignore_loss, overwrite, remove
from magnetar.operator_error import OperatorError
from magnetar.storage.gateway_place import GATEWAY, LAST, GatewayPlace


class Away(MemoryMetadata):
    """A store that may be away."""

    away = False

    async def lease(self, path, value, lost):
        if self.away:
            raise StorageFailed("no answer")
        await super().lease(path, value, lost)


@asynccontextmanager
async def kept(
    store: MemoryMetadata, failures: list[str], name: str = "one", *, reconnects: bool = True
) -> AsyncIterator[None]:
    place = GatewayPlace(store, name, failures.append, reconnects=reconnects)
    await place.take(10)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(place.keep)
        yield
        nursery.cancel_scope.cancel()


async def holder(store: MemoryMetadata) -> bytes | None:
    found = await store.get(GATEWAY)
    return found and found.value


async def test_a_second_one_waits_and_is_refused(autojump_clock: MockClock) -> None:
    store, failures = MemoryMetadata(), []
    async with kept(store, failures):
        with pytest.raises(OperatorError, match=r"another gateway runs on this cluster \(one\)"):
            await GatewayPlace(store, "two", failures.append, reconnects=False).take(10)
        assert trio.current_time() >= 10
    assert (await store.get(LAST)).value == b"one"
    assert failures == []


async def test_shutdown_ends_with_the_session() -> None:
    store, failures = MemoryMetadata(), []
    async with kept(store, failures, reconnects=False):
        store.expire()
        assert failures == ["the session with ZooKeeper has ended, and another gateway may run"]


async def test_reconnect_takes_the_place_again_when_the_store_is_back(
    autojump_clock: MockClock,
) -> None:
    store, failures = Away(), []
    async with kept(store, failures):
        for _ in range(2):
            store.away = True
            store.expire()
            await trio.sleep(60)
            assert await holder(store) is None
            store.away = False
            await trio.sleep(1)
            assert await holder(store) == b"one"
        assert failures == []


async def test_who_finds_another_in_its_place_ends(autojump_clock: MockClock) -> None:
    store, failures = Away(), []
    async with kept(store, failures):
        store.away = True
        store.expire()
        await wait_all_tasks_blocked()
        await store.put(GATEWAY, b"two", ABSENT)
        store.away = False
        await trio.sleep(1)
        assert failures == ["the session with ZooKeeper has ended, and another gateway may run"]
        assert await holder(store) == b"two"


async def test_who_had_a_successor_ends_even_if_that_has_gone(autojump_clock: MockClock) -> None:
    """It has topics open that may have got more entries."""
    store, failures = Away(), []
    async with kept(store, failures):
        store.away = True
        store.expire()
        await wait_all_tasks_blocked()
        await overwrite(store, LAST, b"two")
        store.away = False
        await trio.sleep(1)
        assert failures == ["another gateway has run meanwhile"]


async def test_its_own_lease_of_the_ended_session_is_not_waited_for(
    autojump_clock: MockClock,
) -> None:
    """ZooKeeper may not have ended it yet."""
    store, failures = Away(), []
    async with kept(store, failures):
        store.away = True
        store.expire()
        await store.put(GATEWAY, b"one", ABSENT)
        store.away = False
        await trio.sleep(1.5)
        assert failures == []
        await remove(store, GATEWAY)
        await store.lease(GATEWAY, b"", ignore_loss)
