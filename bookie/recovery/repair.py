"""A journal that is damaged: what of it can still be had, and a start from that.

Damaged are lastMark or a journal that are gone, cut or make no sense. Before lastMark everything is
in the entry logs. So what can be lost is what stands behind it, and of that only the damaged bytes:
records carry their ids and a digest, and are searched for behind damage as in entry logs.

Accepting notes the index as worn, so that the next start compares what is there with what the
metadata promises, and notes as lost what is nowhere. lastMark goes back to the oldest journal there
is, since to replay more than must be is harmless. Then of each damaged journal one is made with the
records that could be found; the old file is kept as `*.damaged`.

Invariant: looking changes nothing; a repair that is cut short can be begun again, and after each
step of it a start loses nothing that could be had.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from magnetar.bookie.format import journal as journal_format
from magnetar.bookie.format.entries import Run
from magnetar.bookie.format.journal_scan import Read, scan
from magnetar.bookie.recovery import wear
from magnetar.bookie.recovery.salvage import Salvaged, records_in
from magnetar.bookie.server.directories import (
    Directories,
    read_last_mark,
    write_last_mark,
    write_whole,
)
from magnetar.bookie.server.entry_log.writer import log_ids
from magnetar.bookie.server.journal import files, inventory
from magnetar.core.errors import Corrupted

TAIL_BYTES = 4096
"""Of zeros behind what was found, as the end of a journal has them."""


class Finding(Struct, frozen=True):
    """What is the matter, in sentences; none if all is well."""

    troubles: list[str]
    broken: list[int]
    """Journals that must be made anew."""


def examine(directories: Directories) -> Finding:
    """Blocks."""
    troubles: list[str] = []
    broken: list[int] = []
    ids = files.journals(directories.journal)
    first = journal_format.Mark(ids[0] if ids else 0, journal_format.HEADER_BYTES)
    try:
        mark = read_last_mark(directories)
        if mark is None and log_ids(directories.ledgers):
            troubles.append(f"{directories.ledgers} holds entry logs but no lastMark")
    except Corrupted as error:
        troubles.append(str(error))
        mark = None
    mark = mark or first
    if ids and mark.journal_id not in ids:
        troubles.append(f"the journal {journal_format.file_name(mark.journal_id)} is missing")
    elif not ids and log_ids(directories.ledgers):
        troubles.append("there are no journals")
    if missing := inventory.missing(directories.journal, mark.journal_id):
        troubles.append(missing)
    for journal_id in ids:
        offset = mark.offset if journal_id == mark.journal_id else journal_format.HEADER_BYTES
        if trouble := _trouble(directories.journal / journal_format.file_name(journal_id), offset):
            troubles.append(trouble)
            broken.append(journal_id)
    return Finding(troubles, broken)


def _trouble(path: Path, offset: int) -> str:
    size = path.stat().st_size
    if size < offset:
        return f"{path} is cut short: it has {size} bytes, and lastMark says {offset}"
    try:
        with path.open("rb") as file:
            if journal_format.read_header(file.read(journal_format.HEADER_BYTES)):
                for _ in scan(_reading(file.fileno()), max(offset, journal_format.HEADER_BYTES)):
                    pass
    except ValueError as error:
        return f"{path}: {error}"
    return ""


def _reading(fd: int) -> Read:
    return lambda offset, size: os.pread(fd, size, offset)


def accept(directories: Directories, found: Finding, master_key: bytes, now_ms: int) -> int:
    """Go on with what there is; how many entries the damaged journals still had. Blocks.

    The mark first: in a journal that is made anew nothing is where it was.
    """
    ids = files.journals(directories.journal)
    if not ids:
        ids = [now_ms]
        write_whole(
            directories.journal / journal_format.file_name(now_ms), _journal([], master_key)
        )
    for index in (directories.locations, directories.ledger_rows):
        index.mkdir(exist_ok=True)
        wear.note(index, f"the journal was repaired: the index {index.name} is made to agree")
    write_last_mark(directories, journal_format.Mark(ids[0], journal_format.HEADER_BYTES))
    entries = 0
    for journal_id in found.broken:
        path = directories.journal / journal_format.file_name(journal_id)
        runs = list(_salvaged(path))
        entries += sum(run.count for run in runs)
        _keep(path)
        write_whole(path, _journal(runs, master_key))
    (directories.journal / inventory.FILE).unlink(missing_ok=True)
    return entries


def _keep(path: Path) -> None:
    """Under another name as well, and never over what was kept before."""
    names = (path.name + ".damaged" + (f".{i}" if i else "") for i in itertools.count())
    for kept in map(path.with_name, names):
        if not kept.exists():
            os.link(path, kept)
            return
        if kept.samefile(path):
            return


def _salvaged(path: Path) -> Iterator[Run]:
    size = path.stat().st_size
    with path.open("rb") as file:
        read = _reading(file.fileno())
        for found in records_in(read, 0, journal_format.HEADER_BYTES, size):
            if isinstance(found, Salvaged):
                yield found.run


def _journal(runs: list[Run], master_key: bytes) -> bytes:
    """A journal with these records, each ledger's key before them."""
    parts = [journal_format.HEADER]
    parts += [
        journal_format.key_note(ledger_id, master_key) for ledger_id in {r.ledger_id for r in runs}
    ]
    parts += [run.blob for run in runs]
    data = b"".join(parts)
    return data + journal_format.padding(len(data)) + bytes(TAIL_BYTES)
