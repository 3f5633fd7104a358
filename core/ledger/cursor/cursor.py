"""A cursor: the position of one subscription in one log, which survives restarts.

Theory. The state is in memory (`AckState`). It is saved by appending a snapshot to a small ledger
of the cursor; its znode names that ledger, or holds the state itself after a clean close
(`cursor_store.py`). Only the last snapshot counts. Pulsar does the same
(`ManagedCursorImpl.java` of 4.2).

    dirty  --flush--> saving --stored--> clean, or dirty again if acknowledgements came meanwhile

A save follows a change after a short interval, or a longer one if a policy says so
(`log_rules.py`); after a crash the messages acknowledged last may be delivered again: at least
once. A receipt of an acknowledgement (PIP-54) is sent only when a snapshot that includes it is
stored, which is at once. A failed save is tried again after a pause, or at once when a caller waits
for a receipt.

Invariants: one save at a time; nothing is saved as acknowledged that is not; holes beyond the limit
are not saved, so their messages may be delivered again.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from math import inf
from typing import Final

import trio

from magnetar.core.entry.form import TransactionKey
from magnetar.core.kernel.completion import Completion
from magnetar.core.kernel.errors import BrokerError, Fenced
from magnetar.core.kernel.structs import FrozenStruct
from magnetar.core.ledger import formats
from magnetar.core.ledger.cursor.acks import AckState, Range
from magnetar.core.ledger.cursor.cursor_store import CursorRecord
from magnetar.core.ledger.cursor.pending_acks import (
    NOTHING,
    EntryRange,
    HeldPart,
    PendingAcks,
    Released,
)
from magnetar.core.ledger.log.chain import Position
from magnetar.core.ledger.log.managed_ledger import ManagedLedger
from magnetar.core.ledger.read.tail_cache import Slice
from magnetar.core.ledger.storage import Storage
from magnetar.core.ledger.write_failure_log import WriteFailureLog, log_name
from magnetar.core.ports.ledger_store import Done, LedgerWriter

log = logging.getLogger(__name__)

HOLES_SAVED_MAX: Final = 10_000
"""Acknowledged ranges in one snapshot (`managedLedgerMaxUnackedRangesToPersist` in Pulsar)."""
BITS_SAVED_MAX: Final = 10_000
"""Partly acknowledged batches in one snapshot."""
SNAPSHOTS_PER_LEDGER_MAX: Final = 50_000
RETRY_SECONDS: Final = 1.0
"""Pause before a save that failed is tried again."""


class CursorStatistics(FrozenStruct, frozen=True):
    """A snapshot for internal stats."""

    mark_delete: Position
    holes: list[Range]
    """The first acknowledged ranges after the mark-delete position."""
    backlog: int
    ledger_id: int
    """The ledger with the cursor's snapshots; -1 while the znode holds the state."""
    ledger_last_entry: int
    ledger_switched_ms: int
    """When it last began another ledger; 0 if not since it was opened."""


class Cursor:
    """See the module's docstring. A cursor that is not durable lives in memory only."""

    def __init__(
        self, storage: Storage, ledger: ManagedLedger, name: str, start: Position, *, durable: bool
    ) -> None:
        self.name = name
        self.durable = durable
        self.topic = log_name(ledger.name)
        """The name of the topic, for log lines."""
        self.acks = AckState(ledger.chain, start)
        self.pending = PendingAcks(self.acks)
        """What open transactions acknowledge; stored in the same snapshots."""
        self.properties: dict[str, str] = {}
        """The subscription's properties, as its users set them."""
        self.position_properties: Mapping[str, int] = {}
        """Numbers stored with the position (`MarkDeleteEntry.properties` in Pulsar)."""
        self.last_active_ms = storage.clock.wall_ms()
        self.place = CursorRecord(storage, ledger, name)
        self._storage = storage
        self.ledger = ledger
        self._dirty = False
        """Some state is not saved, and a save is scheduled."""
        self._differs = False
        """The znode differs from the state; a clean close writes it."""
        self._start_anew = False
        """The next snapshot goes into a new ledger, so the znode is written too."""
        self._saving = False
        self._in_znode = False
        """No ledger could be created at the last attempt."""
        self._retrying = False
        """A task waits to save again after a failure."""
        self._saved_at = -inf
        """When the last save began."""
        self._closed = False
        self._trouble = WriteFailureLog()
        self._writer: LedgerWriter | None = None
        self._waiters: list[Done] = []
        self._saving_for: list[Done] = []
        self._idle = trio.lowlevel.ParkingLot()

    # -- what is acknowledged -----------------------------------------------------------------

    @property
    def mark_delete(self) -> Position:
        """Everything up to here is acknowledged."""
        return self.acks.mark_delete

    @property
    def read_from(self) -> Position:
        """The position after the mark-delete position."""
        return self.ledger.chain.after(self.acks.mark_delete)

    @property
    def holed(self) -> bool:
        """Whether any entry after the mark-delete position is acknowledged, wholly or in part."""
        return self.acks.holed

    @property
    def overflows(self) -> bool:
        """Whether it has as many acknowledged ranges, or batches in part, as a snapshot has."""
        return len(self.acks) >= HOLES_SAVED_MAX or self.acks.parts >= BITS_SAVED_MAX

    @property
    def backlog(self) -> int:
        """The number of entries that are not acknowledged."""
        chain = self.ledger.chain
        behind = chain.entries_between(self.acks.mark_delete, chain.confirmed)
        return max(behind - self.acks.acked_beyond, 0)

    def statistics(self, holes_max: int = 100) -> CursorStatistics:
        writer = self._writer
        return CursorStatistics(
            mark_delete=self.mark_delete,
            holes=self.acks.ranges(holes_max),
            backlog=self.backlog,
            ledger_id=self.place.ledger_id,
            ledger_last_entry=writer.last_confirmed if writer is not None else -1,
            ledger_switched_ms=self.place.switched_ms,
        )

    def ack_range(self, ledger_id: int, first: int, last: int) -> int:
        """Acknowledge entries `first`..`last`; returns how many were not before."""
        self._changed()
        return self.acks.ack_range(ledger_id, first, last)

    def ack_bits(self, position: Position, unacked: int, size: int) -> bool:
        """Acknowledge some messages of a batch (PIP-54); True if none is left."""
        self._changed()
        return self.acks.ack_bits(position, unacked, size)

    def ack_to(self, position: Position, unacked: int | None = None, size: int = 0) -> int:
        """Acknowledge everything up to `position`, or up to those bits of its batch.

        Returns how many entries were not before.
        """
        self._changed()
        return self.acks.cumulative(position, unacked, size)

    def hold(
        self, key: TransactionKey, ranges: Sequence[EntryRange], parts: Sequence[HeldPart]
    ) -> None:
        """Acknowledge in an open transaction; `TransactionConflict` if that cannot be. What is
        stored later is none of it.
        """
        confirmed = self.ledger.chain.confirmed
        if any((one[0], one[2]) > confirmed for one in ranges):
            ranges = [
                (one[0], one[1], one[2] if one[0] < confirmed[0] else min(one[2], confirmed[1]))
                for one in ranges
                if (one[0], one[1]) <= confirmed
            ]
        parts = [one for one in parts if (one[0], one[1]) <= confirmed]
        self._changed()
        self.pending.hold(key, ranges, parts)

    def hold_up_to(self, key: TransactionKey, up_to: HeldPart) -> None:
        """The same for everything up to a position; what is stored later is none of it."""
        confirmed = self.ledger.chain.confirmed
        if (up_to[0], up_to[1]) > confirmed:
            up_to = (*confirmed, 0, 0)
        self._changed()
        self.pending.hold_up_to(key, up_to)

    def end_transaction(self, key: TransactionKey, *, committed: bool) -> Released:
        """Acknowledge what a transaction holds, or hold it no longer; returns what it was."""
        held = self.pending.release(key)
        if held is not NOTHING:
            self._changed()
        if committed:
            for ledger_id, first, last in held.ranges:
                self.acks.ack_range(ledger_id, first, last)
            for ledger_id, entry_id, unacked, size in held.parts:
                self.acks.ack_bits((ledger_id, entry_id), unacked, size)
            if held.up_to is not None:
                ledger_id, entry_id, unacked, size = held.up_to
                self.acks.cumulative((ledger_id, entry_id), unacked if size else None, size)
        return held

    def set_position_properties(self, properties: Mapping[str, int]) -> None:
        """Replace what is stored with the position, from the next save on."""
        self.position_properties = properties

    def reset(self, mark_delete: Position) -> None:
        """Forget all acknowledgements but those up to `mark_delete`."""
        self._changed()
        self.acks.reset(mark_delete)

    def may_have_acked(self, part: Slice) -> bool:
        """Whether a slice may contain acknowledged entries, or such as a transaction holds."""
        acks, first = self.acks, (part.ledger_id, part.first_entry)
        if acks.holed or acks.mark_delete >= first:
            return True
        return bool(self.pending.held) and self.pending.may_cover(first)

    def done_among(self, position: Position, entries: int) -> int:
        """Which of consecutive entries of a ledger are acknowledged, or held whole by transactions:
        a bit for each.
        """
        done = self.acks.acked_among(position, entries)
        if self.pending.held and self.pending.may_cover(position):
            done |= self.pending.held_among(position, entries)
        return done

    def unacked_parts(self, part: Slice) -> Iterator[tuple[Slice, dict[int, int] | None]]:
        """The parts of a slice that are neither acknowledged nor held by a transaction, each with
        the bits of its batches.
        """
        if self.pending.held and self.pending.may_cover((part.ledger_id, part.first_entry)):
            yield from self._unheld_parts(part)
            return
        acks, ledger_id, first = self.acks, part.ledger_id, part.first_entry
        count = len(part.payloads)
        start = 0
        while start < count:
            if acks.is_acked((ledger_id, first + start)):
                start += 1
                continue
            stop = start
            partial: dict[int, int] | None = None
            while stop < count and not acks.is_acked((ledger_id, first + stop)):
                bits = acks.bits((ledger_id, first + stop))
                if bits is not None:
                    partial = partial or {}
                    partial[stop - start] = bits
                stop += 1
            yield part.part(start, stop), partial
            start = stop

    def _unheld_parts(self, part: Slice) -> Iterator[tuple[Slice, dict[int, int] | None]]:
        acks, pending = self.acks, self.pending
        start = 0
        partial: dict[int, int] = {}
        for at in range(len(part.payloads)):
            position = (part.ledger_id, part.first_entry + at)
            bits = acks.bits(position)
            left = pending.left_of(position, bits)
            if acks.is_acked(position) or pending.covers(position) or left == 0:
                if at > start:
                    yield part.part(start, at), partial or None
                start, partial = at + 1, {}
            elif left is not None:
                partial[at - start] = left
        if start < len(part.payloads):
            yield part.part(start, len(part.payloads)), partial or None

    def _changed(self) -> None:
        if self.durable and not self._dirty:
            self._dirty = True
            self._storage.cursor_dirty(self)

    def touched(self) -> None:
        """The subscription's properties have changed, so the znode must be written."""
        self._start_anew = True
        self._changed()

    def used(self, now_ms: int) -> None:
        """A consumer has attached or left; a clean close stores the time."""
        self.last_active_ms = now_ms
        self._differs = True

    # -- opening and closing ------------------------------------------------------------------

    async def create(self) -> None:
        """Store a new subscription."""
        if self.durable:
            await self.place.create(self._named(-1))

    async def open(self) -> None:
        """Read the state from the cursor's ledger, or from the znode."""
        info = await self.place.find()
        self.properties = dict(info.cursor_properties)
        self.last_active_ms = info.last_active_ms or self.last_active_ms
        snapshot = await self.place.last_snapshot() or info.snapshot
        self.position_properties = snapshot.properties
        self.acks.restore(snapshot.mark_delete, snapshot.ranges, snapshot.bits)
        if snapshot.pending:
            self.pending.restore(snapshot.pending)

    async def close(self) -> None:
        """Save the state in the znode, so that opening again costs one read."""
        self._closed = True
        await self._not_saving()
        self._refuse_waiters()
        if not self.durable or not (self._differs or self._dirty or self.place.ledger_id >= 0):
            return
        if self.ledger.fenced:  # the cursor is the new owner's
            return
        try:
            await self._put(-1)
        except BrokerError as error:
            # messages acknowledged after the last snapshot are delivered again
            log.warning("%s: cursor %s did not close cleanly: %s", self.topic, self.name, error)

    async def delete(self) -> None:
        """Delete the cursor; if that fails, it remains in use."""
        self._closed = True
        await self._not_saving()
        if self.durable:
            try:
                await self.place.delete()
            except BrokerError:
                self._closed = False
                self._save_again()
                raise
            self._dirty = self._differs = False
        self._refuse_waiters()

    async def _not_saving(self) -> None:
        while self._saving:
            await self._idle.park()

    def _refuse_waiters(self) -> None:
        waiters, self._waiters = self._waiters, []
        for done in waiters:
            done(Fenced("the subscription is being closed"))

    # -- saving -------------------------------------------------------------------------------

    def when_saved(self, done: Done) -> None:
        """Call `done` when everything acknowledged by now is stored."""
        if not self.durable:
            done(None)
        elif self._closed or self.ledger.fenced:
            done(Fenced("the subscription is being closed"))
        else:
            self._waiters.append(done)
            self._dirty = True
            self.flush()

    async def saved(self) -> None:
        """Wait until everything acknowledged by now is stored; raises if that fails."""
        waiting = Completion[None]()
        self.when_saved(waiting.done)
        await waiting.result()

    def flush_if_due(self) -> None:
        """Save unsaved changes, unless that is too soon after the last save for the policy of the
        topic: then the broker asks again. Plain call.

        What Pulsar's `ManagedCursorImpl.markDeleteLimiter` does, except that whoever asked for a
        receipt does not wait here, and has one only for what is stored.
        """
        pause = self.ledger.rules.save_pause_seconds
        waits = pause > 0.0 and self._dirty and not self._closed
        if waits and self._storage.clock.monotonic() - self._saved_at < pause:
            self._storage.cursor_dirty(self)
        else:
            self.flush()

    def flush(self) -> None:
        """Save unsaved changes. Plain call."""
        if not self._dirty or self._saving or self._closed or self.ledger.fenced:
            return
        self._saving = True
        self._saved_at = self._storage.clock.monotonic()
        self._dirty = False
        self._saving_for, self._waiters = self._waiters, []
        writer = self._writer
        full = writer is not None and writer.last_confirmed + 1 >= SNAPSHOTS_PER_LEDGER_MAX
        if writer is None or full or self._start_anew:
            self._start_anew = False
            self._storage.spawn(self._open_ledger)
        else:
            writer.append([self._snapshot()], self._saved)

    def _saved(self, error: BrokerError | None) -> None:
        """A save has ended; changes made meanwhile belong to the next one."""
        if isinstance(error, Fenced) and self._may_go_on():
            self._saving, self._writer, self._dirty = False, None, True
            self._waiters = [*self._saving_for, *self._waiters]
            self.flush()
            return
        self._saving = False
        self._idle.unpark_all()
        waiters, self._saving_for = self._saving_for, []
        for done in waiters:
            done(error)
        if error is not None:
            self._trouble.began(self._log_name, "is not saved", error)
            self._writer = None
            self._save_again()
            return
        if self._trouble.kind is not None:
            self._trouble.ended(self._log_name)
        if self._waiters:
            self.flush()
        elif self._dirty:
            self._storage.cursor_dirty(self)

    def _may_go_on(self) -> bool:
        """Whether a ledger that is fenced may have been recovered by who does not want the cursor,
        as in the log (`fenced_appends.py`): the znode tells. Not one in which nothing was stored,
        or this might have no end.
        """
        writer = self._writer
        begun = writer is not None and writer.last_confirmed >= 0
        return begun and not self._closed and not self.ledger.fenced

    @property
    def _log_name(self) -> str:
        """Its name in log lines."""
        return f"{self.topic}: cursor {self.name}"

    def _save_again(self) -> None:
        if self._closed:
            return
        self._dirty = True
        if not self._retrying:  # requests for receipts save too, and may fail as well
            self._retrying = True
            self._storage.spawn(self._flush_later)

    async def _flush_later(self) -> None:
        await trio.sleep(RETRY_SECONDS)
        self._retrying = False
        self.flush()

    async def _open_ledger(self) -> None:
        """Create a ledger, name it in the znode, and save into it.

        If none can be created, as with fewer bookies than the topic's policy wants, the znode holds
        the state itself, until one can.
        """
        writer: LedgerWriter | None = None
        refusal: BrokerError | None = None
        try:
            writer = await self.place.begin_ledger()
        except BrokerError as error:
            refusal = error
        try:
            await self._put(-1 if writer is None else writer.ledger_id)
        except BrokerError as error:
            self._saved(error)
            return
        if refusal is not None and not self._in_znode:
            log.warning("%s: is saved without a ledger: %s", self._log_name, refusal)
        self._in_znode = refusal is not None
        self._writer = writer
        if writer is None:
            self._saved(None)
        else:
            writer.append([self._snapshot()], self._saved)

    async def _put(self, ledger_id: int) -> None:
        """Write the whole state to the znode, which names that ledger (-1: none)."""
        self._differs = False
        try:
            await self.place.name(ledger_id, self._named(ledger_id))
        except Fenced:
            self._closed = self._differs = True
            raise
        except BrokerError:
            self._differs = True
            raise

    def _state(self) -> formats.CursorSnapshot:
        return formats.CursorSnapshot(
            mark_delete=self.acks.mark_delete,
            ranges=self.acks.ranges(HOLES_SAVED_MAX),
            bits=self.acks.partial(BITS_SAVED_MAX),
            properties=self.position_properties,
            pending=self.pending.image() if self.pending.held else b"",
        )

    def _snapshot(self) -> bytes:
        return formats.encode_snapshot(self._state())

    def _named(self, ledger_id: int) -> bytes:
        return formats.encode_cursor(
            formats.ManagedCursorInfo(
                cursors_ledger_id=ledger_id,
                snapshot=self._state(),
                last_active_ms=self.last_active_ms,
                cursor_properties=self.properties,
            )
        )
