"""The ledger client of a cluster: LedgerStore over many bookies, and a GroupCommit for the link.

New ledgers get their ids from the cluster's counter, their bookies from `placement.py`, and
Apache's metadata: Apache's clients and ours read and recover each other's ledgers.

`open_cluster_ledgers` starts what follows the cluster (which bookies run, and in which racks), and
ends it with all connections.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Protocol

import trio
from msgspec import Struct

from magnetar.bookie.client.connection.connections import Connections
from magnetar.bookie.client.connection.settings import ConnectionSettings
from magnetar.bookie.client.quorum.ensemble_adds import ClientServices
from magnetar.bookie.client.quorum.ledger_view import LedgerView
from magnetar.bookie.client.quorum.placement import Choice, Placement
from magnetar.bookie.client.quorum.racks import Racks
from magnetar.bookie.client.quorum.reader import QuorumReader
from magnetar.bookie.client.quorum.recovery import ask_for_end, recover
from magnetar.bookie.client.quorum.settings import QuorumSettings
from magnetar.bookie.client.quorum.striping import Striping
from magnetar.bookie.client.quorum.writer import QuorumWriter
from magnetar.bookie.cluster.bookies import Bookies
from magnetar.bookie.cluster.cluster import BookKeeperCluster
from magnetar.bookie.cluster.ledger_id_generator import LedgerIdGenerator
from magnetar.bookie.cluster.ledgers import ClusterLedgers
from magnetar.bookie.format import ledger_metadata, service_info
from magnetar.bookie.proto.storage_pb2 import LedgerMetadata
from magnetar.core.kernel.clock import Clock
from magnetar.core.kernel.errors import AlreadyExists
from magnetar.core.ports.group_commit import EventLoop
from magnetar.core.ports.ledger_store import LedgerInfo, LedgerReader, LedgerWriter, Quorums
from magnetar.core.ports.metadata_store import MetadataStore
from magnetar.core.ports.network import Network

log = logging.getLogger(__name__)


class Random(Choice, Protocol):
    """Chance, as in `random.Random`."""

    def getrandbits(self, count: int, /) -> int: ...

    def shuffle(self, names: list[str], /) -> None: ...


class ClientMachine(Struct, frozen=True):
    """What the client runs on, so that a simulator can replace it."""

    network: Network
    clock: Clock
    chance: Random
    loop: EventLoop | None = None
    """The server's loop, which hears of results."""


class ClusterLedgerStore:
    """See the module's docstring."""

    def __init__(
        self,
        services: ClientServices,
        ledgers: ClusterLedgers,
        ids: LedgerIdGenerator,
        bookies: Bookies,
        machine: ClientMachine,
        settings: QuorumSettings,
    ) -> None:
        self.bookies = bookies
        """Those that run."""
        self._services = services
        self._ledgers = ledgers
        self._ids = ids
        self._machine = machine
        self._settings = settings
        self._writers: dict[int, QuorumWriter] = {}
        """Those that are not closed."""
        self._enough = True
        """Whether there were enough bookies for a new ledger when they changed last."""
        self.begin_group = services.connections.begin_group
        """Promise to call `flush_group` before the loop turns."""
        self.flush_group = services.connections.flush_group
        """Send everything appended since the last call, in one send to each bookie."""

        self.say = services.connections.say
        """Send the same to all bookies: another proof of who this is."""

    @property
    def congested(self) -> bool:
        """Bookies are behind: connections that write should not be read until this is False."""
        return self._services.congested

    def _striping(self, quorums: Quorums | None) -> Striping:
        return self._settings.striping if quorums is None else Striping(*quorums)

    def writable(self, quorums: Quorums | None = None) -> bool:
        """Whether enough bookies take writes for a new ledger; without `quorums` whether there is
        anything to be written to, for ledgers that are open go on anyway.
        """
        enough = self._services.placement.has_enough(self._striping(quorums).ensemble)
        return enough or (quorums is None and bool(self._writers))

    def refusal(self, quorums: Quorums | None = None) -> str:
        """Why nothing can be stored."""
        needed = self._striping(quorums).ensemble
        return f"storage takes no writes: fewer than {needed} bookies take writes"

    def bookies_changed(self) -> None:
        """There are other bookies than before, or it begins."""
        needed = self._settings.striping.ensemble
        enough = self._services.placement.has_enough(needed)
        if enough != self._enough:
            self._enough = enough
            if enough:
                log.warning("%d bookies take writes: there can be new ledgers again", needed)
            else:
                log.warning(
                    "fewer than %d bookies take writes: there can be no new ledgers, and only what "
                    "is open goes on",
                    needed,
                )
        for writer in list(self._writers.values()):
            writer.bookies_changed()

    async def tell_lacs(self, seconds: float) -> None:
        """Tell bookies now and then what is confirmed, until cancelled."""
        while True:
            await trio.sleep(seconds)
            for writer in list(self._writers.values()):
                writer.tell_lac()

    async def create(
        self, properties: Mapping[str, bytes], quorums: Quorums | None = None
    ) -> LedgerWriter:
        striping = self._striping(quorums)
        while True:
            ensemble = self._services.placement.ensemble(striping)
            ledger_id = await self._ids.next()
            fresh = ledger_metadata.fresh(
                ensemble,
                (striping.write, striping.ack),
                properties,
                self._machine.clock.wall_ms(),
                self._machine.chance.getrandbits(63),
            )
            fresh.digestType = self._settings.digest_type
            fresh.password = self._settings.password
            try:
                await self._ledgers.create(ledger_id, fresh)
            except AlreadyExists:
                continue
            break
        writer = QuorumWriter(
            self._view(ledger_id, fresh),
            self._services,
            self._settings,
            self._ledgers,
            self._closed,
        )
        self._writers[ledger_id] = writer
        return writer

    def _closed(self, ledger_id: int) -> None:
        self._writers.pop(ledger_id, None)

    def _view(self, ledger_id: int, ledger: LedgerMetadata) -> LedgerView:
        return LedgerView(ledger_id, ledger, self._settings.password)

    async def open(self, ledger_id: int, *, recover: bool) -> LedgerReader:
        ledger = await self._ledgers.read(ledger_id)
        view = self._view(ledger_id, ledger)
        if ledger.state != ledger_metadata.CLOSED and recover:
            ledger = await self._recover(view)
        if ledger.state == ledger_metadata.CLOSED:
            view.follow(ledger)
            last = ledger.lastEntryId
            return self._reader(view, lambda: last)
        writer = self._writers.get(ledger_id)
        if writer is not None:
            return self._reader(writer.view, lambda: writer.last_confirmed)
        confirmed = (await ask_for_end(self._services, view, fence=False)).last_confirmed
        # What is confirmed may be in segments that were not there before the bookies said so.
        view.follow(await self._ledgers.read(ledger_id))
        return self._reader(view, lambda: confirmed)

    async def _recover(self, view: LedgerView) -> LedgerMetadata:
        return await recover(view, self._services, self._settings, self._ledgers)

    def _reader(self, view: LedgerView, last_confirmed: Callable[[], int]) -> QuorumReader:
        async def refresh() -> bool:
            return view.follow(await self._ledgers.read(view.ledger_id))

        return QuorumReader(view, self._services, self._settings, last_confirmed, refresh)

    async def info(self, ledger_id: int) -> LedgerInfo:
        return ledger_metadata.info(ledger_id, await self._ledgers.read(ledger_id))

    async def delete(self, ledger_id: int) -> None:
        await self._ledgers.delete(ledger_id)


class ClusterClient(Struct, frozen=True):
    """What every client of a cluster needs, whether it writes ledgers or repairs them."""

    services: ClientServices
    bookies: Bookies
    ledgers: ClusterLedgers
    settings: QuorumSettings


@asynccontextmanager
async def open_cluster_client(
    metadata: MetadataStore,
    cluster: BookKeeperCluster,
    machine: ClientMachine,
    settings: QuorumSettings,
    connection_settings: ConnectionSettings | None = None,
    racks: MetadataStore | None = None,
) -> AsyncIterator[ClusterClient]:
    """Follow a cluster, and keep connections, for as long as the block lasts. `racks` is where the
    racks of bookies stand, if that is another store.
    """
    async with trio.open_nursery() as nursery:
        bookies = Bookies(metadata, cluster)
        known_racks = Racks(racks or metadata)
        connections = Connections(
            machine.network,
            _address_of(bookies),
            connection_settings or ConnectionSettings(),
            machine.loop,
            nursery,
        )
        placement = Placement(
            lambda: bookies.writable,
            known_racks.rack_of,
            _is_suspect(connections, settings.quarantine_seconds),
            machine.chance,
            settings.racks,
        )
        services = ClientServices(connections, placement, nursery, settings.unconfirmed_bytes_max)
        client = ClusterClient(services, bookies, ClusterLedgers(metadata, cluster), settings)
        await nursery.start(bookies.run)
        await nursery.start(known_racks.run)
        nursery.start_soon(connections.run)
        try:
            yield client
        finally:
            nursery.cancel_scope.cancel()


@asynccontextmanager
async def open_cluster_ledgers(
    metadata: MetadataStore,
    cluster: BookKeeperCluster,
    machine: ClientMachine,
    settings: QuorumSettings,
    connection_settings: ConnectionSettings | None = None,
    racks: MetadataStore | None = None,
) -> AsyncIterator[ClusterLedgerStore]:
    """The LedgerStore of a cluster, for as long as the block lasts."""
    settings.striping.check()
    async with open_cluster_client(
        metadata, cluster, machine, settings, connection_settings, racks
    ) as client:
        ids = LedgerIdGenerator(metadata, cluster)
        store = ClusterLedgerStore(
            client.services, client.ledgers, ids, client.bookies, machine, settings
        )
        client.bookies.tell(store.bookies_changed)
        store.bookies_changed()
        if settings.explicit_lac_seconds:
            client.services.nursery.start_soon(store.tell_lacs, settings.explicit_lac_seconds)
        yield store


def _address_of(bookies: Bookies) -> Callable[[str], tuple[str, int]]:
    def address_of(bookie_id: str) -> tuple[str, int]:
        info = bookies.writable.get(bookie_id) or bookies.read_only.get(bookie_id)
        # One that is not registered may run: its session has ended, or it is about to register.
        found = (info or service_info.decode(bookie_id, b"")).rpc()
        return found.host, found.port

    return address_of


def _is_suspect(connections: Connections, seconds: float) -> Callable[[str], bool]:
    def is_suspect(bookie_id: str) -> bool:
        failed_at = connections.failed_at(bookie_id)
        if failed_at is not None and trio.current_time() < failed_at + seconds:
            return True
        return connections.is_in_quarantine(bookie_id)

    return is_suspect
