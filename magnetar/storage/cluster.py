"""Storage of a gateway: ledgers on the bookies of a BookKeeper cluster, metadata in ZooKeeper.

A cluster has one gateway at a time, which holds a lease (`gateway_place.py`). One that starts while
another runs, or whose predecessor was killed and has a session until it times out, waits for a
while and is refused then. One that loses the lease ends, or serves on until another has it.

Invariant: it is not the lease that keeps two gateways from writing to one topic. Whoever opens a
topic fences its last ledger, and writes to the metadata are conditional; so of two gateways that
both believe to be the one, the earlier can acknowledge nothing for a topic that the later has.
"""

from __future__ import annotations

import logging
import os
import platform
import random  # noqa: TID251  # this composes the ledger client
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final

import trio
from msgspec import Struct
from msgspec.structs import replace

from magnetar.bookie.client.connection.settings import ConnectionSettings
from magnetar.bookie.client.quorum.placement import RackRules
from magnetar.bookie.client.quorum.settings import QuorumSettings
from magnetar.bookie.client.quorum.store import ClientMachine, open_cluster_ledgers
from magnetar.bookie.client.quorum.striping import Striping
from magnetar.bookie.cluster import cluster as clusters
from magnetar.bookie.cluster.bookies import Bookies
from magnetar.bookie.cluster.cluster import BookKeeperCluster
from magnetar.bookie.cluster.ledgers import ClusterLedgers
from magnetar.bookie.cluster.overview import ClusterOverview
from magnetar.bookie.format.digests import DIGEST_TYPES
from magnetar.bookie.machine.network import SystemNetwork
from magnetar.bookie.rpc.client_wire import ENTRY_BYTES_MAX
from magnetar.bookie_identity import explained
from magnetar.core.kernel.clock import SystemClock
from magnetar.core.link.loop import Link
from magnetar.core.metadata.zookeeper.addresses import parse
from magnetar.core.metadata.zookeeper.store import ZooKeeperMetadata, open_zookeeper
from magnetar.core.ports.ledger_store import Quorums
from magnetar.core.ports.metadata_store import MetadataStore
from magnetar.measures import parts as measures
from magnetar.security.shown_credentials import ShownCredentials
from magnetar.settings import Settings
from magnetar.storage.gateway_place import GatewayPlace
from magnetar.storage.instance import keep_to
from magnetar.storage.opened import OpenedStorage
from magnetar.storage.topic_ledgers import TopicLedgers

log = logging.getLogger(__name__)

CANNOT_START: Final = "this gateway cannot start"
SESSIONS_WAITED: Final = 2
"""How many times the session's time-out a gateway waits for another's end."""


class GatewayOptions(Struct, frozen=True):
    """What the command line says of the cluster."""

    metadata: str
    """Pulsar's `metadataStoreUrl`: `zk:HOST:PORT`."""
    bookkeeper: str
    """BookKeeper's `metadataServiceUri`: `zk+hierarchical://HOST:PORT/ledgers`."""
    striping: Striping
    """Of new ledgers."""
    racks: RackRules
    """Pulsar's `bookkeeperClientRackawarePolicyEnabled`, `...MinNumRacksPerWriteQuorum` and
    `...EnforceMinNumRacksPerWriteQuorum`.
    """
    digest_type: str
    """Pulsar's `managedLedgerDigestType`."""
    ledger_password: str
    """Pulsar's `managedLedgerPassword`."""
    zk_timeout_seconds: float
    reconnects: bool = False
    """Pulsar's `zookeeperSessionExpiredPolicy`: `reconnect`, or else `shutdown`."""
    explicit_lac_seconds: float = 0.0
    """Pulsar's `bookkeeperExplicitLacIntervalInMills`, in seconds."""
    bookie_error_threshold: int = 0
    """Pulsar's `bookkeeperClientHealthCheckErrorThresholdPerInterval`; 0 for no such check."""


MESSAGE_BYTES_MAX: Final = ENTRY_BYTES_MAX - 64 * 1024
"""What an entry of a bookie has room for, with its headers (`nettyMaxFrameSizeBytes`)."""


def with_messages_that_fit(settings: Settings) -> Settings:
    """The settings, with messages and batches of all protocols that bookies take."""
    broker, kafka = settings.broker, settings.kafka
    return replace(
        settings,
        broker=replace(broker, max_message_size=min(broker.max_message_size, MESSAGE_BYTES_MAX)),
        kafka=replace(kafka, message_max_bytes=min(kafka.message_max_bytes, MESSAGE_BYTES_MAX)),
    )


class JoinedCluster(Struct, frozen=True):
    """A cluster whose gateway this process is."""

    metadata: MetadataStore
    """Of topics."""
    ledgers: ZooKeeperMetadata
    """Where the bookies and the ledgers stand; mostly the same store."""
    cluster: BookKeeperCluster
    options: GatewayOptions


@asynccontextmanager
async def joined(
    options: GatewayOptions, fail: Callable[[str], None]
) -> AsyncIterator[JoinedCluster]:
    """Be the gateway of a cluster for as long as the block lasts; `fail` ends it before."""
    with explained(CANNOT_START):
        at, ledgers_at = parse(options.metadata), parse(options.bookkeeper)
    timeout = options.zk_timeout_seconds
    async with AsyncExitStack() as opened:
        with explained(CANNOT_START):
            metadata = ledgers = await opened.enter_async_context(open_zookeeper(at, timeout))
            if (at.servers, at.root) != (ledgers_at.servers, ledgers_at.root):
                ledgers = await opened.enter_async_context(open_zookeeper(ledgers_at, timeout))
            cluster = await clusters.join(
                ledgers, ledgers_at.ledgers, ledgers_at.layout, chroot=ledgers_at.root
            )
            name = f"{platform.node()}, process {os.getpid()}, {random.getrandbits(64):016x}"
            place = GatewayPlace(metadata, name, fail, reconnects=options.reconnects)
            await place.take(SESSIONS_WAITED * metadata.session_seconds)
            topics = TopicLedgers(metadata, ClusterLedgers(ledgers, cluster))
            await keep_to(metadata, cluster, topics)
        nursery = await opened.enter_async_context(trio.open_nursery())
        nursery.start_soon(place.keep)
        yield JoinedCluster(metadata, ledgers, cluster, options)
        nursery.cancel_scope.cancel()


@asynccontextmanager
async def open_cluster_storage(
    joined: JoinedCluster, server: Settings, link: Link
) -> AsyncIterator[OpenedStorage]:
    """See `opened.py`."""
    shown = ShownCredentials(server.security)
    network = shown.network(SystemNetwork(link))
    machine = ClientMachine(network, SystemClock(), random.Random(), link)
    options = joined.options
    settings = QuorumSettings(
        striping=options.striping,
        digest_type=DIGEST_TYPES[options.digest_type],
        password=options.ledger_password.encode(),
        explicit_lac_seconds=options.explicit_lac_seconds,
        racks=options.racks,
    )
    async with AsyncExitStack() as opened:
        with explained(CANNOT_START):
            store = await opened.enter_async_context(
                open_cluster_ledgers(
                    joined.ledgers,
                    joined.cluster,
                    machine,
                    settings,
                    ConnectionSettings(error_threshold=options.bookie_error_threshold),
                    racks=joined.metadata,
                )
            )
        nursery = await opened.enter_async_context(trio.open_nursery())
        nursery.start_soon(shown.run, store.say)
        yield OpenedStorage(
            store,
            joined.metadata,
            lambda: measures.of_cluster(writable=store.writable(), congested=store.congested),
            _nothing,
            lambda _address: ClusterPlaces(joined.ledgers, joined.cluster, store.bookies),
            quorums=Quorums(*options.striping),
            bookies=ClusterOverview(joined.ledgers, joined.cluster),
        )
        nursery.cancel_scope.cancel()


class ClusterPlaces:
    """`LedgerPlaces` of a cluster."""

    def __init__(
        self, metadata: ZooKeeperMetadata, cluster: BookKeeperCluster, bookies: Bookies
    ) -> None:
        self._metadata = metadata
        self._cluster = cluster
        self._bookies = bookies

    async def metadata(self, ledger_ids: Sequence[int]) -> Mapping[int, bytes]:
        paths = {self._cluster.ledger(each): each for each in ledger_ids}
        values = await self._metadata.values(list(paths))
        return {paths[path]: value for path, value in values.items()}

    def bookies(self) -> Mapping[str, str]:
        infos = {**self._bookies.read_only, **self._bookies.writable}
        return {name: info.rpc().address for name, info in infos.items()}


def _nothing() -> None:
    """A gateway has no read cache."""
