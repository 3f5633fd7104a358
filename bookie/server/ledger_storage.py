"""The permanent place of entries: the entry log and the two indexes, written together.

Each step of a checkpoint is a function here; `checkpoint.py` describes their order, and why it is
safe.

Invariant: an index is never synced before the entry log that it points to (`make_durable`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from functools import partial
from typing import Final

import trio
from msgspec import Struct

from magnetar.bookie.format import journal as journal_format
from magnetar.bookie.format.entries import Run
from magnetar.bookie.format.ledger_row import LedgerRow
from magnetar.bookie.server.cache.write_cache import Half
from magnetar.bookie.server.directories import Directories, write_last_mark
from magnetar.bookie.server.entry_log.reader import EntryLogReader
from magnetar.bookie.server.entry_log.writer import EntryLogWriter
from magnetar.bookie.server.index.ledgers import LedgersIndex
from magnetar.bookie.server.index.locations import LocationIndex, Placed
from magnetar.bookie.server.ledger_ids import LedgerIds
from magnetar.core.ports.machine import Machine

log = logging.getLogger(__name__)

PAUSE_SECONDS: Final = 0.0002
"""How long a thread releases the interpreter after each few milliseconds of work."""
RUNS_PER_BREATH: Final = 1000
"""Runs appended between two pauses."""


class LedgerStorage(Struct, frozen=True):
    """Entry log and indexes. One thread at a time writes, under `lock`; any thread may read."""

    machine: Machine
    directories: Directories
    entry_log: EntryLogWriter
    reader: EntryLogReader
    locations: LocationIndex
    ledgers: LedgersIndex
    ids: LedgerIds
    lock: trio.Lock
    """Held while a checkpoint or the collector writes."""

    def pause(self) -> None:
        """Let the loop have the interpreter; called by threads that work for long."""
        self.machine.threads.pause(PAUSE_SECONDS)

    def close(self) -> None:
        """Close everything. A full disk may refuse an index's last writes; the journal has them."""
        self.entry_log.abandon()
        for index in (self.locations, self.ledgers):
            try:
                index.close()
            except Exception as error:  # noqa: BLE001 -- RocksDB raises no narrower class
                log.error("an index did not close cleanly: %s", error)
        self.reader.close()


def append_half(
    storage: LedgerStorage,
    half: Half,
    deleted: Collection[int],
    place: Callable[[Run], int] | None = None,
) -> list[Placed]:
    """Do step 1. Blocks: for a thread. `place` appends a run in place of the entry log, and returns
    its location.
    """
    placed: list[Placed] = []
    place = place or storage.entry_log.append
    storage.entry_log.move_on()
    for ledger_id in sorted(half.runs):
        if ledger_id in deleted:
            continue
        for run in half.runs[ledger_id]:
            placed.append((run, place(run)))
            if len(placed) % RUNS_PER_BREATH == 0:
                storage.pause()
    storage.entry_log.flush()
    return placed


def put_index(
    storage: LedgerStorage,
    placed: list[Placed],
    rows: dict[int, LedgerRow],
    deleted: Collection[int],
) -> None:
    """Do step 2. Blocks: for a thread."""
    put_locations(storage, [one for one in placed if one[0].ledger_id not in deleted])
    storage.ledgers.put((i, row) for i, row in rows.items() if i not in deleted)


def put_locations(storage: LedgerStorage, placed: list[Placed]) -> None:
    """Do step 2 for entries. Blocks: for a thread."""
    storage.locations.put(placed, storage.pause, partial(make_durable, storage))


def make_durable(storage: LedgerStorage) -> None:
    """Do steps 3 and 4. Blocks: for a thread."""
    storage.entry_log.sync()
    storage.locations.sync()
    storage.ledgers.sync()


def make_mark(storage: LedgerStorage, mark: journal_format.Mark) -> None:
    """Do steps 3 to 5. Blocks: for a thread.

    Each index has a mark of its own, synced before lastMark. So an index whose mark is older than
    lastMark is not the one that was written.
    """
    storage.locations.put_mark(mark)
    storage.ledgers.put_mark(mark)
    make_durable(storage)
    write_last_mark(storage.directories, mark)
