"""One running bookie: its parts, and the order in which they are started and stopped.

`open_bookie` shows both. `embedded.py` puts a ledger client over it; `requests/` serves clients
over the network.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import trio
from msgspec import Struct

from magnetar.bookie.recovery.ledger_storage import open_storage
from magnetar.bookie.recovery.scrubber import Scrubber
from magnetar.bookie.server.bookie import Bookie
from magnetar.bookie.server.cache.write_cache import WriteCache
from magnetar.bookie.server.checkpoint import Checkpointer
from magnetar.bookie.server.directories import Directories, read_last_mark
from magnetar.bookie.server.disk_usage import DiskWatch, disk_watch, room_for
from magnetar.bookie.server.garbage.collector import Collector
from magnetar.bookie.server.garbage.ledger_catalog import LedgerCatalog
from magnetar.bookie.server.housekeeping import BookieHousekeeping
from magnetar.bookie.server.journal.files import JournalFiles
from magnetar.bookie.server.journal.flusher import Flusher
from magnetar.bookie.server.journal.writer import Journal
from magnetar.bookie.server.ledger_storage import LedgerStorage
from magnetar.bookie.server.settings import BookieSettings
from magnetar.bookie.server.statistics import BookieStatistics
from magnetar.core.ports.group_commit import EventLoop
from magnetar.core.ports.machine import Machine

log = logging.getLogger(__name__)


class RunningBookie(Struct, frozen=True):
    """The parts of a bookie that runs, as a GroupCommit, with figures for the metrics."""

    bookie: Bookie
    journal: Journal
    cache: WriteCache
    checkpointer: Checkpointer
    collector: Collector
    disk: DiskWatch
    flusher: Flusher
    scrubber: Scrubber
    storage: LedgerStorage

    def begin_group(self) -> None:
        """Promise to call `flush_group` before the loop turns: no task must be woken for it."""
        self.flusher.begin_group()

    def flush_group(self) -> None:
        """Hand everything appended since the last call to the journal, once per sweep."""
        self.flusher.flush_group()

    @property
    def congested(self) -> bool:
        """Storage is behind: connections that write should not be read until this is False."""
        return self.bookie.congested

    def statistics(self) -> BookieStatistics:
        bookie, journal = self.bookie, self.journal.statistics()
        collected, scrubbed = self.collector.statistics(), self.scrubber.statistics()
        counters = bookie.counters
        return BookieStatistics(
            writable=bookie.writable,
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
            write_cache_bytes=self.cache.bytes,
            write_cache_entries=self.cache.entries,
            read_cache_bytes=bookie.read_cache.bytes,
            checkpoints=self.checkpointer.count,
            checkpoint_seconds=self.checkpointer.seconds.copy(),
            entry_logs=collected.entry_logs,
            entry_log_bytes=collected.bytes,
            entry_log_live_bytes=collected.live_bytes,
            ledgers_deleted=collected.ledgers_deleted,
            entry_logs_unlinked=collected.unlinked,
            bytes_compacted=collected.bytes_compacted,
            scrubbed_bytes=scrubbed.bytes,
            damaged_ranges=scrubbed.damaged_ranges,
            damaged_entries=scrubbed.damaged_entries,
            disk_used_part=self.disk.usage.used_part,
            disk_free_bytes=self.disk.usage.free_bytes,
        )


def _journal_files(storage: LedgerStorage, settings: BookieSettings) -> JournalFiles:
    return JournalFiles(
        storage.directories.journal,
        storage.machine.threads.lock(),
        size_max=settings.journal_size_max_bytes,
        spares_max=settings.journal_spares_max if settings.sync else 0,
    )


@asynccontextmanager
async def open_bookie(
    machine: Machine,
    directories: Directories,
    catalog: LedgerCatalog | None,
    settings: BookieSettings,
    on_fatal: Callable[[str], None],
    loop: EventLoop | None,
) -> AsyncIterator[RunningBookie]:
    """Replay the journal and run the bookie, in directories that are known to be its own."""
    disk = disk_watch(machine.disk, directories.logs, settings)
    storage, last_id = await open_storage(machine, directories, catalog, settings, disk)
    opened = _Opened(storage, disk, last_id)
    try:
        async with _running(opened, catalog, settings, on_fatal, loop) as running:
            yield running
    finally:
        storage.close()


class _Opened(Struct, frozen=True):
    """What is there after a replay."""

    storage: LedgerStorage
    disk: DiskWatch
    last_id: int
    """Of the journals; -1 if there is none."""


@asynccontextmanager
async def _running(
    opened: _Opened,
    catalog: LedgerCatalog | None,
    settings: BookieSettings,
    on_fatal: Callable[[str], None],
    loop: EventLoop | None,
) -> AsyncIterator[RunningBookie]:
    """Start the journal, then the housekeeping; stop them in reverse order."""
    storage, disk = opened.storage, opened.disk
    files, machine = _journal_files(storage, settings), storage.machine
    reported: list[str] = []

    def failed(reason: str) -> None:
        if not reported:
            reported.append(reason)
            on_fatal(reason)

    first_id = max(opened.last_id + 1, machine.clock.wall_ms())
    with room_for("a journal", storage.directories.journal):
        journal = Journal(files, first_id, settings, failed, disk.ran_out, machine)
    flusher = Flusher(journal)
    cache = WriteCache(settings.write_cache_bytes // 2, machine.random_bits)
    async with trio.open_nursery() as nursery:
        loop = loop or TaskLoop(nursery)
        checkpointer = Checkpointer(storage, cache, journal, files, disk, loop.schedule_settle)
        # Everything before is synced in ledger storage, so a replay may begin at the new journal.
        # A first start must write that mark now; a later start has a mark, from which a replay is
        # only longer, and replaces it in the background (`Checkpointer.begin`).
        if read_last_mark(storage.directories) is None:
            await checkpointer.mark_start()
        bookie = Bookie(settings, storage, journal, cache, checkpointer, flusher.wake)
        collector = Collector(storage, bookie, checkpointer, catalog, settings)
        journal.start(loop)
        nursery.start_soon(flusher.run)

        def storage_failed(reason: str) -> None:
            bookie.fail(reason)
            failed(reason)

        scrubber = _scrubber(storage, catalog, collector, settings)
        keep = BookieHousekeeping(
            settings, checkpointer, collector, scrubber.run, storage_failed, bookie.read_cache.age
        )
        nursery.start_soon(keep.run)
        try:
            yield RunningBookie(
                bookie, journal, cache, checkpointer, collector, disk, flusher, scrubber, storage
            )
        finally:
            scrubber.stop()
            keep.cancel()
            with trio.CancelScope(shield=True):
                await _stop(journal, checkpointer, storage, bookie)
            nursery.cancel_scope.cancel()


def _scrubber(
    storage: LedgerStorage,
    catalog: LedgerCatalog | None,
    collector: Collector,
    settings: BookieSettings,
) -> Scrubber:
    rate = settings.scrub_bytes_per_second
    return Scrubber(storage, catalog, collector.finished_logs, rate)


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
