"""The bookie's directories: Apache's layout below one root, locked by one process.

Below the root are `lock`, `journal/current/` (VERSION, *.txn) and `ledgers/current/` (VERSION,
*.log, lastId, lastMark, and the databases locations/ and ledgers/).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Final

from msgspec import Struct

from magnetar.bookie.format.journal import Mark, decode_mark
from magnetar.bookie.server.small_files import read_whole, write_whole
from magnetar.core.kernel.errors import Corrupted, StorageFailed
from magnetar.core.ports.disk import Directory, Disk

LOCK: Final = "lock"
LAST_MARK: Final = "lastMark"
LOCATIONS: Final = "locations"
LEDGER_ROWS: Final = "ledgers"
INDEXES: Final = (LOCATIONS, LEDGER_ROWS)
"""Directories below `ledgers`."""


class Directories(Struct, frozen=True):
    """The root and the two directories with files."""

    root: Directory
    journal: Directory
    ledgers: Directory


def make_directories(root: Directory) -> Directories:
    """The directories below `root`, created if missing."""
    return Directories(
        root,
        root.directory("journal").directory("current"),
        root.directory("ledgers").directory("current"),
    )


@contextmanager
def claim(disk: Disk, path: str) -> Iterator[Directories]:
    """The directories below `path`, locked against other processes until the block ends."""
    root = disk.directory(path)
    with ExitStack() as stack:
        try:
            stack.enter_context(disk.lock(root, LOCK))
        except BlockingIOError:
            raise StorageFailed(
                f"the bookie directory {root.path} is in use by another process"
            ) from None
        yield make_directories(root)


def read_last_mark(directories: Directories) -> Mark | None:
    """The mark from which on the journal must be replayed (`Journal.LastLogMark` of BookKeeper
    4.18); None before a bookie's first start.
    """
    try:
        return decode_mark(read_whole(directories.ledgers, LAST_MARK))
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise Corrupted(f"{directories.ledgers.path}/{LAST_MARK}: {error}") from error


def write_last_mark(directories: Directories, mark: Mark) -> None:
    """Replace lastMark. Durable on return."""
    write_whole(directories.ledgers, LAST_MARK, mark.encode())
