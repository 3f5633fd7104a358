"""Opens the ledger storage: each index is checked, and rebuilt if it is worn.

Invariant: after a start the file of ledger ids exists, which also shows that indexes have marks
(`inspection.py`).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import trio

from magnetar.bookie.client.store import MASTER_KEY
from magnetar.bookie.recovery.inspection import open_index
from magnetar.bookie.server.directories import (
    INDEXES,
    LEDGER_ROWS,
    LOCATIONS,
    Directories,
    read_last_mark,
)
from magnetar.bookie.server.disk_usage import DiskWatch
from magnetar.bookie.server.entry_log.reader import EntryLogReader
from magnetar.bookie.server.entry_log.writer import EntryLogWriter
from magnetar.bookie.server.garbage.ledger_catalog import LedgerCatalog
from magnetar.bookie.server.index import wear
from magnetar.bookie.server.index.ledgers import LedgersIndex
from magnetar.bookie.server.index.locations import LocationIndex
from magnetar.bookie.server.ledger_ids import LedgerIds
from magnetar.bookie.server.ledger_storage import LedgerStorage
from magnetar.bookie.server.replay import replay
from magnetar.bookie.server.settings import BookieSettings
from magnetar.core.kernel.errors import Corrupted
from magnetar.core.ports.machine import Machine

if TYPE_CHECKING:
    from magnetar.bookie.recovery.rebuild import Rebuild


async def open_storage(
    machine: Machine,
    directories: Directories,
    catalog: LedgerCatalog | None,
    settings: BookieSettings,
    disk: DiskWatch,
) -> tuple[LedgerStorage, int]:
    """The ledger storage, after a replay; and the id of the last journal, -1 if there is none."""
    try:
        return await _open(machine, directories, catalog, settings, disk)
    except Corrupted as error:
        # An index that passed its check was found damaged when it was read, and has its note. It
        # cannot be rebuilt now, because RocksDB does not release it in this process.
        if not any(wear.reason(directories.ledgers, name) for name in INDEXES):
            raise
        raise Corrupted(f"{error}; start once more: then it is rebuilt as well") from error


async def _open(
    machine: Machine,
    directories: Directories,
    catalog: LedgerCatalog | None,
    settings: BookieSettings,
    disk: DiskWatch,
) -> tuple[LedgerStorage, int]:
    run = machine.threads.run
    storage, worn = await run(_open_parts, machine, directories, settings)
    try:
        rebuild = await _rebuild(storage, catalog) if worn else None
        await storage.ids.note()
        return storage, await run(_fill, storage, rebuild, settings, disk)
    except BaseException:
        storage.close()
        raise


def _open_parts(
    machine: Machine, directories: Directories, settings: BookieSettings
) -> tuple[LedgerStorage, bool]:
    """The storage's parts, and whether an index is empty and must be rebuilt."""
    databases = machine.databases(settings.block_cache_bytes)
    ids = LedgerIds(directories, machine.threads)
    check = partial(open_index, directories=directories, marked=ids.known)
    locations, one = check(LOCATIONS, lambda index: LocationIndex(index, databases))
    ledgers, other = check(LEDGER_ROWS, lambda index: LedgersIndex(index, databases))
    ids.saw(max(ledgers.last_ledger(), locations.last_ledger()))
    storage = LedgerStorage(
        machine=machine,
        directories=directories,
        entry_log=EntryLogWriter(directories.logs, settings.entry_log_size_max_bytes),
        reader=EntryLogReader(directories.logs, machine.threads.lock()),
        locations=locations,
        ledgers=ledgers,
        ids=ids,
        lock=trio.Lock(),
    )
    return storage, one or other


async def _rebuild(storage: LedgerStorage, catalog: LedgerCatalog | None) -> Rebuild:
    # Imported here, because it is rarely needed and costs each start time and memory.
    from magnetar.bookie.recovery.rebuild import Rebuild

    named = None if catalog is None else await catalog.last_entries()
    if named is None:
        return Rebuild(storage, None, b"")
    storage.ids.saw(max(named, default=-1))
    return Rebuild(storage, named, MASTER_KEY)


def _fill(
    storage: LedgerStorage, rebuild: Rebuild | None, settings: BookieSettings, disk: DiskWatch
) -> int:
    """Rebuild, then replay the journal: all of it if an index was worn, or if lastMark, which has
    no checksum, differs from the mark of the index.

    A damaged lastMark may point into the middle of a record, where nothing could be read. Replaying
    too much is harmless.
    """
    mark = storage.locations.mark()
    agreed = mark is None or mark == read_last_mark(storage.directories)
    if rebuild is not None:
        rebuild.from_logs()
    last_id = replay(
        storage,
        settings.write_cache_bytes // 2,
        disk,
        whole=rebuild is not None or not agreed,
        proving=settings.entries_prove_themselves,
        synced=settings.sync,
    )
    if rebuild is not None:
        rebuild.note_lost()
    storage.ids.saw(max(storage.ledgers.last_ledger(), storage.locations.last_ledger()))
    return last_id
