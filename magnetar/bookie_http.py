"""The HTTP side of a bookie: its administration for the paths of `wire/http/bookie`, and figures by
the names that Apache's bookies give them.

It is imported only if there is an HTTP port.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import msgspec
import trio
from msgspec import Struct
from msgspec.structs import replace

from magnetar import __version__
from magnetar.bookie.requests.services import BookieServices
from magnetar.bookie.running import RunningBookie
from magnetar.bookie.server.directories import Directories, read_last_mark
from magnetar.bookie.server.garbage.collector import Collector
from magnetar.bookie.server.garbage.compaction_schedule import CompactionStatistics
from magnetar.bookie_identity import BookieIdentity, BookieOptions
from magnetar.core.kernel.errors import BrokerError
from magnetar.core.link.front import Door
from magnetar.core.link.loop import Link
from magnetar.core.ports.bookie_administration import (
    BookieFiles,
    BookieState,
    CompactionDetails,
    GarbageDetails,
)
from magnetar.doors.sockets import address, host_names
from magnetar.measures import bookie as measures
from magnetar.measures import security
from magnetar.measures.recovery import and_of_recovery
from magnetar.security.access import GuardedAccess
from magnetar.settings import Settings
from magnetar.shared_settings import HTTP_PART, MEBIBYTE
from magnetar.wire.http.app import BOOKIE, serve_http
from magnetar.wire.http.metrics.exposition import Family
from magnetar.wire.http.options import HttpOptions
from magnetar.wire.http.services import HttpServices

if TYPE_CHECKING:
    from magnetar.bookie.replication.auto_recovery import AutoRecovery

SANE_SECONDS_MAX: Final = 10.0
"""How long a bookie that is sane may need to make something durable."""


class BookieParts(Struct, frozen=True):
    """What a bookie's HTTP side is made from."""

    settings: Settings
    options: BookieOptions
    bookie_id: str
    where: str
    """The address of the bookie's own protocol."""
    running: RunningBookie
    services: BookieServices
    identity: BookieIdentity
    link: Link
    stop: trio.Event
    guarded: GuardedAccess
    """Who may use its HTTP paths; with the logins of both protocols."""
    recovery: Callable[[], AutoRecovery | None] | None = None
    """What repairs the cluster in this process, if anything may; None while it does not run."""


class BookieControl:
    """A `BookieAdministration`."""

    def __init__(self, parts: BookieParts) -> None:
        self._parts = parts
        self.cluster = parts.identity.cluster
        self.peers = parts.identity.peers
        self.garbage = GarbageControl(parts.running.collector)

    def state(self) -> BookieState:
        parts = self._parts
        usage, bookie = parts.running.disk.usage, parts.running.bookie
        return BookieState(
            bookie_id=parts.bookie_id,
            address=parts.where,
            running=not parts.stop.is_set(),
            read_only=not parts.services.ledgers.writable,
            urgent_writes=bookie.failed is None
            and (bookie.writable or usage.free_bytes >= parts.services.ledgers.spare_bytes),
            registered=parts.identity.registrar.is_held,
            free_bytes=usage.free_bytes,
            total_bytes=usage.total_bytes,
        )

    def set_read_only(self, read_only: bool) -> None:
        parts = self._parts
        parts.services.ledgers.read_only = read_only
        parts.identity.registrar.set_read_only(not parts.services.ledgers.writable)

    async def files(self) -> BookieFiles:
        storage = self._parts.running.storage
        return await storage.machine.threads.run(_files, storage.directories)

    async def is_sane(self) -> bool:
        """Sync the journal once: what a sanity check of Apache's does with a ledger of its own."""
        synced: list[BrokerError | None] = []
        ended = trio.Event()

        def done(error: BrokerError | None) -> None:
            synced.append(error)
            ended.set()

        with suppress(BrokerError), trio.move_on_after(SANE_SECONDS_MAX):
            self._parts.services.ledgers.force(done)
            self._parts.running.flush_group()
            await ended.wait()
        return synced == [None]


class GarbageControl:
    """A `GarbageAdministration`."""

    def __init__(self, collector: Collector) -> None:
        self._collector = collector

    def details(self) -> GarbageDetails:
        collector = self._collector
        return GarbageDetails(
            collector.running,
            _details(collector.schedule.minor.statistics()),
            _details(collector.schedule.major.statistics()),
            _details(collector.locations.statistics()),
            collector.locations.path,
        )

    def collect(self, *, minor: bool, major: bool) -> None:
        self._collector.collect_soon()
        if minor:
            self._collector.schedule.minor.force()
        if major:
            self._collector.schedule.major.force()

    def suspend(self, suspended: bool, *, minor: bool, major: bool) -> None:
        schedule = self._collector.schedule
        for compaction, chosen in ((schedule.minor, minor), (schedule.major, major)):
            if chosen:
                compaction.suspended = suspended

    def compact_locations(self) -> None:
        self._collector.locations.start()


def _details(found: CompactionStatistics) -> CompactionDetails:
    return CompactionDetails(found.suspended, found.running, found.count, found.last_ms)


def _files(directories: Directories) -> BookieFiles:
    """Blocks: for a thread."""
    mark = read_last_mark(directories)
    return BookieFiles(
        _named(directories.journal.names(), ".txn"),
        _named(directories.logs.names(), ".log"),
        (0, 0) if mark is None else (mark.journal_id, mark.offset),
    )


def _named(names: list[str], end: str) -> list[str]:
    """The files with this ending, by the numbers that they begin with."""
    found = [name for name in names if name.endswith(end)]
    return sorted(found, key=lambda name: (len(name), name))


def http_services(parts: BookieParts, door: socket.socket) -> HttpServices:
    """What all its connections share."""
    metrics = _metrics(parts)
    if parts.recovery is not None:
        metrics = and_of_recovery(metrics, parts.recovery)
    options = http_options(parts.settings, door)
    options = replace(options, configuration=_configuration(parts))
    return HttpServices(
        None, options, metrics, bookie=BookieControl(parts), access=parts.guarded.access
    )


def http_options(settings: Settings, door: socket.socket) -> HttpOptions:
    """Of a process without a broker."""
    limits = settings.limits
    return HttpOptions(
        version=f"Magnetar {__version__}",
        http_url=f"http://{address(door)}",
        hosts=host_names(settings.listen, door),
        connections_max=limits.http_connections,
        body_bytes_max=limits.http_body_bytes,
        open_paths=frozenset(["/metrics"] if settings.security.open_metrics else []),
        memory_bytes_max=limits.memory_budget_mb * MEBIBYTE // HTTP_PART,
    )


def _configuration(parts: BookieParts) -> Mapping[str, str]:
    """What is in force: the settings that concern a bookie, and its flags, by their names."""
    found = msgspec.to_builtins(parts.settings)
    settings = {
        f"{section}.{key}": str(value)
        for section in ("listen", "tls", "storage", "bookie", "limits", "log")
        for key, value in found[section].items()
        if not key.endswith("_port")  # the broker's, which a bookie does not open
    }
    journal, ledgers = parts.running.storage.directories.names[:2]
    options = parts.options
    return {
        **settings,
        "port": parts.where.rpartition(":")[2],
        "http_port": str(options.http_port),
        "bookie_id": parts.bookie_id,
        "metadata_uri": options.metadata_uri,
        "zk_timeout": str(options.zk_timeout_seconds),
        "journal_dir": journal,
        "ledger_dirs": ",".join(ledgers),
        "allow_storage_expansion": str(options.may_grow),
        "with_recovery": str(options.with_recovery),
    }


def _metrics(parts: BookieParts) -> Callable[[], list[Family]]:
    def families() -> list[Family]:
        registered = parts.identity.registrar.is_held or parts.identity.cluster is None
        return [
            *measures.families(
                parts.link.statistics(), parts.running, parts.services, registered=registered
            ),
            *security.families(parts.guarded),
        ]

    return families


async def serve(parts: BookieParts, door: Door) -> None:
    """Serve HTTP at a door until cancelled."""
    from magnetar.core.kernel.spare_files import SpareFiles

    services = http_services(parts, door.socket)
    await serve_http(services, [door], SpareFiles().lend, BOOKIE)
