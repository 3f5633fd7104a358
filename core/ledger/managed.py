"""A managed ledger: the endless log of one topic, made of ledgers that end.

Theory. At most one ledger is open for writing, and only while something is being written: it is
created by the first append and after each roll. An append gets its index (the running count of
messages) at once, and its position when storage confirms it:

    state      append              leaves for
    IDLE       waits, opens one    OPENING
    OPENING    waits               WRITING, or IDLE with every waiting append failed
    WRITING    goes to storage     ROLLING when the ledger is full, IDLE when a write failed
    ROLLING    waits               OPENING once what is in flight is confirmed
    TERMINATED is refused          -
    CLOSED     is refused          -   (unloaded, deleted, or another owner took over)

Invariants: appends are confirmed in the order they came, each exactly once; the list of ledgers in
the metadata store names a ledger before anything is written into it; `confirmed` never goes back;
nothing above `confirmed` is ever read. All metadata writes are conditional: if another owner has
written, this one lets go (`Fenced`).

What is not here: cursors (`cursor.py`), who reads, what the entries mean.
"""

from __future__ import annotations

import enum
import logging
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

import trio
from msgspec import Struct

from core.clock import Clock
from core.entry import header
from core.errors import BadVersion, BrokerError, EntryNotFound, Fenced, LedgerNotFound, Terminated
from core.ledger import formats
from core.ledger.chain import Chain, Position, Segment
from core.ledger.tail_cache import Slice, Tail, TailCache
from core.ledger.trim import RollLimits, should_roll
from core.ports.ledger_store import LedgerReader, LedgerStore, LedgerWriter
from core.ports.metadata_store import ABSENT, MetadataStore

if TYPE_CHECKING:
    from core.ledger.cursor import Cursor

log = logging.getLogger(__name__)

Appended = Callable[[Position | BrokerError], None]
"""Told the position of the first entry of a run, or why it is not stored."""

NEXT_INDEX = "magnetar.next-index"
"""Property of the whole log: the index its next entry gets, kept when ledgers are trimmed."""
FIRST_INDEX = "magnetar.first-index"
"""Property of one ledger: the index of its first message."""
READERS_MAX = 8
"""Ledgers kept open for reading per topic."""


class State(enum.Enum):
    IDLE = enum.auto()
    OPENING = enum.auto()
    WRITING = enum.auto()
    ROLLING = enum.auto()
    TERMINATED = enum.auto()
    CLOSED = enum.auto()


class Append:
    """One run on its way to storage."""

    __slots__ = ("counts", "done", "entry_id", "headers", "messages", "payloads")

    def __init__(
        self,
        headers: list[bytes],
        payloads: list[bytes],
        counts: list[int] | None,
        messages: int,
        done: Appended,
    ) -> None:
        self.headers = headers
        self.payloads = payloads
        self.counts = counts
        self.messages = messages
        self.done = done
        self.entry_id = -1


class LedgerStatistics(Struct, frozen=True):
    """A snapshot for internal stats."""

    entries_added: int
    entries: int
    size: int
    open_entries: int
    open_size: int
    """Of the ledger being written, if there is one."""
    opened_ms: int
    state: str
    pending_appends: int


class Storage(Struct, frozen=True):
    """What every managed ledger of one broker shares."""

    ledgers: LedgerStore
    metadata: MetadataStore
    cache: TailCache
    clock: Clock
    roll: RollLimits
    spawn: Callable[..., None]
    """Starts a task that outlives its caller (a nursery's `start_soon`)."""
    cursor_dirty: Callable[[Cursor], None]
    """Has a cursor saved soon."""


class ManagedLedger:
    """See the module's docstring."""

    def __init__(self, storage: Storage, name: str, advanced: Callable[[], None]) -> None:
        self.name = name
        self.path = f"/managed-ledgers/{name}"
        self.state = State.IDLE
        self.chain = Chain()
        self.next_index = 0
        self.properties: dict[str, str] = {}
        self.pending_bytes = 0
        """Payload given to `append` and not yet confirmed or failed."""
        self.entries_added = 0
        self.tailed = False
        """Whether anybody reads close behind: only then is the tail cached."""
        self._storage = storage
        self._advanced = advanced
        self._tail = Tail(storage.cache)
        self._version = ABSENT
        self._writer: LedgerWriter | None = None
        self._opened_ms = 0
        self._waiting: deque[Append] = deque()
        self._in_flight: deque[Append] = deque()
        self._readers: dict[int, LedgerReader] = {}
        self._metadata_lock = trio.Lock()
        self._changed = trio.lowlevel.ParkingLot()

    # -- opening and closing ------------------------------------------------------------------

    async def open(self) -> None:
        """Read the chain and find its end; an unclosed last ledger is recovered (and so fenced)."""
        found = await self._storage.metadata.get(self.path)
        if found is None:
            self._version = await self._storage.metadata.put(self.path, self._encoded(), ABSENT)
            return
        self._version = found.version
        info = formats.decode_managed_ledger(found.value)
        self.properties = dict(info.properties)
        index = 0
        for ledger in info.ledgers:
            index = int(ledger.properties.get(FIRST_INDEX, index))
            segment = Segment(
                ledger.ledger_id, index, ledger.entries, ledger.size, ledger.closed_ms
            )
            self.chain.segments.append(segment)
            index += ledger.entries
        await self._find_end()
        if info.terminated is not None:
            self.state = State.TERMINATED

    async def _find_end(self) -> None:
        """Recover the last ledger, drop empty ones, learn the last position and the next index."""
        before = len(self.chain.segments)
        for segment in self.chain.segments[:-1]:
            if not segment.closed_ms:
                await self._learn_end(segment)
                before = -1
        while self.chain.segments:
            segment = self.chain.segments[-1]
            reader = await self._recovered(segment)
            if reader is not None and reader.last_confirmed >= 0:
                break
            self.chain.segments.pop()
            await self._storage.ledgers.delete(segment.ledger_id)
        else:
            self.next_index = int(self.properties.get(NEXT_INDEX, 0))
            if before:
                await self._save()
            return
        assert reader is not None
        last = reader.last_confirmed
        self._readers[segment.ledger_id] = reader
        if not segment.closed_ms:
            await self._learn_end(segment)
            before = -1
        (entry,) = await reader.read(last, last, 1)
        self.next_index = max(
            header.read(entry).index + 1,
            int(self.properties.get(NEXT_INDEX, 0)),
            segment.first_index,
        )
        self.chain.confirmed = (segment.ledger_id, last)
        if before != len(self.chain.segments):
            await self._save()

    async def _recovered(self, segment: Segment) -> LedgerReader | None:
        try:
            return await self._storage.ledgers.open(
                segment.ledger_id, recover=not segment.closed_ms
            )
        except LedgerNotFound:
            log.warning("%s: ledger %d is listed but gone", self.name, segment.ledger_id)
            return None

    async def _learn_end(self, segment: Segment) -> None:
        """A ledger whose writer vanished: take its end from storage, sealing it if need be."""
        reader = await self._recovered(segment)
        if reader is not None:
            info = await self._storage.ledgers.info(segment.ledger_id)
            segment.entries, segment.size = reader.last_confirmed + 1, info.length
        segment.closed_ms = self._storage.clock.wall_ms()

    async def close(self) -> None:
        """Let what is in flight finish, seal the open ledger and take no more."""
        await self._seal()
        self._stop(Fenced("the topic is being unloaded"))

    async def delete(self) -> None:
        """Forget everything: first the list, then the ledgers it named."""
        await self.close()
        await self._storage.metadata.delete(self.path)
        for segment in self.chain.segments:
            await self._storage.ledgers.delete(segment.ledger_id)
        self.chain.segments.clear()

    async def terminate(self) -> Position:
        """No entry will ever follow the last one; returns where that is."""
        await self._seal()
        if self.state is not State.TERMINATED:
            self.state = State.TERMINATED
            await self._save()
            self._fail_waiting(Terminated("the topic is terminated"))
        return self.chain.confirmed

    def _stop(self, reason: BrokerError) -> None:
        self.state = State.CLOSED
        self._fail_waiting(reason)
        self._tail.clear()
        self._readers.clear()

    async def _seal(self) -> None:
        """Wait for what is in flight and close the ledger being written, if there is one."""
        while self.state in (State.OPENING, State.ROLLING):
            await self._changed.park()
        if self.state is not State.WRITING:
            return
        self.state = State.ROLLING
        await self._close_writer()
        self.state = State.IDLE

    @property
    def terminated(self) -> bool:
        return self.state is State.TERMINATED

    # -- appending ----------------------------------------------------------------------------

    def append(self, payloads: list[bytes], counts: list[int] | None, done: Appended) -> None:
        """Store a run; `done` hears the position of its first entry. Plain call."""
        state = self.state
        if state is State.TERMINATED:
            done(Terminated("the topic is terminated"))
            return
        if state is State.CLOSED:
            done(Fenced("the topic is being unloaded"))
            return
        messages = len(payloads) if counts is None else sum(counts)
        now_ms = self._storage.clock.wall_ms()
        heads = header.headers(len(payloads), counts, now_ms, self.next_index)
        self.next_index += messages
        self.pending_bytes += sum(map(len, payloads))
        append = Append(heads, payloads, counts, messages, done)
        if state is State.WRITING:
            self._write(append)
        else:
            self._waiting.append(append)
            if state is State.IDLE:
                self.state = State.OPENING
                self._storage.spawn(self._open_writer)

    def _write(self, append: Append) -> None:
        writer = self._writer
        assert writer is not None
        self._in_flight.append(append)
        append.entry_id = writer.append(append.payloads, self._stored, append.headers)

    def _stored(self, error: BrokerError | None) -> None:
        """The oldest run in flight is stored, or is not."""
        append = self._in_flight.popleft()
        self.pending_bytes -= sum(map(len, append.payloads))
        if error is not None:
            self._write_failed(append, error)
            return
        segment = self.chain.segments[-1]
        entries = len(append.payloads)
        first = append.entry_id
        segment.entries = first + entries
        self.chain.confirmed = (segment.ledger_id, segment.entries - 1)
        self.entries_added += entries
        if self.tailed:
            run = Slice(segment.ledger_id, first, append.payloads, append.counts, append.headers)
            self._tail.add(run)
        append.done((segment.ledger_id, first))
        self._advanced()
        if self.state is State.WRITING and self._is_full(segment):
            self.state = State.ROLLING
            self._storage.spawn(self._roll)
        elif not self._in_flight and self.state is not State.WRITING:
            self._changed.unpark_all()

    def _is_full(self, segment: Segment) -> bool:
        roll = self._storage.roll
        if segment.entries < roll.entries_max and self._writer is not None:
            segment.size = self._writer.length
            if segment.size < roll.bytes_max:
                return False
        age_ms = self._storage.clock.wall_ms() - self._opened_ms
        return should_roll(roll, segment.entries, segment.size, age_ms)

    def _write_failed(self, append: Append, error: BrokerError) -> None:
        """Everything behind it fails too, so that no later message is stored before it."""
        if self.state is State.WRITING:
            log.warning("%s: a write failed: %s", self.name, error)
            self.state = State.ROLLING if self._in_flight else State.IDLE
            self._writer_lost()
        elif not self._in_flight and self.state is State.ROLLING:
            self.state = State.IDLE
            self._changed.unpark_all()
        self._fail_waiting(error)
        append.done(error)

    def _writer_lost(self) -> None:
        """A writer that failed once writes no more; its ledger ends where it was confirmed."""
        self._writer = None
        segment = self.chain.segments[-1]
        segment.closed_ms = self._storage.clock.wall_ms()

    def _fail_waiting(self, error: BrokerError) -> None:
        waiting, self._waiting = self._waiting, deque()
        for append in waiting:
            self.pending_bytes -= sum(map(len, append.payloads))
            append.done(error)

    # -- opening and rolling ledgers ----------------------------------------------------------

    async def _open_writer(self) -> None:
        """Create a ledger, name it in the list, then let the waiting appends into it."""
        ledgers = self._storage.ledgers
        try:
            writer = await ledgers.create(
                {
                    "application": b"pulsar",
                    "component": b"managed-ledger",
                    "pulsar/managed-ledger": self.name.encode(),
                }
            )
            first_index = self.next_index - sum(append.messages for append in self._waiting)
            self.chain.segments.append(Segment(writer.ledger_id, first_index))
            try:
                await self._save()
            except BrokerError:
                self.chain.segments.pop()
                await ledgers.delete(writer.ledger_id)
                raise
        except BrokerError as error:
            log.warning("%s: cannot open a ledger: %s", self.name, error)
            if self.state is State.OPENING:
                self.state = State.IDLE
            self._fail_waiting(error)
            self._changed.unpark_all()
            return
        self._writer = writer
        self._readers[writer.ledger_id] = writer
        self._opened_ms = self._storage.clock.wall_ms()
        self.state = State.WRITING
        self._changed.unpark_all()
        waiting, self._waiting = self._waiting, deque()
        for append in waiting:
            self._write(append)

    async def _roll(self) -> None:
        await self._close_writer()
        if self.state is State.ROLLING:
            self.state = State.IDLE
        if self._waiting and self.state is State.IDLE:
            self.state = State.OPENING
            await self._open_writer()
        self._changed.unpark_all()

    async def _close_writer(self) -> None:
        while self._in_flight:
            await self._changed.park()
        writer, self._writer = self._writer, None
        if writer is None:
            return
        segment = self.chain.segments[-1]
        try:
            info = await writer.close()
        except BrokerError as error:
            log.warning("%s: cannot seal ledger %d: %s", self.name, writer.ledger_id, error)
        else:
            segment.size = info.length
        segment.closed_ms = self._storage.clock.wall_ms()
        await self._save()

    async def roll_if_old(self) -> None:
        """Called now and then: a ledger may also end because of its age."""
        if self.state is State.WRITING and self.chain.segments[-1].entries:
            age_ms = self._storage.clock.wall_ms() - self._opened_ms
            segment = self.chain.segments[-1]
            if should_roll(self._storage.roll, segment.entries, segment.size, age_ms):
                await self.roll()

    async def roll(self) -> None:
        """End the ledger being written, so that it may be trimmed; the next append begins one."""
        if self.state is State.WRITING and self.chain.segments[-1].entries:
            self.state = State.ROLLING
            await self._roll()

    # -- metadata -----------------------------------------------------------------------------

    def _encoded(self) -> bytes:
        terminated = self.chain.confirmed if self.state is State.TERMINATED else None
        return formats.encode_managed_ledger(
            formats.ManagedLedgerInfo(
                ledgers=[
                    formats.LedgerEntryInfo(
                        ledger_id=segment.ledger_id,
                        entries=segment.entries if segment.closed_ms else 0,
                        size=segment.size if segment.closed_ms else 0,
                        closed_ms=segment.closed_ms,
                        properties={FIRST_INDEX: str(segment.first_index)},
                    )
                    for segment in self.chain.segments
                ],
                terminated=terminated,
                properties=self.properties,
            )
        )

    async def _save(self) -> None:
        """Write the list, unless another owner has: then this one lets go."""
        async with self._metadata_lock:
            self.properties[NEXT_INDEX] = str(self.next_index)
            try:
                self._version = await self._storage.metadata.put(
                    self.path, self._encoded(), self._version
                )
            except BadVersion as error:
                log.error("%s: another owner has taken this topic over", self.name)
                reason = Fenced("another owner has taken this topic over")
                self._stop(reason)
                raise reason from error

    async def set_property(self, key: str, value: str) -> None:
        """Store a property of the whole log (the topic's epoch, for one)."""
        self.properties[key] = value
        await self._save()

    async def remove_property(self, key: str) -> None:
        if self.properties.pop(key, None) is not None:
            await self._save()

    async def trim(self, doomed: list[int]) -> None:
        """Delete whole ledgers from the front: first from the list, then from storage."""
        gone = [s for s in self.chain.segments if s.ledger_id in doomed and s.closed_ms]
        if not gone:
            return
        self.chain.segments = [s for s in self.chain.segments if s not in gone]
        await self._save()
        for segment in gone:
            self._readers.pop(segment.ledger_id, None)
            await self._storage.ledgers.delete(segment.ledger_id)
        log.info("%s: trimmed %d ledgers", self.name, len(gone))

    # -- reading ------------------------------------------------------------------------------

    def cached(self, position: Position) -> tuple[Slice, int] | None:
        """A cached run of confirmed entries and the place of `position` in it. Plain call."""
        return self._tail.find(*position)

    async def read(self, position: Position, entries_max: int, bytes_max: int) -> Slice:
        """Confirmed entries of one ledger from `position` on; at least one, or `EntryNotFound`."""
        ledger_id, entry_id = position
        reader = self._readers.get(ledger_id)
        if reader is None:
            reader = await self._storage.ledgers.open(ledger_id, recover=False)
            while len(self._readers) >= READERS_MAX:
                self._readers.pop(next(iter(self._readers)))
            self._readers[ledger_id] = reader
        last = min(entry_id + entries_max - 1, reader.last_confirmed)
        if last < entry_id:
            raise EntryNotFound(f"ledger {ledger_id} has no entry {entry_id} yet")
        payloads = await reader.read(entry_id, last, bytes_max)
        return Slice(ledger_id, entry_id, payloads, header.counts_of(payloads))

    def statistics(self) -> LedgerStatistics:
        writer, segments = self._writer, self.chain.segments
        return LedgerStatistics(
            entries_added=self.entries_added,
            entries=self.chain.entries,
            size=self.size,
            open_entries=segments[-1].entries if writer is not None else 0,
            open_size=writer.length if writer is not None else 0,
            opened_ms=self._opened_ms,
            state=self.state.name,
            pending_appends=len(self._waiting) + len(self._in_flight),
        )

    @property
    def size(self) -> int:
        """Bytes of payload in all ledgers of the chain."""
        open_bytes = self._writer.length if self._writer is not None else 0
        return open_bytes + sum(s.size for s in self.chain.segments if s.closed_ms)

    def bytes_after(self, position: Position) -> int:
        """Bytes of payload behind `position`; within one ledger taken as evenly spread."""
        total = 0
        for segment in self.chain.segments:
            entries = self.chain.last_entry_of(segment) + 1
            if segment.ledger_id < position[0] or not entries:
                continue
            size = segment.size
            if self._writer is not None and segment.ledger_id == self._writer.ledger_id:
                size = self._writer.length
            if segment.ledger_id == position[0]:
                size = size * max(entries - position[1] - 1, 0) // entries
            total += size
        return total
