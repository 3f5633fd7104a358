"""Opens the ledger storage: each index is checked, and rebuilt where it must be.

Invariant: from the moment an index is opened the first time, the ids that were ever made are noted,
and with them that indexes have marks (`inspection.py`).
"""

from __future__ import annotations

from functools import partial

import trio
from rocksdict import Cache

from magnetar.bookie.client import metadata_loop
from magnetar.bookie.client.store import MASTER_KEY
from magnetar.bookie.recovery import wear
from magnetar.bookie.recovery.inspection import open_index
from magnetar.bookie.recovery.rebuild import Rebuild
from magnetar.bookie.server.directories import Directories, read_last_mark
from magnetar.bookie.server.entry_log.reader import EntryLogReader
from magnetar.bookie.server.entry_log.writer import EntryLogWriter
from magnetar.bookie.server.index.ledgers import LedgersIndex
from magnetar.bookie.server.index.locations import LocationIndex
from magnetar.bookie.server.ledger_ids import LedgerIds
from magnetar.bookie.server.ledger_storage import LedgerStorage
from magnetar.bookie.server.replay import replay
from magnetar.bookie.server.settings import BookieSettings
from magnetar.core.errors import Corrupted
from magnetar.core.ports.metadata_store import MetadataStore


async def open_storage(
    directories: Directories, metadata: MetadataStore, settings: BookieSettings
) -> tuple[LedgerStorage, int]:
    """With all that the journal holds on them; and the id of the last journal, -1 if none."""
    try:
        return await _opened(directories, metadata, settings)
    except Corrupted as error:
        # An index that looked sound has rotted, and only now was it read: that is noted. RocksDB
        # does not let go of it in this process.
        if not any(map(wear.reason, (directories.locations, directories.ledger_rows))):
            raise
        raise Corrupted(f"{error}; start once more: then it is rebuilt as well") from error


async def _opened(
    directories: Directories, metadata: MetadataStore, settings: BookieSettings
) -> tuple[LedgerStorage, int]:
    storage, worn = await trio.to_thread.run_sync(_open, directories, settings)
    try:
        rebuild = await _rebuild(storage, metadata) if worn else None
        await storage.ids.note()
        return storage, await trio.to_thread.run_sync(_fill, storage, rebuild, settings)
    except BaseException:
        storage.close()
        raise


def _open(directories: Directories, settings: BookieSettings) -> tuple[LedgerStorage, bool]:
    """And whether an index is empty and must be rebuilt."""
    blocks = Cache(settings.block_cache_bytes)
    ids = LedgerIds(directories)
    check = partial(open_index, directories=directories, marked=ids.known)
    locations, one = check(directories.locations, lambda path: LocationIndex(path, blocks))
    ledgers, other = check(directories.ledger_rows, lambda path: LedgersIndex(path, blocks))
    ids.saw(max(ledgers.last_ledger(), locations.last_ledger()))
    storage = LedgerStorage(
        directories=directories,
        entry_log=EntryLogWriter(directories.ledgers, settings.entry_log_size_max_bytes),
        reader=EntryLogReader(directories.ledgers),
        locations=locations,
        ledgers=ledgers,
        ids=ids,
        lock=trio.Lock(),
    )
    return storage, one or other


async def _rebuild(storage: LedgerStorage, metadata: MetadataStore) -> Rebuild:
    named = await metadata_loop.last_entries(metadata)
    storage.ids.saw(max(named, default=-1))
    return Rebuild(storage, named, MASTER_KEY)


def _fill(storage: LedgerStorage, rebuild: Rebuild | None, settings: BookieSettings) -> int:
    """What the journal holds comes on top; all that it holds with an index that was worn, or if
    lastMark, which has no checksum, is not the mark of the index: from a place in the middle of a
    record nothing would be read, and to replay more than must be is harmless.
    """
    mark = storage.locations.mark()
    agreed = mark is None or mark == read_last_mark(storage.directories)
    if rebuild is not None:
        rebuild.from_logs()
    last_id = replay(
        storage, settings.write_cache_bytes // 2, whole=rebuild is not None or not agreed
    )
    if rebuild is not None:
        rebuild.note_lost()
    storage.ids.saw(max(storage.ledgers.last_ledger(), storage.locations.last_ledger()))
    return last_id
