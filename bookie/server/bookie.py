"""One bookie: adds runs of entries, reads them, fences ledgers. It does not know clients.

The path of an entry: `add` puts it into the write cache, then into the journal's next group, as
`BookieImpl.addEntryInternal` of BookKeeper 4.18 does; the group is synced, and `acked` is called; a
checkpoint moves the entry from the cache to an entry log and the index. A read looks into the write
cache, the read cache and the entry log, in this order (`entry_lookup.py`).

`add`, `fence` and `read` serve the ledger client in this process, which is trusted;
`ledgers/served.py` is for clients over the network.

Invariants: nothing is acknowledged before its sync; a ledger's key is journalled before its first
entry since the start; a fenced ledger never accepts another entry, except from a client that
recovers it. After a storage failure nothing is accepted.
"""

from __future__ import annotations

from collections.abc import Callable

from magnetar.bookie.format.entries import Run
from magnetar.bookie.server.cache.write_cache import WriteCache
from magnetar.bookie.server.checkpoint import Checkpointer
from magnetar.bookie.server.entry_lookup import EntryLookup
from magnetar.bookie.server.journal.writer import Journal
from magnetar.bookie.server.ledger_storage import LedgerStorage
from magnetar.bookie.server.ledgers.states import LedgerState, LedgerStates
from magnetar.bookie.server.settings import BookieSettings
from magnetar.bookie.server.statistics import Counters
from magnetar.core.kernel.completion import Completion
from magnetar.core.kernel.errors import Fenced, Overloaded, StorageFailed, StorageFull
from magnetar.core.ports.ledger_store import Done


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
        self.states = LedgerStates(storage, journal, checkpointer, wake)
        self.lookup = lookup = EntryLookup(settings, storage, cache, self.states, self.counters)
        self.read, self.read_at_once = lookup.read, lookup.read_at_once
        self.damage, self.last_entry = lookup.damage, lookup.last_entry
        self.read_cache = lookup.read_cache
        self.release = self.states.release
        self._wake = wake
        self._settings = settings
        self._storage = storage
        self._journal = journal
        self._cache = cache
        self._checkpointer = checkpointer
        self._disk = checkpointer.disk
        self._ledgers = self.states.in_use

    # -- adding -------------------------------------------------------------------------------

    async def create(self, ledger_id: int, master_key: bytes) -> None:
        """Create a ledger with a new id; `AlreadyExists` if the bookie has had that id before.

        A metadata store that was set back may assign an id again, and the old ledger's entries must
        not become the new one's.
        """
        await self._storage.ids.take(ledger_id)
        self._ledgers[ledger_id] = LedgerState(master_key, fenced=False)

    def add(
        self, run: Run, master_key: bytes, acked: Done, admitted: LedgerState | None = None
    ) -> None:
        """Store a run; `acked` is called once, on the loop, when it is durable or has failed.

        Raises instead if the run is refused. Plain call. `admitted` is the ledger's state if it was
        checked already that this client may add.
        """
        ledger_id = run.ledger_id
        state = admitted or self._ledgers.get(ledger_id)
        if state is None:
            if self.states.row(ledger_id) is None:
                raise Fenced(f"ledger {ledger_id} was not made here")
            state = self.states.touch(ledger_id, master_key)
        if admitted is None:
            if state.fenced:
                raise Fenced(f"ledger {ledger_id} is fenced")
            self.check_room()
        if not state.keyed:
            self.states.write_key(ledger_id, state)
        # The cache first, the journal second: `checkpoint.py` says why.
        if self._cache.put(run):
            self._checkpointer.request()
        blob, apart, counters = run.blob, run.apart, self.counters
        if self._journal.append(blob, acked, apart):
            self._wake()
        counters.entries_added += run.count
        counters.bytes_added += len(blob) + len(apart)

    def check_room(self, spare_bytes: int = -1) -> None:
        """Raise if nothing can be accepted now. With `spare_bytes`, a disk that is too full is good
        enough as long as it has so many left.
        """
        failed = self.failed or self._journal.failed
        if failed is not None:
            raise failed
        disk = self._disk
        if not disk.writable and not 0 <= spare_bytes <= disk.spare_bytes:
            raise StorageFull(f"the disk is {disk.usage.used_part:.0%} full")
        burst = 2 * self._settings.burst_bytes_max
        queue = self._journal.queue_bytes - self._settings.journal_queue_bytes_max
        if queue > burst or self._cache.is_over(burst):
            raise Overloaded("storage has more waiting than it may hold")

    def check_alive(self) -> None:
        """Raise after a storage failure."""
        failed = self.failed or self._journal.failed
        if failed is not None:
            raise failed

    @property
    def writable(self) -> bool:
        """False when the disk is too full, or has failed."""
        return self._disk.writable and self._journal.failed is None and self.failed is None

    @property
    def congested(self) -> bool:
        """More arrives than the disk can take: connections should wait.

        Apache's bookie makes the adding thread sleep instead
        (`SingleDirectoryDbLedgerStorage.triggerFlushAndAddEntry` of 4.18).
        """
        return self._cache.is_congested or (
            self._journal.queue_bytes > self._settings.journal_queue_bytes_max
        )

    async def fence(self, ledger_id: int, master_key: bytes) -> None:
        """Refuse all further entries of a ledger; durable when this returns.

        Like `LedgerDescriptorImpl.fenceAndLogInJournal` of 4.18; but there is no shortcut for a
        ledger that is fenced already: a second note costs little, and needs no state.
        """
        state = self._ledgers.get(ledger_id) or self.states.touch(ledger_id, master_key)
        self.check_alive()
        waiting = Completion[None]()
        self.states.write_fence(ledger_id, state, waiting.done)
        await waiting.result()

    # -- failing and deleting -----------------------------------------------------------------

    def fail(self, reason: str) -> None:
        """Accept no more appends; the first reason is the one reported."""
        self.failed = self.failed or StorageFailed(reason)

    def deleted(self, ledger_id: int) -> None:
        """Stop storing a ledger that has left the metadata store."""
        self.states.deleted(ledger_id)
        self.read_cache.forget(ledger_id)
