"""Our client on bookies that hang (SIGSTOP), are slow, or are cut off without a word.

The bookies are processes; the metadata are in this one, so that nothing else is slow.
"""

import random
import signal
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, suppress

import pytest
import trio

from interop_tests.bookkeeper.cluster import Bookie
from interop_tests.bookkeeper.quorum import read_all
from magnetar.bookie.client.connection.settings import ConnectionSettings
from magnetar.bookie.client.quorum.settings import QuorumSettings
from magnetar.bookie.client.quorum.store import (
    ClientMachine,
    ClusterLedgerStore,
    open_cluster_ledgers,
)
from magnetar.bookie.client.quorum.striping import Striping
from magnetar.bookie.cluster.formatting import initialize_cluster
from magnetar.bookie.machine.network import SystemNetwork
from magnetar.core.kernel.clock import SystemClock
from magnetar.core.kernel.errors import StorageFailed
from magnetar.core.metadata.memory import MemoryMetadata
from magnetar.core.ports.ledger_store import LedgerReader
from magnetar.core.ports.metadata_store import ABSENT
from magnetar.core.ports.tests.contract_ledger_store import Outcome, append

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

ANSWER_SECONDS = 2.0


class Door:
    """Forwards connections to a bookie: with a delay of its responses, or not at all."""

    def __init__(self, bookie: Bookie) -> None:
        self.delay_seconds = 0.0
        self.is_dead = False
        """Whether what is sent arrives nowhere any more, on the connections of that time."""
        self._target = int(bookie.address.rpartition(":")[2])
        self.address = ""
        self._dead: set[trio.SocketStream] = set()
        self._open: set[trio.SocketStream] = set()

    async def run(self, *, task_status: trio.TaskStatus[None]) -> None:
        (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
        self.address = f"127.0.0.1:{listener.socket.getsockname()[1]}"
        task_status.started()
        await trio.serve_listeners(self._forward, [listener])

    def lose_the_way(self) -> None:
        """What is sent on today's connections arrives no more; new ones work."""
        self._dead |= self._open

    async def _forward(self, client: trio.SocketStream) -> None:
        self._open.add(client)
        server = await trio.open_tcp_stream("127.0.0.1", self._target)
        late, coming = trio.open_memory_channel[tuple[float, bytes]](100_000)

        async def requests() -> None:
            async for data in client:
                if client not in self._dead:
                    await server.send_all(data)
            if client in self._dead:
                await trio.sleep_forever()
            nursery.cancel_scope.cancel()

        async def responses() -> None:
            async for data in server:
                late.send_nowait((trio.current_time() + self.delay_seconds, data))

        async def delayed() -> None:
            async for due, data in coming:
                await trio.sleep_until(due)
                if client not in self._dead:
                    await client.send_all(data)

        async with server, client, trio.open_nursery() as nursery:
            nursery.start_soon(requests)
            nursery.start_soon(responses)
            nursery.start_soon(delayed)
        self._open.discard(client)


class SlowCluster:
    """Three bookies behind doors, as a client finds them."""

    def __init__(self, bookies: list[Bookie], doors: list[Door], store: ClusterLedgerStore) -> None:
        self.bookies = bookies
        self.doors = doors
        self.store = store

    def place(self, bookie_id: str) -> int:
        return [door.address for door in self.doors].index(bookie_id)


@pytest.fixture
def bookies(tmp_path) -> Iterator[list[Bookie]]:
    with ExitStack() as stack:
        made = []
        for name in "abc":
            (tmp_path / name).mkdir()
            made.append(stack.enter_context(Bookie(tmp_path / name)))
        yield made


@asynccontextmanager
async def opened(bookies: list[Bookie]) -> AsyncIterator[SlowCluster]:
    metadata, doors = MemoryMetadata(), [Door(bookie) for bookie in bookies]
    cluster = await initialize_cluster(metadata, "one")
    settings = QuorumSettings(striping=Striping(3, 3, 2), speculative_read_seconds=0.2)
    machine = ClientMachine(SystemNetwork(), SystemClock(), random.Random(1))
    connections = ConnectionSettings(answer_seconds=ANSWER_SECONDS, expire_seconds=0.1)
    async with trio.open_nursery() as nursery:
        for door in doors:
            await nursery.start(door.run)
            await metadata.put(f"/ledgers/available/{door.address}", b"", ABSENT)
        async with open_cluster_ledgers(metadata, cluster, machine, settings, connections) as store:
            yield SlowCluster(bookies, doors, store)
        nursery.cancel_scope.cancel()


async def recovered(cluster: SlowCluster, ledger_id: int) -> LedgerReader:
    """A recovery; connections that have failed are made again a while later."""
    with trio.fail_after(60):
        while True:
            with suppress(StorageFailed):
                return await cluster.store.open(ledger_id, recover=True)


async def test_a_hung_bookie_stops_neither_adds_nor_a_recovery_nor_reads(bookies) -> None:
    """BookKeeper #1067: a recovery waited for the bookie that hung."""
    async with opened(bookies) as cluster:
        writer = await cluster.store.create({})
        await append(writer, b"before")
        hung = bookies[cluster.place(writer.view.last_segment[1][0])]
        hung.send_signal(signal.SIGSTOP)
        try:
            with trio.fail_after(ANSWER_SECONDS):  # nobody waits until it is given up
                for i in range(100):
                    await append(writer, b"%d" % i)
                reader = await cluster.store.open(writer.ledger_id, recover=True)
                assert reader.last_confirmed == 100
            found = await read_all(reader)
        finally:
            hung.send_signal(signal.SIGCONT)
        assert found == [b"before", *(b"%d" % i for i in range(100))]
        outcome = Outcome()
        writer.append([b"zombie"], outcome)
        (error,) = await outcome.wait()
        assert error is not None


async def test_two_hung_bookies_of_three_stop_all_and_cost_nothing(bookies) -> None:
    """Without a quorum nothing is acknowledged, and nothing is lost when they are back."""
    async with opened(bookies) as cluster:
        writer = await cluster.store.create({})
        await append(writer, b"before")
        for bookie in bookies[:2]:
            bookie.send_signal(signal.SIGSTOP)
        outcome = Outcome()
        writer.append([b"between"], outcome)
        try:
            with trio.move_on_after(0.5) as waited:
                await outcome.wait()
            assert waited.cancelled_caught or outcome.results != [None]
        finally:
            for bookie in bookies[:2]:
                bookie.send_signal(signal.SIGCONT)
        found = await read_all(await recovered(cluster, writer.ledger_id))
        assert found in ([b"before"], [b"before", b"between"])


async def test_a_slow_bookie_delays_no_add(bookies) -> None:
    async with opened(bookies) as cluster:
        writer = await cluster.store.create({})
        await append(writer, b"before")
        cluster.doors[0].delay_seconds = 1.0
        begin = time.monotonic()
        for i in range(100):
            await append(writer, b"%d" % i)
        assert time.monotonic() - begin < 50, "a hundred seconds, had it been waited for"
        await writer.close()
        reader = await cluster.store.open(writer.ledger_id, recover=False)
        assert len(await read_all(reader)) == 101


async def test_a_half_open_connection_is_left_and_made_again(bookies) -> None:
    """No end and no reset comes: all that shows is that nothing is answered."""
    async with opened(bookies) as cluster:
        writer = await cluster.store.create({})
        await append(writer, b"before")
        for door in cluster.doors:
            door.lose_the_way()
        outcome = Outcome()
        writer.append([b"lost on its way"], outcome)
        await outcome.wait()
        found = await read_all(await recovered(cluster, writer.ledger_id))
        assert found in ([b"before"], [b"before", b"lost on its way"])
