"""One bookie: adds runs of entries, reads them, fences ledgers. It does not know clients.

The path of an entry: `add` puts it into the write cache, then into the journal's next group, as
`BookieImpl.addEntryInternal` of BookKeeper 4.18 does; the group is synced, and `acked` is called; a
checkpoint moves the entry from the cache to an entry log and the index. A read looks into the write
cache, the read cache and the entry log, in this order.

Invariants: nothing is acknowledged before its sync; a ledger's key is journalled before its first
entry since the start; a fenced ledger never accepts another entry; `EntryNotFound` is raised only
if it is certain. After a storage failure nothing is accepted.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar, TypeVarTuple, Unpack

import trio

from magnetar.bookie.format import entries
from magnetar.bookie.format import journal as journal_format
from magnetar.bookie.format.entries import DigestHeader, Run
from magnetar.bookie.format.ledger_row import LedgerRow
from magnetar.bookie.server.cache.large_entries import LargeEntries, split_large
from magnetar.bookie.server.cache.read_cache import ReadCache
from magnetar.bookie.server.cache.write_cache import WriteCache
from magnetar.bookie.server.checkpoint import Checkpointer
from magnetar.bookie.server.damage import DamagedRange
from magnetar.bookie.server.journal.writer import Journal
from magnetar.bookie.server.ledger_storage import LedgerStorage
from magnetar.bookie.server.settings import BookieSettings
from magnetar.core.kernel.completion import Completion
from magnetar.core.kernel.errors import (
    Corrupted,
    EntryNotFound,
    Fenced,
    LedgerNotFound,
    Overloaded,
    StorageFailed,
    StorageFull,
)
from magnetar.core.ports.ledger_store import Done

log = logging.getLogger(__name__)

Result = TypeVar("Result")
Arguments = TypeVarTuple("Arguments")

LONE_READ_BYTES = 16 * 1024
"""Bytes read from an entry log if nothing suggests that the reader will go on."""
AHEAD_ENTRIES = 8
AHEAD_BYTES_MAX = 8 * 1024 * 1024
"""Large entries are read this many at once, up to this many bytes: handing a read to a thread
takes as long as reading half a megabyte.
"""
DELETED_MAX = 100_000
"""Deleted ledgers whose ids are remembered. Ledgers deleted before those have long left memory; the
next garbage collection removes what a late writer adds to one of them.
"""


class LedgerState:
    """A ledger in use here."""

    __slots__ = ("fenced", "keyed", "master_key")

    def __init__(self, master_key: bytes, *, fenced: bool) -> None:
        self.master_key = master_key
        self.fenced = fenced
        self.keyed = False
        """Whether its key has gone to the journal since the start."""


class Counters:
    """Plain integers, summed on the loop."""

    __slots__ = (
        "bytes_added", "bytes_read", "entries_added", "entries_read",
        "from_disk", "from_read_cache", "from_write_cache",
    )  # fmt: skip

    def __init__(self) -> None:
        self.entries_added = self.bytes_added = self.entries_read = self.bytes_read = 0
        self.from_write_cache = self.from_read_cache = self.from_disk = 0


class Bookie:
    """See the module's docstring."""

    def __init__(
        self,
        settings: BookieSettings,
        storage: LedgerStorage,
        journal: Journal,
        cache: WriteCache,
        checkpointer: Checkpointer,
        wake: Callable[[], None],
    ) -> None:
        """`wake` is called when the first append waits for the journal, to hand it over soon."""
        self.counters = Counters()
        self.failed: StorageFailed | None = None
        self._wake = wake
        self._settings = settings
        self._storage = storage
        self._journal = journal
        self._cache = cache
        self._checkpointer = checkpointer
        self._disk = checkpointer.disk
        self.read_cache = ReadCache(settings.read_cache_bytes)
        self._ledgers: dict[int, LedgerState] = {}
        self._threads = storage.machine.threads
        self._readers = self._threads.workers(settings.read_threads_max, abandon=True)

    # -- adding -------------------------------------------------------------------------------

    async def create(self, ledger_id: int, master_key: bytes) -> None:
        """Create a ledger with a new id; `AlreadyExists` if the bookie has had that id before.

        A metadata store that was set back may assign an id again, and the old ledger's entries must
        not become the new one's.
        """
        await self._storage.ids.take(ledger_id)
        self._ledgers[ledger_id] = LedgerState(master_key, fenced=False)

    def add(self, run: Run, master_key: bytes, acked: Done) -> None:
        """Store a run; `acked` is called once, on the loop, when it is durable or has failed.

        Raises instead if the run is refused. Plain call.
        """
        ledger_id = run.ledger_id
        state = self._ledgers.get(ledger_id)
        if state is None:
            if self._row(ledger_id) is None:
                raise Fenced(f"ledger {ledger_id} was not made here")
            state = self._touch(ledger_id, master_key)
        if state.fenced:
            raise Fenced(f"ledger {ledger_id} is fenced")
        self._check_room()
        if not state.keyed:
            self._journal_key(ledger_id, state)
        # The cache first, the journal second: `checkpoint.py` says why.
        if self._cache.put(run):
            self._checkpointer.request()
        if self._journal.append(run.blob, acked, run.apart):
            self._wake()
        self.counters.entries_added += run.count
        self.counters.bytes_added += run.size

    def _check_room(self) -> None:
        failed = self.failed or self._journal.failed
        if failed is not None:
            raise failed
        if not self._disk.writable:
            raise StorageFull(f"the disk is {self._disk.usage.used_part:.0%} full")
        burst = 2 * self._settings.burst_bytes_max
        queue = self._journal.queue_bytes - self._settings.journal_queue_bytes_max
        if queue > burst or self._cache.is_over(burst):
            raise Overloaded("storage has more waiting than it may hold")

    @property
    def congested(self) -> bool:
        """More arrives than the disk can take: connections should wait.

        Apache's bookie makes the adding thread sleep instead
        (`SingleDirectoryDbLedgerStorage.triggerFlushAndAddEntry` of 4.18).
        """
        return self._cache.is_congested or (
            self._journal.queue_bytes > self._settings.journal_queue_bytes_max
        )

    def _touch(self, ledger_id: int, master_key: bytes) -> LedgerState:
        """Bring a ledger into use, with the state in its row, if it has one."""
        if ledger_id in self._checkpointer.deleted:
            raise Fenced(f"ledger {ledger_id} is deleted")
        row = self._row(ledger_id)
        if row is None:
            state = LedgerState(master_key, fenced=False)
        else:
            # A fence that came before any entry has left the key empty.
            state = LedgerState(row.master_key or master_key, fenced=row.fenced)
        self._ledgers[ledger_id] = state
        return state

    def _row(self, ledger_id: int) -> LedgerRow | None:
        return self._checkpointer.row(ledger_id) or self._storage.ledgers.find(ledger_id)

    def _journal_key(self, ledger_id: int, state: LedgerState) -> None:
        self._checkpointer.rows[ledger_id] = LedgerRow(state.master_key, state.fenced)
        if self._journal.append(journal_format.key_note(ledger_id, state.master_key), None):
            self._wake()
        state.keyed = True

    async def fence(self, ledger_id: int, master_key: bytes) -> None:
        """Refuse all further entries of a ledger; durable when this returns.

        Like `LedgerDescriptorImpl.fenceAndLogInJournal` of 4.18; but there is no shortcut for a
        ledger that is fenced already: a second note costs little, and needs no state.
        """
        state = self._ledgers.get(ledger_id) or self._touch(ledger_id, master_key)
        failed = self.failed or self._journal.failed
        if failed is not None:
            raise failed
        state.fenced = True
        if not state.keyed:
            self._journal_key(ledger_id, state)
        self._checkpointer.rows[ledger_id] = LedgerRow(state.master_key, fenced=True)
        waiting = Completion[None]()
        if self._journal.append(journal_format.fence_note(ledger_id), waiting.done):
            self._wake()
        await waiting.result()

    def release(self, ledger_id: int) -> None:
        """Forget the state of a ledger without a writer: its row has all of it."""
        self._ledgers.pop(ledger_id, None)

    # -- reading ------------------------------------------------------------------------------

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
            self.read_cache.drop(run)
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
        load = self._load_large if AHEAD_ENTRIES * neighbour > size else self._load_opened
        size = max(size, min((last - first + 1) * neighbour, bytes_max, AHEAD_BYTES_MAX))
        run = await self._in_thread(load, ledger_id, first, size)
        if run is None:
            if more:
                return None
            if ledger_id in self._checkpointer.deleted:
                raise LedgerNotFound(f"ledger {ledger_id} is deleted")
            # Recovery concludes from this error that the entry was never written (BP-46), so a
            # damaged entry must raise another one.
            raise EntryNotFound(f"there is no entry {ledger_id}:{first}")
        self.counters.from_disk += 1
        self.read_cache.put(run)
        if more and run.payload_bytes(first) > bytes_max:
            return None
        return run.checked_payloads(first, last, bytes_max)

    # These run in a thread.

    def _load_large(self, ledger_id: int, entry_id: int, size: int) -> LargeEntries | None:
        """Read several entries, which are expected to be large as the one before is."""
        read, size = self._storage.reader.read_large, max(size, AHEAD_BYTES_MAX)
        return self._lookup(
            ledger_id, entry_id, lambda at: read(ledger_id, entry_id, at, AHEAD_ENTRIES, size)
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
        last = self._cache.last(ledger_id)
        indexed = await self._in_thread(self._storage.locations.last, ledger_id)
        if indexed is not None:
            last = max(last, indexed[0])
        # Entries may have moved from the cache to the index while the index was read.
        last = max(last, self._cache.last(ledger_id))
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

    # -- failing and deleting -----------------------------------------------------------------

    def fail(self, reason: str) -> None:
        """Accept no more appends; the first reason is the one reported."""
        self.failed = self.failed or StorageFailed(reason)

    def deleted(self, ledger_id: int) -> None:
        """Stop storing a ledger that has left the metadata store."""
        deleted = self._checkpointer.deleted
        deleted[ledger_id] = None
        if len(deleted) > DELETED_MAX:
            del deleted[next(iter(deleted))]
        self._checkpointer.rows.pop(ledger_id, None)
        self.read_cache.forget(ledger_id)
        self._ledgers.pop(ledger_id, None)  # a later add is refused in `_touch`
