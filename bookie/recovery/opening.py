"""How the shelves are opened: each index checked, and rebuilt if that is what it needs.

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
from magnetar.bookie.server.checkpoint import Shelves
from magnetar.bookie.server.directories import Directories, read_last_mark
from magnetar.bookie.server.entry_log.reader import EntryLogReader
from magnetar.bookie.server.entry_log.writer import EntryLogWriter
from magnetar.bookie.server.index.ledgers import LedgersIndex
from magnetar.bookie.server.index.locations import LocationIndex
from magnetar.bookie.server.ledger_ids import LedgerIds
from magnetar.bookie.server.replay import replay
from magnetar.bookie.server.settings import BookieSettings
from magnetar.core.errors import Corrupted
from magnetar.core.ports.metadata_store import MetadataStore


async def open_shelves(
    directories: Directories, metadata: MetadataStore, settings: BookieSettings
) -> tuple[Shelves, int]:
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
) -> tuple[Shelves, int]:
    shelves, worn = await trio.to_thread.run_sync(_open, directories, settings)
    try:
        rebuild = await _rebuild(shelves, metadata) if worn else None
        await shelves.ids.note()
        return shelves, await trio.to_thread.run_sync(_fill, shelves, rebuild, settings)
    except BaseException:
        shelves.close()
        raise


def _open(directories: Directories, settings: BookieSettings) -> tuple[Shelves, bool]:
    """And whether an index is empty and must be rebuilt."""
    blocks = Cache(settings.block_cache_bytes)
    ids = LedgerIds(directories)
    check = partial(open_index, directories=directories, marked=ids.known)
    locations, one = check(directories.locations, lambda path: LocationIndex(path, blocks))
    ledgers, other = check(directories.ledger_rows, lambda path: LedgersIndex(path, blocks))
    ids.saw(max(ledgers.last_ledger(), locations.last_ledger()))
    shelves = Shelves(
        directories=directories,
        entry_log=EntryLogWriter(directories.ledgers, settings.entry_log_size_max_bytes),
        reader=EntryLogReader(directories.ledgers),
        locations=locations,
        ledgers=ledgers,
        ids=ids,
        lock=trio.Lock(),
    )
    return shelves, one or other


async def _rebuild(shelves: Shelves, metadata: MetadataStore) -> Rebuild:
    named = await metadata_loop.last_entries(metadata)
    shelves.ids.saw(max(named, default=-1))
    return Rebuild(shelves, named, MASTER_KEY)


def _fill(shelves: Shelves, rebuild: Rebuild | None, settings: BookieSettings) -> int:
    """What the journal holds comes on top; all that it holds with an index that was worn, or if
    lastMark, which has no checksum, is not the mark of the index: from a place in the middle of a
    record nothing would be read, and to replay more than must be is harmless.
    """
    mark = shelves.locations.mark()
    agreed = mark is None or mark == read_last_mark(shelves.directories)
    if rebuild is not None:
        rebuild.from_logs()
    last_id = replay(
        shelves, settings.write_cache_bytes // 2, whole=rebuild is not None or not agreed
    )
    if rebuild is not None:
        rebuild.note_lost()
    shelves.ids.saw(max(shelves.ledgers.last_ledger(), shelves.locations.last_ledger()))
    return last_id
