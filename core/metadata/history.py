"""The durable history of the embedded store: a snapshot of the tree, and the commits since.

    <path>.end        which generation counts, and the number of its last commit (`end_mark.py`)
    <path>.<n>.db     generation n: the tree as it was, a SQLite file that is never written again
    <path>.<n>.log    the commits since (`commit_log.py`)
    <path>.live       the tree as it is: SQLite without syncs, made anew at each start
    <path>.lock       held while the store is open

Theory. The log and the mark are what a commit is: the commit is written and synced, then the mark
that counts it, then callers are answered. Both files have their bytes beforehand, so each of the
two is one short write to the disk, and together they cost less than the one sync of SQLite's own
log. SQLite only answers queries: its files are not trusted after the process has ended.

The mark, which is a file of its own, determines where the log ends. At a start
    the log has more than the mark    a crash between the two: no caller was answered; it counts
    as much                           the log is whole, and what follows is a torn tail
    less                              damage: refused (`Corrupted`), never taken for the end

A snapshot is written whole under the next number, then an empty log that names its checksum; both
are synced before one write of the mark makes them count. The previous generation is retained,
because it and its log hold the same state as the snapshot: while they are whole, a snapshot that
is damaged or missing costs nothing.

Invariant: files that the mark names change by appending alone; all others may be discarded.
"""

from __future__ import annotations

import logging
import os
import re
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from magnetar.core.kernel.errors import StorageFailed
from magnetar.core.metadata import changes, files, log_file
from magnetar.core.metadata.changes import Change
from magnetar.core.metadata.commit_log import HEAD_BYTES, Head
from magnetar.core.metadata.end_mark import EndMark
from magnetar.core.metadata.log_file import LogFile

log = logging.getLogger(__name__)

LOG_BYTES_MIN: Final = 4 * 1024 * 1024
"""A snapshot is due when the log is as large as the last one, within these limits: what a start
after a crash replays is 0.2 s of work at the most."""
LOG_BYTES_MAX: Final = 8 * 1024 * 1024
CLOSING_LOG_BYTES: Final = 256 * 1024
"""With a larger one a clean stop makes a snapshot, so that the next start has little to replay."""


class Names(msgspec.Struct, frozen=True):
    """The names of the files of the store at `path`."""

    path: Path

    def _with(self, suffix: str) -> Path:
        return self.path.with_name(self.path.name + suffix)

    @property
    def mark(self) -> Path:
        return self._with(".end")

    @property
    def live(self) -> Path:
        return self._with(".live")

    @property
    def lock(self) -> Path:
        return self._with(".lock")

    def snapshot(self, generation: int) -> Path:
        return self._with(f".{generation}.db")

    def log(self, generation: int) -> Path:
        return self._with(f".{generation}.log")

    def generations(self) -> list[int]:
        """Generations that have any file, oldest first."""
        pattern = re.compile(re.escape(self.path.name) + r"\.(\d{1,18})\.(?:db|log)")
        names = map(pattern.fullmatch, os.listdir(self.path.parent))
        return sorted({int(match[1]) for match in names if match})

    def remove(self, generation: int) -> None:
        for path in (self.log(generation), self.snapshot(generation)):
            path.unlink(missing_ok=True)

    def remove_live(self) -> None:
        for suffix in (".live", ".live-wal", ".live-shm"):
            self._with(suffix).unlink(missing_ok=True)


class History:
    """The writer of the history, called by one thread. `recovery.py` opens it."""

    def __init__(
        self, names: Names, mark: EndMark, log: LogFile, head: Head, *, sync: bool
    ) -> None:
        self._names = names
        self._mark = mark
        self._log = log
        self._sync = sync
        self._head = head
        self._due_bytes = _due(head)

    def commit(self, group: Sequence[Change]) -> None:
        """Write a commit; durable and counted on return. After an OSError call `retract`."""
        self._log.append(changes.encode(group))
        self._mark.write(self._head.generation, self._log.number, self._log.chain)

    def retract(self) -> None:
        """Take back the last commit, written or attempted: its callers get an error. The mark is
        written first, so that it never counts a commit that is not there.
        """
        counted = self._mark.end.number
        self._log.step_back()
        if counted > self._log.number:
            self._mark.write(self._head.generation, self._log.number, self._log.chain)
        self._log.wipe()

    @property
    def snapshot_is_due(self) -> bool:
        return self._log.position >= self._due_bytes

    def snapshot(self, live: sqlite3.Connection) -> None:
        """Begin the next generation. A failure leaves the present one unchanged."""
        try:
            head, fresh = write_generation(self._names, self._next_head(), live, sync=self._sync)
        except (OSError, sqlite3.Error) as error:
            self._due_bytes = self._log.position + LOG_BYTES_MIN
            self._names.remove(self._head.generation + 1)
            log.warning("no snapshot of the metadata was made, later perhaps: %s", error)
            return
        self._mark.write(head.generation, head.number, head.chain)
        self._log.close()
        self._names.remove(self._head.generation - 1)
        self._log, self._head, self._due_bytes = fresh, head, _due(head)

    def _next_head(self) -> Head:
        return Head(self._head.generation + 1, self._log.number, self._log.chain, 0, 0)

    def close(self, live: sqlite3.Connection, *, whole: bool) -> None:
        """`whole` is False after a failure: the history stays as it is."""
        if whole and self._log.position - HEAD_BYTES > CLOSING_LOG_BYTES:
            self.snapshot(live)
        self._log.close()
        self._mark.close()


def _due(head: Head) -> int:
    return min(max(head.snapshot_bytes, LOG_BYTES_MIN), LOG_BYTES_MAX)


def write_generation(
    names: Names, head: Head, live: sqlite3.Connection, *, sync: bool
) -> tuple[Head, LogFile]:
    """Snapshot and empty log of a generation, durable; the mark does not name it yet."""
    path = names.snapshot(head.generation)
    path.unlink(missing_ok=True)
    target = sqlite3.connect(path)
    try:
        target.execute("PRAGMA synchronous = OFF")  # it is synced below, once
        live.backup(target)
    finally:
        target.close()
    if sync:
        files.sync_path(path)
    size, crc = files.checksum(path)
    head = msgspec.structs.replace(head, snapshot_bytes=size, snapshot_crc=crc)
    return head, log_file.create(names.log(head.generation), head, sync=sync)


def hold(names: Names) -> int:
    if not names.path.parent.is_dir():
        raise StorageFailed(f"{names.path.parent} is not a folder, so there is no metadata in it")
    lock = files.hold(names.lock)
    if lock is None:
        raise StorageFailed(f"the metadata {names.path} is in use by another process")
    return lock
