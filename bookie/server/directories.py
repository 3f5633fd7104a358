"""The bookie's directories: Apache's layout below one root, held by one process.

Below the root are `lock`, `journal/current/` (VERSION, *.txn) and `ledgers/current/` (VERSION,
*.log, lastId, lastMark, and the RocksDB directories locations/ and ledgers/).

Invariant: small files are replaced whole, so that a crash leaves the old one or the new one.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from msgspec import Struct

from magnetar.bookie.format.journal import Mark, decode_mark
from magnetar.bookie.machine.durability import sync_directory, sync_file
from magnetar.core.errors import Corrupted, StorageFailed

LOCK: Final = "lock"
LAST_MARK: Final = "lastMark"


class Directories(Struct, frozen=True):
    """Where things are."""

    root: Path

    @property
    def journal(self) -> Path:
        return self.root / "journal" / "current"

    @property
    def ledgers(self) -> Path:
        return self.root / "ledgers" / "current"

    @property
    def locations(self) -> Path:
        return self.ledgers / "locations"

    @property
    def ledger_rows(self) -> Path:
        return self.ledgers / "ledgers"

    def make(self) -> None:
        for directory in (self.journal, self.ledgers):
            directory.mkdir(parents=True, exist_ok=True)


@contextmanager
def held(root: Path) -> Iterator[Directories]:
    """The directories below `root`, which no other process uses until the block ends."""
    root.mkdir(parents=True, exist_ok=True)
    lock = os.open(root / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        raise StorageFailed(f"the bookie directory {root} is in use by another process") from None
    try:
        directories = Directories(root)
        directories.make()
        yield directories
    finally:
        os.close(lock)


def write_whole(path: Path, data: bytes) -> None:
    """Replace a small file so that a crash leaves the old one or the new one, and make it last."""
    new = path.with_name(path.name + ".new")
    with new.open("wb") as file:
        file.write(data)
        file.flush()
        sync_file(file.fileno())
    os.replace(new, path)
    sync_directory(path.parent)


def read_last_mark(directories: Directories) -> Mark | None:
    """From where the journal must be replayed; None in a directory that never had a bookie."""
    path = directories.ledgers / LAST_MARK
    try:
        return decode_mark(path.read_bytes())
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise Corrupted(f"{path}: {error}") from error


def write_last_mark(directories: Directories, mark: Mark) -> None:
    write_whole(directories.ledgers / LAST_MARK, mark.encode())
