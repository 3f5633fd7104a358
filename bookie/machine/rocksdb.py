"""RocksDB behind the port `Database`: its options, and the translation of its errors.

The binding raises plain `Exception` only, and an iterator that meets a damaged block just ends, as
at the last key (RocksDB's Iterator requires a check of `status()`). Both are hidden here.

Invariant: a read that fails is never taken for a missing key. A full disk is an `OSError` with
ENOSPC (RocksDB resumes by itself once there is space); other errors of the disk are an `OSError`
with EIO; bytes with a wrong checksum are `Corrupted`.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Generator, Iterator
from typing import Final, cast

from rocksdict import (
    BlockBasedOptions,
    Cache,
    DBCompressionType,
    Options,
    Rdict,
    RdictIter,
    ReadOptions,
    WriteBatch,
    WriteOptions,
)

from magnetar.core.kernel.errors import Corrupted, StorageFailed
from magnetar.core.ports.database import DatabaseBatch
from magnetar.core.ports.disk import Directory

_DAMAGE: Final = ("Corruption", "No such file", "does not exist")
"""Words in RocksDB's messages about damaged or missing files, and in no others."""
KEYS_PER_LOOK: Final = 2000
"""Keys read in one step of `read_through`: a millisecond or two."""


def _options(cache: Cache, write_buffer_bytes: int) -> Options:
    """Options for small databases, in a format that BookKeeper's RocksDB can read."""
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
    # Several buffers: a full one that waits for the flush of another would stall `write`, and with
    # it the loop.
    options.set_max_write_buffer_number(4)
    options.set_max_background_jobs(2)
    options.set_max_open_files(256)
    options.set_keep_log_file_num(2)
    options.set_max_log_file_size(1024 * 1024)
    options.set_stats_dump_period_sec(0)
    options.set_stats_persist_period_sec(0)
    options.set_max_bytes_for_level_base(64 * 1024 * 1024)
    # Two ledgers that are written at once make tables that overlap, and each compaction writes
    # again what it overlaps with: little, if that is small; and seldom, if it waits for many new
    # ones. The filter of a small table is small, too: one that fills the cache is read again for
    # each key.
    options.set_target_file_size_base(4 * 1024 * 1024)
    options.set_target_file_size_multiplier(2)
    options.set_level_zero_file_num_compaction_trigger(16)
    options.set_level_zero_slowdown_writes_trigger(40)
    options.set_level_zero_stop_writes_trigger(60)
    return options


class RocksDatabases:
    """`Databases` that share one block cache."""

    def __init__(self, cache_bytes: int) -> None:
        self._cache = Cache(cache_bytes)

    def open(
        self, directory: Directory, write_buffer_bytes: int, damaged: Callable[[str], None]
    ) -> RocksDatabase:
        options = _options(self._cache, write_buffer_bytes)
        return RocksDatabase(directory.path, options, damaged)


class RocksDatabase:
    """A `Database`. Every method may block on the disk."""

    def __init__(self, path: str, options: Options, damaged: Callable[[str], None]) -> None:
        self._name = path.rpartition(os.sep)[2]
        unlogged = WriteOptions()
        unlogged.disable_wal = True  # type: ignore[method-assign, assignment]  # the stub is wrong
        try:
            self._rocks = Rdict(path, options)
        except Exception as error:
            sentence = f"the index {self._name} cannot be opened: {error}"
            if any(word in sentence for word in _DAMAGE):
                raise Corrupted(sentence) from error
            raise StorageFailed(sentence) from error
        self._rocks.set_write_options(unlogged)
        self._damaged = damaged

    def get(self, key: bytes) -> bytes | None:
        try:
            found: bytes | None = self._rocks.get(key)
        except Exception as error:
            raise self._translated(error) from error
        return found

    def batch(self) -> WriteBatch:
        return WriteBatch(raw_mode=True)

    def write(self, batch: DatabaseBatch) -> None:
        try:
            self._rocks.write(cast(WriteBatch, batch))
        except Exception as error:
            raise self._translated(error) from error

    def delete(self, key: bytes) -> None:
        try:
            self._rocks.delete(key)
        except Exception as error:
            raise self._translated(error) from error

    def delete_range(self, start: bytes, stop: bytes) -> None:
        try:
            self._rocks.delete_range(start, stop)
        except Exception as error:
            raise self._translated(error) from error

    def flush(self) -> None:
        try:
            self._rocks.flush()
        except Exception as error:
            raise self._translated(error) from error

    def compact(self, start: bytes, stop: bytes) -> None:
        try:
            self._rocks.compact_range(start, stop)
        except Exception as error:
            raise self._translated(error) from error

    def sequence(self) -> int:
        return int(self._rocks.latest_sequence_number())

    def at_or_before(self, key: bytes) -> tuple[bytes, bytes] | None:
        cursor = self._rocks.iter()
        cursor.seek_for_prev(key)
        if cursor.valid():
            return cursor.key(), cursor.value()
        self._check(cursor)
        return None

    def from_key(self, start: bytes) -> Iterator[tuple[bytes, bytes]]:
        cursor = self._rocks.iter()
        cursor.seek(start)
        while cursor.valid():
            yield cursor.key(), cursor.value()
            cursor.next()
        self._check(cursor)

    def read_through(self) -> Generator[int, None, None]:
        options = ReadOptions()
        options.fill_cache(False)  # type: ignore[call-arg]  # the stub is wrong
        cursor = self._rocks.iter(options)
        cursor.seek_to_first()
        count = 0
        while cursor.valid():
            cursor.next()
            count += 1
            if count % KEYS_PER_LOOK == 0:
                yield count
        self._check(cursor)
        yield count

    def close(self) -> None:
        self._rocks.close()

    def _check(self, cursor: RdictIter) -> None:
        """Raise the error that ended an iterator, if any."""
        try:
            cursor.status()
        except Exception as error:
            raise self._translated(error) from error

    def _translated(self, error: Exception) -> Exception:
        sentence = f"the index {self._name}: {error}"
        if "No space left on device" in sentence:
            return OSError(errno.ENOSPC, sentence)
        if str(error).startswith("Corruption"):
            self._damaged(sentence)
            return Corrupted(sentence)
        return OSError(errno.EIO, sentence)
