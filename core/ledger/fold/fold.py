"""A fold: state derived from a log, which snapshots and replay restore after a restart.

Theory. A view (sequence ids of producers, open transactions) is a function of the entries of one
log, in order. It is in memory. A snapshot of it is stored from time to time, with the position of
the last entry that it covers. After a restart the last snapshot is restored, and the entries after
it are replayed. Databases call this a materialized view with a checkpoint; Kafka does it for
producers (`ProducerStateManager.java` of 4.1), Pulsar for transactions
(`SingleSnapshotAbortedTxnProcessorImpl.java` of 4.2) and deduplication (`MessageDeduplication`).

    state    the view                         leaves for
    NEW      is empty                         LIVE by `load` or `begin`, CLOSED
    LIVE     covers every confirmed entry     CLOSED by `close` or `delete`
    CLOSED   is no longer used                -

The code that appends an entry applies the change when the entry is stored (`done`), because it
knows the contents and need not parse them. `apply` is for replay. A test compares the two.

Invariants:
- A snapshot is taken between two stored runs, without an await. So it covers every entry up to
  `chain.confirmed`, and none after it.
- `position` is what the last *stored* snapshot covers. It moves when the write is durable.
- Where the policy says `holds`, an entry leaves the log (retention, limits, a cut, compaction) only
  when a stored snapshot covers it. The log calls `cover` before; if the snapshot fails, the entry
  stays.
- One snapshot is written at a time. A failed write changes nothing but the length of a replay.

A snapshot is discarded if
- it belongs to an earlier log of the same name, which ledger ids and times of creation reveal;
- it covers more than the log has, because storage has lost the end of the log: it would claim that
  lost messages are stored;
- it cannot be decoded.
Then the fold starts over from the first remaining entry. What only earlier entries held is lost, as
the log line says.

Damage. Entries that cannot be read (`losses.py`) or parsed are skipped: an entry that cannot be
recovered must not make a topic unusable.

Two owners. The second one recovers the log, which fences the first, before it reads the snapshot,
so a snapshot that the first one still writes is old but true. It is written over the known version
(`core/cluster/owned_record.py`); an owner that gets `Fenced` gives up the log, and one that has
lost the log writes no last snapshot.

What a crash leaves: before the write of a snapshot, the former one, from which more is replayed;
after it, the new one. Entries are trimmed after that. At each step the snapshot and the log
together give the same view.

Users: `core/topic/publishing/deduplication.py`, `core/topic/transaction_buffer.py`,
`wire/kafka/partition/producer_snapshots.py`.
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
"""Replayed before other tasks run."""

Image = TypeVar("Image")
"""The contents of a view, as a snapshot holds them."""


class View(Protocol[Image]):
    """State that is derived from a log. Pure."""

    def apply(self, sent: bytes, index: int, position: Position, now_ms: int) -> None:
        """Replay one entry; many change nothing. `Corrupted` if it cannot be parsed."""
        ...

    def forget_before(self, index: int) -> None:
        """The log begins at that message now."""
        ...

    def snapshot(self) -> Image | None:
        """A copy of all state; None if there is nothing to store."""
        ...

    def restore(self, image: Image, now_ms: int) -> None:
        """Restore the state from a snapshot; the view is empty before."""
        ...


class Snapshot(Struct, Generic[Image], frozen=True):
    """A view as it was when the log ended at `position`."""

    position: Position
    image: Image
    created_ms: int | None = None
    """When its log was created: 0 if an older version wrote the snapshot; None if the snapshot is
    stored with the log and deleted before it."""


class SnapshotStore(Protocol[Image]):
    """Stores the snapshots of one view of one log; only the last one counts."""

    async def read(self) -> Snapshot[Image] | None:
        """The last one, None if there is none; `Corrupted` if it is unreadable.

        Called once. Once this has returned a snapshot, a former owner can no longer write.
        """
        ...

    async def write(self, snapshot: Snapshot[Image]) -> None:
        """Durable when this returns; `Fenced` if another owner has written."""
        ...

    async def close(self, snapshot: Snapshot[Image] | None) -> None:
        """The log is unloaded: write the last snapshot, if there is one."""
        ...

    async def delete(self) -> None: ...


class SnapshotPolicy(Struct, frozen=True):
    """When snapshots are taken, how much is replayed, and whether entries wait for snapshots."""

    name: str
    """The name of the view in log lines."""
    entries: int = UNLIMITED
    """A snapshot is due when so many entries were stored after the last one."""
    bytes: int = UNLIMITED
    """A snapshot is due when so much payload was stored after the last one."""
    pause_ms: int = 0
    """The least time between two snapshots, however much is stored."""
    replay_entries: int = UNLIMITED
    replay_bytes: int = UNLIMITED
    """The most that is replayed from the end of the log; earlier entries are ignored."""
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
        """The last stored snapshot covers all entries up to here."""
        self._storage = storage
        self._ledger = ledger
        self._view = view
        self._snapshots = snapshots
        self._rules = rules
        self.counts = rules.entries < UNLIMITED or rules.bytes < UNLIMITED
        """Whether snapshots are taken while the log is loaded, not only when it is unloaded."""
        self._saving = trio.Lock()
        self._dirty = False
        """The view has changed without an entry, or no snapshot of it is stored yet."""
        self._entries = self._bytes = self._taken_ms = 0
        """Entries and bytes appended to the log, and the time, as of the last snapshot."""

    # -- beginning ----------------------------------------------------------------------------

    async def begin(self, *, stored: bool = True) -> None:
        """Start with an empty view: no entry stored before this returns concerns it.

        With `stored`, an empty snapshot says so after a restart, and no such entry is replayed.
        """
        self._dirty = not stored
        image = self._view.snapshot()
        if stored and image is not None:
            position = self._ledger.chain.confirmed
            await self._snapshots.write(Snapshot(position, image, self._ledger.ledgers.created_ms))
            self.position = position
        self._live(0, 0)

    async def load(self) -> None:
        """Restore the last snapshot and replay the entries after it.

        The caller appends no entry that concerns the view meanwhile.
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
        """Whether the snapshot is of this log, which has lost no entry that it covers."""
        chain, (ledger_id, entry_id) = self._ledger.chain, snapshot.position
        segment = chain.segment_of(ledger_id)
        if segment is not None:
            return entry_id <= chain.last_entry_of(segment)
        if snapshot.created_ms is not None and snapshot.created_ms != (
            self._ledger.ledgers.created_ms or None
        ):
            # The ledger was trimmed, or belongs to an earlier log of this name: ledger ids are
            # never used again. Without a time of creation the two cannot be distinguished.
            return False
        # Ledgers are trimmed from the front: if an earlier one is still there, this one is lost.
        before = bool(chain.segments) and chain.segments[0].ledger_id < ledger_id
        return not before or snapshot.position <= chain.confirmed

    def _replayed_from(self) -> Position:
        """The position from which the policy allows a replay."""
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
        """Enter LIVE; `entries` and `size` were replayed after the snapshot."""
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
        """The view has changed without an entry, so the last snapshot does not cover it."""
        self._dirty = True

    def advanced(self) -> None:
        """A run is stored: take a snapshot if one is due. Plain call, only if `counts`."""
        ledger, rules = self._ledger, self._rules
        if (
            ledger.entries_added - self._entries < rules.entries
            and ledger.writes.bytes - self._bytes < rules.bytes
        ):
            return
        # abs: a clock that was set back must not delay snapshots for years
        if abs(self._storage.clock.wall_ms() - self._taken_ms) >= rules.pause_ms:
            self._count()
            self._storage.spawn(self._save_or_warn)

    async def save_if_old(self, age_ms: int) -> None:
        """Store a snapshot if the last one was taken that long ago; a failure is logged."""
        if abs(self._storage.clock.wall_ms() - self._taken_ms) >= age_ms:
            await self._save_or_warn()

    def _count(self) -> None:
        self._entries, self._bytes = self._ledger.entries_added, self._ledger.writes.bytes
        self._taken_ms = self._storage.clock.wall_ms()

    async def _save_or_warn(self) -> None:
        try:
            await self.save()
        except BrokerError as error:
            log.warning("%s: no snapshot of %s: %s", self._log_name, self._rules.name, error)

    async def save(self) -> None:
        """Store a snapshot, unless the last one is current; durable when this returns."""
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
        """A new snapshot; None if the last one is current. Plain call: see the invariants."""
        ledger = self._ledger
        position = ledger.chain.confirmed
        if position == self.position and not self._dirty:
            return None
        segments = ledger.chain.segments
        self._view.forget_before(segments[0].first_index if segments else 0)
        self._count()
        image = self._view.snapshot()
        return None if image is None else Snapshot(position, image, ledger.ledgers.created_ms)

    async def cover(self, position: Position) -> None:
        """Store a snapshot that covers the entries up to `position`, before they are deleted."""
        if self._rules.holds and self.position < position:
            await self.save()

    # -- the end ------------------------------------------------------------------------------

    async def close(self) -> None:
        """The log is unloaded, and no append is in flight: store the last snapshot.

        If that fails, the next owner replays more.
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
        """Delete the snapshots: the log is deleted, or the view is no longer used."""
        async with self._saving:
            await self._snapshots.delete()
            if self.state is not FoldState.CLOSED:
                self._enter(FoldState.CLOSED)

    @property
    def _log_name(self) -> str:
        return log_name(self._ledger.name)
