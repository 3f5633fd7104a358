"""Checkpoints: entries move from write cache and journal to entry log and index.

The work has two parts: the first is done often, the second rarely, because it syncs. (So does
step 2 between tables of the index: `index/locations.py`.) Apache does
both at once (`SingleDirectoryDbLedgerStorage.checkpoint` of 4.18, called by `SyncThread.java`).

    writing out   on the loop   note the journal's synced position; swap the write cache; take the
                                dirty rows
                  in a thread   1 append the leaving half to the entry log, ledger by ledger
                                2 put locations and rows into the memory of their indexes
                  on the loop   drop the leaving half: it is read from the entry log now
    marking       in a thread   3 sync the entry log               4 sync the index, and the rows
                                5 lastMark := the position noted when the last half left
    apart         in a thread   retire journals before the mark

Why it is safe: entries go into the write cache before they go to the journal, and so do dirty rows.
So everything in the journal before the noted position is in this half or was in an earlier one.
Until lastMark moves, the journal has all of it, whatever a crash leaves of the rest; and writing it
out twice changes nothing. Rows are written even if there is no entry: once lastMark has passed the
journal's record of a fence, the row is its only trace. (`checkpoint` of Apache's returns early when
the write cache is empty, and loses the fence: BookKeeper #4843.)

Step 3 always precedes step 4 (`make_durable`): an entry that had reached no group of the journal
when the machine stopped may be lost, but must not be lost and indexed.

Invariant: lastMark only moves forward, and only to synced positions. A mark that moves back names
a journal that may be deleted, and the bookie does not start (BookKeeper #4105, #4740).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

import trio

from magnetar.bookie.format import entry_log as log_format
from magnetar.bookie.format import journal as journal_format
from magnetar.bookie.format.ledger_row import LedgerRow
from magnetar.bookie.server.cache.write_cache import Half, WriteCache
from magnetar.bookie.server.disk_usage import DiskWatch, is_full
from magnetar.bookie.server.index.locations import Placed
from magnetar.bookie.server.journal import files
from magnetar.bookie.server.journal.writer import Journal
from magnetar.bookie.server.ledger_storage import LedgerStorage, append_half, make_mark, put_index
from magnetar.bookie.server.statistics import Histogram

log = logging.getLogger(__name__)

MARK_BYTES: Final = 128 * 1024 * 1024
MARK_ENTRIES: Final = 100_000
MARK_SECONDS: Final = 2.0
"""Under load a mark is due after this much was written out, or this long. A start replays that,
and the contents of the write cache: half a second for each of the first two limits.
"""
RETRY_SECONDS: Final = 1.0
"""The time between two attempts while the disk is full."""


class Checkpointer:
    """Runs checkpoints, one at a time: a whole one at each interval, and the parts that are due
    whenever a half is full.
    """

    def __init__(
        self,
        storage: LedgerStorage,
        cache: WriteCache,
        journal: Journal,
        journal_files: files.JournalFiles,
        disk: DiskWatch,
        on_relieved: Callable[[], None],
    ) -> None:
        """`on_relieved` is called when the write cache has an empty half again, so that connections
        can be read again.
        """
        self.rows: dict[int, LedgerRow] = {}
        """Rows that changed since they were last written out."""
        self.deleted: dict[int, None] = {}
        """Deleted ledgers, oldest first; they are no longer written."""
        self.disk = disk
        self._on_relieved = on_relieved
        self._begun = False
        """Whether the mark of this start is made."""
        self.count = 0
        self.seconds = Histogram.of_latency()
        self.storage = storage
        self._now = storage.machine.clock.monotonic
        self._cache = cache
        self._journal = journal
        self._journal_files = journal_files
        self._mark = mark = journal.synced
        """The value of lastMark."""
        self._reached = self._leaving_mark = mark
        """Its value after the next sync, and after the leaving half is written out."""
        self._leaving_rows: dict[int, LedgerRow] = {}
        self._placed: list[Placed] | None = None
        """The locations of a leaving half that is in the entry log and not yet in the index."""
        self._unmarked_bytes = self._unmarked_entries = 0
        """What was written out since the last mark."""
        self._marked_at = self._now()
        self._requested = trio.Event()
        self._worker = storage.machine.threads.workers(1)
        self._retirer = storage.machine.threads.workers(1)
        self._retiring = False
        self._retired = -1
        """Journals before this one are retired."""

    def request(self) -> None:
        """Write out now, without waiting for the interval: a half is full."""
        self._requested.set()

    def row(self, ledger_id: int) -> LedgerRow | None:
        """A row that is not in the index yet."""
        return self.rows.get(ledger_id) or self._leaving_rows.get(ledger_id)

    async def run(self, interval_seconds: float) -> None:
        """Run until cancelled. OSError means that the disk failed; a full disk is waited for."""
        async with trio.open_nursery() as nursery:
            while True:
                step = self.checkpoint
                with trio.move_on_after(interval_seconds):
                    await self._requested.wait()
                    step = self.make_room
                self._requested = trio.Event()
                try:
                    with trio.CancelScope(shield=True):
                        await step()
                except OSError as error:
                    if not is_full(error):
                        raise
                    log.error("no room for a checkpoint, trying again soon: %s", error)
                    await trio.sleep(RETRY_SECONDS)
                    self.request()
                if not self._retiring and self._mark.journal_id > self._retired:
                    self._retiring = True
                    nursery.start_soon(self.retire)

    async def mark_start(self) -> None:
        """Make the mark of this start. OSError if the disk has no room for it."""
        await self._worker.run(make_mark, self.storage, self._mark)
        self._begun = True

    async def begin(self) -> None:
        """Make the mark of this start if it is not made, before any journal is retired. Waits while
        the disk is full.
        """
        waiting = False
        while not self._begun:
            try:
                async with self.storage.lock:
                    await self.mark_start()
            except OSError as error:
                if not is_full(error):
                    raise
                if not waiting:
                    log.error(
                        "no room for the mark of this start, trying until there is: %s", error
                    )
                waiting = True
                await trio.sleep(RETRY_SECONDS)
            else:
                if waiting:
                    log.warning("there is room for the mark of this start")

    async def checkpoint(self) -> None:
        """Make everything acknowledged so far durable in ledger storage."""
        async with self.storage.lock:
            with self._timed():
                await self._write_out()
                await self._make_mark()

    async def make_room(self) -> None:
        """Empty the half that is full; make a mark only if one is due."""
        async with self.storage.lock:
            with self._timed():
                await self._write_out()
                if self._mark_is_due():
                    await self._make_mark()

    def _mark_is_due(self) -> bool:
        return (
            self._unmarked_bytes >= MARK_BYTES
            or self._unmarked_entries >= MARK_ENTRIES
            or self._now() - self._marked_at >= MARK_SECONDS
        )

    @contextmanager
    def _timed(self) -> Iterator[None]:
        started = self._now()
        yield
        self.count += 1
        self.seconds.add(self._now() - started)

    async def _write_out(self) -> None:
        if self._cache.leaving is None:  # else the last attempt failed, and is repeated
            self._leaving_mark = self._journal.synced
            if not (self._cache.filling.entries or self.rows):
                self._reached = self._leaving_mark
                return
            self._leaving_rows, self.rows = self.rows, {}
            self._cache.swap()
            self._on_relieved()
        half = self._cache.leaving
        assert half is not None
        await self._worker.run(self._write_half, half)
        self._cache.drop()
        self._reached = self._leaving_mark
        self._leaving_rows = {}
        self._unmarked_bytes += half.bytes
        self._unmarked_entries += half.entries
        self.disk.check_and_log()  # a fast load fills a small disk between two periodic checks
        if self._cache.is_congested:
            self.request()

    def _write_half(self, half: Half) -> None:
        """Write a half; after a failure, repeat only the failed step.

        The index may lack room for long, and appending the entries again would use as much of the
        disk each time.
        """
        if self._placed is None:
            try:
                self._placed = append_half(self.storage, half, self.deleted)
            except OSError as error:
                # The half is written again, to another log: the end of this one is unknown.
                if is_full(error):
                    self.disk.ran_out_for(log_format.file_name(self.storage.entry_log.log_id))
                self.storage.entry_log.set_aside()
                raise
        put_index(self.storage, self._placed, self._leaving_rows, self.deleted)
        self._placed = None

    @property
    def unindexed_from(self) -> int | None:
        """The first log with entries that could not be indexed yet, if any."""
        return self._placed[0][1] >> 32 if self._placed else None

    async def _make_mark(self) -> None:
        mark = self._reached
        if mark > self._mark or not self._begun:
            await self._worker.run(make_mark, self.storage, mark)
        self._mark, self._begun = mark, True
        self._unmarked_bytes = self._unmarked_entries = 0
        self._marked_at = self._now()

    async def retire(self) -> None:
        """Retire the journals that replay no longer needs (`Journal.checkpointComplete` of 4.18).

        In a worker of its own: zeroing an old journal takes as long as writing one, and the next
        half of the write cache must not wait for that.
        """
        mark = self._mark
        try:
            await self._retirer.run(self._retire, mark)
            self._retired = mark.journal_id
        except OSError as error:
            if not is_full(error):
                raise
            log.error("no room for a spare journal: %s", error)
        finally:
            self._retiring = False

    def _retire(self, mark: journal_format.Mark) -> None:
        old = [i for i in files.journals(self._journal_files.directory) if i < mark.journal_id]
        self._journal_files.retire(old)
