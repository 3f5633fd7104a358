"""The bookie's directories: Apache's layout below one root, locked by one process.

Below the root are `lock`, `journal/current/` (VERSION, *.txn) and `ledgers/current/` (VERSION,
*.log, lastId, lastMark, and the databases locations/ and ledgers/). Journal and ledgers may be on
other disks: then each has a `lock` of its own.
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
JOURNAL: Final = "journal"
LEDGERS: Final = "ledgers"
LOCATIONS: Final = "locations"
LEDGER_ROWS: Final = "ledgers"
INDEXES: Final = (LOCATIONS, LEDGER_ROWS)
"""Directories below `ledgers`."""


class Directories(Struct, frozen=True):
    """The root and the two directories with files."""

    root: Directory
    journal: Directory
    ledgers: Directory
    names: tuple[str, str] = (JOURNAL, LEDGERS)
    """Those of journal and ledgers in the cookie: relative to the root, or paths of other disks."""


def make_directories(
    root: Directory, journal: Directory | None = None, ledgers: Directory | None = None
) -> Directories:
    """The directories below `root`, or below those given, created if missing."""
    above = (journal or root.directory(JOURNAL), ledgers or root.directory(LEDGERS))
    return Directories(
        root,
        above[0].directory("current"),
        above[1].directory("current"),
        (
            JOURNAL if journal is None else journal.path,
            LEDGERS if ledgers is None else ledgers.path,
        ),
    )


@contextmanager
def claim(disk: Disk, path: str, journal: str = "", ledgers: str = "") -> Iterator[Directories]:
    """The directories below `path`, or at `journal` and `ledgers` if these are given, locked
    against other processes until the block ends.
    """
    root = disk.directory(path)
    others = [disk.directory(one) if one else None for one in (journal, ledgers)]
    with ExitStack() as stack:
        for one in {found.path: found for found in (root, *others) if found is not None}.values():
            try:
                stack.enter_context(disk.lock(one, LOCK))
            except BlockingIOError:
                raise StorageFailed(
                    f"the bookie directory {one.path} is in use by another process"
                ) from None
        yield make_directories(root, *others)


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
