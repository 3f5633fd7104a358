"""RocksDB behind the port `Database`: its options, and its errors in our words.

The binding raises plain `Exception` and nothing finer, and an iterator that meets a damaged block
only says that it is at its end. Both stop here.

Invariant: what could not be read is never taken for what is not there. A full disk is an `OSError`
with its own number (RocksDB goes on by itself once there is room), as any other trouble of the disk
is; bytes that fail their check are `Corrupted`.
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
"""What RocksDB says of files that make no sense or are not there, and of nothing else."""
KEYS_PER_LOOK: Final = 2000
"""A millisecond or two of reading through."""


def _options(cache: Cache, write_buffer_bytes: int) -> Options:
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
        """Is this the end, or could it not read on?"""
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
