"""The list of a log's ledgers, and what is stored with it: one record, which one owner writes.

Pulsar calls the record ManagedLedgerInfo (`MetaStoreImpl.java` of 4.2). It holds the ledgers in
order (`chain.py`), where the log begins, its properties, where it was terminated, and the ledgers
that are to be deleted. `ledger_list_record.py` encodes it; `removal.py` and `trim.py` decide what
leaves it, and when.

Invariants:
- No other module writes the chain, its segments, or the properties; a test holds that.
- One change at a time. It shows in memory once it is stored, so a change that cannot be stored
  never happened, and no reader acts on one that may yet fail. (How much a ledger holds, and that it
  has ended, are facts of storage: they show at once, and recovery finds them again.)
- A ledger is in the list before anything is written into it, and is deleted after it has left.
- The record is written over the version that this owner knows. If another owner has written, `lost`
  is called, once, and every later change is refused with `Fenced`.

A crash leaves the list as it was before a change, or after it. A write that failed may have
happened all the same (`core/cluster/owned_record.py`); the next one finds out.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

import trio
from msgspec import structs

from magnetar.core.cluster.owned_record import OwnedRecord
from magnetar.core.kernel.errors import Conflict, Fenced, StorageFailed
from magnetar.core.kernel.names import MANAGED_LEDGERS
from magnetar.core.ledger import formats
from magnetar.core.ledger.buckets.bucket import BUCKETS, Bucket, buckets_of
from magnetar.core.ledger.log import ledger_list_record, recovery
from magnetar.core.ledger.log.chain import NOWHERE, Chain, Position, Segment
from magnetar.core.ledger.log.change_notice import ChangeNotice
from magnetar.core.ledger.log.ledger_list_record import COMPACTED, CompactedLedger, ListRecord
from magnetar.core.ledger.storage import Storage
from magnetar.core.ledger.write_failure_log import log_name
from magnetar.core.ports.metadata_store import Versioned

log = logging.getLogger(__name__)

CREATED: Final = "magnetar.created-ms"
"""Property of the log: when it was created."""
CLEAN_TO: Final = "magnetar.clean-to"
"""Property of the log: messages with a lower index have been compacted."""


class LedgerList:
    """See the module's docstring."""

    __slots__ = (
        "_closed",
        "_lock",
        "_lost",
        "_name",
        "_next_index",
        "_record",
        "_storage",
        "_terminated",
        "chain",
        "doomed",
        "notice",
        "path",
        "properties",
    )

    def __init__(
        self,
        storage: Storage,
        name: str,
        next_index: Callable[[], int],
        lost: Callable[[Fenced], None],
    ) -> None:
        self.path = f"{MANAGED_LEDGERS}/{name}"
        self.chain = Chain()
        self.notice = ChangeNotice()
        self.properties: Mapping[str, str] = {}
        """Properties of the log: always the same mapping, whose contents change."""
        self.doomed: frozenset[int] = frozenset()
        """Ledgers to delete, which are not, or no longer, part of the log."""
        self._storage = storage
        self._name = name
        self._next_index = next_index
        self._lost = lost
        self._terminated: Position | None = None
        self._closed = False
        self._record = OwnedRecord(storage.metadata, self.path, bytes, bytes)
        self._lock = trio.Lock()

    @property
    def others(self) -> set[int]:
        """The ledgers that hold entries, in the log or compacted beside it: no buckets."""
        compacted = ledger_list_record.compacted_of(self.properties)
        beside = set() if compacted is None else {compacted.ledger_id}
        return {one.stored_in for one in self.chain.segments} | beside

    @property
    def created_ms(self) -> int:
        """When the log was created; 0 if another broker did, or an older version."""
        return int(self.properties.get(CREATED, 0))

    # -- opening and closing ------------------------------------------------------------------

    async def open(self) -> recovery.RecoveredLog | None:
        """Read the list and find the end of the log; None for a log that is created by this.

        If the recovery changed the list, the caller stores it (`save`), because it knows the next
        index by then.
        """
        stored = await self._record.load()
        if stored is None:
            self._set({CREATED: str(self._storage.clock.wall_ms())})
            await self.save()
            return None
        versioned = Versioned(stored, self._record.version)
        found = await recovery.find(self._storage, self._name, versioned)
        self.chain.confirmed = self.chain.opened_behind = found.confirmed
        begins_at, start = ledger_list_record.beginning_of(found.properties)
        self._publish(
            ListRecord(
                segments=found.segments,
                properties=found.properties,
                begins_at=begins_at,
                start=start,
                terminated=found.terminated,
                doomed=frozenset(found.doomed),
            )
        )
        return found

    async def open_without_ledgers(self) -> None:
        """Read what the record says beside ledgers, which are another log's; or create it."""
        stored = await self._record.load()
        if stored is None:
            self._set({CREATED: str(self._storage.clock.wall_ms())})
            await self.save()
            return
        info = formats.decode_managed_ledger(stored)
        self._publish(ListRecord(segments=[], properties=info.properties))

    def close(self) -> None:
        """Refuse changes: the log is unloaded, or another owner has taken it over."""
        self.notice.leave()
        self._closed = True

    async def delete(self) -> set[int]:
        """Delete the record; returns the ledgers that it named. `Fenced` if it is another's."""
        async with self._lock:
            try:
                await self._record.delete()
            except Fenced as error:
                raise self._taken_over() from error
            self.notice.changed()
            segments, self.chain.segments = self.chain.segments, []
            compacted = ledger_list_record.compacted_of(self.properties)
            beside = {one.ledger_id for one in buckets_of(self.properties)}
            beside |= {compacted.ledger_id} if compacted is not None else set()
            return {segment.stored_in for segment in segments} | self.doomed | (beside - {-1})

    # -- storing ------------------------------------------------------------------------------

    async def save(self) -> None:
        """Store the list as it is; this fences any other owner, or raises `Fenced`."""
        async with self._lock:
            await self._store(self._contents())

    def _contents(self) -> ListRecord:
        chain = self.chain
        return ListRecord(
            segments=chain.segments,
            properties=self.properties,
            begins_at=chain.begins_at,
            start=chain.start,
            terminated=self._terminated,
            doomed=self.doomed,
        )

    async def _store(self, contents: ListRecord) -> None:
        """Store a change; it shows in memory when this returns, and not if it raises."""
        if self._closed:
            raise Fenced("the topic is being unloaded")
        contents = ledger_list_record.described(contents, self._next_index())
        try:
            await self._record.write(ledger_list_record.encoded(contents))
        except Fenced as error:
            raise self._taken_over() from error
        self._publish(contents)

    def _taken_over(self) -> Fenced:
        reason = Fenced("another owner has taken this topic over")
        self._lost(reason)
        return reason

    def _publish(self, contents: ListRecord) -> None:
        self.notice.changed()
        chain = self.chain
        chain.segments = contents.segments
        chain.begins_at, chain.start = contents.begins_at, contents.start
        self._set(contents.properties)
        self._terminated, self.doomed = contents.terminated, contents.doomed

    def _set(self, properties: Mapping[str, str]) -> None:
        assert isinstance(self.properties, dict)
        if properties != self.properties:
            properties = dict(properties)
            self.properties.clear()
            self.properties.update(properties)

    # -- what storage holds -------------------------------------------------------------------

    def grow(self, entries: int, size: int) -> Segment:
        """The ledger being written holds so much; returns it. Plain call, once a run."""
        if self.notice.marks is not None:
            self.notice.changed()
        segment = self.chain.segments[-1]
        segment.entries, segment.size = entries, size
        self.chain.confirmed = (segment.ledger_id, entries - 1)
        return segment

    async def end(self, size: int, properties: Mapping[str, str]) -> None:
        """The ledger being written is sealed, and gets these properties."""
        self.notice.changed()
        segment = self.chain.segments[-1]
        segment.size, segment.closed_ms = size, self._storage.clock.wall_ms()
        segment.others = {**segment.others, **properties}
        await self.save()

    async def end_fenced(self, properties: Mapping[str, str]) -> int:
        """The ledger being written was fenced: seal it, if nobody has; returns its entries, of
        which a recovery may have kept more than were confirmed. `Fenced` if the log is another's.
        """
        segment = self.chain.segments[-1]
        found = await recovery.seal(self._storage, self._name, segment.ledger_id)
        if found.entries < segment.entries:
            raise StorageFailed(f"ledger {segment.ledger_id} ends before what was confirmed")
        self.notice.changed()
        segment.entries, segment.size, segment.closed_ms = found
        if found.entries:
            self.chain.confirmed = (segment.ledger_id, found.entries - 1)
        segment.others = {**segment.others, **properties}
        await self.save()
        log.warning(
            "%s: ledger %d was closed by a recovery: going on in another",
            log_name(self._name),
            segment.ledger_id,
        )
        return segment.entries

    async def seal_ragged(self, written: int | None, properties: Mapping[str, str]) -> None:
        """Seal ledgers that storage could not seal when they ended; `written` is being written."""
        ragged = [
            one for one in self.chain.segments if not one.closed_ms and one.ledger_id != written
        ]
        for segment in ragged:
            found = await recovery.seal(self._storage, self._name, segment.ledger_id)
            self.notice.changed()
            segment.entries, segment.size, segment.closed_ms = found
            segment.others = {**segment.others, **properties}
        if ragged:
            await self.save()

    def note(self, segment: Segment, key: str, value: str) -> None:
        """Give a ledger a property computed from its entries; the next change stores it."""
        segment.others = {**segment.others, key: value}

    # -- changes ------------------------------------------------------------------------------

    async def add(self, segment: Segment) -> None:
        """Name a new ledger, at the end, before anything is written into it."""
        async with self._lock:
            contents = self._contents()
            await self._store(structs.replace(contents, segments=[*contents.segments, segment]))

    async def set_property(self, key: str, value: str | None) -> None:
        """Store a property of the whole log; None removes it."""
        async with self._lock:
            if value is None and key not in self.properties:
                return
            changed = {**self.properties, key: value or ""}
            if value is None:
                del changed[key]
            await self._store(structs.replace(self._contents(), properties=changed))

    async def terminate(self, position: Position) -> None:
        """Nothing follows that position."""
        async with self._lock:
            await self._store(structs.replace(self._contents(), terminated=position))

    async def remove(self, ledger_ids: Iterable[int]) -> tuple[int, set[int]]:
        """Remove ledgers at the front that have ended.

        Returns how many, and the ledgers that no longer hold any entry of the log.
        """
        leaving = set(ledger_ids)
        async with self._lock:
            contents = self._contents()
            gone = [one for one in contents.segments if one.ledger_id in leaving and one.closed_ms]
            if not gone:
                return 0, set()
            segments = [one for one in contents.segments if one not in gone]
            left = next((one.first_index for one in segments), self._next_index())
            begins_at = NOWHERE if contents.begins_at <= left else contents.begins_at
            await self._store(structs.replace(contents, segments=segments, begins_at=begins_at))
            return len(gone), self._unnamed(gone)

    async def begin_at(
        self, index: int, position: Position, first_index: Callable[[], int]
    ) -> set[int]:
        """Have the log begin with that message, in the entry at `position`; it never goes back.

        `first_index` returns the index of the first message now. Returns the ledgers that hold
        no entry of the log.
        """
        async with self._lock:
            if index <= first_index():
                return set()
            contents = self._contents()
            gone = [one for one in contents.segments if one.closed_ms and _end_of(one) < position]
            changed = structs.replace(
                contents,
                segments=[one for one in contents.segments if one not in gone],
                begins_at=index,
                start=max(contents.start, position),
            )
            await self._store(changed)
            return self._unnamed(gone)

    async def doom(self, ledger_id: int) -> None:
        """Note a ledger that is not part of the log: the next owner of the log deletes it."""
        async with self._lock:
            await self._store(structs.replace(self._contents(), doomed=self.doomed | {ledger_id}))

    async def spare(self, ledger_ids: Iterable[int]) -> None:
        """Remove ledgers from the list of those to delete; the next change stores that."""
        async with self._lock:
            self.doomed = self.doomed.difference(ledger_ids)

    async def replace(
        self,
        instead: Mapping[int, Segment | None],
        clean_to: int,
        first_index: Callable[[], int],
        replaced: Callable[[], None],
    ) -> frozenset[int]:
        """Put what compaction left of each ledger (None: nothing) in its place.

        The log still begins where it did. `replaced` is called as soon as the change is stored. A
        ledger that has left the list meanwhile takes its replacement with it. Returns the ledgers
        to delete now; the record names them too, so that the next owner deletes what a crash
        leaves.
        """
        async with self._lock:
            contents = self._contents()
            listed = [(instead.get(one.ledger_id, one), one) for one in contents.segments]
            segments = [new for new, _ in listed if new is not None]
            stored_in = {one.stored_in for one in segments}
            freed = {one.stored_in for new, one in listed if new is not one}
            begins_at = first_index() if contents.begins_at == NOWHERE else contents.begins_at
            changed = structs.replace(
                contents,
                segments=segments,
                begins_at=begins_at,
                properties={**contents.properties, CLEAN_TO: str(clean_to)},
                doomed=(contents.doomed | freed) - stored_in,
            )
            await self._store(changed)
            self.chain.rewritten += 1
            replaced()
            gone = freed - stored_in
            self.doomed -= gone
            return frozenset(gone)

    async def set_compacted(self, new: CompactedLedger, former: CompactedLedger | None) -> None:
        """Put a ledger, noted as to be deleted so far, in the place of the compacted ledger, which
        is noted instead; `Conflict` if that is not `former` any more.
        """
        async with self._lock:
            contents = self._contents()
            if ledger_list_record.compacted_of(contents.properties) != former:
                raise Conflict("another compacted ledger is named meanwhile")
            properties = {**contents.properties, COMPACTED: new.text}
            doomed = _with_doomed(contents.doomed, former) - {new.ledger_id}
            await self._store(structs.replace(contents, properties=properties, doomed=doomed))

    async def forget_compacted(self) -> CompactedLedger | None:
        """Name no compacted ledger any more; returns the former one, which is noted as to be
        deleted.
        """
        async with self._lock:
            contents = self._contents()
            former = ledger_list_record.compacted_of(contents.properties)
            if former is None:
                return None
            properties = {**contents.properties}
            del properties[COMPACTED]
            doomed = _with_doomed(contents.doomed, former)
            await self._store(structs.replace(contents, properties=properties, doomed=doomed))
            return former

    async def set_buckets(self, buckets: Sequence[Bucket]) -> None:
        """Name these buckets of delayed entries, of which new ones were noted as to be deleted; now
        those are that were named so far, and are no longer.
        """
        async with self._lock:
            contents = self._contents()
            named = {one.ledger_id for one in buckets}
            gone = {one.ledger_id for one in buckets_of(contents.properties)} - named
            gone -= self.others
            properties = {**contents.properties, BUCKETS: " ".join(one.text for one in buckets)}
            if not buckets:
                del properties[BUCKETS]
            doomed = (contents.doomed | gone) - named
            await self._store(structs.replace(contents, properties=properties, doomed=doomed))

    def _unnamed(self, gone: Iterable[Segment]) -> set[int]:
        """The ledgers that held these, and hold nothing that is still in the list."""
        return {one.stored_in for one in gone} - {one.stored_in for one in self.chain.segments}


def _with_doomed(doomed: frozenset[int], ledger: CompactedLedger | None) -> frozenset[int]:
    return doomed if ledger is None or ledger.ledger_id < 0 else doomed | {ledger.ledger_id}


def _end_of(segment: Segment) -> Position:
    return (segment.ledger_id, segment.entries - 1)
