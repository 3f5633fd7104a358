"""Our client of a cluster, for tests with real bookies and a real ZooKeeper."""

import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from magnetar.bookie.client.quorum.settings import QuorumSettings
from magnetar.bookie.client.quorum.store import (
    ClientMachine,
    ClusterLedgerStore,
    open_cluster_ledgers,
)
from magnetar.bookie.client.quorum.striping import Striping
from magnetar.bookie.cluster import cluster as clusters
from magnetar.bookie.format.digests import DIGEST_TYPES
from magnetar.bookie.machine.network import SystemNetwork
from magnetar.core.kernel.clock import SystemClock
from magnetar.core.metadata.zookeeper.addresses import parse
from magnetar.core.metadata.zookeeper.store import open_zookeeper
from magnetar.security.shown_credentials import ShownCredentials
from magnetar.settings.security import Security


@asynccontextmanager
async def opened(
    uri: str,
    ensemble: int,
    write: int,
    ack: int,
    password: bytes = b"secret",
    digest: str = "CRC32C",
    security: Security | None = None,
) -> AsyncIterator[ClusterLedgerStore]:
    """The LedgerStore of the cluster at a URI, with new ledgers of these sizes; `security` says
    what bookies are shown.
    """
    address = parse(uri)
    settings = QuorumSettings(
        striping=Striping(ensemble, write, ack),
        digest_type=DIGEST_TYPES[digest],
        password=password,
    )
    network = ShownCredentials(security or Security()).network(SystemNetwork())
    machine = ClientMachine(network, SystemClock(), random.Random())
    async with open_zookeeper(address) as metadata:
        cluster = await clusters.find(metadata, address.ledgers)
        async with open_cluster_ledgers(metadata, cluster, machine, settings) as store:
            yield store


async def read_all(reader) -> list[bytes]:
    """All entries of a ledger, as far as they are confirmed."""
    found: list[bytes] = []
    while len(found) <= reader.last_confirmed:
        found += await reader.read(len(found), reader.last_confirmed, 1 << 20)
    return found
