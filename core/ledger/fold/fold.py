"""A fold: state derived from a log, kept over restarts by snapshots and replay.

Theory. A view (who has sent what, which transactions are open) is a function of the entries of one
log, in their order. It lives in memory. Every now and then a snapshot of it is stored, with the
position of the last entry that it covers. After a restart the last snapshot is restored and what is
behind it is replayed. Databases call this a materialized view with a checkpoint; Kafka does so for
its producers (`ProducerStateManager.java` of 4.1), Pulsar for transactions
(`SingleSnapshotAbortedTxnProcessorImpl.java` of 4.2) and deduplication (`MessageDeduplication`).

    state    the view                                 leaves for
    NEW      is empty                                 LIVE by `load` or `begin`, CLOSED
    LIVE     covers every entry that is confirmed     CLOSED by `close` or `delete`
    CLOSED   is of no use any more                    -

Who appends to the log applies the change when it hears that the entry is stored (`done`), because
it knows what is in the entry and need not parse it. `apply` is for replay. A test holds the two
equal.

Invariants:
- A snapshot is taken between two stored runs, without an await. So it covers every entry up to
  `chain.confirmed`, and none behind it.
- `position` says what the last *stored* snapshot covers. It moves when the write is durable.
- An entry leaves the log (retention, limits, a cut, compaction) only when a stored snapshot covers
  it, unless the rules of the view say that it may be forgotten (`holds`). The log asks for that by
  `cover`; if the snapshot fails, the entry stays.
- One snapshot is written at a time. What fails changes nothing: more is replayed after a crash.

Which snapshots are not believed:
- One of another log, that had this name before. Ids of ledgers and times of creation tell.
- One that covers more than the log has, because storage has lost the end of the log. It would say
  of messages that are gone that they are stored.
- One that cannot be decoded.
Then the fold starts over from the first entry that is left. What was known only of entries before
it is lost, and the log line says so.

Damage. Entries that cannot be read (`losses.py`), or that hold no message that anybody can parse,
are skipped: an entry that cannot be recovered must not make a topic unusable.

Two owners. The second one recovers the log, which fences the first, before it reads the snapshot;
so all that the first one may still write is true, but old. It is written over the version that is
known (`core/cluster/owned_record.py`); the loser hears `Fenced` and lets the log go.

What a crash leaves: before the write of a snapshot the former one is there, which is replayed from;
after it the new one. Entries are trimmed after that. So at each step snapshot and log together say
the same.

Users: `core/topic/publishing/deduplication.py`, `core/topic/transaction_buffer.py`,
`wire/kafka/partition/producer_snapshots.py`. What comes next fits: MQTT's retained messages are a
view with `holds` whose `forget_before` does nothing (they outlive their entries) and whose
snapshots are too large for a record of the metadata store, so their store writes a ledger; Pulsar's
transactions are the present view with a second form of entry; schemas are a view with few entries.
"""

from __future__ import annotations

import enum
import logging
from typing import TYPE_CHECKING, Final, Generic, Protocol, TypeVar

import trio
from msgspec import Struct

from magnetar.core.kernel.errors import BrokerError, Corrupted
from magnetar.core.ledger.log.chain import START, Position
from magnetar.core.ledger.write_failure_log import log_name

if TYPE_CHECKING:
    from magnetar.core.ledger.log.managed_ledger import ManagedLedger
    from magnetar.core.ledger.read.tail_cache import Slice
    from magnetar.core.ledger.storage import Storage

log = logging.getLogger(__name__)

UNLIMITED: Final = 1 << 62
"""More entries than any log has."""
READ_ENTRIES: Final = 1_000
READ_BYTES: Final = 4 * 1024 * 1024
"""Replayed before others have a turn."""

Image = TypeVar("Image")
"""What a snapshot holds of a view."""


class View(Protocol[Image]):
    """State that is derived from a log. Pure."""

    def apply(self, sent: bytes, index: int, position: Position, now_ms: int) -> None:
        """Replay one entry. One that is of no interest changes nothing; `Corrupted` likewise."""
        ...

    def forget_before(self, index: int) -> None:
        """The log begins at that message now."""
        ...

    def snapshot(self) -> Image | None:
        """All of it, which nothing changes afterwards; None if there is nothing to store."""
        ...

    def restore(self, image: Image, now_ms: int) -> None:
        """Take over a snapshot; the view is empty."""
        ...


class Snapshot(Struct, Generic[Image], frozen=True):
    """A view as it was when the log ended at `position`."""

    position: Position
    image: Image
    created_ms: int | None = None
    """When its log came into being: 0 in those of older versions, which did not note it; None if
    the snapshot is stored with the log and deleted before it."""


class SnapshotStore(Protocol[Image]):
    """Where the snapshots of one view of one log are: only the last one counts."""

    async def read(self) -> Snapshot[Image] | None:
        """The last one, None if there is none; `Corrupted` if it is unreadable.

        Called once. A former owner cannot write any more when this has returned a snapshot.
        """
        ...

    async def write(self, snapshot: Snapshot[Image]) -> None:
        """Durable when this returns; `Fenced` if another owner has written."""
        ...

    async def close(self, snapshot: Snapshot[Image] | None) -> None:
        """The log is unloaded: the last write, if there is something to write."""
        ...

    async def delete(self) -> None: ...


class SnapshotPolicy(Struct, frozen=True):
    """When snapshots are taken, how much is replayed, and what may be forgotten."""

    name: str
    """Of the view, for log lines."""
    entries: int = UNLIMITED
    """A snapshot is due when so many were stored after the last one."""
    bytes: int = UNLIMITED
    """Or so much payload."""
    pause_ms: int = 0
    """Between two snapshots, however much is stored."""
    replay_entries: int = UNLIMITED
    replay_bytes: int = UNLIMITED
    """Of the end of the log, whichever is less; what is before it is forgotten."""
    holds: bool = True
    """Entries stay in the log until a snapshot covers them."""


class FoldState(enum.Enum):
    NEW = enum.auto()
    LIVE = enum.auto()
    CLOSED = enum.auto()


LEAVES: Final = {
    FoldState.NEW: (FoldState.LIVE, FoldState.CLOSED),
    FoldState.LIVE: (FoldState.CLOSED,),
    FoldState.CLOSED: (),
}


class Fold(Generic[Image]):
    """See the module's docstring."""

    def __init__(
        self,
        storage: Storage,
        ledger: ManagedLedger,
        view: View[Image],
        snapshots: SnapshotStore[Image],
        rules: SnapshotPolicy,
    ) -> None:
        self.state = FoldState.NEW
        self.position: Position = START
        """The stored snapshot covers everything up to here."""
        self._storage = storage
        self._ledger = ledger
        self._view = view
        self._snapshots = snapshots
        self._rules = rules
        self.counts = rules.entries < UNLIMITED or rules.bytes < UNLIMITED
        """Snapshots are due by what is stored, not only when the log is unloaded."""
        self._saving = trio.Lock()
        self._dirty = False
        """The view has changed without an entry, or there is no snapshot of it yet."""
        self._entries = self._bytes = self._taken_ms = 0
        """What the log had taken in, and the time, when the last snapshot was taken."""

    # -- beginning ----------------------------------------------------------------------------

    async def begin(self, *, stored: bool = True) -> None:
        """Start with an empty view: nothing that is stored before this returns concerns it.

        That is stored as well, so that nothing of it is replayed, or left to the next snapshot.
        """
        self._dirty = not stored
        image = self._view.snapshot()
        if stored and image is not None:
            position = self._ledger.chain.confirmed
            await self._snapshots.write(Snapshot(position, image, self._ledger.created_ms))
            self.position = position
        self._live(0, 0)

    async def load(self) -> None:
        """Restore the last snapshot and replay what is behind it.

        Nobody appends what concerns the view meanwhile.
        """
        start = self._ledger.chain.first
        snapshot = await self._read()
        if snapshot is not None:
            self._view.restore(snapshot.image, self._storage.clock.wall_ms())
            self.position = snapshot.position
            start = self._ledger.chain.after(snapshot.position)
        self._dirty = snapshot is None
        await self._replay(max(start, self._replayed_from()))

    async def _read(self) -> Snapshot[Image] | None:
        try:
            snapshot = await self._snapshots.read()
        except Corrupted as error:
            log.error("%s: %s start over from the first entry that is left: %s",
                      self._log_name, self._rules.name, error)  # fmt: skip
            return None
        if snapshot is None or self._is_of_this_log(snapshot):
            return snapshot
        log.warning("%s: %s start over from the first entry that is left: the snapshot at %d:%d is "
                    "of another log, or of more than storage has kept of this one",
                    self._log_name, self._rules.name, *snapshot.position)  # fmt: skip
        return None

    def _is_of_this_log(self, snapshot: Snapshot[Image]) -> bool:
        """Whether this log led to the snapshot, and has lost nothing of what that covers."""
        chain, (ledger_id, entry_id) = self._ledger.chain, snapshot.position
        segment = chain.segment_of(ledger_id)
        if segment is not None:
            return entry_id <= chain.last_entry_of(segment)
        if snapshot.created_ms is not None and snapshot.created_ms != (
            self._ledger.created_ms or None
        ):
            # It may have been trimmed, or be of a log that had this name before: ids of ledgers are
            # never used again. Without a time of creation that is unknown.
            return False
        # Ledgers are trimmed from the front: if one before it is still there, it is lost.
        before = bool(chain.segments) and chain.segments[0].ledger_id < ledger_id
        return not before or snapshot.position <= chain.confirmed

    def _replayed_from(self) -> Position:
        """As far before the end as the rules have it."""
        ledger, chain, rules = self._ledger, self._ledger.chain, self._rules
        left = rules.replay_entries
        if rules.replay_bytes < UNLIMITED and chain.entries:
            left = min(left, rules.replay_bytes * chain.entries // max(ledger.size, 1) + 1)
        position = START
        for segment in reversed(chain.segments):
            if left <= 0:
                break
            entries = chain.last_entry_of(segment) + 1
            position = (segment.ledger_id, max(entries - left, 0))
            left -= entries
        return chain.normal(position)

    async def _replay(self, position: Position) -> None:
        chain, losses = self._ledger.chain, self._ledger.losses
        entries = size = 0
        while chain.has(position):
            part = await losses.read_round(position, READ_ENTRIES, READ_BYTES)
            self._apply(part)
            entries += len(part.payloads)
            size += sum(map(len, part.payloads))
            position = chain.normal((part.ledger_id, part.first_entry + len(part.payloads)))
        self._live(entries, size)  # no await since the end was reached: it is still the end

    def _apply(self, part: Slice) -> None:
        now_ms = self._storage.clock.wall_ms()
        for place in range(len(part.payloads)):
            position = (part.ledger_id, part.first_entry + place)
            try:
                self._view.apply(part.sent(place), part.header(place).first_index, position, now_ms)
            except Corrupted as error:
                log.error("%s: %s pass over the entry at %d:%d: %s",
                          self._log_name, self._rules.name, *position, error)  # fmt: skip

    def _live(self, entries: int, size: int) -> None:
        """From now on changes are applied as entries are stored; so much is behind the snapshot."""
        self._enter(FoldState.LIVE)
        self._entries = self._ledger.entries_added - entries
        self._bytes = self._ledger.writes.bytes - size
        self._ledger.add_follower(self)

    def _enter(self, state: FoldState) -> None:
        assert state in LEAVES[self.state], f"a fold that is {self.state.name} becomes no {state}"
        if self.state is FoldState.LIVE:
            self._ledger.remove_follower(self)
        self.state = state

    # -- snapshots ----------------------------------------------------------------------------

    def changed(self) -> None:
        """The view has changed without an entry: the next snapshot is not the same as the last."""
        self._dirty = True

    def advanced(self) -> None:
        """More is stored: is a snapshot due? Plain call, once a run, if `counts`."""
        ledger, rules = self._ledger, self._rules
        if (
            ledger.entries_added - self._entries < rules.entries
            and ledger.writes.bytes - self._bytes < rules.bytes
        ):
            return
        # a clock that was put back is no reason to wait for years
        if abs(self._storage.clock.wall_ms() - self._taken_ms) >= rules.pause_ms:
            self._count()
            self._storage.spawn(self._save_or_warn)

    def _count(self) -> None:
        self._entries, self._bytes = self._ledger.entries_added, self._ledger.writes.bytes
        self._taken_ms = self._storage.clock.wall_ms()

    async def _save_or_warn(self) -> None:
        try:
            await self.save()
        except BrokerError as error:
            log.warning("%s: no snapshot of %s: %s", self._log_name, self._rules.name, error)

    async def save(self) -> None:
        """Store a snapshot, unless the last one still holds; durable when this returns."""
        async with self._saving:
            snapshot = self._taken() if self.state is FoldState.LIVE else None
            if snapshot is None:
                return
            self._dirty = False
            try:
                await self._snapshots.write(snapshot)
            except BrokerError:
                self._dirty = True
                raise
            self.position = snapshot.position

    def _taken(self) -> Snapshot[Image] | None:
        """A snapshot of now; None if the last one still holds. Plain call: see the invariants."""
        ledger = self._ledger
        position = ledger.chain.confirmed
        if position == self.position and not self._dirty:
            return None
        segments = ledger.chain.segments
        self._view.forget_before(segments[0].first_index if segments else 0)
        self._count()
        image = self._view.snapshot()
        return None if image is None else Snapshot(position, image, ledger.created_ms)

    async def cover(self, position: Position) -> None:
        """The entries up to there are to leave the log: store what they led to."""
        if self._rules.holds and self.position < position:
            await self.save()

    # -- the end ------------------------------------------------------------------------------

    async def close(self) -> None:
        """The log is unloaded, and nothing is on its way to it.

        If the last snapshot cannot be stored, more is replayed by the next owner, nothing else.
        """
        async with self._saving:
            if self.state is not FoldState.LIVE:
                return
            snapshot = self._taken()
            self._enter(FoldState.CLOSED)
            if self._ledger.fenced:
                return
            try:
                await self._snapshots.close(snapshot)
            except BrokerError as error:
                log.warning(
                    "%s: no last snapshot of %s: %s", self._log_name, self._rules.name, error
                )

    async def delete(self) -> None:
        """The log is deleted, or the view is of no use any more."""
        async with self._saving:
            await self._snapshots.delete()
            if self.state is not FoldState.CLOSED:
                self._enter(FoldState.CLOSED)

    @property
    def _log_name(self) -> str:
        return log_name(self._ledger.name)
