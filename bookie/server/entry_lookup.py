"""Finds entries: in the write cache, the read cache, and the entry logs, in this order.

`read` returns payloads, whose digests are checked: for the ledger client in this process, whose
ledgers have CRC32C. `entry` returns an entry whole and unchecked: clients over the network check
the digest that they chose, which may need their password.

Invariant: `EntryNotFound` is raised only if it is certain; damage raises another error.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import merge
from operator import attrgetter
from typing import NoReturn, TypeVar, TypeVarTuple, Unpack

import trio

from magnetar.bookie.format import entries
from magnetar.bookie.format.entries import DigestHeader, Run
from magnetar.bookie.server.cache.large_entries import LargeEntries, split_large
from magnetar.bookie.server.cache.read_cache import ReadCache
from magnetar.bookie.server.cache.striped_run import StripedRun
from magnetar.bookie.server.cache.write_cache import WriteCache
from magnetar.bookie.server.damage import DamagedRange
from magnetar.bookie.server.ledger_storage import LedgerStorage
from magnetar.bookie.server.ledgers.states import LedgerStates
from magnetar.bookie.server.settings import BookieSettings
from magnetar.bookie.server.statistics import Counters
from magnetar.core.kernel.errors import Corrupted, EntryNotFound, LedgerNotFound, StorageFailed

log = logging.getLogger(__name__)

Result = TypeVar("Result")
Arguments = TypeVarTuple("Arguments")

LONE_READ_BYTES = 16 * 1024
"""Bytes read from an entry log if nothing suggests that the reader will go on."""
BATCH_BYTES_MAX = 1024 * 1024
"""The most bytes read at once for somebody who asks for many entries."""
IDS_PER_BREATH = 1000
"""Ids listed between two pauses of the thread: a millisecond or two."""
AHEAD_ENTRIES = 8
AHEAD_BYTES_MAX = 8 * 1024 * 1024
"""Large entries are read at least this many at once, up to this many bytes: handing a read to a
thread takes as long as reading half a megabyte.
"""


class EntryLookup:
    """See the module's docstring."""

    def __init__(
        self,
        settings: BookieSettings,
        storage: LedgerStorage,
        cache: WriteCache,
        states: LedgerStates,
        counters: Counters,
    ) -> None:
        self.counters = counters
        self.read_cache = ReadCache(settings.read_cache_bytes)
        self._settings = settings
        self._storage = storage
        self._cache = cache
        self._states = states
        self._threads = storage.machine.threads
        self._lister = self._threads.workers(1, abandon=True)
        self._readers = self._threads.workers(settings.read_threads_max, abandon=True)

    async def read(self, ledger_id: int, first: int, last: int, bytes_max: int) -> list[bytes]:
        """Payloads of entries `first`..`last`: at least one, fewer than all at `bytes_max`.

        `EntryNotFound` if `first` is not here, `Corrupted` if it is damaged. A later entry that is
        missing or damaged only ends the answer. The disk is not read for another entry if the one
        before it exceeds what is left of `bytes_max`.
        """
        found: list[bytes] = []
        left = bytes_max
        await trio.lowlevel.checkpoint()
        while first <= last:
            part = self._read_cached(ledger_id, first, last, left, bool(found))
            if part is None and not (found and len(found[-1]) > left):
                try:
                    part = await self._read_storage(ledger_id, first, last, left, bool(found))
                except StorageFailed:
                    if not found:
                        raise
                    break  # a read that begins there reports it
            if not part:
                break
            found = found + part if found else part
            first += len(part)
            left -= sum(map(len, part))
            if left <= 0:
                break
        self.counters.entries_read += len(found)
        self.counters.bytes_read += bytes_max - left
        return found

    def read_at_once(self, ledger_id: int, first: int, last: int, bytes_max: int) -> list[bytes]:
        """Payloads that an earlier read has left ready in memory, or none. Plain call."""
        run = self.read_cache.find(ledger_id, first)
        if not isinstance(run, LargeEntries):
            return []
        found = run.checked_payloads(first, last, bytes_max)
        self.counters.from_read_cache += 1
        self.counters.entries_read += len(found)
        self.counters.bytes_read += sum(map(len, found))
        return found

    def _read_cached(
        self, ledger_id: int, first: int, last: int, bytes_max: int, more: bool
    ) -> list[bytes] | None:
        """None if the entry is not cached; empty if it does not fit and `more` precede it."""
        written = self._cache.find(ledger_id, first)
        run = written or self.read_cache.find(ledger_id, first)
        if run is None:
            return None
        if more and run.payload_bytes(first) > bytes_max:
            return []
        if written is not None:
            self.counters.from_write_cache += 1
            return entries.payloads(written, first, last, bytes_max)
        try:
            found = run.checked_payloads(first, last, bytes_max)
        except Corrupted:  # read as a neighbour: the index may point to an intact copy
            self.read_cache.drop(ledger_id, first)
            return None
        self.counters.from_read_cache += 1
        return found

    async def _read_storage(
        self, ledger_id: int, first: int, last: int, bytes_max: int, more: bool
    ) -> list[bytes] | None:
        """Read from an entry log, and read ahead into the read cache: the entry's neighbours in the
        log, as `SingleDirectoryDbLedgerStorage.fillReadAheadCache` of 4.18 does.

        None if `more` entries precede this one, and it is missing or does not fit.
        """
        before = self.read_cache.find(ledger_id, first - 1)
        going_on = last > first or before is not None or more
        size = self._settings.read_chunk_bytes if going_on else LONE_READ_BYTES
        neighbour = before.payload_bytes(first - 1) if before is not None else 0
        run: Run | LargeEntries | None
        if AHEAD_ENTRIES * neighbour > size:
            count = max(AHEAD_ENTRIES, min(last - first + 1, bytes_max // neighbour))
            run = await self._in_thread(self._load_large, ledger_id, first, count)
        else:
            size = max(size, min((last - first + 1) * neighbour, bytes_max, AHEAD_BYTES_MAX))
            run = await self._in_thread(self._load_opened, ledger_id, first, size)
        if run is None:
            if more:
                return None
            self._not_found(ledger_id, first)
        self.counters.from_disk += 1
        self.read_cache.put(run)
        if more and run.payload_bytes(first) > bytes_max:
            return None
        return run.checked_payloads(first, last, bytes_max)

    # -- whole entries ------------------------------------------------------------------------

    def entry_at_once(self, ledger_id: int, entry_id: int) -> bytes | None:
        """One entry if it is in memory. Plain call."""
        run = self._in_memory(ledger_id, entry_id)
        return None if run is None else self._counted(run, entry_id)

    def _in_memory(self, ledger_id: int, entry_id: int) -> Run | None:
        """A run with an entry, if there is one in memory."""
        written = self._cache.find(ledger_id, entry_id)
        if written is not None:
            self.counters.from_write_cache += 1
            return written
        run = self.read_cache.find(ledger_id, entry_id)
        if not isinstance(run, Run):
            return None
        self.counters.from_read_cache += 1
        return run

    def size_at_once(self, ledger_id: int, entry_id: int) -> int | None:
        """The size of an entry if that is in memory. Plain call."""
        run = self._cache.find(ledger_id, entry_id) or self.read_cache.find(ledger_id, entry_id)
        return entries.entry_bytes(run, entry_id) if isinstance(run, Run) else None

    async def size(self, ledger_id: int, entry_id: int) -> int:
        """The size of an entry, without reading it; `EntryNotFound` if it is not here."""
        found = self.size_at_once(ledger_id, entry_id)
        if found is None:
            read = self._storage.reader.entry_bytes
            found = await self._in_thread(self._lookup, ledger_id, entry_id, read)
        # It may have come meanwhile.
        if found is None and (found := self.size_at_once(ledger_id, entry_id)) is None:
            self._not_found(ledger_id, entry_id)
        return found

    def records_at_once(
        self, ledger_id: int, first: int, count_max: int, bytes_max: int
    ) -> tuple[bytes | memoryview, int] | None:
        """Entries in one piece, each behind its length, and their number, if the first is in
        memory: those that are together there, as far as they fit. Plain call.
        """
        run: Run | LargeEntries | None = self._cache.find(ledger_id, first)
        if run is None:
            run = self.read_cache.find(ledger_id, first)
        if not isinstance(run, Run):
            return None
        return self._counted_records(run, first, count_max, bytes_max)

    def _counted_records(
        self, run: Run, first: int, count_max: int, bytes_max: int
    ) -> tuple[bytes | memoryview, int]:
        records, count = entries.records_of(run, first, count_max, bytes_max)
        self.counters.entries_read += count
        self.counters.bytes_read += len(records)
        return records, count

    async def records(
        self, ledger_id: int, first: int, count_max: int, bytes_max: int, ahead_bytes: int
    ) -> tuple[bytes | memoryview, int]:
        """As `records_at_once`, from the disk, and with the errors of `entry`. What was read is
        passed on as it is, without a copy, if all of it fits.
        """
        run = await self._loaded(ledger_id, first, ahead_bytes)
        return self._counted_records(run, first, count_max, bytes_max)

    async def entry(self, ledger_id: int, entry_id: int, ahead_bytes: int = 0) -> bytes:
        """One entry from the disk, with its neighbours for the reader that goes on, as one does who
        asks for `ahead_bytes`.

        `EntryNotFound` if it is not here, `Corrupted` if something else is in its place.
        """
        return self._counted(await self._loaded(ledger_id, entry_id, ahead_bytes), entry_id)

    async def _loaded(self, ledger_id: int, entry_id: int, ahead_bytes: int) -> Run:
        """A run with the entry, now in the read cache."""
        going_on = self.read_cache.leads_to(ledger_id, entry_id)
        size = self._settings.read_chunk_bytes if going_on else LONE_READ_BYTES
        size = max(size, min(ahead_bytes, BATCH_BYTES_MAX))
        read = await self._in_thread(self._load_indexed, ledger_id, entry_id, size)
        if read is None:
            found = self._in_memory(ledger_id, entry_id)  # it may have come meanwhile
            if found is None:
                self._not_found(ledger_id, entry_id)
            return found
        self.counters.from_disk += 1
        self.read_cache.put(read)
        run = read.run_from(entry_id) if isinstance(read, StripedRun) else read
        assert run is not None, "it begins with the entry"
        return run

    def _counted(self, run: Run, entry_id: int) -> bytes:
        entry = entries.entry_of(run, entry_id)
        self.counters.entries_read += 1
        self.counters.bytes_read += len(entry)
        return entry

    def _load_indexed(self, ledger_id: int, entry_id: int, size: int) -> Run | StripedRun | None:
        """The entry, with the neighbours that are certainly the ones written last: a crash may have
        left others, torn, behind it. Those with a CRC32C prove themselves; of others the index says
        where they are. In a thread.
        """
        read = self._storage.reader.read_neighbours

        def load(location: int) -> Run | StripedRun:
            run = read(ledger_id, entry_id, location, size)
            if isinstance(run, StripedRun):
                count = run.count_intact() or self._count_indexed(run, run.entry_ids, location)
                return run if count == run.count else run.cut(count)
            entry_ids = range(run.first, run.last + 1)
            count = entries.count_intact(run) or self._count_indexed(run, entry_ids, location)
            return run if count == run.count else entries.cut(run, count)

        return self._lookup(ledger_id, entry_id, load)

    def _count_indexed(self, run: Run | StripedRun, entry_ids: Sequence[int], location: int) -> int:
        """How many entries of the run, at least one, are where the index says."""
        count = 1
        for entry_id, found in self._storage.locations.locations(run.ledger_id, run.first + 1):
            if count == run.count or entry_id != entry_ids[count]:
                break
            if found != location + run.offsets[count]:
                break
            count += 1
        return count

    async def last_id(self, ledger_id: int) -> int:
        """The id of the last entry stored here, -1 if there is none."""
        last = self._cache.last(ledger_id)
        indexed = await self._in_thread(self._storage.locations.last, ledger_id)
        if indexed is not None:
            last = max(last, indexed[0])
        # Entries may have moved from the cache to the index while the index was read.
        return max(last, self._cache.last(ledger_id))

    async def entry_ids(self, ledger_id: int, take: Callable[[Iterator[int]], Result]) -> Result:
        """What `take` makes of the ids of all entries of a ledger, in order. It is called in a
        thread, for one ledger at a time: there may be millions.
        """
        return await self._lister.run(self._take_ids, ledger_id, take)

    def _take_ids(self, ledger_id: int, take: Callable[[Iterator[int]], Result]) -> Result:
        # The cache first: entries may move from there to the index meanwhile.
        runs = self._threads.call_and_wait(self._cache.runs, ledger_id)
        indexed = (entry_id for entry_id, _ in self._storage.locations.locations(ledger_id))
        try:
            return take(self._breathing(merge(_ids_in(runs), indexed)))
        except OSError as error:
            raise StorageFailed(f"the disk cannot be read: {error}") from error

    def _breathing(self, entry_ids: Iterable[int]) -> Iterator[int]:
        """Each once, with pauses of the thread, in which the loop runs."""
        last = -1
        for count, entry_id in enumerate(entry_ids):
            if count % IDS_PER_BREATH == 0:
                self._storage.pause()
            if entry_id > last:
                yield entry_id
                last = entry_id

    def _not_found(self, ledger_id: int, entry_id: int) -> NoReturn:
        if self._states.is_deleted(ledger_id):
            raise LedgerNotFound(f"ledger {ledger_id} is deleted")
        # Recovery concludes from this error that the entry was never written (BP-46), so a
        # damaged entry must raise another one.
        raise EntryNotFound(f"there is no entry {ledger_id}:{entry_id}")

    # These run in a thread.

    def _load_large(self, ledger_id: int, entry_id: int, count: int) -> LargeEntries | None:
        """Read several entries, which are expected to be large as the one before is."""
        read = self._storage.reader.read_large
        size = max(self._settings.read_chunk_bytes, AHEAD_BYTES_MAX)
        return self._lookup(
            ledger_id, entry_id, lambda at: read(ledger_id, entry_id, at, count, size)
        )

    def _load_opened(self, ledger_id: int, entry_id: int, size: int) -> Run | LargeEntries | None:
        run = self._load(ledger_id, entry_id, size)
        return None if run is None else split_large(run)

    def _load(self, ledger_id: int, entry_id: int, size: int) -> Run | None:
        read = self._storage.reader.read
        return self._lookup(ledger_id, entry_id, lambda at: read(ledger_id, entry_id, at, size))

    def _lookup(
        self, ledger_id: int, entry_id: int, read: Callable[[int], Result]
    ) -> Result | None:
        """Call `read` with the entry's location; None if it has none."""
        location = self._location(ledger_id, entry_id)
        if location is None:
            return None
        try:
            return read(location)
        except FileNotFoundError:
            # Compaction moved the entry between the two steps. It moves an entry once.
            location = self._location(ledger_id, entry_id)
            if location is None:
                return None
        try:
            return read(location)
        except FileNotFoundError as error:
            raise Corrupted(f"the entry log of {ledger_id}:{entry_id} is missing") from error

    def _location(self, ledger_id: int, entry_id: int) -> int | None:
        try:
            return self._storage.locations.find(ledger_id, entry_id)
        except Corrupted as error:
            # The entry itself is intact: the next start rebuilds the index.
            raise StorageFailed(f"the index is damaged, a restart rebuilds it: {error}") from error

    async def damage(self, ledger_id: int, entry_id: int, last: int) -> tuple[int, int]:
        """The first and last of the unreadable entries around this one."""

        def is_cached(entry_id: int) -> bool:
            found = self._threads.call_and_wait(self._cache.find, ledger_id, entry_id)
            return found is not None

        damaged = DamagedRange(self._storage, ledger_id, is_cached)
        return await self._in_thread(damaged.around, entry_id, last)

    async def last_entry(self, ledger_id: int) -> DigestHeader | None:
        """The header of the last entry stored here; None if there is no entry.

        A recovery must end the ledger there even if that entry is damaged. Its length is then taken
        from the last intact entry before it.
        """
        last = await self.last_id(ledger_id)
        if last < 0:
            return None
        try:
            return await self._header(ledger_id, last)
        except Corrupted as error:
            log.error("ledger %d ends in damage: %s", ledger_id, error)
        first, _ = await self.damage(ledger_id, last, last)
        if first == 0:
            return DigestHeader(ledger_id, last, last, 0)
        before = await self._header(ledger_id, first - 1)
        return DigestHeader(ledger_id, last, last, before.length)

    async def _header(self, ledger_id: int, entry_id: int) -> DigestHeader:
        run = self._cache.find(ledger_id, entry_id)
        if run is None:
            run = await self._in_thread(self._load, ledger_id, entry_id, LONE_READ_BYTES)
            if run is None:
                raise Corrupted(f"entry {ledger_id}:{entry_id} is indexed and gone")
            run.checked_payloads(entry_id, entry_id, 1)
        return entries.header_of(run, entry_id)

    async def _in_thread(
        self, read: Callable[[Unpack[Arguments]], Result], *arguments: *Arguments
    ) -> Result:
        try:
            return await self._readers.run(read, *arguments)
        except OSError as error:
            raise StorageFailed(f"the disk cannot be read: {error}") from error


def _ids_in(runs: list[Run]) -> Iterator[int]:
    """The ids of entries of runs, in order, each once."""
    reached = 0
    for run in sorted(runs, key=attrgetter("first")):
        yield from range(max(run.first, reached), run.last + 1)
        reached = max(reached, run.last + 1)
