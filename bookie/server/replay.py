"""Replay after a start: the journal beyond lastMark goes to entry log and index.

Apache replays into its write cache, through the path of ordinary adds (`BookieImpl.readJournal` of
4.18); this writes directly.

Invariants: afterwards every acknowledged entry, key and fence is in ledger storage, and the
journals that were read are no longer needed. A second replay changes nothing. Where there is an
entry, there is a row of its ledger, also of one that was deleted before.

Most of it is in entry logs already, because marks are rarer than halves that are written out.
Where there is room it is written again, since finding it takes longer: a log is read as a whole.
Where there may be none, it is found and left where it is (`entry_log/stored_runs.py`), so that a
bookie with full disks starts again. A replay that finds no room leaves the logs that it has filled,
and none that it has only begun. The next one finds those, and so needs no more than this one did.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from msgspec.structs import replace

from magnetar.bookie.format import entry_log as log_format
from magnetar.bookie.format import journal as journal_format
from magnetar.bookie.format.entries import Run, has_crc32c
from magnetar.bookie.format.ledger_row import LedgerRow
from magnetar.bookie.server.cache.write_cache import Half
from magnetar.bookie.server.directories import read_last_mark
from magnetar.bookie.server.disk_usage import DiskWatch, is_full, room_for
from magnetar.bookie.server.entry_log.stored_runs import StoredRuns
from magnetar.bookie.server.entry_log.writer import log_ids
from magnetar.bookie.server.index.locations import Placed
from magnetar.bookie.server.journal import files, inventory
from magnetar.bookie.server.journal.reader import JournalReader, RottenCorrupted
from magnetar.bookie.server.ledger_storage import (
    LedgerStorage,
    append_half,
    make_durable,
    put_index,
)
from magnetar.bookie.server.small_files import size_of
from magnetar.core.kernel.errors import Corrupted, StorageFull
from magnetar.core.ports.disk import Directory

log = logging.getLogger(__name__)


NO_ROW: Final = LedgerRow(b"", fenced=False)
FIRST_OFFSET: Final = journal_format.HEADER_BYTES
ROOM_TIMES: Final = 2
"""There is room if this many times the bytes of the journals fit below the disks' thresholds."""

INDEXES: Final = "the indexes of what the journal has"

Journal = tuple[str, int]
"""The name of a journal, and the offset from which it is replayed."""


def replay(
    storage: LedgerStorage,
    half_bytes: int,
    disk: DiskWatch,
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
        mark = journal_format.Mark(ids[0] if ids else 0, FIRST_OFFSET)
    elif mark.journal_id not in ids:
        raise Corrupted(
            f"{journal.path} lacks the journal {journal_format.file_name(mark.journal_id)} "
            "that lastMark names"
        )
    elif missing := inventory.missing(journal, mark.journal_id):
        raise Corrupted(missing)
    if whole and ids:
        mark = journal_format.Mark(ids[0], FIRST_OFFSET)
    journals = [
        (journal_format.file_name(i), mark.offset if i == mark.journal_id else FIRST_OFFSET)
        for i in ids
        if i >= mark.journal_id
    ]
    target = _Target(storage, half_bytes, disk, _stored(storage, journals, disk, proving))
    for name, offset in journals:
        try:
            _read(journal, name, offset, target, proving)
        except RottenCorrupted as error:
            if synced:
                raise
            log.warning("%s; it was not synced, so what stands there may never have been", error)
    target.end()
    return ids[-1] if ids else -1


def _stored(
    storage: LedgerStorage, journals: Sequence[Journal], disk: DiskWatch, proving: bool
) -> StoredRuns | None:
    """What need not be written again; None if there is room for all of it."""
    directory = storage.directories.journal
    size = sum([size_of(directory, name) - offset for name, offset in journals])
    if ROOM_TIMES * size <= disk.room_bytes:
        return None
    stored = StoredRuns(storage.reader)
    for name, offset in journals:
        # The replay itself tells what is wrong with a journal.
        with JournalReader(directory, name) as journal, suppress(RottenCorrupted):
            for item in journal.records(offset, proving=proving):
                if isinstance(item, Run):
                    stored.want(item)
    stored.scan(reversed(log_ids(storage.directories.logs)), size)
    return stored


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
    """Gathers replayed entries and rows, and writes them out a half at a time.

    When entry logs have found no room on any disk, it only counts what would have to be written.
    """

    def __init__(
        self, storage: LedgerStorage, half_bytes: int, disk: DiskWatch, stored: StoredRuns | None
    ) -> None:
        self._storage = storage
        self._half_bytes = half_bytes
        self._disk = disk
        self._stored = stored
        self._no_room: OSError | None = None
        self._missing_bytes = 0
        """What would have to be written to entry logs."""
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
        half, rows = self._half, self._rows
        self._half, self._rows = Half(), {}
        if half.entries:
            log.info("replaying %d entries of the journal", half.entries)
        placed = self._append(half) if self._no_room is None else None
        if placed is not None:
            with room_for(INDEXES, self._storage.directories.ledgers):
                put_index(self._storage, placed, rows, ())
            self._disk.check_and_log()  # the next log begins where there is room
            return
        self._missing_bytes += sum(
            [run.size for runs in half.runs.values() for run in runs if self._find(run) is None]
        )

    def _append(self, half: Half) -> list[Placed] | None:
        """None if there is no room in any directory."""
        entry_log = self._storage.entry_log
        for _ in range(self._disk.directories):
            try:
                return append_half(self._storage, half, (), self._place)
            except OSError as error:
                if not is_full(error):
                    raise
                full = error
                self._disk.ran_out_for(log_format.file_name(entry_log.log_id))
                entry_log.set_aside()
        self._no_room = full
        return None

    def _place(self, run: Run) -> int:
        location = self._find(run)
        if location is None:
            return self._storage.entry_log.append(run)
        self._storage.entry_log.repeat(run, location)
        return location

    def _find(self, run: Run) -> int | None:
        return None if self._stored is None else self._stored.find(run)

    def end(self) -> None:
        """Write out the rest, and make everything durable. `StorageFull` if there was no room."""
        self.write_out()
        if self._no_room is not None:
            self._disk.check()
            raise StorageFull(
                f"there is no room to replay the journal: {self._missing_bytes} bytes of it are in "
                f"no entry log yet, and {self._disk.free()}. Make room there; a bookie of its own "
                "can also get another ledger directory"
            ) from self._no_room
        with room_for(INDEXES, self._storage.directories.ledgers):
            make_durable(self._storage)
