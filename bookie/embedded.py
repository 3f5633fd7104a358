"""One bookie inside this process, and the ledger client over it: the LedgerStore of one machine.

Start with `open_embedded`; it shows the parts and the order in which they are started and stopped.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Final

import trio
from msgspec import Struct

from magnetar.bookie.client.store import LedgerClient
from magnetar.bookie.format import cookie, ledger_metadata
from magnetar.bookie.machine.system import system_machine
from magnetar.bookie.recovery.ledger_storage import open_storage
from magnetar.bookie.recovery.scrubber import Scrubber
from magnetar.bookie.server import identity
from magnetar.bookie.server.bookie import Bookie
from magnetar.bookie.server.cache.write_cache import WriteCache
from magnetar.bookie.server.checkpoint import Checkpointer
from magnetar.bookie.server.collector import Collector
from magnetar.bookie.server.directories import Directories, claim, read_last_mark
from magnetar.bookie.server.disk_usage import DiskWatch
from magnetar.bookie.server.housekeeping import BookieHousekeeping, Flusher
from magnetar.bookie.server.journal.files import JournalFiles
from magnetar.bookie.server.journal.writer import Journal
from magnetar.bookie.server.ledger_storage import LedgerStorage
from magnetar.bookie.server.settings import BookieSettings
from magnetar.bookie.server.statistics import BookieStatistics
from magnetar.core.kernel.errors import AlreadyExists, NotFound, StorageFailed
from magnetar.core.ports.group_commit import EventLoop
from magnetar.core.ports.ledger_store import LedgerInfo, LedgerReader, LedgerWriter
from magnetar.core.ports.machine import Machine
from magnetar.core.ports.metadata_store import ABSENT, MetadataStore

if TYPE_CHECKING:
    from pathlib import Path

log = logging.getLogger(__name__)

EMBEDDED: Final = "/magnetar/embedded-bookies"
"""Leases of running bookies, by id."""


class EmbeddedStore:
    """A LedgerStore and a GroupCommit, with figures for the metrics."""

    def __init__(
        self, bookie: Bookie, journal: Journal, client: LedgerClient, parts: _Parts
    ) -> None:
        self._bookie = bookie
        self._journal = journal
        self._client = client
        self._parts = parts
        self._flusher = parts.flusher

    async def create(self, properties: Mapping[str, bytes]) -> LedgerWriter:
        return await self._client.create(properties)

    async def open(self, ledger_id: int, *, recover: bool) -> LedgerReader:
        return await self._client.open(ledger_id, recover=recover)

    async def info(self, ledger_id: int) -> LedgerInfo:
        return await self._client.info(ledger_id)

    async def delete(self, ledger_id: int) -> None:
        await self._client.delete(ledger_id)

    def begin_group(self) -> None:
        """Promise to call `flush_group` before the loop turns: no task must be woken for it.

        That saves 10 us per sweep, much for a sweep that brings one message.
        """
        self._flusher.begin_group()

    def flush_group(self) -> None:
        """Hand everything appended since the last call to the journal, once per sweep.

        Without this call, a task does it at the loop's next turn.
        """
        self._flusher.flush_group()

    @property
    def congested(self) -> bool:
        """Storage is behind: connections that write should not be read until this is False."""
        return self._bookie.congested

    def writable(self) -> bool:
        """False when the disk is too full, or has failed."""
        return (
            self._parts.disk.writable
            and self._journal.failed is None
            and self._bookie.failed is None
        )

    def statistics(self) -> BookieStatistics:
        bookie, journal, parts = self._bookie, self._journal.statistics(), self._parts
        collected, scrubbed = parts.collector.statistics(), parts.scrubber.statistics()
        counters = bookie.counters
        return BookieStatistics(
            writable=self.writable(),
            congested=self.congested,
            entries_added=counters.entries_added,
            bytes_added=counters.bytes_added,
            entries_read=counters.entries_read,
            bytes_read=counters.bytes_read,
            reads_from_write_cache=counters.from_write_cache,
            reads_from_read_cache=counters.from_read_cache,
            reads_from_disk=counters.from_disk,
            journal_groups=journal.groups,
            journal_bytes=journal.bytes_written,
            journal_queue_bytes=journal.queue_bytes,
            journal_sync_seconds=journal.sync_seconds,
            journal_direct=journal.direct,
            write_cache_bytes=parts.cache.bytes,
            write_cache_entries=parts.cache.entries,
            read_cache_bytes=bookie.read_cache.bytes,
            checkpoints=parts.checkpointer.count,
            checkpoint_seconds=parts.checkpointer.seconds.copy(),
            entry_logs=collected.entry_logs,
            entry_log_bytes=collected.bytes,
            entry_log_live_bytes=collected.live_bytes,
            ledgers_deleted=collected.ledgers_deleted,
            entry_logs_unlinked=collected.unlinked,
            bytes_compacted=collected.bytes_compacted,
            scrubbed_bytes=scrubbed.bytes,
            damaged_ranges=scrubbed.damaged_ranges,
            damaged_entries=scrubbed.damaged_entries,
            disk_used_part=parts.disk.usage.used_part,
            disk_free_bytes=parts.disk.usage.free_bytes,
        )

    def drop_read_cache(self) -> None:
        """Forget what was read from entry logs, as at the end of a start: it reads logs through."""
        self._bookie.read_cache.clear()

    async def checkpoint(self) -> None:
        """Make a checkpoint now: for tests, benchmarks, operators."""
        await self._parts.checkpointer.checkpoint()
        await self._parts.checkpointer.retire()

    async def collect(self, *, compact_below: float) -> None:
        """Free the space of deleted ledgers now."""
        await self._parts.collector.collect(compact_below)


class _Parts(Struct, frozen=True):
    cache: WriteCache
    checkpointer: Checkpointer
    collector: Collector
    disk: DiskWatch
    flusher: Flusher
    scrubber: Scrubber


@asynccontextmanager
async def open_embedded(
    directory: Path,
    metadata: MetadataStore,
    settings: BookieSettings,
    *,
    on_fatal: Callable[[str], None],
    loop: EventLoop | None = None,
    machine: Machine | None = None,
) -> AsyncIterator[EmbeddedStore]:
    """Start the bookie below `directory`, replaying its journal; stop it cleanly at the end.

    `loop` is the server's event loop, which runs while this is open; without one, tasks watch the
    kernel's writes.

    `on_fatal` is called once, when storage has failed and the process should end: nothing is stored
    from then on. A bookie that cannot start (directory in use, foreign, newer, damaged) raises
    `StorageFailed` with a sentence for the operator. `machine` is this system by default.
    """
    machine = machine or system_machine()
    with claim(machine.disk, str(directory)) as directories:
        async with _registered(metadata, settings.bookie_id, on_fatal):
            await _identify(machine, directories, metadata, settings)
            storage, last_id = await open_storage(machine, directories, metadata, settings)
            try:
                async with _running(storage, last_id, metadata, settings, on_fatal, loop) as store:
                    yield store
            finally:
                storage.close()


@asynccontextmanager
async def _registered(
    metadata: MetadataStore, bookie_id: str, on_fatal: Callable[[str], None]
) -> AsyncIterator[None]:
    """Hold the lease on a bookie id, so that of two bookies with that id on different disks one
    runs. `claim` holds the disk; the cookies of `_identify` are checked and written under both.

    Apache's bookies do this with their ephemeral node (`ZKRegistrationManager.doRegisterBookie` of
    4.18). That is below `/ledgers/available`, where clients look for bookies to write to over the
    network, which this one does not serve; so its lease has another path.
    """
    path = f"{EMBEDDED}/{bookie_id}"
    lost = f"another process may run the bookie {bookie_id}: its lease is lost"
    try:
        await metadata.lease(path, b"", lambda: on_fatal(lost))
    except AlreadyExists:
        raise StorageFailed(f"a bookie with the id {bookie_id} is running already") from None
    try:
        yield
    finally:
        with trio.CancelScope(shield=True), suppress(NotFound, StorageFailed):
            # without an answer the lease ends with the metadata store's session
            await metadata.delete(path, 0)


async def _identify(
    machine: Machine, directories: Directories, metadata: MetadataStore, settings: BookieSettings
) -> None:
    """Check that the directory is this bookie's: the metadata store and the directory each have its
    cookie, as with `CookieValidation` of BookKeeper 4.18.
    """
    found = await metadata.get(ledger_metadata.INSTANCE_ID)
    if found is None:
        if cookie.VERSION_FILE in directories.ledgers.names():
            raise StorageFailed(
                f"{directories.root.path} has stored entries before, but its metadata is lost: "
                "restore that from a backup"
            )
        instance_id = await _format(metadata, machine)
    else:
        instance_id = found.value.decode()
    ours = cookie.embedded(settings.bookie_id, instance_id)
    path = f"{ledger_metadata.COOKIES}/{settings.bookie_id}"
    known = await metadata.get(path)
    if known is not None and identity.is_empty(directories):
        raise StorageFailed(
            f"{directories.root.path} is empty, but this bookie has stored entries before: is it "
            "the right disk? If it is, restore that from a backup"
        )
    identity.check(directories, ours)
    if known is None:
        await metadata.put(path, ours.encode().encode(), ABSENT)


async def _format(metadata: MetadataStore, machine: Machine) -> str:
    """Create a bookies' cluster in the metadata store; return its id, that of another process if it
    was first.

    The id is written last: if it exists, so does the rest.
    """
    with suppress(AlreadyExists):  # an earlier start was cut off after this
        await metadata.put(ledger_metadata.LAYOUT, ledger_metadata.LAYOUT_VALUE, ABSENT)
    made = str(uuid.UUID(int=machine.random_bits(128), version=4))
    with suppress(AlreadyExists):
        await metadata.put(ledger_metadata.INSTANCE_ID, made.encode(), ABSENT)
    found = await metadata.get(ledger_metadata.INSTANCE_ID)
    return made if found is None else found.value.decode()


def _journal_files(storage: LedgerStorage, settings: BookieSettings) -> JournalFiles:
    return JournalFiles(
        storage.directories.journal,
        storage.machine.threads.lock(),
        size_max=settings.journal_size_max_bytes,
        spares_max=settings.journal_spares_max if settings.sync else 0,
    )


@asynccontextmanager
async def _running(
    storage: LedgerStorage,
    last_id: int,
    metadata: MetadataStore,
    settings: BookieSettings,
    on_fatal: Callable[[str], None],
    loop: EventLoop | None,
) -> AsyncIterator[EmbeddedStore]:
    """Start the journal, then the housekeeping; stop them in reverse order."""
    files, machine = _journal_files(storage, settings), storage.machine
    reported: list[str] = []

    def failed(reason: str) -> None:
        if not reported:
            reported.append(reason)
            on_fatal(reason)

    first_id = max(last_id + 1, machine.clock.wall_ms())
    disk = _disk_watch(storage, settings)
    journal = Journal(files, first_id, settings, failed, disk.ran_out, machine)
    flusher = Flusher(journal)
    cache = WriteCache(settings.write_cache_bytes // 2)
    async with trio.open_nursery() as nursery:
        loop = loop or TaskLoop(nursery)
        checkpointer = Checkpointer(storage, cache, journal, files, disk, loop.schedule_settle)
        # Everything before is synced in ledger storage, so a replay may begin at the new journal.
        # A first start must write that mark now; a later start has a mark, from which a replay is
        # only longer, and replaces it in the background (`Checkpointer.begin`).
        if read_last_mark(storage.directories) is None:
            await checkpointer.mark_start()
        bookie = Bookie(settings, storage, journal, cache, checkpointer, flusher.wake)
        collector = Collector(storage, bookie, checkpointer, metadata, settings)
        journal.start(loop)
        nursery.start_soon(flusher.run)

        def storage_failed(reason: str) -> None:
            bookie.fail(reason)
            failed(reason)

        scrubber = _scrubber(storage, metadata, collector, settings)
        keep = BookieHousekeeping(
            settings, checkpointer, collector, scrubber.run, storage_failed, bookie.read_cache.age
        )
        nursery.start_soon(keep.run)
        parts = _Parts(cache, checkpointer, collector, disk, flusher, scrubber)
        client = LedgerClient(settings.bookie_id, bookie, metadata, machine, flusher.call_soon)
        try:
            yield EmbeddedStore(bookie, journal, client, parts)
        finally:
            keep.cancel()
            with trio.CancelScope(shield=True):
                await _stop(journal, checkpointer, storage, bookie)
            nursery.cancel_scope.cancel()


def _disk_watch(storage: LedgerStorage, settings: BookieSettings) -> DiskWatch:
    threshold, low_mark = settings.disk_usage_threshold, settings.disk_usage_low_mark
    return DiskWatch(storage.machine.disk, storage.directories.root, threshold, low_mark)


def _scrubber(
    storage: LedgerStorage, metadata: MetadataStore, collector: Collector, settings: BookieSettings
) -> Scrubber:
    rate = settings.scrub_bytes_per_second
    return Scrubber(storage, metadata, collector.finished_logs, rate)


class TaskLoop:
    """The event loop of storage without a server: a task watches each descriptor."""

    def __init__(self, nursery: trio.Nursery) -> None:
        self._nursery = nursery

    def watch(self, fd: int, call: Callable[[], None], due: Callable[[], bool]) -> None:
        self._nursery.start_soon(_watch, fd, call)

    def begin(self) -> None: ...

    def settle(self) -> None: ...

    def schedule_settle(self) -> None: ...


async def _watch(descriptor: int, call: Callable[[], None]) -> None:
    while True:
        await trio.lowlevel.wait_readable(descriptor)
        call()


async def _stop(
    journal: Journal, checkpointer: Checkpointer, storage: LedgerStorage, bookie: Bookie
) -> None:
    """Sync and report all appends, write everything out, finish the entry log."""
    await journal.stop()
    if journal.failed is None and bookie.failed is None:
        try:
            await checkpointer.checkpoint()
            await storage.machine.threads.run(storage.entry_log.finish)
            await storage.ids.close()
        except OSError as error:
            # The journal has everything, and the next start replays it.
            log.error("the last checkpoint failed: %s", error)
    bookie.fail("the store is closed")
