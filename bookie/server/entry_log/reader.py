"""Reads records from entry logs, in any number of threads.

Invariant: bytes that are not the requested entry raise `Corrupted`, never "not found": a recovery
would truncate the ledger there (BookKeeper #2908).
"""

from __future__ import annotations

import errno
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Final

from magnetar.bookie.format import entries
from magnetar.bookie.format import entry_log as log_format
from magnetar.bookie.format.entries import Run
from magnetar.bookie.format.locations import split
from magnetar.bookie.server.cache.large_entries import LargeEntries
from magnetar.bookie.server.cache.striped_run import StripedRun, goes_on, striped_in
from magnetar.core.kernel.errors import Corrupted
from magnetar.core.ports.disk import Directory, ReadFile

OPEN_LOGS_MAX: Final = 64
SCAN_BYTES: Final = 256 * 1024
"""Bytes scanned at once: two thousand small entries, in a millisecond or two."""


def without_pause() -> None:
    """The pause of a thread for which nobody waits."""


class EntryLogReader:
    """Keeps a few logs open."""

    def __init__(self, directory: Directory, lock: AbstractContextManager[object]) -> None:
        self._directory = directory
        self._open: OrderedDict[int, _OpenLog] = OrderedDict()
        self._lock = lock

    def read(self, ledger_id: int, entry_id: int, location: int, size: int) -> Run:
        """The run that begins with this entry, within `size` bytes, or one entry if it is longer.

        Digests are not checked here, but when payloads are taken out of the run. FileNotFoundError
        if the log has been unlinked since the location was looked up.
        """
        run = entries.run_in(self._records(ledger_id, entry_id, location, size))
        return _at_its_place(run, ledger_id, entry_id, location)

    def read_neighbours(
        self, ledger_id: int, entry_id: int, location: int, size: int
    ) -> Run | StripedRun:
        """As `read`, and with gaps between the ids if there are some."""
        data = self._records(ledger_id, entry_id, location, size)
        run = _at_its_place(entries.run_in(data), ledger_id, entry_id, location)
        end = run.offsets[-1]
        if len(data) - end < entries.RECORD_BYTES_MIN or not goes_on(data, end, run):
            return run
        return striped_in(data) or run

    def entry_bytes(self, location: int) -> int:
        """The size of the entry at a location, as the log says; 0 if that cannot be."""
        log_id, offset = split(location)
        head = self._pread(log_id, offset - entries.LENGTH_BYTES, entries.LENGTH_BYTES)
        length = int.from_bytes(head, "big")
        return length if length <= entries.ENTRY_BYTES_MAX else 0

    def _records(self, ledger_id: int, entry_id: int, location: int, size: int) -> bytes:
        """Bytes of the log from the record at a location on: `size`, or that record."""
        log_id, offset = split(location)
        start = offset - entries.LENGTH_BYTES
        data = self._readable(log_id, start, size)
        length = int.from_bytes(data[:4], "big", signed=True)
        if not entries.ENTRY_BYTES_MIN <= length <= entries.ENTRY_BYTES_MAX:
            raise Corrupted(f"entry {ledger_id}:{entry_id}: its length in log {log_id} is {length}")
        if entries.LENGTH_BYTES + length > len(data):
            data = self._readable(log_id, start, entries.LENGTH_BYTES + length)
        return data

    def read_large(
        self, ledger_id: int, entry_id: int, location: int, count: int, size: int
    ) -> LargeEntries:
        """Up to `count` entries from this one on, each read and checked by itself: those that
        follow in the log and fit into `size` bytes, and the first in any case.

        For large entries: their bytes are not copied after the read.
        """
        log_id, offset = split(location)
        offset -= entries.LENGTH_BYTES
        found: list[bytes] = []
        with self._file(log_id) as file:
            while len(found) < count:
                head = file.pread(entries.RECORD_OVERHEAD_BYTES, offset)
                length = entries.payload_length(head, ledger_id, entry_id + len(found))
                if length < 0 or (found and length > size):
                    break
                payload = file.pread(length, offset + len(head))
                if len(payload) < length or not entries.is_whole(head, payload):
                    break
                found.append(payload)
                size -= length
                offset += len(head) + length
        if not found:
            raise Corrupted(f"entry {ledger_id}:{entry_id} is not where the index says, {location}")
        return LargeEntries(ledger_id, entry_id, tuple(found))

    def scan(
        self, log_id: int, pause: Callable[[], None] = without_pause
    ) -> Iterator[tuple[int, Run]]:
        """Yield all runs of a log, with the location of their first entry.

        A finished log has only records up to its map, and raises `Corrupted` for anything else. A
        log that a crash cut short may end in anything.
        """
        offset = log_format.HEADER_BYTES
        map_offset = self.ledgers_map_offset(log_id)
        end = map_offset or self.size(log_id)
        window = SCAN_BYTES
        while offset < end:
            pause()
            data = self._pread(log_id, offset, min(window, end - offset))
            position = 0
            while (run := entries.run_at(data, position, len(data))) is not None:
                yield (log_id << 32) | (offset + position + 4), run
                position += run.offsets[-1]
            if position:
                offset += position
                window = SCAN_BYTES
            elif len(data) < window or window > entries.ENTRY_BYTES_MAX:
                break
            else:
                window = 2 * entries.ENTRY_BYTES_MAX
        if map_offset and offset != end:
            raise Corrupted(f"entry log {log_id:x}: there is no record at {offset}")

    def ledgers_map_offset(self, log_id: int) -> int:
        """The offset of the ledgers map, 0 if the log was never finished."""
        return self._header(log_id)[0]

    def ledgers(
        self, log_id: int, pause: Callable[[], None] = without_pause
    ) -> tuple[dict[int, int], int]:
        """The bytes of each ledger, from the ledgers map or a scan of the log; and the offset at
        which an unfinished log has anything but records, 0 if it does not.

        Apache does the same (`DefaultEntryLogger.getEntryLogMetadata` of 4.18).
        """
        offset, count = self._header(log_id)
        if offset:
            size = min(self.size(log_id) - offset, count * log_format.MAP_LEDGER_BYTES_MAX)
            data = self._pread(log_id, offset, size)
            try:
                return log_format.read_ledgers_map(data, count), 0
            except ValueError as error:
                raise Corrupted(f"entry log {log_id:x}: {error}") from error
        found: dict[int, int] = {}
        end = log_format.HEADER_BYTES
        for location, run in self.scan(log_id, pause):
            found[run.ledger_id] = found.get(run.ledger_id, 0) + len(run.blob)
            end = split(location)[1] - entries.LENGTH_BYTES + len(run.blob)
        return found, (0 if self._is_blank_from(log_id, end) else end)

    def _is_blank_from(self, log_id: int, offset: int) -> bool:
        while data := self._pread(log_id, offset, SCAN_BYTES):
            if data.count(0) != len(data):
                return False
            offset += len(data)
        return True

    def bytes_at(self, log_id: int, offset: int, size: int) -> bytes:
        """The bytes of a log, valid or not."""
        return self._pread(log_id, offset, size)

    def size(self, log_id: int) -> int:
        with self._file(log_id) as file:
            return file.size()

    def forget(self, log_id: int) -> None:
        """Close a log that is about to be removed."""
        with self._lock:
            log = self._open.pop(log_id, None)
            if log is not None:
                log.leave()

    def close(self) -> None:
        for log_id in list(self._open):
            self.forget(log_id)

    def _header(self, log_id: int) -> tuple[int, int]:
        """The map's offset, 0 for none, and its ledgers."""
        with self._file(log_id) as file:
            data, size = file.pread(log_format.HEADER_BYTES, 0), file.size()
        try:
            offset, count = log_format.read_header(data)
        except ValueError as error:
            raise Corrupted(f"entry log {log_id:x}: {error}") from error
        # A header has no digest: any of its bits may have changed.
        if offset and not (log_format.HEADER_BYTES <= offset <= size and count >= 0):
            raise Corrupted(
                f"entry log {log_id:x}: its map of {count} ledgers is at {offset} of {size} bytes"
            )
        return offset, count

    def _readable(self, log_id: int, offset: int, size: int) -> bytes:
        """Read bytes from a record on; if the disk fails to read them all, only the first record,
        or only its head: an unreadable sector must not hide the intact entries before it.
        """
        try:
            return self._pread(log_id, offset, size)
        except OSError as error:
            if error.errno != errno.EIO:
                raise
        try:
            head = self._pread(log_id, offset, entries.RECORD_OVERHEAD_BYTES)
            length = int.from_bytes(head[:4], "big", signed=True)
            whole = entries.ENTRY_BYTES_MIN <= length <= entries.ENTRY_BYTES_MAX
            return self._pread(log_id, offset, length + 4) if whole else head
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            raise Corrupted(f"entry log {log_id:x} cannot be read at {offset}") from error

    def _pread(self, log_id: int, offset: int, size: int) -> bytes:
        with self._file(log_id) as file:
            return file.pread(size, offset)

    @contextmanager
    def _file(self, log_id: int) -> Iterator[ReadFile]:
        """The open log, which stays open in the block even if another thread forgets it."""
        with self._lock:
            log = self._log(log_id)
            log.users += 1
        try:
            yield log.file
        finally:
            with self._lock:
                log.leave()

    def _log(self, log_id: int) -> _OpenLog:
        log = self._open.get(log_id)
        if log is None:
            file = self._directory.open(log_format.file_name(log_id))
            log = self._open[log_id] = _OpenLog(file)
            if len(self._open) > OPEN_LOGS_MAX:
                self._open.popitem(last=False)[1].leave()
        else:
            self._open.move_to_end(log_id)
        return log


def _at_its_place(run: Run | None, ledger_id: int, entry_id: int, location: int) -> Run:
    if run is None or (run.ledger_id, run.first) != (ledger_id, entry_id):
        raise Corrupted(f"entry {ledger_id}:{entry_id} is not where the index says, {location}")
    return run


class _OpenLog:
    """A file and the number of its users: the cache of open logs, and each read. The last one
    closes the file.
    """

    __slots__ = ("file", "users")

    def __init__(self, file: ReadFile) -> None:
        self.file = file
        self.users = 1

    def leave(self) -> None:
        """End one use. Call it under the reader's lock."""
        self.users -= 1
        if not self.users:
            self.file.close()
