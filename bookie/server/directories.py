"""The bookie's directories: Apache's layout below one root, locked by one process.

Below the root are `lock`, `journal/current/` (VERSION, *.txn) and `ledgers/current/` (VERSION,
*.log, lastId, lastMark, and the databases locations/ and ledgers/). Journal and ledgers may be on
other disks: then each has a `lock` of its own. Of several ledger directories the first has all but
the other logs (`log_directories.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Final

from msgspec import Struct

from magnetar.bookie.format.journal import Mark, decode_mark
from magnetar.bookie.server.log_directories import LogDirectories
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
    """The root and the directories with files."""

    root: Directory
    journal: Directory
    ledgers: Directory
    """The first one: lastMark, and the indexes."""
    all_ledgers: tuple[Directory, ...]
    logs: Directory
    """All of them, as the one with the entry logs."""
    names: tuple[str, tuple[str, ...]] = (JOURNAL, (LEDGERS,))
    """Those of journal and ledgers in the cookie: relative to the root, or paths of other disks."""

    @property
    def all(self) -> tuple[Directory, ...]:
        """Those with a cookie."""
        return self.journal, *self.all_ledgers


def make_directories(
    root: Directory, journal: Directory | None = None, ledgers: Sequence[Directory] = ()
) -> Directories:
    """The directories below `root`, or below those given, created if missing."""
    above = journal or root.directory(JOURNAL), *(ledgers or (root.directory(LEDGERS),))
    of_journal, *current = [each.directory("current") for each in above]
    return Directories(
        root,
        of_journal,
        current[0],
        tuple(current),
        current[0] if len(current) == 1 else LogDirectories(current),
        (
            JOURNAL if journal is None else _name(root, journal),
            tuple(_name(root, each) for each in ledgers) or (LEDGERS,),
        ),
    )


def _name(root: Directory, directory: Directory) -> str:
    """The name in a cookie."""
    return directory.path.removeprefix(f"{root.path}/")


@contextmanager
def claim(
    disk: Disk, path: str, journal: str = "", ledgers: Sequence[str] = ()
) -> Iterator[Directories]:
    """The directories below `path`, or at `journal` and `ledgers` if these are given, locked
    against other processes until the block ends.
    """
    root = disk.directory(path)
    other_journal = disk.directory(journal) if journal else None
    other_ledgers = [disk.directory(one) for one in ledgers]
    paths = [one.path for one in other_ledgers]
    if len(set(paths)) < len(paths):
        raise StorageFailed(f"a ledger directory is named twice: {', '.join(paths)}")
    named = (
        [root, *other_ledgers] if other_journal is None else [root, other_journal, *other_ledgers]
    )
    with ExitStack() as stack:
        for one in {found.path: found for found in named}.values():
            try:
                stack.enter_context(disk.lock(one, LOCK))
            except BlockingIOError:
                raise StorageFailed(
                    f"the bookie directory {one.path} is in use by another process"
                ) from None
        yield make_directories(root, other_journal, other_ledgers)


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
