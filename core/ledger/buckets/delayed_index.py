"""Which entries of a log are delayed, on the disk, so that nobody reads them before they are due.

Without it whoever attaches to a shared subscription has its whole backlog read, to find out when
each message is due. Subscriptions tell what they put aside (`note`), and ask for it where they read
on (`block`). `bucket.py` says what is stored, and why nothing of it can be wrong.

    noted --33 blocks--> being stored --> in a bucket that the log names --> loaded by who asks
      |                       |                      |
      +-- let go of -------->  nothing  <-- failed --+-- its entries have left the log

A bucket is written, sealed, and then named, so that what is named is whole. A crash before that
leaves a ledger that is noted as to be deleted (`removal.create_beside`). What is noted and not
stored is lost: 33 blocks at most, of which the entries are read.

Invariants: one bucket is written at a time; a block is stored once; what is held is bounded for all
logs together (`index_memory.py`).
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Final, TypeVar

import trio

from magnetar.core.kernel.completion import Completion
from magnetar.core.kernel.errors import BrokerError, Corrupted, Fenced, LedgerNotFound
from magnetar.core.ledger.buckets import bucket
from magnetar.core.ledger.buckets.bucket import (
    BLOCK_BITS,
    PLACE_MASK,
    BlockKey,
    Bucket,
    DelayedBlock,
)
from magnetar.core.ledger.ledger_owner import open_own
from magnetar.core.ledger.log import removal
from magnetar.core.ledger.write_failure_log import log_name

if TYPE_CHECKING:
    from magnetar.core.ledger.log.chain import Position
    from magnetar.core.ledger.log.managed_ledger import ManagedLedger
    from magnetar.core.ledger.storage import Storage

log = logging.getLogger(__name__)
Found = TypeVar("Found")

NOTED_BLOCKS: Final = 32
"""Blocks that make a bucket: 30,000 entries, which take a fifth of a second to read."""
BUCKETS_MAX: Final = 1_000
"""Of one log, in a record of 40 KB: two billion delayed entries. Others are not indexed."""
READ_BYTES: Final = 256 * 1024
_NOTED: Final = -1
"""What is held and not stored; a bucket is named by its ledger."""
_NO_BLOCK: Final[BlockKey] = (-1, -1)


class _Noted:
    """A block that is not stored."""

    __slots__ = ("due_ms", "entries")

    def __init__(self, due_ms: int) -> None:
        self.due_ms = due_ms
        self.entries = 0


class DelayedIndex:
    """See the module's docstring."""

    def __init__(self, storage: Storage, ledger: ManagedLedger) -> None:
        self._storage = storage
        self._ledger = ledger
        self._named: list[Bucket] | None = None
        """The buckets that the log names; None until somebody asks."""
        self._last = _NO_BLOCK
        """No bucket has a later block."""
        self._noted: dict[BlockKey, _Noted] = {}
        self._stored: dict[int, int] = {}
        """A bit for each block that is known to be stored, by ledger."""
        self._loaded: dict[int, dict[BlockKey, DelayedBlock]] = {}
        """The blocks of buckets that were read."""
        self._unreadable: set[int] = set()
        self._waiting: list[Callable[[], None]] = []
        """Who is told when buckets are loaded; nobody if none is being loaded."""
        self._storing = self._closed = False
        self._naming = trio.Lock()

    # -- noting -------------------------------------------------------------------------------

    def note(self, ledger_id: int, entry_ids: Sequence[int], dues_ms: Sequence[int]) -> None:
        """These entries are delayed. Plain call."""
        noted, before = self._noted, len(self._noted)
        for entry_id, due_ms in zip(entry_ids, dues_ms, strict=True):
            key = (ledger_id, entry_id >> BLOCK_BITS)
            block = noted.get(key)
            if block is None:
                if self._stored.get(ledger_id, 0) >> key[1] & 1:
                    continue
                block = noted[key] = _Noted(due_ms)
            block.due_ms = min(block.due_ms, due_ms)
            block.entries |= 1 << (entry_id & PLACE_MASK)
        if len(noted) == before:
            return
        self._storage.index_memory.holds(self, _NOTED, len(noted))
        if len(noted) > NOTED_BLOCKS and not self._storing:
            self._storing = True
            self._storage.spawn(self._store)

    def let_go(self, what: int) -> None:
        """Other logs need the memory."""
        if what == _NOTED:
            self._noted.clear()
        else:
            self._loaded.pop(what, None)

    def close(self, ledger: ManagedLedger) -> None:
        """A log is unloaded; that is nothing if it is a shadow of this one."""
        if ledger is not self._ledger:
            return
        self._closed = True
        for what in (_NOTED, *self._loaded):
            self._storage.index_memory.holds(self, what, 0)
        self._noted.clear()
        self._loaded.clear()

    # -- asking -------------------------------------------------------------------------------

    def reaches(self, position: Position) -> bool:
        """Whether an entry from there on may have been stored."""
        if self._named is None:
            self._find_named()
        return (position[0], position[1] >> BLOCK_BITS) <= self._last

    def _find_named(self) -> list[Bucket]:
        if self._named is None:
            try:
                self._now(bucket.buckets_of(self._ledger.properties))
            except BrokerError as error:
                log.error("%s: has no index of delayed entries: %s", self._log_name, error)
                self._now([])
        return self._named or []

    def _now(self, named: list[Bucket]) -> None:
        self._named = named
        self._last = max((one.last for one in named), default=_NO_BLOCK)

    def is_loaded(self, key: BlockKey, loaded: Callable[[], None]) -> bool:
        """Whether all is in memory that is stored of that block. If not, it is read, and `loaded`
        is called then. Plain call.
        """
        missing = []
        for one in self._covering(key):
            if one.ledger_id in self._loaded:
                self._storage.index_memory.used(self, one.ledger_id)
            elif one.ledger_id not in self._unreadable:
                missing.append(one)
        if not missing:
            return True
        if not self._waiting:
            self._storage.spawn(self._load, missing)
        if loaded not in self._waiting:
            self._waiting.append(loaded)
        return False

    def _covering(self, key: BlockKey) -> list[Bucket]:
        return [one for one in self._find_named() if one.first <= key <= one.last]

    def block(self, key: BlockKey) -> DelayedBlock | None:
        """What is stored of a block, which `is_loaded`; None if that is nothing."""
        for one in self._covering(key):
            found = self._loaded.get(one.ledger_id, {}).get(key)
            if found is not None:
                return found
        return None

    # -- reading buckets ----------------------------------------------------------------------

    async def _load(self, buckets: Sequence[Bucket]) -> None:
        """The task that reads buckets; what cannot be read is as if it had not been written."""
        try:
            for one in buckets:
                blocks = await self._readable(one, self._blocks_of)
                if blocks is not None and not self._closed:
                    self._took(one, blocks)
            await self.forget_what_left()
        except BrokerError as error:
            self._failed(error)
        finally:
            waiting, self._waiting = self._waiting, []
            for loaded in waiting:
                loaded()

    async def _readable(
        self, one: Bucket, read: Callable[[Bucket], Awaitable[Found]]
    ) -> Found | None:
        """What is read of a bucket; None if it cannot be. One that is lost is named no more."""
        try:
            return await read(one)
        except BrokerError as error:
            self._unreadable.add(one.ledger_id)
            log.error(
                "%s: the index of delayed entries in ledger %d cannot be read, so these are: %s",
                self._log_name, one.ledger_id, error,
            )  # fmt: skip
            if isinstance(error, LedgerNotFound | Corrupted):
                await self._name((), [one])
        return None

    def _failed(self, error: BrokerError) -> None:
        """Nothing is lost by it: what is not in the index is read."""
        if not isinstance(error, Fenced):  # else it is another owner's, or unloaded
            log.warning("%s: delayed entries are not indexed: %s", self._log_name, error)

    async def _blocks_of(self, one: Bucket) -> dict[BlockKey, DelayedBlock]:
        blocks: dict[BlockKey, DelayedBlock] = {}
        for entry in await self._entries(one):
            blocks.update((block.key, block) for block in bucket.decoded(entry))
            await trio.lowlevel.checkpoint()
        return blocks

    async def _entries(self, one: Bucket) -> list[bytes]:
        reader = await open_own(self._storage.ledgers, one.ledger_id, self._ledger.name)
        entries: list[bytes] = []
        while len(entries) <= reader.last_confirmed:
            entries += await reader.read(len(entries), reader.last_confirmed, READ_BYTES)
        return entries

    def _took(self, one: Bucket, blocks: dict[BlockKey, DelayedBlock]) -> None:
        self._loaded[one.ledger_id] = blocks
        self._storage.index_memory.holds(self, one.ledger_id, len(blocks))
        self._mark_stored(blocks)

    def _mark_stored(self, keys: Iterable[BlockKey]) -> None:
        for ledger_id, number in keys:
            self._stored[ledger_id] = self._stored.get(ledger_id, 0) | 1 << number

    # -- storing ------------------------------------------------------------------------------

    async def _store(self) -> None:
        """The task that stores what is noted, all but the last block, which still grows."""
        try:
            growing = max(self._noted, default=_NO_BLOCK)
            keys = sorted(key for key in self._noted if key != growing)
            noted = [(key, self._noted.pop(key)) for key in keys]
            self._storage.index_memory.holds(self, _NOTED, len(self._noted))
            if keys and len(self._find_named()) < BUCKETS_MAX:
                self._mark_stored(keys)
                blocks = [DelayedBlock(key, one.due_ms, one.entries) for key, one in noted]
                made = Bucket(-1, keys[0], keys[-1], len(keys))
                await self._write(bucket.encoded(blocks), made, ())
                await self._merge()
        except BrokerError as error:
            self._failed(error)
        finally:
            self._storing = False

    async def _merge(self) -> None:
        """Have some buckets become one, if there are many."""
        several = bucket.to_merge(self._find_named())
        entries: list[bytes] = []
        for one in several:
            found = await self._readable(one, self._entries)
            if found is None:
                return  # it may be readable later, or has left
            entries += found
        if several:
            await self._write(entries, bucket.merged(several, -1), several)

    async def _write(self, entries: list[bytes], made: Bucket, instead: Sequence[Bucket]) -> None:
        """Store a bucket, and name it, instead of others."""
        ledger = self._ledger
        writer = await removal.create_beside(ledger)
        try:
            stored = Completion[None]()
            writer.append(entries, stored.done)
            await stored.result()
            await writer.close()
            await self._name([made._replace(ledger_id=writer.ledger_id)], instead)
        except BrokerError:
            await removal.drop_beside(ledger, writer.ledger_id)
            raise

    async def _name(self, new: Sequence[Bucket], instead: Sequence[Bucket] = ()) -> None:
        """Change the list of buckets; those that are named no longer are deleted."""
        async with self._naming:
            former = self._find_named()
            gone = {one.ledger_id for one in former if one in instead or self._left(one)}
            kept = [one for one in former if one.ledger_id not in gone]
            named = sorted([*kept, *new], key=attrgetter("first"))
            await self._ledger.ledgers.set_buckets(named)
            self._now(named)
        for ledger_id in gone:
            self._storage.index_memory.holds(self, ledger_id, 0)
            self._loaded.pop(ledger_id, None)
            self._unreadable.discard(ledger_id)
        await self._ledger.delete_ledgers(gone)
        await self._ledger.ledgers.spare(gone)

    async def forget_what_left(self) -> None:
        """Delete buckets whose entries are all deleted."""
        first = self._ledger.chain.first[0]
        for ledger_id in [each for each in self._stored if each < first]:
            del self._stored[ledger_id]
        if any(self._left(one) for one in self._find_named()):
            try:
                await self._name(())
            except BrokerError as error:  # the next one does it
                log.warning("%s: buckets of delayed entries stay: %s", self._log_name, error)

    def _left(self, one: Bucket) -> bool:
        return one.last[0] < self._ledger.chain.first[0]

    @property
    def _log_name(self) -> str:
        return log_name(self._ledger.name)
