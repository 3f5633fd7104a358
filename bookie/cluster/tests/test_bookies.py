import pytest
import trio
import trio.testing

from magnetar.bookie.cluster.bookies import Bookies
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

    async def children(self, path: str) -> list[str]:
        if self.failures:
            self.failures -= 1
            raise StorageFailed("no answer")
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
    bookies = Bookies(store, cluster, lambda: None)
    await nursery.start(bookies.run)
    assert bookies.writable == {"c:1": INFO}


async def test_the_last_list_stays_while_the_store_is_silent(
    store, cluster, nursery, autojump_clock
) -> None:
    await overwrite(store, "/ledgers/available/a:1", INFO.encode())
    bookies = Bookies(store, cluster, lambda: None)
    await nursery.start(bookies.run)
    store.failures = 3
    await remove(store, "/ledgers/available/a:1")
    await trio.testing.wait_all_tasks_blocked()
    assert bookies.writable == {"a:1": INFO}
    await trio.sleep(10)
    assert bookies.writable == {}


async def test_a_report_of_all_has_all_read_again(store, cluster, nursery) -> None:
    await overwrite(store, "/ledgers/available/a:1", INFO.encode())
    bookies = Bookies(store, cluster, lambda: None)
    await nursery.start(bookies.run)
    watches, store._watches = store._watches, []
    await overwrite(store, "/ledgers/available/a:1", OTHER.encode())
    store._watches = watches
    await overwrite(store, "/ledgers/available", b"")
    await trio.testing.wait_all_tasks_blocked()
    assert bookies.writable == {"a:1": OTHER}
