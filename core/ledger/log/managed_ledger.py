"""A managed ledger: the endless log of one topic, made of ledgers that end.

Theory. At most one ledger is open for writing. The first append creates it, and so does the first
one after each roll; Pulsar creates it when the topic is loaded (`ManagedLedgerImpl.initialize` of
4.2), which costs an idle topic a ledger. An append gets its index (the running count of messages,
PIP-70) when it is written, and its position when storage confirms it:

    state       append              leaves for (each also for CLOSED)
    IDLE        waits, opens one    OPENING, or TERMINATED
    OPENING     waits               WRITING, or IDLE with every waiting append failed
    WRITING     goes to storage     ROLLING when the ledger is full or a write failed
    ROLLING     waits               OPENING once nothing is in flight and the ledger is sealed,
                                    IDLE if nothing waits
    TERMINATED  is refused          -
    CLOSED      is refused          -   (unloaded, deleted, or taken over by another owner)

`LEAVES` is that table, and is enforced (like the tables of h11). One task each leaves OPENING
and ROLLING. It runs in the broker's nursery, so the cancellation of a caller leaves nothing half
done. A ledger that was fenced does not mean that the log has another owner, as the list would: if
that is still ours, appends go on in another ledger, and nobody hears of it (`fenced_appends.py`).

Invariants: appends are confirmed in order, each once; `confirmed` never moves back; nothing after
`confirmed` is ever read; no index is given twice (a failed append leaves a gap).

Not here: `ledger_list.py`, `removal.py`, `recovery.py`, cursors, readers, the meaning of entries.
"""

from __future__ import annotations

import enum
import logging
from collections import deque
from collections.abc import Callable, Iterable
from typing import Final

import trio

from magnetar.core.entry import header
from magnetar.core.kernel.errors import BrokerError, EntryNotFound, Fenced, Terminated
from magnetar.core.ledger.buckets.delayed_index import DelayedIndex
from magnetar.core.ledger.ledger_owner import delete_own, properties_of
from magnetar.core.ledger.log import removal
from magnetar.core.ledger.log.appends import Append, Appended, joined
from magnetar.core.ledger.log.chain import Position, Segment
from magnetar.core.ledger.log.fenced_appends import FencedAppends
from magnetar.core.ledger.log.follower import Follower
from magnetar.core.ledger.log.ledger_list import LedgerList
from magnetar.core.ledger.log.ledger_list_record import MIXED as MIXED
from magnetar.core.ledger.log.log_rules import LogRules
from magnetar.core.ledger.log.row_numbers import note_end
from magnetar.core.ledger.log.statistics import LedgerStatistics, WriteStatistics
from magnetar.core.ledger.log.trim import should_roll
from magnetar.core.ledger.read.latest_time import UNKNOWN_TIME, LatestTime
from magnetar.core.ledger.read.losses import DAMAGE, Losses
from magnetar.core.ledger.read.readers import Readers
from magnetar.core.ledger.read.sparse import Sparse
from magnetar.core.ledger.read.tail_cache import Slice, TopicTail
from magnetar.core.ledger.read.time_lookup import Times
from magnetar.core.ledger.read.transaction_index import TransactionIndex
from magnetar.core.ledger.storage import Storage
from magnetar.core.ledger.write_failure_log import WriteFailureLog, log_name
from magnetar.core.ports.ledger_store import LedgerReader, LedgerWriter

log = logging.getLogger(__name__)


class LogState(enum.Enum):
    IDLE = enum.auto()
    OPENING = enum.auto()
    WRITING = enum.auto()
    ROLLING = enum.auto()
    TERMINATED = enum.auto()
    CLOSED = enum.auto()


LEAVES: Final = {
    LogState.IDLE: (LogState.OPENING, LogState.TERMINATED, LogState.CLOSED),
    LogState.OPENING: (LogState.WRITING, LogState.IDLE, LogState.CLOSED),
    LogState.WRITING: (LogState.ROLLING, LogState.CLOSED),
    LogState.ROLLING: (LogState.OPENING, LogState.IDLE, LogState.CLOSED),
    LogState.TERMINATED: (LogState.CLOSED,),
    LogState.CLOSED: (),
}
"""The states that may follow each state."""

IDLE: Final = LogState.IDLE
WRITING: Final = LogState.WRITING
CLOSED: Final = LogState.CLOSED
"""A lookup of a member by its class costs 75 ns, and each append would do three."""


class ManagedLedger:
    """See the module's docstring."""

    def __init__(
        self,
        storage: Storage,
        name: str,
        advanced: Callable[[], None],
        lost: Callable[[], None] = lambda: None,
    ) -> None:
        """`advanced` is called when more may be read, `lost` when another owner takes over."""
        self.name, self._log_name = name, log_name(name)
        self.state = LogState.IDLE
        self.fenced = False  # another owner has taken over: nothing of the log is written any more
        self.next_index = self.entries_added = 0
        self.ledgers = LedgerList(storage, name, lambda: self.next_index, self.fence)
        self.path, self.chain = self.ledgers.path, self.ledgers.chain
        self.properties, self.notice = self.ledgers.properties, self.ledgers.notice
        self.pending_bytes = 0  # payload given to `append` and not yet confirmed or failed
        self.written_ms = 0  # when storage was last given something, 0 for never
        self.writes, self.transactions = WriteStatistics(), TransactionIndex(self.notice)
        self.followers: tuple[Follower, ...] = ()  # whose state is derived from it
        self.rules, self._tailed = LogRules(storage.roll), False  # the tail is cached for readers
        self.latest_time, self.times, self.losses = LatestTime(), Times(self), Losses(self)
        self.delayed_index = DelayedIndex(storage, self)
        self._storage, self._tail = storage, TopicTail(storage.cache)
        self._now, self._wall_ms = storage.clock.monotonic, storage.clock.wall_ms
        self._advanced, self._lost = advanced, lost
        self._refusal: BrokerError | None = None  # why nothing is appended any more
        self._writer: LedgerWriter | None = None
        self._waiting, self._in_flight = deque[Append](), deque[Append]()
        self._trouble, self._fenced = WriteFailureLog(), FencedAppends()
        self._delivering: Append | None = None  # the one whose callbacks run
        self._readers = Readers(storage.ledgers, name)
        self._sparse = Sparse(self._readers)
        self._ending_lock = trio.Lock()  # closing and terminating happen one at a time
        self._changed = trio.lowlevel.ParkingLot()

    # -- opening and closing ------------------------------------------------------------------

    async def open(self) -> None:
        """Read the list and find the end of the log; an open ledger is recovered and fenced."""
        found = await self.ledgers.open()
        if found is None:
            return
        self.next_index = found.next_index
        if found.terminated is not None:
            self._end(LogState.TERMINATED, Terminated("the topic is terminated"))
        if found.changed:
            await self.ledgers.save()
        if found.doomed:
            # They stay in the record until they are deleted: a crash in between leaves none over.
            await self.delete_ledgers(found.doomed)
            await self.ledgers.spare(found.doomed)
            await self.ledgers.save()

    async def close(self) -> None:
        """Refuse appends, wait for those in flight, and seal the open ledger."""
        self._refusal = self._refusal or Fenced("the topic is being unloaded")
        async with self._ending_lock:
            await self._seal()
            if self.state is not CLOSED:  # another owner may have taken it over
                self._stop(Fenced("the topic is being unloaded"))

    async def claim(self) -> None:
        """Fence any other owner by a write of the list; `Fenced` if that owner wrote before."""
        await self.ledgers.save()

    async def delete(self) -> None:
        """Delete the list, then the ledgers that it named."""
        await self.close()
        await self.delete_ledgers(await self.ledgers.delete())

    async def terminate(self) -> Position:
        """End the log for ever; returns its last position."""
        async with self._ending_lock:
            if self.state is LogState.TERMINATED:
                return self.chain.confirmed
            if self._refusal is not None:
                raise Fenced("the topic is being unloaded")
            self._refusal = Terminated("the topic is terminated")
            try:
                await self._seal()
                self.transactions.check_none_open()  # nothing is in flight that could begin one
                await self.ledgers.terminate(self.chain.confirmed)
            except BaseException:
                if self.state is not LogState.CLOSED:
                    self._refusal = None
                raise
            self._end(LogState.TERMINATED, self._refusal)
        return self.chain.confirmed

    def fence(self, reason: Fenced) -> None:
        """Stop writing: another owner has taken over."""
        if self.state is not LogState.CLOSED:
            self.fenced, lost = True, self._lost
            log.error("%s: %s", self._log_name, reason)
            self._stop(reason)
            lost()

    def _stop(self, reason: BrokerError) -> None:
        self._end(LogState.CLOSED, reason)
        self._advanced = self._lost = lambda: None  # else only the collector frees the topic
        self.ledgers.close()
        self._tail.clear()
        self._readers.clear()
        self._sparse.clear()
        self.delayed_index.close(self)

    def _enter(self, state: LogState) -> None:
        if state not in LEAVES[self.state]:
            raise RuntimeError(f"a log that is {self.state.name} does not become {state.name}")
        self.state = state

    def _end(self, state: LogState, reason: BrokerError) -> None:
        self._enter(state)
        self._refusal = reason
        self._fail([*self._fenced.taken(), *self._taken_waiting()], reason)
        self._changed.unpark_all()

    async def _seal(self) -> None:
        """Wait for appends in flight, and seal the ledger being written, if there is one."""
        while self.state in (LogState.OPENING, LogState.WRITING, LogState.ROLLING):
            if self.state is LogState.WRITING:
                self._begin_roll()
            await self._changed.park()

    @property
    def terminated(self) -> bool:
        return self.state is LogState.TERMINATED

    # -- appending ----------------------------------------------------------------------------

    def append(self, payloads: list[bytes], counts: list[int] | None, done: Appended) -> int:
        """Store a run; returns its size in bytes. Plain call.

        `done` is called with the position of its first entry, or with an error.
        """
        if self._refusal is not None:
            done(self._refusal)
            return 0
        waiting = self._waiting
        first = not waiting
        # all appends of one sweep have the same time, so the clock is read once
        began = self._now() if first else waiting[-1].began
        append = Append(payloads, counts, done, began)
        self.pending_bytes += append.size
        waiting.append(append)
        if self.state is IDLE:
            self._enter(LogState.OPENING)
            self._storage.spawn(self._open_writer)
        elif first and self.state is WRITING:
            if self._storage.gather is None:
                self.write()
            else:
                self._storage.gather(self)
        return append.size

    def delivered_index(self, position: Position) -> int:
        """The index of the first message at `position`, within the `done` that was given it."""
        assert self._delivering is not None, "no callback runs"
        return self._delivering.index_of(position[1])

    @property
    def first_index(self) -> int:
        """The index of the first message; `confirmed_index` if there is none."""
        return self.chain.first_index(self.confirmed_index)

    @property
    def confirmed_index(self) -> int:
        """All messages with a lower index may be read; Kafka's high watermark."""
        waiting = self._fenced.first or (self._in_flight[0] if self._in_flight else None)
        return self.next_index if waiting is None else waiting.first_index

    @property
    def at_rest(self) -> bool:
        """Whether nothing is being written, so that the next change of the end is noticed."""
        return not self._in_flight and not self._fenced and self.state is not CLOSED

    def write(self) -> None:
        """Write all waiting appends to storage, in as few runs as possible."""
        if self.state is not WRITING:
            return
        for append in joined(self._taken_waiting()):
            self._write(append)

    def _write(self, append: Append) -> None:
        writer = self._writer
        assert writer is not None
        if self.notice.marks is not None:
            self.notice.changed()
        entries, counts = len(append.payloads), append.counts
        self.written_ms = now_ms = self._wall_ms()
        append.first_index = self.next_index
        append.headers = header.headers(entries, counts, now_ms, self.next_index)
        if MIXED in self.properties:
            self.latest_time.note(append.payloads)
        self.next_index += entries if counts is None else sum(counts)
        self._in_flight.append(append)
        append.written = self._now()
        append.entry_id = writer.append(append.payloads, self._stored, append.headers)

    def _stored(self, error: BrokerError | None) -> None:
        """The oldest run in flight is stored, or has failed."""
        append = self._in_flight.popleft()
        self.pending_bytes -= append.size
        if error is not None:
            self.notice.leave()  # what is in flight, or waits, may end in any way
            self._write_failed(append, error)
            return
        if self._trouble.kind is not None:
            self._trouble.ended(self._log_name)
        writer = self._writer
        assert writer is not None, "it ends once nothing is in flight"
        segment = self.ledgers.grow(append.end, writer.length)
        if self.notice.marks is not None:
            note_end(self.notice, self.chain, self.transactions, self.confirmed_index)
        self._confirm(append, segment.ledger_id)
        if self.state is not WRITING or self._is_full(segment):
            self._roll_or_wake()

    def _confirm(self, append: Append, ledger_id: int) -> None:
        """A run is stored: tell all who wait for it."""
        entries, first = len(append.payloads), append.entry_id
        self.entries_added += entries
        now = self._now()
        self.writes.stored(entries, append.size, now - append.began, now - append.written)
        if self._tailed and self.state is not CLOSED:
            self._tail.add(Slice(ledger_id, first, append.payloads, append.counts, append.headers))
        before, self._delivering = self._delivering, append
        append.report((ledger_id, first))
        self._delivering = before  # nobody keeps its payloads because of that
        self._advanced()
        for follower in self.followers:
            if follower.counts:
                follower.advanced()

    def _is_full(self, segment: Segment) -> bool:
        roll = self.rules.roll
        if segment.entries < roll.entries_max and segment.size < roll.bytes_max:
            return False
        age_ms = self._wall_ms() - segment.begun_ms
        return should_roll(roll, segment.entries, segment.size, age_ms)

    def _write_failed(self, append: Append, error: BrokerError) -> None:
        """Fail all later appends too, so that no message is stored before an earlier one.

        Appends that wait fail here; those in flight fail or succeed in turn. The writer may be
        unusable: the ledger ends after what is confirmed (as in `ManagedLedgerImpl.ledgerClosed`).
        """
        if self.state is not CLOSED and not self._trouble.kind and self._fenced.accepts(error):
            self.pending_bytes += append.size
            self._fenced.add(append)
            self._roll_or_wake()
            return
        behind = self._taken_waiting()
        if self.state is LogState.WRITING:
            self._trouble.began(self._log_name, "a write failed", error)
        self._roll_or_wake()
        append.report(error)
        self._fail(behind, error)
        self._fail(self._taken_waiting(), error)  # appended by those callbacks

    def _roll_or_wake(self) -> None:
        """End the ledger; wake the task that does once no run is in flight."""
        if self.state is WRITING:
            self._begin_roll()
        elif not self._in_flight:
            self._changed.unpark_all()

    def _taken_waiting(self) -> deque[Append]:
        waiting, self._waiting = self._waiting, deque()
        return waiting

    def _fail(self, appends: Iterable[Append], error: BrokerError) -> None:
        for append in appends:
            self.pending_bytes -= append.size
            append.report(error)

    # -- opening and rolling ledgers ----------------------------------------------------------

    async def _open_writer(self) -> None:
        """The task of OPENING: create a ledger for the waiting appends, or fail them."""
        try:
            writer = await self._new_ledger()
        except BrokerError as error:
            self._trouble.began(self._log_name, "cannot open a ledger", error)
            if self.state is LogState.OPENING:
                self._enter(LogState.IDLE)
            self._fail(self._taken_waiting(), error)
            self._changed.unpark_all()
            return
        if self.state is LogState.OPENING:  # else another owner seals the new ledger
            self._writer = writer
            self._enter(LogState.WRITING)
        self._changed.unpark_all()
        self.write()

    async def _new_ledger(self) -> LedgerWriter:
        """Create a ledger and name it in the list, before anything is written into it."""
        writer = await self.create()
        now_ms = self._wall_ms()
        segment = Segment(writer.ledger_id, self.next_index, begun_ms=now_ms)
        self.latest_time.begin(mixed=self.mixed)
        try:
            await self.ledgers.add(segment)
        except BrokerError:
            await self.delete_ledgers([writer.ledger_id])
            raise
        return writer

    async def create(self) -> LedgerWriter:
        """A ledger that no list names yet; metadata as Pulsar's (`LedgerMetadataUtils.java`)."""
        return await self._storage.ledgers.create(properties_of(self.name), self.rules.quorums)

    def _begin_roll(self) -> None:
        self._enter(LogState.ROLLING)
        self._storage.spawn(self._roll)

    async def _roll(self) -> None:
        """The task of ROLLING: seal the ledger, and create the next one if appends wait."""
        while self._in_flight:
            await self._changed.park()
        writer = self._writer
        assert writer is not None, "only a ledger being written is ended"
        try:
            await self._end_ledger(writer)
        except BrokerError as error:
            # housekeeping seals it later (`seal_ragged`), or recovery does
            log.warning(
                "%s: ledger %d has a ragged end: %s", self._log_name, writer.ledger_id, error
            )
            if self._fenced:
                self._fail([*self._fenced.taken(), *self._taken_waiting()], error)
        if self.state is LogState.ROLLING:
            self._enter(LogState.OPENING if self._waiting else LogState.IDLE)
            if self._waiting:
                await self._open_writer()
        self._changed.unpark_all()

    async def _end_ledger(self, writer: LedgerWriter) -> None:
        fenced, size = bool(self._fenced), 0
        try:
            size = (await writer.close()).length
        except Fenced:
            if not fenced:
                raise
        finally:
            self._writer = None  # reads use it until now, because opening the ledger would fence it
        properties = self.latest_time.noted() if self.mixed else {}
        if not fenced:
            await self.ledgers.end(size, properties)
            return self._fenced.ended_well()
        for append in self._fenced.stored_in(await self.ledgers.end_fenced(properties)):
            self.pending_bytes -= append.size
            self._confirm(append, writer.ledger_id)
        self._waiting.extendleft(reversed(self._fenced.taken()))

    async def roll_if_old(self) -> None:
        """End the ledger being written if it is old enough; called by housekeeping."""
        if self.state in (LogState.IDLE, LogState.WRITING):
            written = self._writer.ledger_id if self._writer is not None else None
            await self.ledgers.seal_ragged(written, UNKNOWN_TIME)
        if self.state is LogState.WRITING and (segment := self.chain.segments[-1]).entries:
            age_ms = self._wall_ms() - segment.begun_ms
            if should_roll(self.rules.roll, segment.entries, segment.size, age_ms):
                await self.roll()

    async def roll(self) -> None:
        """End the ledger being written, so that it may be trimmed; the next append creates one."""
        rolls = self.state is LogState.WRITING and self.chain.segments[-1].entries > 0
        if rolls:
            self._begin_roll()
        while rolls and self.state is LogState.ROLLING:
            await self._changed.park()

    # -- metadata -----------------------------------------------------------------------------

    async def set_property(self, key: str, value: str | None) -> None:
        """Store a property of the log, such as the topic's epoch; None removes it."""
        await self.ledgers.set_property(key, value)

    def cache_tail(self, readers: bool) -> None:
        """Set whether the tail is cached, because there are readers."""
        self._tailed = readers

    def add_follower(self, follower: Follower) -> None:
        """Have a fold follow the log: no entry leaves it before the fold has covered that."""
        self.followers = (*self.followers, follower)

    def remove_follower(self, follower: Follower) -> None:
        self.followers = tuple(one for one in self.followers if one is not follower)

    @property
    def mixed(self) -> bool:
        """Whether entries may have another form than the native one."""
        return MIXED in self.properties

    def note(self, segment: Segment, key: str, value: str) -> None:
        """Give a ledger a property computed from its entries; it is stored with the next change."""
        self.ledgers.note(segment, key, value)

    async def trim(self, doomed: list[int]) -> None:
        """Delete whole ledgers from the front: first from the list, then from storage."""
        trimmed = await removal.trim(self, doomed)
        if trimmed:
            log.info("%s: trimmed %d ledgers", self._log_name, trimmed)

    async def cut(self, index: int, position: Position) -> None:
        """Have the log begin with that message, which is in the entry at `position`."""
        if position > self.chain.confirmed:
            await self.roll()
        await removal.cut(self, index, position)

    async def delete_ledgers(self, ledger_ids: Iterable[int]) -> None:
        """Delete ledgers that no list names; one that cannot be deleted is logged and stays."""
        for ledger_id in ledger_ids:
            self._readers.forget(ledger_id)
            self.losses.forget(ledger_id)
            await delete_own(self._storage.ledgers, ledger_id, self.name)

    # -- reading ------------------------------------------------------------------------------

    def cached(self, position: Position) -> tuple[Slice, int] | None:
        """A cached run of confirmed entries and the place of `position` in it. Plain call."""
        return self._tail.find(*position)

    def read_at_once(self, position: Position, entries_max: int, bytes_max: int) -> Slice | None:
        """As `read`, of entries in memory; None if they must be loaded. Plain call."""
        ledger_id, entry_id = position
        reader: LedgerReader | None = self._writer_of(ledger_id)
        if reader is None:
            segment = self.chain.segment_of(ledger_id)
            if segment is None or segment.remaining is not None:
                return None
            reader = self._readers.at_once(ledger_id)
        if reader is None:
            return None
        found = reader.read_at_once(entry_id, entry_id + entries_max - 1, bytes_max)
        return Slice(ledger_id, entry_id, found, header.counts_of(found)) if found else None

    def _writer_of(self, ledger_id: int) -> LedgerWriter | None:
        """The writer of that ledger, which also reads it, if it is open."""
        writer = self._writer
        return writer if writer is not None and writer.ledger_id == ledger_id else None

    async def read(self, position: Position, entries_max: int, bytes_max: int) -> Slice:
        """Confirmed entries of one ledger from `position` on, at least one; raises `EntryNotFound`,
        or `Corrupted` if the first one is lost, which `losses` then knows.
        """
        rewritten = self.chain.rewritten
        try:
            return await self._read(position, entries_max, bytes_max)
        except BrokerError:
            if rewritten == self.chain.rewritten:
                raise
        return await self._read(position, entries_max, bytes_max)  # compaction has moved them

    async def _read(self, position: Position, entries_max: int, bytes_max: int) -> Slice:
        ledger_id, entry_id = position
        reader: LedgerReader | None = self._writer_of(ledger_id)
        segment = self.chain.segment_of(ledger_id)
        try:
            if reader is None:
                stored_in = ledger_id if segment is None else segment.stored_in
                reader = await self._readers.get(stored_in)
                if segment is not None and segment.remaining is not None:
                    return await self._sparse.read(segment, entry_id, entries_max, bytes_max)
            last = min(entry_id + entries_max - 1, reader.last_confirmed)
            if last < entry_id:
                raise EntryNotFound(f"ledger {ledger_id} has no entry {entry_id} yet")
            payloads = await reader.read(entry_id, last, bytes_max)
        except DAMAGE as error:
            raise await self.losses.learn(position, segment, reader, error) from error
        self.losses.readable(position)
        return Slice(ledger_id, entry_id, payloads, header.counts_of(payloads))

    @property
    def skips_lost(self) -> bool:
        """Whether readers skip lost entries without an operator's order."""
        return self._storage.skips_lost

    def statistics(self) -> LedgerStatistics:
        writer, segments = self._writer, self.chain.segments
        return LedgerStatistics(
            entries_added=self.entries_added,
            entries=self.chain.entries,
            size=self.size,
            open_entries=segments[-1].entries if writer is not None else 0,
            open_size=self.open_bytes,
            opened_ms=segments[-1].begun_ms if segments else 0,
            state=self.state.name,
            pending_appends=len(self._waiting) + len(self._in_flight),
        )

    @property
    def size(self) -> int:
        """Bytes of payload in all ledgers of the chain."""
        return self.open_bytes + sum(s.size for s in self.chain.segments if s.closed_ms)

    def bytes_after(self, position: Position) -> int:
        """Bytes of payload after `position`, estimated; see `Chain.bytes_after`."""
        return self.chain.bytes_after(position, self.open_bytes)

    @property
    def open_bytes(self) -> int:
        """Bytes of payload in the ledger that is being written."""
        return self._writer.length if self._writer is not None else 0
