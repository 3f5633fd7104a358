"""Garbage collection: drops the index of deleted ledgers, unlinks logs, compacts sparse ones.

A ledger is deleted if its catalog says so (`ledger_catalog.py`); an error ends the round. Then, log
by log, as `GarbageCollectorThread.java` does:

    no live ledger in it    unlink
    live part below a limit copy the live records to the log being written, sync it, put the new
                            locations into the index, sync that, and only then unlink

Invariant: at every moment each live entry is where the index says. The log that is being written is
never touched. All writes are done under the storage's lock, in slices, so that a checkpoint never
waits long.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Final, TypeVar, TypeVarTuple, Unpack

import trio
from msgspec import Struct

from magnetar.bookie.format import entries
from magnetar.bookie.format import entry_log as log_format
from magnetar.bookie.format.entries import Run
from magnetar.bookie.server.bookie import Bookie
from magnetar.bookie.server.checkpoint import Checkpointer
from magnetar.bookie.server.disk_usage import is_full
from magnetar.bookie.server.entry_log.writer import log_ids
from magnetar.bookie.server.garbage.compaction_schedule import CompactionSchedule
from magnetar.bookie.server.garbage.ledger_catalog import LedgerCatalog
from magnetar.bookie.server.garbage.location_compaction import LocationCompaction
from magnetar.bookie.server.index.locations import Placed
from magnetar.bookie.server.ledger_storage import LedgerStorage, make_durable, put_locations
from magnetar.bookie.server.settings import BookieSettings
from magnetar.core.kernel.errors import BrokerError, Corrupted, NotAllowed

log = logging.getLogger(__name__)

Result = TypeVar("Result")
Arguments = TypeVarTuple("Arguments")

SLICE_BYTES: Final = 4 * 1024 * 1024
"""Bytes copied between two chances for a checkpoint."""
LOOKS_PER_BREATH: Final = 200
"""Look-ups in the index between two pauses of the thread: a millisecond or two, in which the loop
hardly runs.
"""


class CollectorStatistics(Struct, frozen=True):
    """A snapshot; sizes are those of the last round."""

    entry_logs: int
    bytes: int
    live_bytes: int
    ledgers_deleted: int
    unlinked: int
    bytes_compacted: int
    ledgers: int
    rounds: int
    bytes_deleted: int
    """Given back by logs without live entries, since the start."""
    bytes_given_back: int
    """Given back by compaction."""


class Collector:
    """See the module's docstring."""

    def __init__(
        self,
        storage: LedgerStorage,
        bookie: Bookie,
        checkpointer: Checkpointer,
        catalog: LedgerCatalog | None,
        settings: BookieSettings,
    ) -> None:
        self._storage = storage
        self._bookie = bookie
        self._checkpointer = checkpointer
        self._catalog = catalog
        self.locations = LocationCompaction(storage)
        self.running = False
        """Whether a round is under way."""
        disk = checkpointer.disk
        self.schedule = CompactionSchedule(
            settings,
            trio.current_time(),
            storage.machine.clock.wall_ms,
            lambda: disk.pressure,
        )
        self._interval_seconds = settings.gc_interval_seconds
        self._wanted = trio.Event()
        self._worker = storage.machine.threads.workers(1)
        self._contents: dict[int, dict[int, int]] = {}
        """Bytes of each live ledger, by finished log."""
        self._damaged: set[int] = set()
        """Logs that cannot be read through, which is not tried again."""
        self._ledgers_deleted = self._unlinked = self._bytes_compacted = 0
        self._bytes = self._live_bytes = self._ledgers = 0
        self._rounds = self._bytes_deleted = self._bytes_given_back = 0
        self._looks = 0

    def statistics(self) -> CollectorStatistics:
        return CollectorStatistics(
            entry_logs=len(self._contents),
            bytes=self._bytes,
            live_bytes=self._live_bytes,
            ledgers_deleted=self._ledgers_deleted,
            unlinked=self._unlinked,
            bytes_compacted=self._bytes_compacted,
            ledgers=self._ledgers,
            rounds=self._rounds,
            bytes_deleted=self._bytes_deleted,
            bytes_given_back=self._bytes_given_back,
        )

    async def run(self) -> None:
        """Run a round at each interval, with the compaction that is due, until cancelled."""
        if self._catalog is None:
            return
        while True:
            with trio.move_on_after(self._interval_seconds):
                await self._wanted.wait()
            self._wanted = trio.Event()
            self.running = True
            try:
                await self.collect(self.schedule.begin(trio.current_time()))
            except (BrokerError, OSError) as error:
                if isinstance(error, OSError) and not is_full(error):
                    raise
                log.warning("this round of garbage collection ends early: %s", error)
            finally:
                self.running = False
                self.schedule.end()

    def collect_soon(self) -> None:
        """Have a round run now, or as soon as the one that runs is over."""
        if self._catalog is None:
            raise NotAllowed(
                "this bookie is in no cluster: nothing tells it which ledgers are deleted"
            )
        self._wanted.set()

    def collect_for_room(self) -> None:
        """Have a round with both compactions run, unless one does: there is little room left."""
        if self._catalog is not None and not self.running:
            self.schedule.minor.force_for_room()
            self.schedule.major.force_for_room()
            self._wanted.set()

    async def collect(self, compact_below: float) -> None:
        """Run one round.

        The order matters: first the logs, then the ledgers, then which of them exist. A ledger that
        is created meanwhile is in none of these logs.
        """
        assert self._catalog is not None, "no ledger is known to be deleted"
        finished = await self.finished_logs()
        local = await self._in_thread(self._storage.ledgers.ledger_ids)
        gone = await self._catalog.deleted(local)
        if gone:
            await self._forget(gone)
        live = set(local).difference(gone)
        self._ledgers = len(live)
        await self._look_at_logs(finished, live)
        for log_id in finished:
            if log_id not in self._contents:
                continue
            if not self._contents[log_id]:
                self._bytes_deleted += await self._unlink(log_id)
            elif log_id not in self._damaged and self._live_part(log_id) < compact_below:
                try:
                    await self._compact(log_id)
                except Corrupted as error:
                    self._leave_alone(log_id, error)
        self._rounds += 1

    async def _in_thread(
        self, call: Callable[[Unpack[Arguments]], Result], *arguments: *Arguments
    ) -> Result:
        return await self._worker.run(call, *arguments)

    async def _forget(self, gone: list[int]) -> None:
        """Drop deleted ledgers from the indexes."""
        for ledger_id in gone:
            self._bookie.deleted(ledger_id)
        async with self._storage.lock:
            await self._in_thread(self._forget_blocking, gone)
        self._ledgers_deleted += len(gone)
        log.info("%d ledgers are deleted", len(gone))

    def _forget_blocking(self, gone: list[int]) -> None:
        for ledger_id in gone:
            self._storage.locations.forget(ledger_id)
        make_durable(self._storage)
        # The row goes last: while it exists, the next round finds this ledger again.
        for ledger_id in gone:
            self._storage.ledgers.forget(ledger_id)
        self._storage.ledgers.sync()

    # -- logs ---------------------------------------------------------------------------------

    async def finished_logs(self) -> list[int]:
        """Logs that are closed and completely indexed."""
        async with self._storage.lock:
            writing = self._storage.entry_log.log_id
            unindexed = self._checkpointer.unindexed_from
            return [
                i
                for i in log_ids(self._storage.directories.logs)
                if i != writing and (unindexed is None or i < unindexed)
            ]

    async def _look_at_logs(self, finished: list[int], live: set[int]) -> None:
        """Read the contents of new logs, and forget deleted ledgers."""
        for log_id in finished:
            if log_id not in self._contents and log_id not in self._damaged:
                try:
                    self._contents[log_id] = await self._in_thread(self._contents_of, log_id)
                except Corrupted as error:
                    self._leave_alone(log_id, error)
        await self._in_thread(self._weigh, live)

    def _weigh(self, live: set[int]) -> None:
        """Sum up the logs. In a thread, for thousands of ledgers in hundreds of logs."""
        for contents in self._contents.values():
            for ledger_id in set(contents).difference(live):
                del contents[ledger_id]
        self._bytes = sum(map(self._storage.reader.size, self._contents))
        self._live_bytes = sum(sum(contents.values()) for contents in self._contents.values())

    def _leave_alone(self, log_id: int, error: Corrupted) -> None:
        self._damaged.add(log_id)
        log.error("%s; it is left alone", error)

    def _contents_of(self, log_id: int) -> dict[int, int]:
        """Bytes by ledger. `Corrupted` if the log has indexed entries that a scan cannot reach.

        An unfinished log may end in the remains of a crash, of which nothing is indexed. An indexed
        entry behind the last readable record means damage instead.
        """
        locations = self._storage.locations
        if not self._has_header(log_id):
            return {}
        contents, end = self._storage.reader.ledgers(log_id, self._storage.pause)
        if end and locations.any_in(log_id, end, self._storage.pause):
            raise Corrupted(f"entry log {log_id:x}: there is no record at {end}, but behind it")
        return contents

    def _has_header(self, log_id: int) -> bool:
        """False for what a loss of power leaves of a log that was never synced: its header is torn,
        and nothing in it is indexed. `Corrupted` if something is.
        """
        try:
            self._storage.reader.ledgers_map_offset(log_id)
        except Corrupted:
            if self._storage.locations.any_in(log_id, 0, self._storage.pause):
                raise
            return False
        return True

    def _live_part(self, log_id: int) -> float:
        size = self._storage.reader.size(log_id) - log_format.HEADER_BYTES
        return sum(self._contents[log_id].values()) / max(size, 1)

    async def _unlink(self, log_id: int) -> int:
        """The bytes that it gives back."""
        size = self._storage.reader.size(log_id)
        async with self._storage.lock:
            await self._in_thread(self._unlink_blocking, log_id)
        del self._contents[log_id]
        self._unlinked += 1
        log.info("entry log %x is gone", log_id)
        return size

    def _unlink_blocking(self, log_id: int) -> None:
        directory = self._storage.directories.logs
        self._storage.reader.forget(log_id)
        directory.remove(log_format.file_name(log_id))
        directory.sync()

    # -- compaction ---------------------------------------------------------------------------

    async def _compact(self, log_id: int) -> None:
        """Move live records to another log, then unlink this one."""
        moved = 0
        runs = self._storage.reader.scan(log_id, self._storage.pause)
        while True:
            async with self._storage.lock:
                copied = await self._in_thread(self._move_slice, runs)
            if copied is None:
                break
            moved += copied
        self._bytes_compacted += moved
        log.info("entry log %x is compacted: %d bytes moved", log_id, moved)
        self._bytes_given_back += await self._unlink(log_id) - moved

    def _move_slice(self, runs: Iterator[tuple[int, Run]]) -> int | None:
        """Copy up to a slice of live records; None when there are no more."""
        storage = self._storage
        placed: list[Placed] = []
        looked_at = copied = 0
        try:
            storage.entry_log.move_on()
            for location, run in runs:
                for part in self._live_records(location, run):
                    placed.append((part, storage.entry_log.append(part)))
                    copied += len(part.blob)
                looked_at += len(run.blob)
                if looked_at >= SLICE_BYTES:
                    break
            storage.entry_log.flush()
        except OSError:
            storage.entry_log.set_aside()  # its end is unknown
            raise
        if not looked_at:
            return None
        if placed:
            put_locations(storage, placed)
            make_durable(storage)
        return copied

    def _live_records(self, location: int, run: Run) -> Iterator[Run]:
        """The parts of a run that the index locates here: the rest was moved or deleted."""
        if run.ledger_id in self._checkpointer.deleted:
            return
        start: int | None = None
        for i in range(run.count + 1):
            self._looks += 1
            if self._looks % LOOKS_PER_BREATH == 0:
                self._storage.pause()
            here = i < run.count and (
                self._storage.locations.find(run.ledger_id, run.first + i)
                == location + run.offsets[i]
            )
            if here and start is None:
                start = i
            elif not here and start is not None:
                yield entries.cut(entries.rest(run, start), i - start)
                start = None
