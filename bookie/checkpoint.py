"""Checkpoints: what the write cache and the journal hold goes to entry log and index for good.

The order is the whole point; a crash between any two steps loses nothing and shows nothing twice:

    on the loop   mark := the journal's synced position; swap the write cache; take the dirty rows
    in a thread   1 write the leaving half to the entry log, ledger by ledger     5 sync the index
                  2 sync the entry log                                           6 write the rows
                  3 put locations into the index                                 7 lastMark := mark
    on the loop   drop the leaving half
    in a thread   retire journals before the mark

Why it is safe: an entry is put into the write cache before it goes to the journal, and a dirty row
likewise; so all that the journal holds before `mark` is in what is written here, or was written
earlier. Steps 1 to 6 done twice give the same. Rows are written even if there is no entry: a fence
whose journal record has been passed by lastMark is nowhere else.

Invariant: lastMark only moves forward, and only to synced positions.
"""

from __future__ import annotations

import errno
import logging
import threading
import time
from collections.abc import Callable, Collection

import trio
from msgspec import Struct

from bookie.directories import Directories, write_last_mark
from bookie.entry_log.reader import EntryLogReader
from bookie.entry_log.writer import EntryLogWriter
from bookie.index import LocationIndex, Placed
from bookie.journal import files, format
from bookie.journal.writer import Journal
from bookie.ledgers_index import LedgerRow, LedgersIndex
from bookie.statistics import Histogram
from bookie.write_cache import Half, WriteCache

log = logging.getLogger(__name__)

PAUSE_SECONDS = 0.0002
"""How long a thread of ours lets go of the interpreter, after each millisecond or so of work."""
_never = threading.Event()


def breathe() -> None:
    """Let the loop run."""
    _never.wait(PAUSE_SECONDS)


class Shelves(Struct, frozen=True):
    """Where entries are kept for good. One thread at a time writes, under `lock`; any may read."""

    directories: Directories
    entry_log: EntryLogWriter
    reader: EntryLogReader
    locations: LocationIndex
    ledgers: LedgersIndex
    lock: trio.Lock
    """Held by whoever writes: a checkpoint, the collector."""


def write_out(
    shelves: Shelves, half: Half, rows: dict[int, LedgerRow], deleted: Collection[int]
) -> None:
    """Steps 1 to 6. Blocks: for a thread."""
    placed: list[Placed] = []
    since_pause = 0
    for ledger_id in sorted(half.runs):
        if ledger_id in deleted:
            continue
        for run in half.runs[ledger_id]:
            placed.append((run, shelves.entry_log.append(run)))
            since_pause += 1
            if since_pause >= 1000:
                since_pause = 0
                breathe()
    shelves.entry_log.sync()
    if placed:
        shelves.locations.put(placed, breathe)
        shelves.locations.sync()
    shelves.ledgers.put((i, row) for i, row in rows.items() if i not in deleted)


class Checkpointer:
    """Runs checkpoints, one at a time: each interval, and whenever a half is full."""

    def __init__(
        self,
        shelves: Shelves,
        cache: WriteCache,
        journal: Journal,
        journal_files: files.JournalFiles,
        mark: format.Mark,
    ) -> None:
        self.rows: dict[int, LedgerRow] = {}
        """Rows changed since the last checkpoint."""
        self.deleted: set[int] = set()
        """Ledgers that are gone: nothing of them is written any more."""
        self.relieved: Callable[[], None] | None = None
        """Called when an empty half of the write cache fills: who was held may go on."""
        self.count = 0
        self.seconds = Histogram.of_latency()
        self._shelves = shelves
        self._cache = cache
        self._journal = journal
        self._journal_files = journal_files
        self._mark = mark
        self._leaving_mark = mark
        self._leaving_rows: dict[int, LedgerRow] = {}
        self._wanted = trio.Event()
        self._limiter = trio.CapacityLimiter(1)
        self._retirer = trio.CapacityLimiter(1)
        self._retiring = False

    def want(self) -> None:
        """A half is full: do not wait for the interval."""
        self._wanted.set()

    def row(self, ledger_id: int) -> LedgerRow | None:
        """A row that is not in the index yet."""
        return self.rows.get(ledger_id) or self._leaving_rows.get(ledger_id)

    async def run(self, interval_seconds: float) -> None:
        """Until cancelled. OSError means that the disk failed; a full disk is waited for."""
        async with trio.open_nursery() as nursery:
            while True:
                with trio.move_on_after(interval_seconds):
                    await self._wanted.wait()
                self._wanted = trio.Event()
                try:
                    with trio.CancelScope(shield=True):
                        await self.checkpoint()
                except OSError as error:
                    if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                        raise
                    log.error("no room for a checkpoint, trying again soon: %s", error)
                    self._shelves.entry_log.abandon()
                    await trio.sleep(1)
                    self.want()
                if not self._retiring:
                    self._retiring = True
                    nursery.start_soon(self.retire)

    async def checkpoint(self) -> None:
        """See the module's docstring."""
        async with self._shelves.lock:
            started = time.perf_counter()
            if self._cache.leaving is None:  # else the last attempt failed: the same again
                mark = self._journal.synced
                if not (self._cache.filling.entries or self.rows or mark != self._mark):
                    return
                self._leaving_mark = mark
                self._leaving_rows, self.rows = self.rows, {}
                self._cache.swap()
                self._relieve()
            half = self._cache.leaving
            assert half is not None
            await trio.to_thread.run_sync(self._write, half, limiter=self._limiter)
            self._cache.drop()
            self._mark = self._leaving_mark
            self._leaving_rows = {}
            self.count += 1
            self.seconds.add(time.perf_counter() - started)
        if self._cache.filling.bytes >= self._cache.half_bytes:
            self.want()

    def _relieve(self) -> None:
        """There is room again: whoever waited looks."""
        if self.relieved is not None:
            self.relieved()

    async def retire(self) -> None:
        """Give up journals that no replay needs any more.

        On its own: making a spare of an old journal takes as long as writing one, and the next
        half of the write cache does not wait for that.
        """
        try:
            await trio.to_thread.run_sync(self._retire, self._mark, limiter=self._retirer)
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            log.error("no room for a spare journal: %s", error)
        finally:
            self._retiring = False

    def _write(self, half: Half) -> None:
        write_out(self._shelves, half, self._leaving_rows, self.deleted)
        if self._leaving_mark > self._mark:
            write_last_mark(self._shelves.directories, self._leaving_mark)

    def _retire(self, mark: format.Mark) -> None:
        old = [i for i in files.journals(self._journal_files.directory) if i < mark.journal_id]
        self._journal_files.retire(old)
