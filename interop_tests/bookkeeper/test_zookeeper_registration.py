"""Registrations of bookies on a real ZooKeeper that fails, and how clients see them."""

from collections.abc import Callable

import pytest
import trio

from magnetar.bookie.cluster.bookies import Bookies
from magnetar.bookie.cluster.formatting import initialize_cluster
from magnetar.bookie.cluster.registration import Registration
from magnetar.bookie.format.service_info import BookieEndpoint, ServiceInfo
from magnetar.core.metadata.zookeeper.addresses import parse
from magnetar.core.metadata.zookeeper.store import open_zookeeper

pytestmark = [pytest.mark.java, pytest.mark.slow]
SESSION_SECONDS = 2.0
INFO = ServiceInfo((BookieEndpoint("bookie", "127.0.0.1", 31810),))


class Client:
    """Somebody else's view of the bookies."""

    def __init__(self) -> None:
        self.seen: Bookies
        self._changed = trio.Event()

    def changed(self) -> None:
        self._changed.set()
        self._changed = trio.Event()

    async def sees(self, condition: Callable[[Bookies], bool]) -> None:
        with trio.fail_after(60):
            while not condition(self.seen):
                await self._changed.wait()


@pytest.mark.parametrize("failure", ["freeze", "kill"])
async def test_a_bookie_registers_again_after_its_session(own_zookeeper, failure) -> None:
    uri = f"zk+hierarchical://{own_zookeeper.address}/ledgers"
    client = Client()
    async with (
        open_zookeeper(parse(uri), SESSION_SECONDS) as ours,
        open_zookeeper(parse(uri), 20) as theirs,
        trio.open_nursery() as nursery,
    ):
        cluster = await initialize_cluster(ours, "one")
        bookie = Registration(ours, cluster, "b:1", INFO)
        client.seen = Bookies(theirs, cluster, client.changed)
        await nursery.start(bookie.run)
        await nursery.start(client.seen.run)
        await client.sees(lambda bookies: bookies.writable == {"b:1": INFO})
        if failure == "freeze":
            own_zookeeper.freeze()
            await trio.sleep(1.5 * SESSION_SECONDS)
            assert not bookie.is_held, "it gives up what it cannot be sure of"
            own_zookeeper.thaw()
        else:
            await trio.to_thread.run_sync(own_zookeeper.kill)
            await trio.sleep(1.5 * SESSION_SECONDS)
            assert not bookie.is_held
            await trio.to_thread.run_sync(own_zookeeper.start)
        bookie.set_read_only(True)
        await client.sees(
            lambda bookies: not bookies.writable and bookies.read_only == {"b:1": INFO}
        )
        assert bookie.is_held
        bookie.set_read_only(False)
        await client.sees(lambda bookies: bookies.writable == {"b:1": INFO})
        nursery.cancel_scope.cancel()


async def test_a_bookie_waits_for_its_former_process(own_zookeeper) -> None:
    uri = f"zk+hierarchical://{own_zookeeper.address}/ledgers"
    async with (
        open_zookeeper(parse(uri), SESSION_SECONDS) as former,
        open_zookeeper(parse(uri), SESSION_SECONDS) as ours,
        trio.open_nursery() as nursery,
    ):
        cluster = await initialize_cluster(ours, "one")
        await former.lease(cluster.path("available", "b:1"), b"", lambda: None)
        bookie = Registration(ours, cluster, "b:1", INFO)

        async def end() -> None:
            await ours.sync()
            assert not bookie.is_held
            await former.close()

        nursery.start_soon(end)
        with trio.fail_after(10):
            await nursery.start(bookie.run)
        stored = await ours.get(cluster.path("available", "b:1"))
        assert stored.value == INFO.encode()
        nursery.cancel_scope.cancel()
