"""The ledgers of a bookie for clients over the network, which are not trusted.

Apache's protocol creates a ledger with its first add, whose master key becomes the ledger's
(`HandleFactoryImpl.java`, `LedgerDescriptorImpl.checkAccess` of 4.18). What a client may do:

    add            with the key, and unless the ledger is fenced
    recovery add   with the key, fenced or not: it writes again what a writer may have written
    fence          with the key; durable before anything is said about the ledger's entries
    explicit LAC   with the key
    reading        anybody

A key has 20 bytes, as all that clients make: a SHA-1 (`DigestManager.generateMasterKey`). Apache's
bookie takes keys of any length in version 3, and holds them for each ledger in use.

The bookie never looks at digests, and learns the LAC from the entries and the explicit LAC.

Invariants: the key of a ledger changes only while it is empty or all zeros; "no such ledger" is
said only if there is no row and no entry of it; the LAC that is told never goes back
behind what is stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from itertools import islice
from struct import Struct
from typing import Final, TypeVar

from magnetar.bookie.format import entries
from magnetar.bookie.format.entries import Run
from magnetar.bookie.server.bookie import Bookie
from magnetar.bookie.server.ledgers.lac_waiters import LacWaiters
from magnetar.bookie.server.ledgers.states import UNKNOWN_LAC, LedgerState
from magnetar.core.kernel.clock import Clock
from magnetar.core.kernel.errors import (
    BrokerError,
    EntryNotFound,
    Fenced,
    Invalid,
    LedgerNotFound,
    StorageFull,
    Unauthorized,
)
from magnetar.core.ports.ledger_store import Done

Result = TypeVar("Result")

LEDGERS_MAX: Final = 20_000
"""Ledgers in use at once; of more, the oldest are forgotten, and read again from their rows."""
FORGOTTEN_AT_ONCE: Final = 64
KEY_BYTES: Final = 20
LAC_PACKET_BYTES_MIN: Final = 16
LAC_PACKET_BYTES_MAX: Final = 64
"""Two ids and the longest digest, that of HMAC-SHA1, take 36."""

_lac_packet = Struct(">qq").unpack_from


class ServedLedgers:
    """See the module's docstring. Plain calls on the loop, but for those that read the disk."""

    def __init__(self, bookie: Bookie, clock: Clock, spare_bytes: int) -> None:
        """`spare_bytes` of a disk that is too full are for recovery adds."""
        self.waiters = LacWaiters()
        self.read_only = False
        """Whether an operator wants no more adds of writers."""
        self._bookie = bookie
        self._states = bookie.states
        self._lookup = bookie.lookup
        self._clock = clock
        self.spare_bytes = spare_bytes

    @property
    def writable(self) -> bool:
        """Whether writers may add entries."""
        return self._bookie.writable and not self.read_only

    # -- writing ------------------------------------------------------------------------------

    def add(
        self,
        run: Run,
        master_key: bytes,
        acked: Done,
        *,
        recovery: bool = False,
        urgent: bool = False,
    ) -> None:
        """Store a run; `acked` is called once, on the loop, unless this raises. `urgent` adds may
        use what is left of a disk that is too full.
        """
        if run.ledger_id < 0 or run.first < 0:
            # A negative entry id would be a note in the journal, such as a fence.
            raise Invalid(f"an entry {run.ledger_id}:{run.first} cannot exist")
        if self.read_only and not urgent:
            raise StorageFull("this bookie is read-only")
        self._bookie.check_room(self.spare_bytes if urgent else -1)
        state = self._admitted(run.ledger_id, master_key)
        if state.fenced and not recovery:
            raise Fenced(f"ledger {run.ledger_id} is fenced")
        if not state.keyed:
            state.other_digest = state.other_digest or not entries.has_crc32c(run)
        self._bookie.add(run, master_key, acked, state)
        lac = entries.last_confirmed_in(run)
        if lac > state.lac:
            self._advance(run.ledger_id, state, lac)

    def _advance(self, ledger_id: int, state: LedgerState, lac: int) -> None:
        if state.lac == UNKNOWN_LAC:
            state.heard_lac = max(state.heard_lac, lac)
        else:
            state.lac = lac
        state.lac_ms = self._clock.wall_ms()
        self.waiters.advanced(ledger_id, lac)

    def _admitted(self, ledger_id: int, master_key: bytes) -> LedgerState:
        """The state of a ledger whose key this is; the ledger is made if there is none."""
        if len(master_key) != KEY_BYTES:
            raise Unauthorized(f"ledger {ledger_id} cannot have a key of {len(master_key)} bytes")
        state = self._states.in_use.get(ledger_id) or self._touch(ledger_id, master_key)
        if state.master_key != master_key:
            if any(state.master_key):
                raise Unauthorized(f"ledger {ledger_id} has another master key")
            state.master_key, state.keyed = master_key, False
        return state

    def _touch(self, ledger_id: int, master_key: bytes) -> LedgerState:
        in_use = self._states.in_use
        if len(in_use) >= LEDGERS_MAX:
            for old, state in list(islice(in_use.items(), FORGOTTEN_AT_ONCE)):
                if state.stored and not state.fences_waiting:
                    self._states.release(old)
        return self._states.touch(ledger_id, master_key)

    def fence(self, ledger_id: int, master_key: bytes, done: Done) -> None:
        """Refuse all further adds but those of a recovery; `done` is called when that is durable,
        at once if it is known to be. A recovery fences with each of its reads.
        """
        if ledger_id < 0:
            raise Invalid(f"a ledger {ledger_id} cannot exist")
        self._bookie.check_alive()
        state = self._admitted(ledger_id, master_key)
        if state.fence_synced:
            done(None)
            return
        state.fences_waiting += 1
        self._states.write_fence(ledger_id, state, partial(self._fenced, ledger_id, state, done))

    def _fenced(
        self, ledger_id: int, state: LedgerState, done: Done, error: BrokerError | None
    ) -> None:
        state.fences_waiting -= 1
        if error is None:
            state.fence_synced = True
            self.waiters.ended(ledger_id)
        done(error)

    def write_lac(self, ledger_id: int, master_key: bytes, packet: bytes, done: Done) -> None:
        """Store an explicit LAC, as its client packed it; `done` is called when it is durable."""
        if ledger_id < 0 or not LAC_PACKET_BYTES_MIN <= len(packet) <= LAC_PACKET_BYTES_MAX:
            raise Invalid(f"an explicit LAC of {len(packet)} bytes")
        named, lac = _lac_packet(packet)
        if named != ledger_id:
            raise Invalid(f"the explicit LAC of ledger {ledger_id} is that of ledger {named}")
        if self.read_only:
            raise StorageFull("this bookie is read-only")
        self._bookie.check_room()
        state = self._admitted(ledger_id, master_key)
        known = _lac_packet(state.explicit_lac)[1] if state.explicit_lac else UNKNOWN_LAC
        if lac >= known:
            state.explicit_lac = packet
        self._states.write_explicit_lac(ledger_id, state, done)
        if lac > state.lac:
            self._advance(ledger_id, state, lac)

    def force(self, done: Done) -> None:
        """Call `done` when everything that was added so far is durable."""
        self._bookie.check_alive()
        self._states.write_note(b"", done)

    # -- reading ------------------------------------------------------------------------------

    def known(self, ledger_id: int) -> LedgerState:
        """The state of a ledger that is stored here; `LedgerNotFound` if none is."""
        state = self._states.in_use.get(ledger_id)
        if state is None:
            if self._states.is_deleted(ledger_id) or self._states.row(ledger_id) is None:
                raise LedgerNotFound(f"there is no ledger {ledger_id}")
            state = self._touch(ledger_id, b"")
        return state

    def entry_at_once(self, ledger_id: int, entry_id: int) -> bytes | None:
        """The entry if it is in memory. Plain call."""
        return self._lookup.entry_at_once(ledger_id, entry_id)

    def size_at_once(self, ledger_id: int, entry_id: int) -> int | None:
        """The size of an entry if that is in memory. Plain call."""
        return self._lookup.size_at_once(ledger_id, entry_id)

    async def size(self, ledger_id: int, entry_id: int) -> int:
        """The size of an entry, without reading it; `EntryNotFound` if it is not here."""
        return await self._lookup.size(ledger_id, entry_id)

    def records_at_once(
        self, ledger_id: int, first: int, count_max: int, bytes_max: int
    ) -> tuple[bytes | memoryview, int] | None:
        """Entries that are together in memory, each behind its length, and their number."""
        return self._lookup.records_at_once(ledger_id, first, count_max, bytes_max)

    async def records(
        self, ledger_id: int, first: int, count_max: int, bytes_max: int, ahead_bytes: int
    ) -> tuple[bytes | memoryview, int]:
        """The same from the disk, perhaps none; `EntryNotFound` as of `entry`."""
        return await self._lookup.records(ledger_id, first, count_max, bytes_max, ahead_bytes)

    async def entry(self, ledger_id: int, entry_id: int, ahead_bytes: int = 0) -> bytes:
        """One entry from the disk; `EntryNotFound` only if it was certainly never added."""
        return await self._lookup.entry(ledger_id, entry_id, ahead_bytes)

    async def last_id(self, ledger_id: int) -> int:
        """The id of the last entry that was added; `EntryNotFound` if there is none."""
        last = await self._lookup.last_id(ledger_id)
        if last < 0:
            raise EntryNotFound(f"ledger {ledger_id} has no entry here")
        return last

    async def last_entry(self, ledger_id: int) -> bytes:
        """The last entry that was added; `EntryNotFound` if there is none."""
        last = await self.last_id(ledger_id)
        entry = self._lookup.entry_at_once(ledger_id, last)
        return entry if entry is not None else await self._lookup.entry(ledger_id, last)

    async def lac(self, ledger_id: int) -> int:
        """The LAC; once since the start it is looked for in the last entry and the explicit LAC, of
        which either may be missing. -1 for a ledger with neither.
        """
        state = self.known(ledger_id)
        if state.lac == UNKNOWN_LAC:
            found = -1
            with suppress(EntryNotFound):
                found = entries.last_confirmed_of(await self.last_entry(ledger_id))
            if state.explicit_lac:
                found = max(found, _lac_packet(state.explicit_lac)[1])
            state.lac = max(state.lac, state.heard_lac, found)
        return state.lac

    async def entry_ids(self, ledger_id: int, take: Callable[[Iterator[int]], Result]) -> Result:
        """What `take` makes, in a thread, of the ids of all entries of a ledger here, in order."""
        self.known(ledger_id)
        return await self._lookup.entry_ids(ledger_id, take)
