"""Where entries are: RocksDB with Apache's keys and values (`format/locations.py`).

RocksDB's binding holds the interpreter lock while it writes, and for as long as that takes: through
the write of its log, through the syncs of a table that is taken in, through a pause that RocksDB
imposes. On a busy disk the whole server would stand still with it. So what is written goes into
memory only, without a log, and `sync` has it written out, which lets go of the lock. Nothing is
lost by that: until lastMark has moved, the journal holds it all.

How far the journal is indexed stands in a file beside RocksDB's own, with the sequence number that
RocksDB had reached by then: an index that has not got so far is not the one that was written. It is
no key, since one that is in every table makes each overlap each other: entries that come in order,
whose tables are only moved from level to level, would all be compacted, for a tenth of a busy
server's CPU.

Invariant: nothing reaches the disk but by `sync`, so its caller decides what must be there before.
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
    value,
)
from magnetar.bookie.server.index import wear
from magnetar.bookie.server.small_files import read_whole, write_whole
from magnetar.core.kernel.errors import Corrupted
from magnetar.core.ports.database import DatabaseBatch, Databases
from magnetar.core.ports.disk import Directory

BATCH_PUTS_MAX: Final = 200
"""A batch of this size holds the interpreter's lock for 0.1 ms."""
MEMORY_PUTS_MAX: Final = 150_000
"""Then what is in memory is synced: it never fills up, which RocksDB would answer by itself. It is
more than a half of the write cache has in messages of 100 bytes, so that a mark syncs first.
"""
MEMORY_BYTES: Final = 16 * 1024 * 1024
"""Room for twice as many locations, of 50 bytes each."""
BREATHE_PUTS: Final = 2000
"""Between two pauses of the thread that writes, so that the loop runs."""

MARK: Final = "mark"

Placed = tuple[Run, int]
"""A run in an entry log, and the location of its first entry."""
Breathe = Callable[[], None]


class LocationIndex:
    """See the module's docstring. Every method may block on the disk."""

    def __init__(self, directory: Directory, databases: Databases) -> None:
        self._database = databases.open(directory, MEMORY_BYTES, wear.reporter(directory))
        self._unsynced = 0
        """Puts that are in memory only."""
        self._directory = directory
        self._unsynced_mark: Mark | None = None

    def find(self, ledger_id: int, entry_id: int) -> int | None:
        """The location of one entry."""
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

    def last_ledger(self) -> int:
        """The highest ledger of which any entry is here; -1 if there is none."""
        found = self._database.at_or_before(key(ENTRY_ID_MAX, ENTRY_ID_MAX))
        return -1 if found is None else int(ids_of(found[0])[0])

    def put(self, placed: Sequence[Placed], breathe: Breathe, full: Callable[[], None]) -> None:
        """Store where entries are; not durable before `sync`, which `full` must come to call."""
        batch = self._database.batch()
        count = 0
        for run, location in placed:
            entry_id = run.first
            for offset in run.offsets[:-1]:
                batch.put(key(run.ledger_id, entry_id), value(location + offset))
                entry_id += 1
                count += 1
                if count % BATCH_PUTS_MAX == 0:
                    self._write(batch, full)
                    batch = self._database.batch()
                    if count % BREATHE_PUTS == 0:
                        breathe()
        if len(batch):
            self._write(batch, full)

    def _write(self, batch: DatabaseBatch, full: Callable[[], None]) -> None:
        self._database.write(batch)
        self._unsynced += BATCH_PUTS_MAX
        if self._unsynced >= MEMORY_PUTS_MAX:
            full()
            assert not self._unsynced, "memory that is full was not synced"

    def put_mark(self, mark: Mark) -> None:
        """All before it in the journal is here once the next `sync` is done."""
        self._unsynced_mark = mark

    def mark(self) -> Mark | None:
        """The last that was synced; None before the first, as in an index that has been lost, all
        of it or the end.
        """
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
        """Entries that were there and cannot be found any more: reading one says so."""
        batch = self._database.batch()
        for entry_id in entry_ids:
            batch.put(key(ledger_id, entry_id), value(LOST))
            if len(batch) >= BATCH_PUTS_MAX:
                self._database.write(batch)
                batch = self._database.batch()
        if len(batch):
            self._database.write(batch)

    def sync(self) -> None:
        """What was put is durable when this returns."""
        sequence = self._database.sequence()
        self._database.flush()
        self._unsynced = 0
        if self._unsynced_mark is not None:
            mark = self._unsynced_mark
            write_whole(self._directory, MARK, encode_mark(mark, sequence))
            self._unsynced_mark = None

    def forget(self, ledger_id: int) -> None:
        """Drop all locations of a ledger."""
        self._database.delete_range(key(ledger_id, 0), key(ledger_id, ENTRY_ID_MAX))

    def locations(self, ledger_id: int) -> Iterator[tuple[int, int]]:
        """(entry id, location) of one ledger, in order."""
        for found, stored in self._database.from_key(key(ledger_id, 0)):
            known, entry_id = ids_of(found)
            if known != ledger_id:
                return
            yield int(entry_id), location_of(stored)

    def any_in(self, log_id: int, offset: int, breathe: Breathe) -> bool:
        """Whether any entry at all is in that log, at that offset or behind it. Looks at all."""
        first, last = (log_id << 32) | offset, (log_id << 32) | 0xFFFFFFFF
        for count, (_, stored) in enumerate(self._database.from_key(b"")):
            if first <= location_of(stored) <= last:
                return True
            if count % BREATHE_PUTS == 0:
                breathe()
        return False

    def entries_at(
        self, matches: Callable[[int], bool], breathe: Breathe
    ) -> Iterator[tuple[int, int]]:
        """(ledger id, entry id) of all that are at such locations, in order. Looks at all."""
        for count, (found, stored) in enumerate(self._database.from_key(b"")):
            if matches(location_of(stored)):
                yield ids_of(found)
            if count % BREATHE_PUTS == 0:
                breathe()

    def read_through(self) -> Generator[int, None, None]:
        """Every block, bit by bit; `Corrupted` if one has rotted."""
        return self._database.read_through()

    def close(self) -> None:
        self._database.close()
