"""Which entries of a log are delayed, on the disk, so that nobody reads them before they are due.

Without it whoever attaches to a shared subscription has its whole backlog read, to find out when
each message is due. Subscriptions tell what they put aside (`note`), and ask for it where they read
on (`block`). `bucket.py` says what is stored, and why nothing of it can be wrong.

    noted --32 blocks--> being stored --> in a bucket that the log names --> loaded by who asks
      |                       |                      |
      +-- let go of -------->  nothing  <-- failed --+-- its entries have left the log

A bucket is written, sealed, and then named, so that what is named is whole. A crash before that
leaves a ledger that is noted as to be deleted (`removal.create_beside`), or, between its creation
and that note, one that takes space. What is noted and not stored is lost: 33 blocks at most, of
which the entries are read.

Invariants: a log writes one bucket at a time; while it is loaded, a block is stored once, as far as
it is noted by then; what is held is bounded for all logs together (`index_memory.py`).
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from operator import attrgetter
from typing import TYPE_CHECKING, Final

import trio

from magnetar.core.kernel.completion import Completion
from magnetar.core.kernel.errors import BrokerError, Corrupted, Fenced, LedgerNotFound
from magnetar.core.ledger.buckets import bucket
from magnetar.core.ledger.buckets.bucket import (
    BLOCK_BITS,
    BlockKey,
    Bucket,
    DelayedBlock,
    buckets_of,
    words_of,
)
from magnetar.core.ledger.ledger_owner import open_own
from magnetar.core.ledger.log import removal
from magnetar.core.ledger.write_failure_log import log_name

if TYPE_CHECKING:
    from magnetar.core.ledger.log.chain import Position
    from magnetar.core.ledger.log.managed_ledger import ManagedLedger
    from magnetar.core.ledger.storage import Storage

log = logging.getLogger(__name__)

NOTED_BLOCKS: Final = 32
"""Blocks that make a bucket. With the next one, which still grows, they have 33,000 entries, which
take a third of a second to read."""
NOTED_MAX: Final = 128
"""Blocks of a log that wait to be stored. Others are not noted, as while storage takes nothing."""
BUCKETS_MAX: Final = 1_000
"""Of one log, in a record of 40 KB: half a billion delayed entries. Others are not indexed."""
COVERING_BLOCKS_MAX: Final = 2_048
"""Blocks of the buckets that are asked for one block, half of the memory for all logs. What others
have is read."""
LOAD_SECONDS: Final = 5.0
"""As long is waited for the buckets of a block, and for a turn: dispatch waits, too."""
ANSWERED_MAX: Final = 100
"""Who was told and has not asked again: subscriptions of a log that read at different places."""
UNREADABLE_SECONDS: Final = 60.0
"""After so long a bucket that could not be read is read again."""
READ_BYTES: Final = 256 * 1024
_NOTED: Final = -1
"""What is held and not stored; a bucket is named by its ledger."""
_NO_BLOCK: Final[BlockKey] = (-1, -1)


class DelayedIndex:
    """See the module's docstring."""

    def __init__(self, storage: Storage, ledger: ManagedLedger) -> None:
        self._storage = storage
        self._ledger = ledger
        self._named: list[Bucket] | None = None
        """The buckets that the log names; None until somebody asks."""
        self._last = _NO_BLOCK
        """No bucket has a later block."""
        self._noted: dict[BlockKey, DelayedBlock] = {}
        self._stored: dict[int, int] = {}
        """A bit for each block that is known to be stored, by ledger."""
        self._loaded: dict[int, dict[BlockKey, DelayedBlock]] = {}
        """The blocks of buckets that were read."""
        self._unreadable: dict[int, float] = {}
        """When buckets that could not be read are read again."""
        self._waiting: dict[BlockKey, list[Callable[[], None]]] = {}
        """Who is told when the buckets of a block are loaded; who came first is at the front."""
        self._answered: set[BlockKey] = set()
        """Blocks of which somebody was told, and has not asked again."""
        self._loading = self._storing = self._closed = False
        self._naming = trio.Lock()

    # -- noting -------------------------------------------------------------------------------

    def note(self, ledger_id: int, entry_ids: Sequence[int], dues_ms: Sequence[int]) -> None:
        """These entries are delayed. Plain call."""
        if self._closed:
            return
        noted, before = self._noted, len(self._noted)
        for entry_id, due_ms in zip(entry_ids, dues_ms, strict=True):
            key = (ledger_id, entry_id >> BLOCK_BITS)
            block = noted.get(key)
            if block is None:
                stored = self._stored.get(ledger_id, 0) >> key[1] & 1
                if stored or len(noted) >= NOTED_MAX:
                    continue
                block = noted[key] = DelayedBlock(key)
            block.add(entry_id, due_ms)
        if len(noted) != before:
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
        self._set_named([])
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
            properties, others = self._ledger.properties, self._ledger.ledgers.others
            named = [one for one in buckets_of(properties) if one.ledger_id not in others]
            wrong = set(words_of(properties)).difference(one.text for one in named)
            if wrong:
                log.error(
                    "%s: no buckets of delayed entries, %d such as %r",
                    self._log_name, len(wrong), min(wrong),
                )  # fmt: skip
            self._set_named(named)
        return self._named or []

    def _set_named(self, named: list[Bucket]) -> None:
        self._named = named = [] if self._closed else named
        self._last = max((one.last for one in named), default=_NO_BLOCK)

    def is_loaded(self, key: BlockKey, loaded: Callable[[], None]) -> bool:
        """Whether `block` knows what is stored of that block, as far as it can be read. If not, it
        is read, and `loaded` is called then. Plain call.

        Who asks again after that may go on in any case: if there are many, each may have taken the
        memory of the others.
        """
        if key in self._answered:
            self._answered.discard(key)
            return True
        covering = self._covering(key)
        missing = [one for one in covering if one.ledger_id not in self._loaded]
        for one in covering:
            self._storage.index_memory.used(self, one.ledger_id)
        if not missing:
            return True
        waiting = self._waiting.setdefault(key, [])
        if loaded not in waiting:
            waiting.append(loaded)
        if not self._loading:
            self._loading = True
            self._storage.spawn(self._load)
        return False

    def _covering(self, key: BlockKey) -> list[Bucket]:
        """The buckets to ask for a block, those with the fewest blocks first."""
        named = self._find_named()
        covering = [one for one in named if one.first <= key <= one.last and self._is_readable(one)]
        covering.sort(key=attrgetter("blocks"))
        together = accumulate(one.blocks for one in covering)
        sized = zip(covering, together, strict=True)
        return [one for one, blocks in sized if blocks <= COVERING_BLOCKS_MAX]

    def block(self, key: BlockKey) -> DelayedBlock | None:
        """What is stored of a block, which `is_loaded`; None if that is nothing."""
        known: DelayedBlock | None = None
        for blocks in self._loaded.values():
            if key in blocks:
                known = blocks[key].with_those(known)
        return known

    # -- reading buckets ----------------------------------------------------------------------

    async def _load(self) -> None:
        """The task that reads buckets for who waits, one block after the other; what cannot be
        read, or not soon, is as if it had not been written.
        """
        while self._waiting:
            key = next(iter(self._waiting))
            buckets = self._covering(key)
            with trio.move_on_after(LOAD_SECONDS) as waiting:
                async with self._storage.index_memory.loads:
                    await self._load_all(buckets)
            if waiting.cancelled_caught:
                self._leave_alone()
            if all(one in self._find_named() for one in buckets):  # else ask what they became
                self._answer(key)
            for loaded in self._waiting.pop(key):
                loaded()
        self._loading = False
        await self.forget_what_left()

    async def _load_all(self, buckets: Sequence[Bucket]) -> None:
        for one in buckets:
            if one.ledger_id not in self._loaded:
                blocks = await self._readable(one)
                if blocks is not None and not self._closed:
                    self._took(one, blocks)

    def _answer(self, key: BlockKey) -> None:
        """Have who is told now go on in any case."""
        if len(self._answered) >= ANSWERED_MAX:
            self._answered.clear()  # mostly who has left, and will not ask
        self._answered.add(key)

    def _leave_alone(self) -> None:
        """Read nothing for a while, as that takes too long."""
        until = self._storage.clock.monotonic() + UNREADABLE_SECONDS
        missing = [one.ledger_id for one in self._find_named() if one.ledger_id not in self._loaded]
        for ledger_id in missing:
            self._unreadable[ledger_id] = max(until, self._unreadable.get(ledger_id, until))
        log.warning(
            "%s: the index of delayed entries, in %d ledgers, was not read in %g s: reading these",
            self._log_name, len(missing), LOAD_SECONDS,
        )  # fmt: skip

    def _is_readable(self, one: Bucket) -> bool:
        now = self._storage.clock.monotonic()
        return self._unreadable.get(one.ledger_id, now) <= now

    async def _readable(self, one: Bucket) -> dict[BlockKey, DelayedBlock] | None:
        """The blocks of a bucket; None if it cannot be read, which is told."""
        try:
            return await self._blocks_of(one)
        except BrokerError as error:
            if one not in self._find_named():
                return None  # it has become one with others meanwhile, or has left
            lost = isinstance(error, LedgerNotFound | Corrupted)
            now = self._storage.clock.monotonic()
            self._unreadable[one.ledger_id] = math.inf if lost else now + UNREADABLE_SECONDS
            log.error(
                "%s: the index of delayed entries in ledger %d cannot be read, so these are: %s",
                self._log_name, one.ledger_id, error,
            )  # fmt: skip
        return None

    def _failed(self, error: BrokerError) -> None:
        """Nothing is lost by it: what is not in the index is read."""
        if not isinstance(error, Fenced):  # else it is another owner's, or unloaded
            log.warning("%s: delayed entries are not indexed: %s", self._log_name, error)

    async def _blocks_of(self, one: Bucket) -> dict[BlockKey, DelayedBlock]:
        blocks: dict[BlockKey, DelayedBlock] = {}
        reader = await open_own(self._storage.ledgers, one.ledger_id, self._ledger.name)
        after = 0
        while after <= reader.last_confirmed:
            entries = await reader.read(after, reader.last_confirmed, READ_BYTES)
            after += len(entries)
            for entry in entries:
                blocks.update((block.key, block) for block in bucket.decoded(entry))
                await trio.lowlevel.checkpoint()
        if not blocks:
            raise Corrupted("a bucket has at least one block")
        return blocks

    def _took(self, one: Bucket, blocks: dict[BlockKey, DelayedBlock]) -> None:
        self._loaded[one.ledger_id] = blocks
        self._unreadable.pop(one.ledger_id, None)
        self._storage.index_memory.holds(self, one.ledger_id, len(blocks))
        self._mark_stored(blocks)

    def _mark_stored(self, keys: Iterable[BlockKey]) -> None:
        for ledger_id, number in keys:
            self._stored[ledger_id] = self._stored.get(ledger_id, 0) | 1 << number

    # -- storing ------------------------------------------------------------------------------

    async def _store(self) -> None:
        """The task that stores what is noted, but for the last block, which mostly still grows."""
        try:
            while self._has_enough:
                async with self._storage.index_memory.stores:
                    if self._has_enough:  # others may have needed the memory, or the log is closed
                        await self._store_some()
                        await self._merge()
        except BrokerError as error:
            self._failed(error)
        finally:
            self._storing = False

    @property
    def _has_enough(self) -> bool:
        """Whether there are blocks to store, and one more, which may grow."""
        return len(self._noted) > NOTED_BLOCKS and not self._closed

    async def _store_some(self) -> None:
        keys = sorted(self._noted)[:NOTED_BLOCKS]
        blocks = [self._noted.pop(key) for key in keys]
        self._storage.index_memory.holds(self, _NOTED, len(self._noted))
        if len(self._find_named()) >= BUCKETS_MAX:
            return
        self._mark_stored(keys)
        try:
            await self._write(blocks)
        except BrokerError:
            for ledger_id, number in keys:
                self._stored[ledger_id] = self._stored.get(ledger_id, 0) & ~(1 << number)
            raise

    async def _merge(self) -> None:
        """Have some buckets become one, if there are many."""
        readable = [one for one in self._find_named() if self._is_readable(one)]
        several = bucket.to_merge(readable)
        blocks: dict[BlockKey, DelayedBlock] = {}
        for one in several:
            found = await self._readable(one)
            if found is None:
                return  # it may be readable later, or has left
            for key, block in found.items():
                blocks[key] = block.with_those(blocks.get(key))
        if several:
            await self._write([blocks[key] for key in sorted(blocks)], several)

    async def _write(self, blocks: Sequence[DelayedBlock], instead: Sequence[Bucket] = ()) -> None:
        """Store a bucket of these blocks, in their order, and name it, instead of others."""
        ledger, made = self._ledger, Bucket(-1, blocks[0].key, blocks[-1].key, len(blocks))
        writer = await removal.create_beside(ledger)
        try:
            stored = Completion[None]()
            writer.append(bucket.encoded(blocks), stored.done)
            await stored.result()
            await writer.close()
        except BrokerError:
            await removal.drop_beside(ledger, writer.ledger_id)
            raise
        # if this fails, it may have happened: the next owner of the log deletes what is not named
        await self._name([made._replace(ledger_id=writer.ledger_id)], instead)

    async def _name(self, new: Sequence[Bucket], instead: Sequence[Bucket] = ()) -> None:
        """Change the list of buckets; those that are named no longer are deleted."""
        async with self._naming:
            former = self._find_named()
            gone = {one.ledger_id for one in former if one in instead or self._is_over(one)}
            kept = [one for one in former if one.ledger_id not in gone]
            named = sorted([*kept, *new], key=attrgetter("first"))
            await self._ledger.ledgers.set_buckets(named)
            self._set_named(named)
        for ledger_id in gone:
            self._storage.index_memory.holds(self, ledger_id, 0)
            self._loaded.pop(ledger_id, None)
            self._unreadable.pop(ledger_id, None)
        await self._ledger.delete_ledgers(gone)
        await self._ledger.ledgers.spare(gone)

    async def forget_what_left(self) -> None:
        """Delete buckets that are lost, or whose entries are all deleted."""
        first = self._ledger.chain.first[0]
        for ledger_id in [each for each in self._stored if each < first]:
            del self._stored[ledger_id]
        if any(self._is_over(one) for one in self._find_named()):
            try:
                await self._name(())
            except BrokerError as error:
                self._failed(error)

    def _is_over(self, one: Bucket) -> bool:
        is_lost = self._unreadable.get(one.ledger_id) == math.inf
        return is_lost or one.last[0] < self._ledger.chain.first[0]

    @property
    def _log_name(self) -> str:
        return log_name(self._ledger.name)
