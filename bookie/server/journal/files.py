"""Journal files: zeroed ahead, opened in the fastest durable way, and reused.

Apache's files grow by pre-allocated pieces (`JournalChannel.preAllocIfNeeded` of 4.18). These are
zeroed to their end before use, because the scan of a journal relies on zeros (`format/journal.py`).

Invariant: a file with a journal's name has its header, and only zeros behind its last group. So a
file is written whole under another name, synced, then renamed, and the directory is synced.

    *.txn         journals
    spare.dirty   an old journal that is being zeroed: removed after a crash
    spare.fresh   a journal that is being made: removed after a crash
    spare.<n>     header and zeros, of the full size of a journal: the next journal
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Final

from magnetar.bookie.format import journal as journal_format
from magnetar.bookie.machine.memory import aligned
from magnetar.bookie.server.disk_usage import is_full
from magnetar.bookie.server.journal import inventory
from magnetar.bookie.server.small_files import size_of, write_all
from magnetar.core.ports.disk import Creation, Directory, WriteFile, WriteMode

PAGE_BYTES: Final = 4096
CHUNK_BYTES: Final = 1024 * 1024
"""Zeros are written in pieces of this size: a sync beside them waits for one piece at most, which
takes the disk 0.7 ms. A megabyte costs 70 us of CPU this way, in pieces of 256 KB more than twice
as much, of 4 MB half as much; but then one sync in a hundred took 0.5 ms longer at 1,000 a second.
"""
FIRST_BYTES: Final = 256 * 1024
"""The size of the first file after a start, so that the start is quick."""
GROWTH: Final = 8
"""The growth from one fresh file to the next, up to the largest size."""
PIECES_MAX: Final = 1024
"""The most buffers of one vectored write: IOV_MAX of Linux and macOS."""
SPARE: Final = "spare."
DIRTY: Final = "spare.dirty"
FRESH: Final = "spare.fresh"

_ZEROS: Final = aligned(CHUNK_BYTES)
"""A source of zeros; nothing is written into it."""


def journals(directory: Directory) -> list[int]:
    """Ids of the journals there, oldest first."""
    return sorted(
        journal_format.journal_id(name)
        for name in directory.names()
        if journal_format.is_journal(name)
    )


class JournalFiles:
    """The journals' directory: creates files for the writer and reuses old ones.

    The journal's thread calls `create` while the checkpoint's thread calls `retire`. So the names
    of spares and their number change together, under a lock.
    """

    def __init__(
        self,
        directory: Directory,
        lock: AbstractContextManager[object],
        *,
        size_max: int,
        spares_max: int,
    ) -> None:
        self.directory = directory
        self.direct = directory.direct
        self._size_max = size_max
        self._fresh_bytes = min(FIRST_BYTES, size_max)
        self._spares_max = spares_max
        self._spares = 0
        self._lock = lock
        names = {i: journal_format.file_name(i) for i in journals(directory)}
        self._sizes = {i: size_of(directory, name) for i, name in names.items()}
        """The contents of the inventory, or of its next version."""
        for name in sorted(directory.names()):
            if name.startswith(SPARE):
                self._take_over(name)

    def _take_over(self, name: str) -> None:
        """Keep a spare of an earlier run, or remove a file that is of no use."""
        directory = self.directory
        if (
            name not in (DIRTY, FRESH)
            and self._spares < self._spares_max
            and size_of(directory, name) == self._size_max
        ):
            directory.rename(name, f"{SPARE}{self._spares}")
            self._spares += 1
        else:
            directory.remove(name)

    def create(self, journal_id: int, room: int = 0, *, synced: bool) -> JournalFile:
        """A journal with room for a group of that size: a spare if there is one, else a fresh one.

        Durable on return. Blocks while zeros are written. A journal that is not `synced` is written
        through the page cache, into blocks that are only reserved: if zeros had been written, the
        system would have to read each page before it changes a part of it.
        """
        name = journal_format.file_name(journal_id)
        assert name not in self.directory.names(), "journal ids are never used twice"
        needed = journal_format.HEADER_BYTES + room + 2 * journal_format.ALIGNMENT_BYTES
        if needed <= self._size_max and self._take_spare(name):
            size = self._size_max
        else:
            size = max(self._fresh_bytes, -(-needed // PAGE_BYTES) * PAGE_BYTES)
            self._fresh_bytes = min(self._fresh_bytes * GROWTH, self._size_max)
            self._make_fresh(size, synced=synced)
            self.directory.rename(FRESH, name)
        try:
            self.directory.sync()
            self._list(journal_id, size)
        except OSError as error:
            if is_full(error):  # once there is room, the same id is created again
                self._take_back(journal_id, size)
            raise
        return JournalFile(self.directory, journal_id, size, direct=self.direct and synced)

    def _make_fresh(self, size: int, *, synced: bool) -> None:
        try:
            file = self.directory.open_for_writing(FRESH, Creation.REPLACE, self._zeroing(synced))
            try:
                if synced:
                    file.truncate(size)
                    _write_zeroed(file, size)
                else:
                    file.allocate(size)
                    file.pwrite(journal_format.HEADER, 0)
                    file.sync()
            finally:
                file.close()
        except OSError:
            if FRESH in self.directory.names():
                self.directory.remove(FRESH)  # frees its blocks for other files
            raise

    def _zeroing(self, synced: bool) -> WriteMode:
        return WriteMode.DIRECT if self.direct and synced else WriteMode.CACHED

    def _take_back(self, journal_id: int, size: int) -> None:
        """Undo `create` for a journal that could not be listed: nothing is written in it yet."""
        name = journal_format.file_name(journal_id)
        with self._lock:
            self._sizes.pop(journal_id, None)
            if size == self._size_max and self._spares < self._spares_max:
                self.directory.rename(name, f"{SPARE}{self._spares}")
                self._spares += 1
            else:
                self.directory.remove(name)

    def discard(self, file: JournalFile) -> None:
        """Remove an empty journal."""
        assert file.position == journal_format.HEADER_BYTES, "a journal that holds something"
        self._strike([file.journal_id])
        file.close()
        self.directory.remove(journal_format.file_name(file.journal_id))

    def _list(self, journal_id: int, size: int) -> None:
        with self._lock:
            self._sizes[journal_id] = size
            inventory.write(self.directory, self._sizes)

    def _strike(self, journal_ids: list[int]) -> None:
        with self._lock:
            for journal_id in journal_ids:
                self._sizes.pop(journal_id, None)
            inventory.write(self.directory, self._sizes)

    def _take_spare(self, name: str) -> bool:
        with self._lock:
            if not self._spares:
                return False
            self._spares -= 1
            self.directory.rename(f"{SPARE}{self._spares}", name)
            return True

    def retire(self, journal_ids: list[int]) -> None:
        """Reuse a few journals that no replay needs as spares, and remove the others."""
        directory = self.directory
        if journal_ids:
            self._strike(journal_ids)
        for journal_id in journal_ids:
            name = journal_format.file_name(journal_id)
            if self._spares >= self._spares_max or size_of(directory, name) != self._size_max:
                directory.remove(name)
                continue
            directory.rename(name, DIRTY)
            directory.sync()
            self._zero_again()
            with self._lock:
                directory.rename(DIRTY, f"{SPARE}{self._spares}")
                self._spares += 1
            directory.sync()

    def _zero_again(self) -> None:
        file = self.directory.open_for_writing(DIRTY, Creation.EXISTING, self._zeroing(True))
        try:
            _write_zeroed(file, self._size_max)
        finally:
            file.close()


def _write_zeroed(file: WriteFile, size: int) -> None:
    """Write zeros up to `size`, then the header, and sync."""
    start = 0
    while start < size:
        start += file.pwrite(_ZEROS[: min(CHUNK_BYTES, size - start)], start)
    head = aligned(journal_format.HEADER_BYTES)
    head[:] = journal_format.HEADER
    file.pwrite(head, 0)
    file.sync()


class JournalFile:
    """A journal that is open for writing, used by the journal's writer alone.

    It is zeroed to its end and never grows, so no write waits for the file system to allocate.
    """

    def __init__(self, directory: Directory, journal_id: int, size: int, *, direct: bool) -> None:
        self.journal_id = journal_id
        self.position = journal_format.HEADER_BYTES
        self.direct = direct
        """Whether a write is durable when it returns, so that `sync` has nothing to do."""
        mode = WriteMode.DIRECT_SYNC if direct else WriteMode.CACHED
        name = journal_format.file_name(journal_id)
        self._file = directory.open_for_writing(name, Creation.EXISTING, mode)
        self.fd = self._file.fileno()
        """The descriptor, for `SubmittedWrites`."""
        self._size = size

    @property
    def room(self) -> int:
        """The largest group, without its padding, that fits."""
        return self._size - self.position - 2 * journal_format.ALIGNMENT_BYTES

    @property
    def half_full(self) -> bool:
        return 2 * self.position >= self._size

    def write(self, data: memoryview) -> None:
        """Append an aligned piece. After OSError the contents of its place are unknown."""
        write_all(self._file, data, self.position)
        self.position += len(data)

    def write_pieces(self, pieces: list[bytes]) -> None:
        """Append pieces of which only the whole is aligned: not for direct writes."""
        for start in range(0, len(pieces), PIECES_MAX):
            some = pieces[start : start + PIECES_MAX]
            written = self._file.pwritev(some, self.position)
            self.position += written
            if written < sum(map(len, some)):
                self.write(memoryview(b"".join(some))[written:])

    def sync(self) -> None:
        if not self.direct:
            self._file.sync()

    def close(self) -> None:
        self._file.close()
