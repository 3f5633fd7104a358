"""Where entries are: RocksDB with Apache's keys, 16 bytes (ledger id, entry id) to 8 (location).

A location is (entry log id << 32) | offset of the entry, behind its length word.

RocksDB's binding holds the interpreter lock while it writes a batch, so batches are small and the
sync of its log (which lets go of the lock) comes after the last. Many locations at once go into a
table file of their own, sorted, which is then taken in whole: cheaper, and durable when done.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from struct import Struct
from typing import Final

from rocksdict import (
    BlockBasedOptions,
    Cache,
    DBCompressionType,
    IngestExternalFileOptions,
    Options,
    Rdict,
    SstFileWriter,
    WriteBatch,
)

from bookie.entries import Run
from core.errors import Corrupted, StorageFailed

BATCH_PUTS_MAX: Final = 200
"""A batch of this size holds the interpreter lock for 0.1 ms."""
TABLE_PUTS_MIN: Final = 20_000
"""From here on a table of its own pays. Taking it in holds the interpreter lock for a sync or two
(3 to 7 ms), so a server at leisure, with fewer entries a checkpoint than this, never does it."""
BREATHE_PUTS: Final = 2000
"""Between two pauses of whoever writes, so that the loop runs."""
ENTRY_ID_MAX: Final = 2**63 - 1

_key = Struct(">qq").pack
_unkey = Struct(">qq").unpack
_value = Struct(">q").pack
_unvalue = Struct(">q").unpack

Placed = tuple[Run, int]
"""A run in an entry log, and the location of its first entry."""
Breathe = Callable[[], None]


def database_options(cache: Cache, write_buffer_bytes: int) -> Options:
    """Small, and in a format that BookKeeper's own RocksDB reads."""
    table = BlockBasedOptions()
    table.set_block_cache(cache)
    table.set_block_size(16 * 1024)
    table.set_bloom_filter(10, False)
    table.set_format_version(5)
    table.set_cache_index_and_filter_blocks(True)
    table.set_pin_l0_filter_and_index_blocks_in_cache(True)
    options = Options(raw_mode=True)
    options.create_if_missing(True)
    options.set_block_based_table_factory(table)
    options.set_compression_type(DBCompressionType.lz4())
    options.set_write_buffer_size(write_buffer_bytes)
    # A full buffer that waits for the one before it would stall `write`, and with it everybody.
    options.set_max_write_buffer_number(4)
    options.set_max_background_jobs(2)
    options.set_max_open_files(256)
    options.set_keep_log_file_num(2)
    options.set_max_log_file_size(1024 * 1024)
    options.set_stats_dump_period_sec(0)
    options.set_stats_persist_period_sec(0)
    options.set_max_bytes_for_level_base(64 * 1024 * 1024)
    options.set_target_file_size_base(16 * 1024 * 1024)
    options.set_level_zero_file_num_compaction_trigger(8)
    options.set_level_zero_slowdown_writes_trigger(40)
    options.set_level_zero_stop_writes_trigger(60)
    return options


def open_database(directory: Path, options: Options) -> Rdict:
    """Open or make one; the binding's own exception stops here."""
    directory.mkdir(parents=True, exist_ok=True)
    try:
        return Rdict(str(directory), options)
    except Exception as error:  # the binding raises plain Exception and nothing finer
        raise StorageFailed(f"the index {directory.name} cannot be opened: {error}") from error


class LocationIndex:
    """See the module's docstring. Every method may block on the disk."""

    def __init__(self, directory: Path, table_path: Path, cache: Cache) -> None:
        self._options = database_options(cache, 2 * 1024 * 1024)
        self._database = open_database(directory, self._options)
        self._table_path = table_path
        table_path.unlink(missing_ok=True)

    def find(self, ledger_id: int, entry_id: int) -> int | None:
        """The location of one entry."""
        value = self._database.get(_key(ledger_id, entry_id))
        return None if value is None else int(_unvalue(value)[0])

    def last(self, ledger_id: int) -> tuple[int, int] | None:
        """Id and location of a ledger's last entry."""
        cursor = self._database.iter()
        cursor.seek_for_prev(_key(ledger_id, ENTRY_ID_MAX))
        if cursor.valid():
            found, entry_id = _unkey(cursor.key())
            if found == ledger_id:
                return int(entry_id), int(_unvalue(cursor.value())[0])
        return None

    def put(self, placed: Sequence[Placed], breathe: Breathe, *, distinct: bool = True) -> None:
        """Store where entries are; not durable before `sync`.

        `distinct`: the runs are sorted and no entry is in two of them.
        """
        if distinct and sum(run.count for run, _ in placed) >= TABLE_PUTS_MIN:
            self._put_table(placed, breathe)
        else:
            self._put_batches(placed, breathe)

    def _put_batches(self, placed: Sequence[Placed], breathe: Breathe) -> None:
        batch = WriteBatch(raw_mode=True)
        count = 0
        for run, location in placed:
            entry_id = run.first
            for offset in run.offsets[:-1]:
                batch.put(_key(run.ledger_id, entry_id), _value(location + offset))
                entry_id += 1
                count += 1
                if count % BATCH_PUTS_MAX == 0:
                    self._database.write(batch)
                    batch = WriteBatch(raw_mode=True)
                    if count % BREATHE_PUTS == 0:
                        breathe()
        if not batch.is_empty():
            self._database.write(batch)

    def _put_table(self, placed: Sequence[Placed], breathe: Breathe) -> None:
        writer = SstFileWriter(self._options)
        writer.open(str(self._table_path))
        budget = BREATHE_PUTS
        for run, location in placed:
            ledger_id, entry_id = run.ledger_id, run.first
            for offset in run.offsets[:-1]:
                writer[_key(ledger_id, entry_id)] = _value(location + offset)
                entry_id += 1
            budget -= run.count
            if budget <= 0:
                breathe()
                budget = BREATHE_PUTS
        writer.finish()
        taking = IngestExternalFileOptions()
        taking.set_move_files(True)
        self._database.ingest_external_file([str(self._table_path)], taking)
        self._table_path.unlink(missing_ok=True)

    def sync(self) -> None:
        """What was put is durable when this returns."""
        self._database.flush_wal(True)

    def forget(self, ledger_id: int) -> None:
        """Drop all locations of a ledger."""
        self._database.delete_range(_key(ledger_id, 0), _key(ledger_id, ENTRY_ID_MAX))

    def locations(self, ledger_id: int) -> Iterator[tuple[int, int]]:
        """(entry id, location) of one ledger, in order."""
        cursor = self._database.iter()
        cursor.seek(_key(ledger_id, 0))
        while cursor.valid():
            found, entry_id = _unkey(cursor.key())
            if found != ledger_id:
                return
            yield int(entry_id), int(_unvalue(cursor.value())[0])
            cursor.next()

    def close(self) -> None:
        self._database.close()


def split(location: int) -> tuple[int, int]:
    """Entry log id, and offset of the entry behind its length word."""
    log_id, offset = location >> 32, location & 0xFFFFFFFF
    if log_id < 0 or offset < 4:
        raise Corrupted(f"the index gives an impossible location: {location}")
    return log_id, offset
