"""Outstanding entries of a shared subscription: pending, to be delivered again, or delayed.

Theory. An entry that was delivered and not acknowledged is *pending* with its consumer. When it
comes back (negative acknowledgement, ack timeout, a consumer that left), it joins the *replay* set,
and its count of deliveries increases. A delayed entry waits until it is due, and then joins replay.
Pulsar has these sets too: `PendingAcksMap.java`, `MessageRedeliveryController.java` and
`InMemoryDelayedDeliveryTracker.java` of 4.2.

    new --sent--> pending --ack--> gone
                    |  ^
       come_back    v  | sent
                  replay <--due-- delayed

An entry that is acknowledged in an open transaction is in none of the sets; if the transaction is
aborted, it comes back.

Invariants: an entry is in at most one of pending, replay and delayed; `unacked` is the number of
messages in all pending entries, and so is each consumer's own count of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

import trio

from magnetar.core.entry.forms import NATIVE
from magnetar.core.kernel.structs import FrozenStruct
from magnetar.core.ledger.buckets.bucket import BLOCK_BITS, BLOCK_ENTRIES, PLACE_MASK, DelayedBlock
from magnetar.core.ledger.cursor.cursor import Cursor
from magnetar.core.ledger.log.chain import Position
from magnetar.core.ledger.read.tail_cache import Slice
from magnetar.core.policy.policies import Effective
from magnetar.core.topic.environment import Environment
from magnetar.core.topic.subscription.consumer import Consumer
from magnetar.core.topic.subscription.delayed.deliveries import DelayedDeliveries
from magnetar.core.topic.subscription.replay import ReplaySet
from magnetar.core.topic.subscription.source import EntrySource
from magnetar.core.topic.subscription.statistics import SubscriptionStatistics

WOKEN_ENTRIES_MAX: Final = 1_000
"""Due entries that join replay at once: several milliseconds of the loop."""
INDEXED_MS: Final = 60_000
"""Who waits for less is not put into the log's index: it is read again after a restart."""
PASSED_BLOCKS_MAX: Final = 8
"""Blocks of delayed entries that are passed at once: a millisecond."""
LATER_CHUNK_MS: Final = 1_000
"""The least that a delayed chunk waits each time for the first one of its message."""
DELAY_TICK_SECONDS: Final = 1.0
"""The longest sleep of an alarm, and so the error if the wall clock is set."""
FAR_TICK_SECONDS: Final = 10.0
"""The same while there is more than ten times as long to wait: thousands of subscriptions do."""

Piece = tuple[Slice, dict[int, int] | None]
"""Entries to deliver, and by offset the unacknowledged bits of batches acknowledged in part."""
Left = Callable[[Position, Consumer | None], None]
"""Called when a consumer no longer holds an entry, or an entry that none held is acknowledged."""


class SharedLimits(FrozenStruct, frozen=True):
    """The limits of a shared subscription."""

    unacked_max: int = 200_000
    """Unacknowledged messages of all consumers together. At the limit dispatch stops until half of
    them are acknowledged (`maxUnackedMessagesPerSubscription` in Pulsar)."""
    replay_max: int = 20_000
    """Entries in replay. At the limit no new entries are read, and due ones stay delayed; a block
    of those that is being read then may go beyond it."""
    delays: bool = True
    """Whether messages may be delayed; else they are delivered at once."""
    known_delays_max: int = 500_000
    """Delayed entries whose times are kept, in 24 to 60 bytes each. Beyond that, those that are due
    last are read again before they are due (`delayed/deliveries.py`)."""
    pauses_unsaved: bool = False
    """Whether no new entries are read while the cursor has as many acknowledged ranges as it stores
    (`dispatcherPauseOnAckStatePersistent` in Pulsar)."""


def limits_of(policies: Effective) -> SharedLimits:
    """The limits that a topic's policies set."""
    return SharedLimits(
        unacked_max=policies.max_unacked_per_subscription,
        delays=policies.delayed_delivery.active,
        known_delays_max=policies.max_delayed_per_subscription,
        pauses_unsaved=policies.pause_on_ack_state,
    )


class Outstanding:
    """See the module's docstring."""

    def __init__(
        self,
        cursor: Cursor,
        env: Environment,
        limits: SharedLimits,
        schedule: Callable[[], None],
        replay: ReplaySet,
        left: Left | None = None,
    ) -> None:
        self.pending: dict[Position, Consumer] = {}
        self.deliveries: dict[Position, int] = {}
        """How many times an entry that came back was delivered."""
        self.replay = replay
        self.delayed = DelayedDeliveries(env.delayed, limits.known_delays_max)
        self._delayed_source = EntrySource(cursor.ledger, env, schedule, cursor.ack_range)
        self.unacked = 0
        self.blocked = False
        """The limit of unacknowledged messages is reached."""
        self._sizes: dict[Position, int] = {}
        """The number of messages of a pending entry, if it is not 1."""
        self._cursor = cursor
        self._env = env
        self.limits = limits
        self._schedule = schedule
        self._left = left
        self._alarm: int | None = None
        self._watching = False
        """Whether a task waits for it."""
        self._sleep = trio.CancelScope()
        """Of that task."""

    def is_full(self, read: Position) -> bool:
        """Whether the limit of replay is reached, or that of acknowledgements that are stored, so
        that no entries are read from there on. What is missing between those is read all the same:
        nobody has it after a start, and no other entries make their number smaller.
        """
        limits = self.limits
        if len(self.replay) >= limits.replay_max:
            return True
        if not limits.pauses_unsaved or not self._cursor.overflows:
            return False
        return read > self._cursor.acks.highest

    @property
    def now_ms(self) -> int:
        """The time by which delays are judged."""
        return self._env.clock.wall_ms()

    def statistics(self, read: Position) -> SubscriptionStatistics:
        """A snapshot; `read` is the read position."""
        return SubscriptionStatistics(
            read,
            unacked=self.unacked,
            blocked=self.blocked,
            delayed=len(self.delayed),
            in_replay=len(self.replay),
        )

    def set_limits(self, limits: SharedLimits) -> None:
        """Apply changed limits, which may stop dispatch or resume it."""
        self.limits = limits
        self.delayed.known_max = limits.known_delays_max
        if limits.unacked_max and self.unacked >= limits.unacked_max:
            self.blocked = True
        elif not limits.unacked_max or self.unacked <= limits.unacked_max // 2:
            self.blocked = False

    def clear(self) -> None:
        """The last consumer has left; the next one starts from the cursor."""
        self.pending.clear()
        self.deliveries.clear()
        self.replay.clear()
        self.delayed.clear()
        self._delayed_source.stop()
        self._sizes.clear()
        self.unacked = 0
        self.blocked = False
        self._alarm = None
        self._sleep.cancel()
        self._left = None  # else only the collector frees the dispatcher

    # -- going out ----------------------------------------------------------------------------

    def deliverable(self, part: Slice, now_ms: int) -> list[Piece]:
        """The parts of a slice that are neither acknowledged nor delayed."""
        pieces: list[Piece] = [(part, None)]
        if self._cursor.may_have_acked(part):
            pieces = list(self._cursor.unacked_parts(part))
        found: list[Piece] = []
        for piece, partial in pieces:
            late = self._set_aside(piece, now_ms)
            found += _without(piece, partial, late) if late else [(piece, partial)]
        return found

    def _set_aside(self, piece: Slice, now_ms: int) -> list[int]:
        """Move entries that are not due to `delayed`; returns their places in the slice."""
        late: list[int] = []
        if not self.limits.delays:
            return late
        worth: list[int] = []
        dues_ms: list[int] = []
        for at, payload in enumerate(piece.payloads):
            due_ms = NATIVE.deliver_at(payload)
            if due_ms is not None and due_ms > now_ms:
                position = (piece.ledger_id, piece.first_entry + at)
                self.replay.discard(position)
                self.delayed.add(position, due_ms)
                late.append(at)
                if due_ms - now_ms >= INDEXED_MS:
                    worth.append(position[1])
                    dues_ms.append(due_ms)
        if late:
            self._set_alarm()
        if worth:
            self._cursor.ledger.delayed_index.note(piece.ledger_id, worth, dues_ms)
        return late

    def send(self, consumer: Consumer, part: Slice, partial: dict[int, int] | None) -> None:
        """Deliver a piece of `deliverable`; its entries are pending from then on."""
        ledger_id, first = part.ledger_id, part.first_entry
        pending, counts = self.pending, part.counts
        redeliveries = None
        if self.deliveries or self.replay:
            redeliveries = []
            for entry_id in range(first, first + len(part.payloads)):
                position = (ledger_id, entry_id)
                self.replay.discard(position)
                redeliveries.append(self.deliveries.get(position, 0))
        if counts is None and not partial:
            for entry_id in range(first, first + len(part.payloads)):
                pending[(ledger_id, entry_id)] = consumer
        else:
            self._note_sizes(consumer, part, partial)
        messages = consumer.send(part, redeliveries, partial, self._env.clock.wall_ms())
        consumer.hold(messages)
        self.unacked += messages
        if self.limits.unacked_max and self.unacked >= self.limits.unacked_max:
            self.blocked = True

    def _note_sizes(self, consumer: Consumer, part: Slice, partial: dict[int, int] | None) -> None:
        for at in range(len(part.payloads)):
            position = (part.ledger_id, part.first_entry + at)
            self.pending[position] = consumer
            messages = 1 if part.counts is None else part.counts[at]
            if partial and at in partial:
                messages = partial[at].bit_count()
            if messages != 1:
                self._sizes[position] = messages

    # -- acknowledgement ----------------------------------------------------------------------

    def acked(self, ledger_id: int, first: int, last: int) -> int:
        """Remove acknowledged entries; returns how many messages were pending."""
        total = 0
        pop, sizes, deliveries = self.pending.pop, self._sizes, self.deliveries
        for entry_id in range(first, last + 1):
            position = (ledger_id, entry_id)
            owner = pop(position, None)
            if deliveries:
                deliveries.pop(position, None)
            if owner is None:
                self.replay.discard(position)
                self.delayed.discard(position)
                if self._left is not None:
                    self._left(position, None)
                continue
            messages = sizes.pop(position, 1) if sizes else 1
            total += messages
            owner.release(messages)
            if self._left is not None:
                self._left(position, owner)
        self._fell(total)
        return total

    def acked_partly(self, position: Position, messages: int) -> int:
        """Some messages of a pending batch are acknowledged; returns how many were pending."""
        owner = self.pending.get(position)
        if owner is None:
            return 0
        self._sizes[position] = self._sizes.get(position, 1) - messages
        owner.release(messages)
        self._fell(messages)
        return messages

    def _fell(self, messages: int) -> None:
        self.unacked -= messages
        if self.blocked and self.unacked <= self.limits.unacked_max // 2:
            self.blocked = False

    # -- coming back --------------------------------------------------------------------------

    def held_by(self, consumer: Consumer) -> list[Position]:
        """The entries that are pending with one consumer."""
        return [position for position, owner in self.pending.items() if owner is consumer]

    def redeliver(self, consumer: Consumer, positions: list[Position] | None) -> None:
        """Return these pending entries of a consumer, or (None) all, to replay."""
        for position in self.held_by(consumer) if positions is None else positions:
            if self.pending.get(position) is consumer:
                self.come_back(position)

    def came_back(self, positions: Iterable[Position]) -> None:
        """Add entries to replay that a transaction has held, wholly or in part."""
        for position in positions:
            if position in self.pending:
                self.come_back(position)
            else:
                self.delayed.discard(position)
                self.deliveries[position] = self.deliveries.get(position, 0) + 1
                self.replay.add(position)

    def come_back(self, position: Position) -> None:
        """Return a pending entry to replay."""
        owner = self.pending.pop(position)
        messages = self._sizes.pop(position, 1)
        owner.release(messages)
        self._fell(messages)
        self.deliveries[position] = self.deliveries.get(position, 0) + 1
        self.replay.add(position)
        if self._left is not None:
            self._left(position, owner)

    def passed(self, mark_delete: Position) -> None:
        """Drop all entries up to `mark_delete` (expiry, skip)."""
        self.delayed.discard_to(mark_delete)
        for position in [each for each in self.deliveries if each <= mark_delete]:
            del self.deliveries[position]
        for ledger_id, entry_id in [*self.replay, *self.pending]:
            if (ledger_id, entry_id) <= mark_delete:
                self.acked(ledger_id, entry_id, entry_id)

    # -- delayed entries ----------------------------------------------------------------------

    def pass_delayed(self, read: Position) -> tuple[Position, bool]:
        """Where to read on: behind entries that, as the log's index says, are not due. They are
        delayed from then on, without being read. And whether that goes on before anything is read.
        """
        ledger = self._cursor.ledger
        index = ledger.delayed_index
        for _ in range(PASSED_BLOCKS_MAX):
            if not self.limits.delays or not index.reaches(read):
                return read, False
            key = (read[0], read[1] >> BLOCK_BITS)
            if not index.is_loaded(key, self._schedule):
                return read, True
            block = index.block(key)
            passed = 0 if block is None else self._passed(block, read)
            if not passed:
                return read, False
            read = ledger.chain.normal((read[0], read[1] + passed))
        self._schedule()
        return read, True

    def _passed(self, block: DelayedBlock, read: Position) -> int:
        """Add to `delayed` what follows from there on in a block without a gap; returns how many
        entries to pass, those that are acknowledged among them.
        """
        segment = self._cursor.ledger.chain.segment_of(read[0])
        if segment is None or segment.remaining is not None:
            return 0  # compaction may have removed some of them
        place = read[1] & PLACE_MASK
        waiting = block.waiting(place, self._env.clock.wall_ms())
        if not waiting & 1 and not self._cursor.acks.is_acked(read):
            return 0
        done = self._cursor.done_among(read, BLOCK_ENTRIES - place)
        either = waiting | done
        run = (~either & (either + 1)).bit_length() - 1
        passed = waiting & ~done & ((1 << run) - 1)
        if passed:
            self.delayed.add_unread(read, passed, block.soonest_ms(place, passed))
            self._set_alarm()
        return run

    def wake_delayed(self) -> bool:
        """Move due entries to replay, up to its limit; True if there were any."""
        room = self.limits.replay_max - len(self.replay)
        if room <= 0 or not len(self.delayed):
            return False
        now_ms = self._env.clock.wall_ms()
        due = self.delayed.take_due(now_ms, min(room, WOKEN_ENTRIES_MAX))
        for position in due:
            self.replay.add(position)
        if len(due) == room:
            return True  # an acknowledgement triggers the next look
        if self.delayed.is_due(now_ms):
            self._schedule()
        else:
            self._learn_delays(now_ms)
            self._set_alarm()
        return bool(due)

    def delay_chunk(self, position: Position, due_ms: int) -> None:
        """Delay a chunk that is due, but whose first one may be delayed still, as something before
        it is: until the next time when anything comes to be due.
        """
        self.replay.discard(position)
        soonest_ms = max(self.delayed.next_change_ms, self._env.clock.wall_ms() + LATER_CHUNK_MS)
        self.delayed.add(position, max(due_ms, soonest_ms))
        self._set_alarm()

    def _learn_delays(self, now_ms: int) -> None:
        """Read again when entries are due that were put off; some in each turn. What is damaged
        is passed over at once. If storage fails, the rest of the block waits, and so do others.
        """
        source = self._delayed_source
        for _ in range(WOKEN_ENTRIES_MAX):
            wanted = self.delayed.to_read(now_ms)
            if wanted is None:
                return
            position, count = wanted
            if source.is_gone(position):
                self.delayed.discard(position)
                continue
            if source.has_failed(position):
                lost = self._cursor.ledger.losses.at(position)
                if lost is None and source.pauses:
                    return  # its end schedules
                source.forget_failure()
                bad = count if lost is None else min(lost.last - position[1] + 1, count)
                self.delayed.postpone(position, bad, now_ms)
                continue
            found = source.at(position, count)
            if found is None:
                return
            whole, start = found
            payloads = whole.payloads[start : start + count]
            dues_ms = [NATIVE.deliver_at(payload) or 0 for payload in payloads]
            for due in self.delayed.learn(position, dues_ms, now_ms):
                self.replay.add(due)
            source.forget()
            break
        self._schedule()

    def _set_alarm(self) -> None:
        """Schedule a look at the time when the next delayed entry is due, or is to be read."""
        due_ms = self.delayed.next_look_ms
        if due_ms is None or (self._alarm is not None and self._alarm <= due_ms):
            return
        self._alarm = due_ms
        if not self._watching:
            self._watching = True
            self._env.spawn(self._watch)
        else:
            self._sleep.cancel()

    async def _watch(self) -> None:
        """The task that waits for the alarm, in steps, because the wall clock may be set."""
        while (due_ms := self._alarm) is not None:
            seconds = (due_ms - self._env.clock.wall_ms()) / 1000
            if seconds <= 0:
                self._alarm = None
                self._schedule()
                continue
            is_far = seconds > 10 * FAR_TICK_SECONDS
            seconds = min(seconds, FAR_TICK_SECONDS if is_far else DELAY_TICK_SECONDS)
            self._sleep = trio.CancelScope()
            with self._sleep:
                await trio.sleep(seconds)
        self._watching = False


def _without(piece: Slice, partial: dict[int, int] | None, late: list[int]) -> list[Piece]:
    """The parts of a slice between these places."""
    found: list[Piece] = []
    start = 0
    for at in [*late, len(piece.payloads)]:
        if at > start:
            bits = {
                place - start: mask
                for place, mask in (partial or {}).items()
                if start <= place < at
            }
            found.append((piece.part(start, at), bits or None))
        start = at + 1
    return found
