"""Repair of a damaged journal: a start with the records that can still be read.

A journal is damaged if lastMark or a file is missing, truncated or unreadable. Everything before
lastMark is in the entry logs. So only records behind it can be lost, and of those only the damaged
ones: entries have ids and a digest, and are searched for behind damage as in entry logs.

`accept` notes the indexes as worn, so that the next start compares the stored entries with the
metadata, and notes missing ones as lost. lastMark goes back to the oldest journal, since replaying
too much is harmless. Then each damaged journal is replaced by one with the records found in it; the
old file is renamed to `*.damaged`.

Apache's bookie can only skip such a journal (`skipReplayJournalInvalidRecord`, BookKeeper 4.18).

Invariant: `examine` changes nothing; a repair that is cut off can be begun again, and after each of
its steps a start loses nothing that is readable.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from magnetar.bookie.format import journal as journal_format
from magnetar.bookie.format.entries import Run
from magnetar.bookie.format.journal import HEADER_BYTES
from magnetar.bookie.recovery.salvage import Salvaged, records_in
from magnetar.bookie.server.directories import INDEXES, Directories, read_last_mark, write_last_mark
from magnetar.bookie.server.entry_log.writer import log_ids
from magnetar.bookie.server.index import wear
from magnetar.bookie.server.journal import files, inventory
from magnetar.bookie.server.journal.reader import JournalReader
from magnetar.bookie.server.small_files import write_whole
from magnetar.core.kernel.errors import Corrupted
from magnetar.core.ports.disk import Directory

TAIL_BYTES: Final = 4096
"""Zeros behind the records, as at the end of any journal."""
COMPARE_BYTES: Final = 1024 * 1024
"""Bytes of two files read at a time."""


class BookieFinding(Struct, frozen=True):
    """What is wrong with a journal, in sentences; none if nothing is."""

    troubles: list[str]
    broken: list[int]
    """Journals that must be replaced."""


def examine(directories: Directories) -> BookieFinding:
    """Find what is wrong, without changing anything. Blocks."""
    journal, ledgers = directories.journal, directories.ledgers
    troubles: list[str] = []
    broken: list[int] = []
    ids = files.journals(journal)
    first = journal_format.Mark(ids[0] if ids else 0, HEADER_BYTES)
    try:
        mark = read_last_mark(directories)
        if mark is None and log_ids(directories.logs):
            troubles.append(f"{ledgers.path} has no lastMark, and there are entry logs")
    except Corrupted as error:
        troubles.append(str(error))
        mark = None
    mark = mark or first
    if ids and mark.journal_id not in ids:
        troubles.append(f"the journal {journal_format.file_name(mark.journal_id)} is missing")
    elif not ids and log_ids(directories.logs):
        troubles.append("there are no journals")
    if missing := inventory.missing(journal, mark.journal_id):
        troubles.append(missing)
    for journal_id in ids:
        offset = mark.offset if journal_id == mark.journal_id else HEADER_BYTES
        if trouble := _trouble(journal, journal_format.file_name(journal_id), offset):
            troubles.append(trouble)
            broken.append(journal_id)
    return BookieFinding(troubles, broken)


def _trouble(directory: Directory, name: str, offset: int) -> str:
    try:
        with JournalReader(directory, name) as journal:
            for _ in journal.records(offset, proving=True):
                pass
    except Corrupted as error:
        return str(error)
    return ""


def accept(directories: Directories, found: BookieFinding, master_key: bytes, now_ms: int) -> int:
    """Repair the journal; returns the number of entries found in damaged files. Blocks.

    lastMark is written first, because offsets change in a file that is rewritten.
    """
    journal = directories.journal
    ids = files.journals(journal)
    if not ids:
        ids = [now_ms]
        write_whole(journal, journal_format.file_name(now_ms), _journal([], master_key))
    note_wear(directories, "the journal was repaired: the index {} is made to agree")
    write_last_mark(directories, journal_format.Mark(ids[0], HEADER_BYTES))
    entries = 0
    for journal_id in found.broken:
        name = journal_format.file_name(journal_id)
        runs = list(_salvaged(journal, name))
        entries += sum(run.count for run in runs)
        _keep(journal, name)
        write_whole(journal, name, _journal(runs, master_key))
    if inventory.FILE in journal.names():
        journal.remove(inventory.FILE)
    return entries


def note_wear(directories: Directories, reason: str) -> None:
    """Have the next start rebuild both indexes; `reason` has a place for the name. Blocks."""
    for name in INDEXES:
        wear.note(directories.ledgers.directory(name), reason.format(name))


def _keep(directory: Directory, name: str) -> None:
    """Rename a file to a backup name, and never replace an earlier backup."""
    names = (name + ".damaged" + (f".{i}" if i else "") for i in itertools.count())
    for kept in names:
        if kept not in directory.names():
            directory.link(name, kept)
            return
        if _same_bytes(directory, name, kept):
            return


def _same_bytes(directory: Directory, name: str, other: str) -> bool:
    one, two = directory.open(name), directory.open(other)
    try:
        if one.size() != two.size():
            return False
        starts = range(0, one.size(), COMPARE_BYTES)
        return all(one.pread(COMPARE_BYTES, i) == two.pread(COMPARE_BYTES, i) for i in starts)
    finally:
        one.close()
        two.close()


def _salvaged(directory: Directory, name: str) -> Iterator[Run]:
    with JournalReader(directory, name) as journal:
        for found in records_in(journal.read, 0, HEADER_BYTES, journal.size):
            if isinstance(found, Salvaged):
                yield found.run


def _journal(runs: list[Run], master_key: bytes) -> bytes:
    """The bytes of a journal with these records, behind the keys of their ledgers."""
    parts = [journal_format.HEADER]
    parts += [
        journal_format.key_note(ledger_id, master_key) for ledger_id in {r.ledger_id for r in runs}
    ]
    parts += [run.blob for run in runs]
    data = b"".join(parts)
    return data + journal_format.padding(len(data)) + bytes(TAIL_BYTES)
