"""Bookies of this process that serve on loopback ports, in a cluster with metadata in memory."""

import random
from contextlib import AsyncExitStack, asynccontextmanager

import pytest
import trio

from magnetar.bookie.client.connection.settings import ConnectionSettings
from magnetar.bookie.client.quorum.settings import QuorumSettings
from magnetar.bookie.client.quorum.store import ClientMachine, open_cluster_ledgers
from magnetar.bookie.client.quorum.striping import Striping
from magnetar.bookie.cluster.formatting import initialize_cluster
from magnetar.bookie.cluster.ledgers import ClusterLedgers
from magnetar.bookie.embedded import open_embedded
from magnetar.bookie.machine.network import SystemNetwork
from magnetar.bookie.requests.front import BookieFront
from magnetar.bookie.requests.limits import RequestLimits
from magnetar.bookie.requests.services import BookieServices
from magnetar.bookie.server.ledgers.served import ServedLedgers
from magnetar.bookie.tests.memory_machine import QUIET
from magnetar.bookie.tests.metadata_fake import DictMetadata
from magnetar.core.kernel.clock import SystemClock
from magnetar.core.link.backend import NO_BACKEND
from magnetar.core.link.front import Door
from magnetar.core.link.limits import LinkLimits
from magnetar.core.link.loop import Link
from magnetar.core.metadata.memory import MemoryMetadata
from magnetar.core.testing.metadata import overwrite, remove

QUICK = ConnectionSettings(answer_seconds=3.0, expire_seconds=0.02)


class ServingBookie:
    """One bookie, which can be killed."""

    def __init__(self, store, port, scope, ended):
        self.store = store
        self.bookie_id = f"127.0.0.1:{port}"
        self._scope = scope
        self._ended = ended

    async def kill(self):
        """End its connections and its listener at once."""
        self._scope.cancel()
        await self._ended.wait()


@asynccontextmanager
async def serving(directory):
    """A bookie that serves, and its port."""
    async with open_embedded(directory, DictMetadata(), QUIET, on_fatal=pytest.fail) as store:
        running, clock = store._parts, SystemClock()
        ledgers = ServedLedgers(running.bookie, clock, 1 << 30)
        services = BookieServices(ledgers, running, RequestLimits(), None)
        listener = trio.socket.socket()
        await listener.bind(("127.0.0.1", 0))
        front = BookieFront(services, [Door("bookie", listener._sock)])
        link = Link(clock, LinkLimits())
        link.serve(running, NO_BACKEND)
        try:
            async with trio.open_nursery() as nursery:
                await nursery.start(link.run)
                nursery.start_soon(front.run)
                for one in front.listeners:
                    link.listen(one)
                yield store, listener.getsockname()[1]
                nursery.cancel_scope.cancel()
        finally:
            front.close()


class LocalCluster:
    """Bookies, and the metadata that all share."""

    def __init__(self, nursery, directory):
        self._directory = directory
        self.metadata = MemoryMetadata()
        self.bookies = []
        self._nursery = nursery
        self.cluster = None
        self.ledgers = None

    async def format(self):
        self.cluster = await initialize_cluster(self.metadata, "one")
        self.ledgers = ClusterLedgers(self.metadata, self.cluster)

    async def _serve(self, *, task_status):
        ended = trio.Event()
        directory = self._directory / str(len(self.bookies))
        directory.mkdir()
        with trio.CancelScope() as scope:
            async with serving(directory) as (store, port):
                task_status.started(ServingBookie(store, port, scope, ended))
                await trio.sleep_forever()
        ended.set()

    async def start(self, count=1):
        """More bookies, which are registered."""
        for _ in range(count):
            bookie = await self._nursery.start(self._serve)
            self.bookies.append(bookie)
            await overwrite(self.metadata, f"/ledgers/available/{bookie.bookie_id}", b"")

    async def unregister(self, bookie_id):
        await remove(self.metadata, f"/ledgers/available/{bookie_id}")

    async def changed(self, ledger_id):
        """Wait for the second segment of a ledger."""
        while len((await self.ledgers.read(ledger_id)).segment) == 1:
            changed = trio.Event()
            path = self.cluster.ledger(ledger_id)
            end = self.metadata.watch(path, lambda _, changed=changed: changed.set())
            if len((await self.ledgers.read(ledger_id)).segment) == 1:
                await changed.wait()
            end()

    def bookie(self, bookie_id):
        return next(each for each in self.bookies if each.bookie_id == bookie_id)

    @asynccontextmanager
    async def client(self, ensemble=3, write=3, ack=2, connection=QUICK, metadata=None, **more):
        settings = QuorumSettings(striping=Striping(ensemble, write, ack), **more)
        machine = ClientMachine(SystemNetwork(), SystemClock(), random.Random(1))
        async with open_cluster_ledgers(
            metadata or self.metadata, self.cluster, machine, settings, connection
        ) as store:
            yield store


@asynccontextmanager
async def local_cluster(directory, count):
    async with AsyncExitStack() as stack:
        nursery = await stack.enter_async_context(trio.open_nursery())
        cluster = LocalCluster(nursery, directory)
        await cluster.format()
        await cluster.start(count)
        yield cluster
        nursery.cancel_scope.cancel()
