"""The MetadataStore on three ZooKeeper servers, of which some are killed or stopped."""

import pytest
import trio

from interop_tests.bookkeeper.zookeeper import ZooKeeper, ensemble
from magnetar.core.kernel.errors import BadVersion, StorageFailed
from magnetar.core.metadata.zookeeper.addresses import parse
from magnetar.core.metadata.zookeeper.store import ZooKeeperMetadata, open_zookeeper
from magnetar.core.ports.metadata_store import ABSENT

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.timeout(300)]
SESSION_SECONDS = 4.0


@pytest.fixture
def servers(tmp_path):
    with ensemble(tmp_path) as started:
        yield started


def connection(servers: list[ZooKeeper]) -> str:
    return "zk:" + ",".join(server.address for server in servers)


class Counter:
    """One of several writers of a counter, each of which adds by compare and set."""

    def __init__(self, store: ZooKeeperMetadata) -> None:
        self._store = store
        self.done = 0
        self.unsure = 0
        self._moved = trio.Event()

    async def reach(self, count: int) -> None:
        while self.done < count:
            await self._moved.wait()

    async def run(self) -> None:
        while True:
            found = await self._store.get("/counter")
            try:
                await self._store.put("/counter", b"%d" % (int(found.value) + 1), found.version)
            except BadVersion:
                continue
            except StorageFailed:
                self.unsure += 1
                continue
            self.done += 1
            self._moved.set()
            self._moved = trio.Event()


async def more(counters: list[Counter], count: int = 50) -> None:
    """Until each has added some more."""
    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            for counter in counters:
                nursery.start_soon(counter.reach, counter.done + count)


async def test_no_addition_is_lost_or_made_twice(servers) -> None:
    """Whatever breaks between: the value is the number of all that were told to be done, and of
    some of those that were told to be unsure.
    """
    async with (
        open_zookeeper(parse(connection(servers)), 10) as one,
        open_zookeeper(parse(connection(servers[::-1])), 10) as two,
    ):
        await one.put("/counter", b"0", ABSENT)
        await two.sync()
        counters = [Counter(one), Counter(two)]
        async with trio.open_nursery() as nursery:
            for counter in counters:
                nursery.start_soon(counter.run)
            for server in [*servers, next(s for s in servers if s.is_leader())]:
                await more(counters)
                await trio.to_thread.run_sync(server.kill)
                await more(counters)
                await trio.to_thread.run_sync(server.start)
            await more(counters)
            nursery.cancel_scope.cancel()
        await one.sync()
        value = int((await one.get("/counter")).value)
        done = sum(counter.done for counter in counters)
        unsure = sum(counter.unsure for counter in counters) + len(counters)  # cancelled ones
        assert done <= value <= done + unsure
        assert unsure < done / 10


async def test_a_lease_lives_on_when_servers_come_and_go(servers) -> None:
    lost: list[str] = []
    async with open_zookeeper(parse(connection(servers)), 10) as store:
        await store.lease("/lease", b"", lambda: lost.append("lease"))
        for server in servers:
            await trio.to_thread.run_sync(server.kill)
            await store.put(f"/while-{server.port}", b"", ABSENT)
            await trio.to_thread.run_sync(server.start)
        assert await store.get("/lease") is not None
        assert lost == []


async def test_a_minority_proves_nothing(servers) -> None:
    """The server that we are connected to lives on, and has lost the others: it would answer reads
    for a while, so that only a write proves that our session lives.
    """
    lost = trio.Event()
    leader = next(server for server in servers if server.is_leader())
    others = [server for server in servers if server is not leader]
    async with open_zookeeper(parse(f"zk:{leader.address}"), SESSION_SECONDS) as store:
        await store.lease("/lease", b"", lost.set)
        for server in others:
            server.freeze()
        started = trio.current_time()
        with trio.fail_after(SESSION_SECONDS):
            await lost.wait()
        assert trio.current_time() - started < SESSION_SECONDS * 0.9
        for server in others:
            server.thaw()
