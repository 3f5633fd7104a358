from collections.abc import Awaitable, Callable
from functools import partial

import pytest
import trio
import trio.testing

from magnetar.bookie.cluster.bookies import TORN_MAX, Bookies
from magnetar.bookie.cluster.cluster import BookKeeperCluster
from magnetar.bookie.cluster.formatting import initialize_cluster
from magnetar.bookie.format.service_info import BookieEndpoint, ServiceInfo
from magnetar.core.kernel.errors import StorageFailed
from magnetar.core.metadata.memory import MemoryMetadata
from magnetar.core.testing.metadata import ignore_loss, overwrite, remove

INFO = ServiceInfo((BookieEndpoint("bookie", "h", 1),))
OTHER = ServiceInfo((BookieEndpoint("bookie", "other", 1),))


class Failing(MemoryMetadata):
    """A store that may not answer."""

    failures = 0

    def __init__(self) -> None:
        super().__init__()
        self.between: list[Callable[[], Awaitable[object]]] = []
        """What happens before each reading of the read-only bookies."""

    async def children(self, path: str) -> list[str]:
        if self.failures:
            self.failures -= 1
            raise StorageFailed("no answer")
        if path.endswith("readonly") and self.between:
            await self.between.pop(0)()
        return await super().children(path)


@pytest.fixture
async def cluster(store) -> BookKeeperCluster:
    return await initialize_cluster(store, "one")


@pytest.fixture
def store() -> Failing:
    return Failing()


async def test_bookies_come_change_and_go(store, cluster, nursery) -> None:
    told: list[tuple[dict, dict]] = []
    bookies = Bookies(
        store, cluster, lambda: told.append((dict(bookies.writable), dict(bookies.read_only)))
    )
    await store.lease("/ledgers/available/a:1", b"", ignore_loss)
    await nursery.start(bookies.run)
    assert told == [({"a:1": ServiceInfo((BookieEndpoint("a:1", "a", 1),))}, {})]
    await store.lease("/ledgers/available/readonly/b:1", INFO.encode(), ignore_loss)
    await trio.testing.wait_all_tasks_blocked()
    assert told[-1][1] == {"b:1": INFO}
    await remove(store, "/ledgers/available/a:1")
    await overwrite(store, "/ledgers/available/readonly/b:1", OTHER.encode())
    await trio.testing.wait_all_tasks_blocked()
    assert told[-1] == ({}, {"b:1": OTHER})
    count = len(told)
    await overwrite(store, "/ledgers/available/readonly/b:1", OTHER.encode())
    await trio.testing.wait_all_tasks_blocked()
    assert len(told) == count, "it is the same list"


async def test_what_makes_no_sense_is_left_out(store, cluster, nursery) -> None:
    await overwrite(store, "/ledgers/available/a:1", b"\xff")
    await overwrite(store, "/ledgers/available/nowhere", b"")
    await overwrite(store, "/ledgers/available/c:1", INFO.encode())
    bookies = Bookies(store, cluster)
    await nursery.start(bookies.run)
    assert bookies.writable == {"c:1": INFO}


async def test_the_last_list_stays_while_the_store_is_silent(
    store, cluster, nursery, autojump_clock
) -> None:
    await overwrite(store, "/ledgers/available/a:1", INFO.encode())
    bookies = Bookies(store, cluster)
    await nursery.start(bookies.run)
    store.failures = 3
    await remove(store, "/ledgers/available/a:1")
    await trio.testing.wait_all_tasks_blocked()
    assert bookies.writable == {"a:1": INFO}
    await trio.sleep(10)
    assert bookies.writable == {}


async def test_a_report_of_all_has_all_read_again(store, cluster, nursery) -> None:
    await overwrite(store, "/ledgers/available/a:1", INFO.encode())
    bookies = Bookies(store, cluster)
    await nursery.start(bookies.run)
    watches, store._watches = store._watches, []
    await overwrite(store, "/ledgers/available/a:1", OTHER.encode())
    store._watches = watches
    await overwrite(store, "/ledgers/available", b"")
    await trio.testing.wait_all_tasks_blocked()
    assert bookies.writable == {"a:1": OTHER}


READ_ONLY_PATH, WRITABLE_PATH = "/ledgers/available/readonly/a:1", "/ledgers/available/a:1"


async def test_a_bookie_that_takes_writes_again_is_never_in_neither_list(
    store, cluster, nursery
) -> None:
    """The writable ones are read before it is there, the read-only ones after it is gone."""

    async def switch() -> None:
        await overwrite(store, WRITABLE_PATH, INFO.encode())
        await remove(store, READ_ONLY_PATH)

    known: list[set[str]] = []
    bookies = Bookies(store, cluster, lambda: known.append({*bookies.writable, *bookies.read_only}))
    await overwrite(store, READ_ONLY_PATH, INFO.encode())
    await nursery.start(bookies.run)
    store.between.append(switch)
    await overwrite(store, "/ledgers/available/other:1", INFO.encode())
    await trio.testing.wait_all_tasks_blocked()
    assert set(bookies.writable) == {"a:1", "other:1"}
    assert all("a:1" in each for each in known)


async def test_a_list_that_changes_all_the_time_is_published_at_last(
    store, cluster, nursery
) -> None:
    store.between = [
        partial(overwrite, store, f"/ledgers/available/b{i}:1", INFO.encode())
        for i in range(TORN_MAX + 5)
    ]
    counts: list[int] = []
    bookies = Bookies(store, cluster, lambda: counts.append(len(bookies.writable)))
    await nursery.start(bookies.run)
    assert counts[0] == TORN_MAX - 1
    await trio.testing.wait_all_tasks_blocked()
    assert counts[-1] == TORN_MAX + 5


async def test_the_store_itself_says_who_is_registered(store, cluster) -> None:
    bookies = Bookies(store, cluster, lambda: None)
    await store.lease(cluster.path("available", "a:1"), INFO.encode(), ignore_loss)
    await store.lease(cluster.path("available", "readonly", "b:1"), INFO.encode(), ignore_loss)
    assert not bookies.writable
    found = [await bookies.is_registered(each) for each in ("a:1", "b:1", "c:1")]
    assert found == [True, True, False]
