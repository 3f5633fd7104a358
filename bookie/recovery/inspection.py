"""Before the bookie starts: are its indexes there, are they the ones that were written?

    cannot be opened, or read where it begins and ends    worn
    without a mark                                        worn, unless no version has put one yet
    with a mark before lastMark                           worn: an older copy, or not all of it
    with a mark in a journal that is not there            worn: another bookie's

That costs a start three looks into each index. A worn index is thrown away and rebuilt, since all
of it can be made again. RocksDB itself refuses to open when a file that it knows of is missing or
has another length; what has rotted inside one shows when it is read, at the latest by the reading
in the background (`wear.py`), and is rebuilt at the next start.

Invariant: nothing is believed of an index that this has not looked at.
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Protocol, TypeVar

from magnetar.bookie.format.journal import Mark
from magnetar.bookie.machine.durability import sync_directory
from magnetar.bookie.recovery import wear
from magnetar.bookie.server.directories import Directories, read_last_mark
from magnetar.bookie.server.entry_log.writer import log_ids
from magnetar.bookie.server.journal.files import journals
from magnetar.core.errors import Corrupted

log = logging.getLogger(__name__)


class Index(Protocol):
    """Either of the two."""

    def mark(self) -> Mark | None: ...

    def last_ledger(self) -> int: ...

    def close(self) -> None: ...


AnyIndex = TypeVar("AnyIndex", bound=Index)


def open_index(
    path: Path, make: Callable[[Path], AnyIndex], directories: Directories, *, marked: bool
) -> tuple[AnyIndex, bool]:
    """The index, and whether it must be rebuilt, in which case it is empty. `marked`: a version
    that puts marks has run here. Blocks: for a thread.
    """
    wanted = read_last_mark(directories)
    reason = wear.reason(path) or ("" if path.exists() else _absence(directories, path, wanted))
    if not reason:
        try:
            index = make(path)
        except Corrupted as error:
            reason = str(error)
        else:
            reason = _wear(index, path, directories, wanted, marked=marked)
            if not reason:
                return index, False
            _close(index)
    log.warning("%s; it is rebuilt", reason)
    _throw_away(path)
    return make(path), True


def _throw_away(path: Path) -> None:
    """At once: the note that an index is worn must not go before the rest of it."""
    old = path.with_name(path.name + ".worn")
    shutil.rmtree(old, ignore_errors=True)  # of an attempt that was cut short
    if path.exists():
        path.rename(old)
        sync_directory(path.parent)
    shutil.rmtree(old, ignore_errors=True)


def _close(index: Index) -> None:
    """What a damaged index has to say when it closes is what is known."""
    try:
        index.close()
    except Exception as error:  # noqa: BLE001 -- RocksDB's own are nothing more particular
        log.info("the index does not close cleanly: %s", error)


def _absence(directories: Directories, path: Path, wanted: Mark | None) -> str:
    """No index in a bookie that has not started yet is as it should be."""
    started = wanted is not None or log_ids(directories.ledgers)
    return f"the index {path.name} is missing" if started else ""


def _wear(
    index: Index, path: Path, directories: Directories, wanted: Mark | None, *, marked: bool
) -> str:
    """What speaks against it, in a sentence; nothing if nothing does."""
    try:
        mark, last = index.mark(), index.last_ledger()
    except (Corrupted, ValueError) as error:
        return f"the index {path.name} is damaged: {error}"
    if wanted is None:
        return ""
    if mark is None:
        empty = marked or last < 0
        return f"the index {path.name} has lost what was in it" if empty else ""
    if mark < wanted:
        return f"the index {path.name} is older than lastMark: {mark} is before {wanted}"
    if mark > wanted and mark.journal_id not in journals(directories.journal):
        # A crash leaves one that is ahead, and the journal up to there.
        return f"the index {path.name} belongs to another journal, {mark.journal_id:x}"
    return ""
