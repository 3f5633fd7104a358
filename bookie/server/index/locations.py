"""The locations index: RocksDB with Apache's keys and values (`format/locations.py`).

RocksDB's binding holds the interpreter lock during a write: while RocksDB writes its log, syncs an
ingested table, or throttles writers. On a busy disk the whole server would stop. So writes go to
memory only, without a write-ahead log, and `sync` flushes them, which releases the lock. Nothing
can be lost: until lastMark moves, the journal has everything.

The mark up to which the index covers the journal is in a file beside RocksDB's own, with the
sequence number that RocksDB had then: an index with a lower number is not the one that was written.
It is not a key, because a key in every table would make all tables overlap. Tables of ordered
entries, which only move from level to level, would then all be compacted, for a tenth of a busy
server's CPU.

For the same reason a ledger with many entries in a half of the write cache gets tables of its own:
the memory is synced between its entries and those of others. A cursor's ledger that has three
entries a second would have every table overlap with every other.

Invariant: only `sync` writes to the disk, so its caller decides what must be durable before.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from typing import Final

from magnetar.bookie.format.entries import Run
from magnetar.bookie.format.journal import Mark
from magnetar.bookie.format.locations import (
    ENTRY_ID_MAX,
    LOST,
    decode_mark,
    encode_mark,
    ids_of,
    key,
    location_of,
    rows,
    value,
)
from magnetar.bookie.server.index import wear
from magnetar.bookie.server.small_files import read_whole, write_whole
from magnetar.core.kernel.errors import Corrupted
from magnetar.core.native import quickest
from magnetar.core.ports.database import DatabaseBatch, Databases
from magnetar.core.ports.disk import Directory

BATCH_PUTS_MAX: Final = 200
"""A batch of this size holds the interpreter lock for 0.1 ms."""
MEMORY_PUTS_MAX: Final = 150_000
"""After this many puts the memory is synced, before it fills up, when RocksDB would stall writers.
A half of the write cache with messages of 100 bytes has fewer entries, so a mark syncs first.
"""
MEMORY_BYTES: Final = 16 * 1024 * 1024
"""Twice the memory of `MEMORY_PUTS_MAX` locations, of 50 bytes each."""
TABLE_PUTS: Final = 20_000
"""So many puts of one ledger are worth a table: to compact them later costs more than a sync."""
TABLES_MAX: Final = 8
"""So many ledgers of a half have tables of their own at most: RocksDB slows writers down when it
has forty new tables.
"""
BREATHE_PUTS: Final = 2000
"""Puts between two pauses of the writing thread, in which the loop runs."""

MARK: Final = "mark"

_rows = quickest(rows, "magnetar.bookie.format.compiled")

Placed = tuple[Run, int]
"""A run in an entry log, and the location of its first entry."""
Breathe = Callable[[], None]


def _tables(placed: Sequence[Placed]) -> dict[int | None, list[Placed]]:
    """What gets tables of its own, by ledger, and under None all others."""
    puts: dict[int, int] = {}
    for run, _ in placed:
        puts[run.ledger_id] = puts.get(run.ledger_id, 0) + run.count
    least = max(TABLE_PUTS, sum(puts.values()) // TABLES_MAX)
    tables: dict[int | None, list[Placed]] = {}
    for one in placed:
        ledger_id = one[0].ledger_id
        tables.setdefault(ledger_id if puts[ledger_id] >= least else None, []).append(one)
    return tables


class LocationIndex:
    """See the module's docstring. Every method may block on the disk."""

    def __init__(self, directory: Directory, databases: Databases) -> None:
        self._database = databases.open(directory, MEMORY_BYTES, wear.reporter(directory))
        self._unsynced = 0
        """Puts that are in memory only."""
        self._in_memory: int | None = None
        """The ledger they are of, if it has tables of its own."""
        self._directory = directory
        self._unsynced_mark: Mark | None = None

    @property
    def path(self) -> str:
        return self._directory.path

    def find(self, ledger_id: int, entry_id: int) -> int | None:
        """The location of one entry. There is none behind the highest id, for which readers ask who
        go on from entry to entry.
        """
        if entry_id > ENTRY_ID_MAX:
            return None
        found = self._database.get(key(ledger_id, entry_id))
        return None if found is None else location_of(found)

    def last(self, ledger_id: int) -> tuple[int, int] | None:
        """Id and location of a ledger's last entry."""
        found = self._database.at_or_before(key(ledger_id, ENTRY_ID_MAX))
        if found is not None:
            known, entry_id = ids_of(found[0])
            if known == ledger_id:
                return int(entry_id), location_of(found[1])
        return None

    def at_or_after(self, ledger_id: int, entry_id: int) -> tuple[int, int] | None:
        """The first entry from there on, with its ledger; None if there is none."""
        if ledger_id > ENTRY_ID_MAX:  # ids of ledgers end where those of entries do
            return None
        for found, _ in self._database.from_key(key(ledger_id, entry_id)):
            known, entry = ids_of(found)
            return int(known), int(entry)
        return None

    def last_ledger(self) -> int:
        """The highest ledger of which any entry is here; -1 if there is none."""
        found = self._database.at_or_before(key(ENTRY_ID_MAX, ENTRY_ID_MAX))
        return -1 if found is None else int(ids_of(found[0])[0])

    def put(self, placed: Sequence[Placed], pause: Breathe, full: Callable[[], None]) -> None:
        """Store locations; not durable before `sync`, which `full` must call."""
        tables = _tables(placed)
        # What may join those in memory goes first.
        for ledger_id in sorted(tables, key=lambda one: one != self._in_memory):
            if self._unsynced and ledger_id != self._in_memory:
                full()
            self._in_memory = ledger_id
            self._put(tables[ledger_id], pause, full)

    def _put(self, placed: Sequence[Placed], pause: Breathe, full: Callable[[], None]) -> None:
        batch = self._database.batch()
        count = 0
        for run, location in placed:
            ledger_id, first, offsets = run.ledger_id, run.first, run.offsets
            start, end = 0, len(offsets) - 1
            while start < end:
                stop = min(end, start + BATCH_PUTS_MAX - count % BATCH_PUTS_MAX)
                put = batch.put
                for pair in _rows(ledger_id, first, offsets, location, start, stop):
                    put(*pair)
                count += stop - start
                start = stop
                if count % BATCH_PUTS_MAX == 0:
                    self._write(batch, full)
                    batch = self._database.batch()
                    if count % BREATHE_PUTS == 0:
                        pause()
        if len(batch):
            self._write(batch, full)

    def _write(self, batch: DatabaseBatch, full: Callable[[], None]) -> None:
        self._database.write(batch)
        self._unsynced += BATCH_PUTS_MAX
        if self._unsynced >= MEMORY_PUTS_MAX:
            full()
            assert not self._unsynced, "memory that is full was not synced"

    def put_mark(self, mark: Mark) -> None:
        """Set the mark up to which the next `sync` covers the journal."""
        self._unsynced_mark = mark

    def mark(self) -> Mark | None:
        """The last synced mark; None in an index that is new, or has lost all or its last part."""
        try:
            found = read_whole(self._directory, MARK)
        except FileNotFoundError:
            return None
        try:
            mark, sequence = decode_mark(found)
        except ValueError as error:
            raise Corrupted(f"{self._directory.path}/{MARK} {error}") from error
        return mark if self._database.sequence() >= sequence else None

    def put_at(self, ledger_id: int, entry_id: int, location: int) -> None:
        batch = self._database.batch()
        batch.put(key(ledger_id, entry_id), value(location))
        self._database.write(batch)

    def put_lost(self, ledger_id: int, entry_ids: Iterable[int]) -> None:
        """Mark entries as lost: reading one raises `Corrupted`."""
        batch = self._database.batch()
        for entry_id in entry_ids:
            batch.put(key(ledger_id, entry_id), value(LOST))
            if len(batch) >= BATCH_PUTS_MAX:
                self._database.write(batch)
                batch = self._database.batch()
        if len(batch):
            self._database.write(batch)

    def sync(self) -> None:
        """Make all changes durable."""
        sequence = self._database.sequence()
        self._database.flush()
        self._unsynced = 0
        if self._unsynced_mark is not None:
            mark = self._unsynced_mark
            write_whole(self._directory, MARK, encode_mark(mark, sequence))
            self._unsynced_mark = None

    def forget(self, ledger_id: int) -> None:
        """Drop all locations of a ledger."""
        end = key(ledger_id, ENTRY_ID_MAX) + b"\0"  # exclusive, so behind the last key
        self._database.delete_range(key(ledger_id, 0), end)

    def locations(self, ledger_id: int, first: int = 0) -> Iterator[tuple[int, int]]:
        """(entry id, location) of one ledger from entry `first` on, in order; none behind the
        highest id.
        """
        if first > ENTRY_ID_MAX:
            return
        for found, stored in self._database.from_key(key(ledger_id, first)):
            known, entry_id = ids_of(found)
            if known != ledger_id:
                return
            yield int(entry_id), location_of(stored)

    def any_in(self, log_id: int, offset: int, pause: Breathe) -> bool:
        """Whether any entry is in that log, at or behind that offset. Reads the whole index."""
        first, last = (log_id << 32) | offset, (log_id << 32) | 0xFFFFFFFF
        for count, (_, stored) in enumerate(self._database.from_key(b"")):
            if first <= location_of(stored) <= last:
                return True
            if count % BREATHE_PUTS == 0:
                pause()
        return False

    def entries_at(
        self, matches: Callable[[int], bool], pause: Breathe
    ) -> Iterator[tuple[int, int]]:
        """(ledger id, entry id) of entries whose location matches. Reads the whole index."""
        for count, (found, stored) in enumerate(self._database.from_key(b"")):
            if matches(location_of(stored)):
                yield ids_of(found)
            if count % BREATHE_PUTS == 0:
                pause()

    def read_through(self) -> Generator[int, None, None]:
        """Read every block, in small steps; `Corrupted` if one has rotted."""
        return self._database.read_through()

    def compact(self, start: tuple[int, int], stop: tuple[int, int] | None) -> None:
        """Rewrite the locations from one entry (its ledger's id and its own) to another, or to the
        end, without those of deleted ledgers. It flushes: for callers that have synced.
        """
        self._database.compact(key(*start), key(*(stop or (ENTRY_ID_MAX, ENTRY_ID_MAX))))

    def close(self) -> None:
        self._database.close()
