"""Rebuilding the indexes from the entry logs, for the ledgers that the metadata names.

Apache has an offline command for each index: `LocationsIndexRebuildOp.java` and
`LedgersIndexRebuildOp.java` of BookKeeper 4.18.

Locations are rebuilt completely. Rows of the ledgers index cannot be, because no entry has a fence
or a key: a ledger without a row counts as fenced, with the key that all our ledgers have. (No
writer appends to a ledger from before the start, so this refuses nothing.) The journal is replayed
afterwards, as at every start.

An entry that must exist, according to the metadata or its neighbours, and is not found, is noted as
lost: reading it raises `Corrupted` and not "no such entry".

Invariant: an index gets its mark only when it is complete, so a rebuild that was cut off is begun
again.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Final

from magnetar.bookie.format import entries
from magnetar.bookie.format.entries import Run
from magnetar.bookie.format.ledger_row import LedgerRow
from magnetar.bookie.recovery.salvage import Damaged, Salvaged, records
from magnetar.bookie.server.entry_log.writer import log_ids
from magnetar.bookie.server.index.locations import Placed
from magnetar.bookie.server.ledger_storage import LedgerStorage, make_durable

log = logging.getLogger(__name__)

BATCH_ENTRIES: Final = 20_000
LOST_NOTED_MAX: Final = 1_000_000
"""The most entries of a ledger that are noted as lost."""

Ledgers = Mapping[int, int]
"""The last entry of each ledger in the metadata; -1 if it is empty or not closed."""


class Rebuild:
    """One rebuild: `from_logs`, then the replay of the journal, then `note_lost`."""

    def __init__(self, storage: LedgerStorage, ledgers: Ledgers | None, master_key: bytes) -> None:
        """`ledgers` is None if the metadata store does not name them: all are rebuilt then."""
        self._storage = storage
        self._ledgers = ledgers
        self._master_key = master_key
        self._placed: list[Placed] = []
        self._waiting = 0
        self._damaged: dict[tuple[int, int], int] = {}
        """Locations of entries with a wrong digest: damaged, unless an intact copy is found."""
        self._unsure: list[int] = []
        """Entry logs with records that may be contents of a message: see `salvage.py`."""
        self._seen: set[int] = set()
        self.entries = self.lost = 0

    def from_logs(self) -> None:
        """Read every entry log through. Blocks: for a thread."""
        ids = log_ids(self._storage.directories.logs)
        log.warning("rebuilding the index of entries from %d entry logs", len(ids))
        for number, log_id in enumerate(ids, 1):
            self._read(log_id)
            log.info(
                "entry log %x is read, %d of %d: %d entries so far",
                log_id,
                number,
                len(ids),
                self.entries,
            )
        self._put()
        for log_id in self._unsure:
            self._read_unsure(log_id)
        for (ledger_id, entry_id), location in self._damaged.items():
            if self._storage.locations.find(ledger_id, entry_id) is None:
                log.error("entry %d:%d is damaged", ledger_id, entry_id)
                self._storage.locations.put_at(ledger_id, entry_id, location)
        self._make_rows(self._seen)
        make_durable(self._storage)

    def _read(self, log_id: int) -> None:
        for found in records(self._storage.reader, log_id, self._storage.pause, self._is_unjudged):
            if isinstance(found, Salvaged):
                if found.sure:
                    self._take(found.location, found.run)
                elif log_id not in self._unsure:
                    self._unsure.append(log_id)
            elif isinstance(found, Damaged):
                if self._exists(found.ledger_id) and len(self._damaged) < LOST_NOTED_MAX:
                    self._damaged[found.ledger_id, found.entry_id] = found.location
            else:
                log.warning(
                    "entry log %x: no entry in bytes %d to %d", log_id, found.start, found.end
                )

    def _read_unsure(self, log_id: int) -> None:
        """Add uncertain records of entries that have no certain one, which are all indexed now."""
        locations = self._storage.locations
        for found in records(self._storage.reader, log_id, self._storage.pause, self._is_unjudged):
            if not isinstance(found, Salvaged) or found.sure:
                continue
            run = found.run
            if not self._exists(run.ledger_id):
                continue
            self._seen.add(run.ledger_id)
            for place, offset in enumerate(run.offsets[:-1]):
                if locations.find(run.ledger_id, run.first + place) is None:
                    locations.put_at(run.ledger_id, run.first + place, found.location + offset)
                    self.entries += 1

    def _is_unjudged(self, run: Run) -> bool:
        """Whether entries have another digest. If the row is lost too, and the metadata store does
        not name the ledger, that is concluded from a run without one right CRC32C.
        """
        row = self._storage.ledgers.find(run.ledger_id)
        if row is None:
            return self._ledgers is None and not entries.count_intact(run)
        return row.other_digest

    def _exists(self, ledger_id: int) -> bool:
        return self._ledgers is None or ledger_id in self._ledgers

    def _take(self, location: int, run: Run) -> None:
        if not self._exists(run.ledger_id):  # deleted: the collector removes its records
            return
        self._seen.add(run.ledger_id)
        self.entries += run.count
        self._waiting += run.count
        self._placed.append((Run(run.ledger_id, run.first, b"", run.offsets), location))
        if self._waiting >= BATCH_ENTRIES:
            self._put()

    def _put(self) -> None:
        self._storage.locations.put(self._placed, self._storage.pause, self._storage.locations.sync)
        self._placed, self._waiting = [], 0

    def _make_rows(self, ledger_ids: Iterable[int]) -> None:
        """Give each ledger a row: the collector finds ledgers by their rows."""
        rows = self._storage.ledgers
        # Of an unknown ledger entries may be missing: nobody may conclude that they never were.
        fenced = LedgerRow(self._master_key, fenced=True, limbo=self._ledgers is None)
        rows.put((i, fenced) for i in sorted(ledger_ids) if rows.find(i) is None)

    def note_lost(self) -> None:
        """Note entries that are still missing after the replay as lost. Blocks: for a thread."""
        for ledger_id, last in sorted((self._ledgers or {}).items()):
            self._note_lost(ledger_id, last)
        make_durable(self._storage)
        if self.lost:
            log.error("%d entries are lost: reading one of them says that it is damaged", self.lost)
        log.warning("the index of entries is rebuilt: %d entries", self.entries)

    def _note_lost(self, ledger_id: int, last: int) -> None:
        missing: list[int] = []
        following = 0
        for entry_id, _ in self._storage.locations.locations(ledger_id):
            missing += range(following, min(entry_id, following + LOST_NOTED_MAX))
            following = entry_id + 1
        missing += range(following, min(last + 1, following + LOST_NOTED_MAX))
        if missing:
            log.error(
                "ledger %d: %d entries between %d and %d are lost",
                ledger_id,
                len(missing),
                missing[0],
                missing[-1],
            )
            self._make_rows([ledger_id])
            self._storage.locations.put_lost(ledger_id, missing)
            self.lost += len(missing)
