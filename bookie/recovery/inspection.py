"""The check of the indexes before a start: do they exist, and are they the ones that were written?

    cannot be opened, or read where it begins and ends    worn
    without a mark                                        worn, unless no version has put one yet
    with a mark before lastMark                           worn: an older copy, or not all of it
    with a mark in a journal that is not there            worn: another bookie's

That takes three look-ups in each index. A worn index is discarded and rebuilt from entry logs and
journal. RocksDB itself refuses to open if a file is missing or has another length than it recorded.
Damage inside a file is found when it is read, at the latest by the background reading (`wear.py`),
and is rebuilt at the next start.

Invariant: no index is used before this check.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Protocol, TypeVar

from magnetar.bookie.format.journal import Mark
from magnetar.bookie.server.directories import Directories, read_last_mark
from magnetar.bookie.server.entry_log.writer import log_ids
from magnetar.bookie.server.index import wear
from magnetar.bookie.server.journal.files import journals
from magnetar.core.kernel.errors import Corrupted
from magnetar.core.ports.disk import Directory

log = logging.getLogger(__name__)


class Index(Protocol):
    """Either index."""

    def mark(self) -> Mark | None: ...

    def last_ledger(self) -> int: ...

    def close(self) -> None: ...


AnyIndex = TypeVar("AnyIndex", bound=Index)


def open_index(
    name: str, make: Callable[[Directory], AnyIndex], directories: Directories, *, marked: bool
) -> tuple[AnyIndex, bool]:
    """The index, and whether it must be rebuilt, in which case it is empty. `marked`: whether a
    version that writes marks has run here. Blocks: for a thread.
    """
    ledgers = directories.ledgers
    mark = read_last_mark(directories)
    reason = wear.reason(ledgers, name)
    if not reason and name not in ledgers.names():
        reason = _absence(directories, name, mark)
    if not reason:
        try:
            index = make(ledgers.directory(name))
        except Corrupted as error:
            reason = str(error)
        else:
            reason = _wear(index, name, directories, mark, marked=marked)
            if not reason:
                return index, False
            _close(index)
    log.warning("%s; it is rebuilt", reason)
    throw_away(ledgers, name)
    return make(ledgers.directory(name)), True


def throw_away(parent: Directory, name: str) -> None:
    """Remove an index in one step: the note that it is worn must not go before the rest of it."""
    old = name + ".worn"
    if old in parent.names():  # left by an attempt that was cut off
        parent.remove(old)
    if name in parent.names():
        parent.rename(name, old)
        parent.sync()
        parent.remove(old)


def _close(index: Index) -> None:
    """Close a damaged index and ignore any error."""
    try:
        index.close()
    except Exception as error:  # noqa: BLE001 -- RocksDB raises no narrower class
        log.info("the index does not close cleanly: %s", error)


def _absence(directories: Directories, name: str, last_mark: Mark | None) -> str:
    """Why a missing index must be rebuilt; empty before a bookie's first start."""
    started = last_mark is not None or log_ids(directories.logs)
    return f"the index {name} is missing" if started else ""


def _wear(
    index: Index, name: str, directories: Directories, last_mark: Mark | None, *, marked: bool
) -> str:
    """What is wrong with an index, as a sentence; empty if nothing is."""
    try:
        mark, last = index.mark(), index.last_ledger()
    except (Corrupted, ValueError) as error:
        return f"the index {name} is damaged: {error}"
    if last_mark is None:
        return ""
    if mark is None:
        empty = marked or last < 0
        return f"the index {name} has lost what was in it" if empty else ""
    if mark < last_mark:
        return f"the index {name} is older than lastMark: {mark} is before {last_mark}"
    if mark > last_mark and mark.journal_id not in journals(directories.journal):
        # A crash may leave a mark ahead of lastMark, but then that journal exists.
        return f"the index {name} belongs to another journal, {mark.journal_id:x}"
    return ""
