"""Replay after a start: the journal beyond lastMark goes to entry log and index.

Apache replays into its write cache, through the path of ordinary adds (`BookieImpl.readJournal` of
4.18); this writes directly.

Invariants: afterwards every acknowledged entry, key and fence is in ledger storage, and the
journals that were read are no longer needed. A second replay changes nothing. Where there is an
entry, there is a row of its ledger, also of one that was deleted before.
"""

from __future__ import annotations

import logging
from typing import Final

from msgspec.structs import replace

from magnetar.bookie.format import journal as journal_format
from magnetar.bookie.format.entries import Run, has_crc32c
from magnetar.bookie.format.ledger_row import LedgerRow
from magnetar.bookie.server.cache.write_cache import Half
from magnetar.bookie.server.directories import read_last_mark
from magnetar.bookie.server.entry_log.writer import log_ids
from magnetar.bookie.server.journal import files, inventory
from magnetar.bookie.server.journal.reader import JournalReader, RottenCorrupted
from magnetar.bookie.server.ledger_storage import LedgerStorage, make_durable, write_out
from magnetar.core.kernel.errors import Corrupted
from magnetar.core.ports.disk import Directory

log = logging.getLogger(__name__)


NO_ROW: Final = LedgerRow(b"", fenced=False)


def replay(
    storage: LedgerStorage,
    half_bytes: int,
    *,
    whole: bool = False,
    proving: bool = False,
    synced: bool = True,
) -> int:
    """Replay the journals from lastMark on, or all of them (`whole`). Returns the highest journal
    id, -1 if there is none. Blocks: for a thread.

    `proving`: all entries have a CRC32C, so that one without the right one is broken. Not `synced`:
    a power cut may have left holes, which are where such a journal ends.
    """
    directories = storage.directories
    journal = directories.journal
    ids = files.journals(journal)
    mark = read_last_mark(directories)
    if mark is None:
        if log_ids(directories.logs):
            raise Corrupted(f"{directories.ledgers.path} holds entry logs but no lastMark")
        mark = journal_format.Mark(ids[0] if ids else 0, journal_format.HEADER_BYTES)
    elif mark.journal_id not in ids:
        raise Corrupted(
            f"{journal.path} lacks the journal {journal_format.file_name(mark.journal_id)} "
            "that lastMark names"
        )
    elif missing := inventory.missing(journal, mark.journal_id):
        raise Corrupted(missing)
    if whole and ids:
        mark = journal_format.Mark(ids[0], journal_format.HEADER_BYTES)
    target = _Target(storage, half_bytes)
    for journal_id in ids:
        if journal_id >= mark.journal_id:
            offset = mark.offset if journal_id == mark.journal_id else journal_format.HEADER_BYTES
            name = journal_format.file_name(journal_id)
            try:
                _read(journal, name, offset, target, proving)
            except RottenCorrupted as error:
                if synced:
                    raise
                log.warning(
                    "%s; it was not synced, so what stands there may never have been", error
                )
    target.write_out()
    make_durable(storage)
    return ids[-1] if ids else -1


def _read(directory: Directory, name: str, offset: int, target: _Target, proving: bool) -> None:
    with JournalReader(directory, name) as journal:
        for item in journal.records(offset, proving=proving):
            if isinstance(item, Run):
                target.entries(item)
            else:
                target.note(item)
        if journal.has_left_over():
            log.warning(
                "%s: read up to %d, and not what stands behind that. A crash in the middle of "
                "writing leaves it so; after anything else the disk has lost something",
                journal.path,
                journal.end,
            )


class _Target:
    """Gathers replayed entries and rows, and writes them out a half at a time."""

    def __init__(self, storage: LedgerStorage, half_bytes: int) -> None:
        self._storage = storage
        self._half_bytes = half_bytes
        self._half = Half()
        self._rows: dict[int, LedgerRow] = {}
        self._met: set[int] = set()
        """Ledgers with entries in the journal."""

    def entries(self, run: Run) -> None:
        if run.ledger_id not in self._met:
            self._meet(run)
        self._half.put(run)
        if self._half.bytes >= self._half_bytes:
            self.write_out()

    def _meet(self, run: Run) -> None:
        """Have a row for a ledger, which notes if its entries have another digest, as its first add
        did. It has none if it was collected after its key was journalled, and before the mark: the
        collector finds it again by its row only.
        """
        ledger_id = run.ledger_id
        self._met.add(ledger_id)
        if self._storage.ledgers.find(ledger_id) is None:
            row = self._rows.get(ledger_id, NO_ROW)
            self._rows[ledger_id] = row if has_crc32c(run) else replace(row, other_digest=True)

    def note(self, note: journal_format.Note) -> None:
        ledger_id, row = note.ledger_id, self._row(note.ledger_id) or NO_ROW
        if note.kind == journal_format.KEY:
            self._rows[ledger_id] = replace(row, master_key=note.value)
        elif note.kind == journal_format.FENCE:
            # A fence counts even for a ledger of which nothing else is known. Apache's replay skips
            # it if no master key is known (`BookieImpl.readJournal`, NoLedgerException).
            self._rows[ledger_id] = replace(row, fenced=True)
        elif note.kind == journal_format.EXPLICIT_LAC:
            self._rows[ledger_id] = replace(row, explicit_lac=note.value)

    def _row(self, ledger_id: int) -> LedgerRow | None:
        return self._rows.get(ledger_id) or self._storage.ledgers.find(ledger_id)

    def write_out(self) -> None:
        if self._half.entries:
            log.info("replaying %d entries of the journal", self._half.entries)
        write_out(self._storage, self._half, self._rows, ())
        self._half = Half()
        self._rows = {}
