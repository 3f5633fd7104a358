"""What is out with consumers, what has come back, and what waits for its time.

Theory. An entry that was delivered and not acknowledged is *pending* with the consumer it went to.
What comes back (negative acknowledgement, ack timeout, a consumer that left) goes to the *replay*
set with its count of deliveries raised. Delayed entries wait until they are due and then join
replay.

    new --sent--> pending --ack--> gone
                    |  ^
       come_back    v  | sent
                  replay <--due-- delayed

Invariants: an entry is in at most one of pending, replay and delayed; `unacked` is the number of
messages in all pending entries, and so is each consumer's own count of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import trio
from msgspec import Struct

from magnetar.core.entry.forms import NATIVE
from magnetar.core.ledger.cursor.cursor import Cursor
from magnetar.core.ledger.log.chain import Position
from magnetar.core.ledger.read.tail_cache import Slice
from magnetar.core.policy.policies import Effective
from magnetar.core.topic.environment import Environment
from magnetar.core.topic.subscription.consumer import Consumer
from magnetar.core.topic.subscription.delayed_deliveries import DelayedDeliveries
from magnetar.core.topic.subscription.replay import ReplaySet
from magnetar.core.topic.subscription.statistics import SubscriptionStatistics

DELAY_TICK_SECONDS: Final = 1.0
"""A clock that is set back makes delayed entries at most so much late."""

Piece = tuple[Slice, dict[int, int] | None]
"""Entries to deliver, and by offset the bits of batches that are acknowledged in part."""
Left = Callable[[Position, Consumer | None], None]
"""Called when a consumer no longer holds an entry, or an entry that none held is acknowledged."""


class SharedLimits(Struct, frozen=True):
    """Where a shared subscription stops, and what happens there."""

    unacked_max: int = 200_000
    """Unacknowledged messages of all consumers together: dispatch stops until half are acked."""
    replay_max: int = 20_000
    """Entries waiting to be delivered again: new reads stop, and what is due waits on."""
    delays: bool = True
    """Whether messages may ask to be delivered later; else they go at once."""
    delayed_max: int = 500_000
    """Entries waiting for their time, of about 50 bytes each: new reads stop until some are due.
    What was published behind so many waits with them, delayed or not."""


def limits_of(policies: Effective) -> SharedLimits:
    """As they were decided for a topic."""
    return SharedLimits(
        unacked_max=policies.max_unacked_per_subscription,
        delays=policies.delayed_delivery.active,
        delayed_max=policies.max_delayed_per_subscription,
    )


class Outstanding:
    """See the module's docstring."""

    def __init__(
        self,
        cursor: Cursor,
        env: Environment,
        limits: SharedLimits,
        look: Callable[[], None],
        replay: ReplaySet,
        left: Left | None = None,
    ) -> None:
        self.pending: dict[Position, Consumer] = {}
        self.deliveries: dict[Position, int] = {}
        """How often an entry went out, where it came back."""
        self.replay = replay
        self.delayed = DelayedDeliveries()
        self.unacked = 0
        self.blocked = False
        """Too many messages are unacknowledged, all consumers together."""
        self._sizes: dict[Position, int] = {}
        """Messages of a pending entry, where it is not one."""
        self._cursor = cursor
        self._env = env
        self.limits = limits
        self._look = look
        self._left = left
        self._alarm: int | None = None

    @property
    def full(self) -> bool:
        """So much waits to be delivered again, or for its time, that nothing new is read."""
        return len(self.replay) >= self.limits.replay_max or self.delays_left <= 0

    @property
    def delays_left(self) -> int:
        """How many more entries may turn out to be delayed: no more than that is read at once."""
        return self.limits.delayed_max - len(self.delayed)

    def statistics(self, read: Position) -> SubscriptionStatistics:
        """At this moment; everything before `read` was looked at."""
        return SubscriptionStatistics(
            read,
            unacked=self.unacked,
            blocked=self.blocked,
            delayed=len(self.delayed),
            in_replay=len(self.replay),
        )

    def set_limits(self, limits: SharedLimits) -> None:
        """The policy has changed: dispatch may go on, or has to stop."""
        self.limits = limits
        if limits.unacked_max and self.unacked >= limits.unacked_max:
            self.blocked = True
        elif not limits.unacked_max or self.unacked <= limits.unacked_max // 2:
            self.blocked = False

    def clear(self) -> None:
        """No consumer is left: the next one starts from the cursor."""
        self.pending.clear()
        self.deliveries.clear()
        self.replay.clear()
        self.delayed.clear()
        self._sizes.clear()
        self.unacked = 0
        self.blocked = False
        self._alarm = None

    # -- going out ----------------------------------------------------------------------------

    def deliverable(self, part: Slice) -> list[Piece]:
        """What of a slice is to be delivered now: not acknowledged, not delayed."""
        pieces: list[Piece] = [(part, None)]
        if self._cursor.may_have_acked(part):
            pieces = list(self._cursor.unacked_parts(part))
        now_ms = self._env.clock.wall_ms()
        found: list[Piece] = []
        for piece, partial in pieces:
            late = self._set_aside(piece, now_ms)
            found += _without(piece, partial, late) if late else [(piece, partial)]
        return found

    def _set_aside(self, piece: Slice, now_ms: int) -> list[int]:
        """Entries that are not due yet go to `delayed`; returns their places in the slice."""
        late: list[int] = []
        if not self.limits.delays:
            return late
        for at, payload in enumerate(piece.payloads):
            due_ms = NATIVE.deliver_at(payload)
            if due_ms is not None and due_ms > now_ms:
                position = (piece.ledger_id, piece.first_entry + at)
                self.replay.discard(position)
                self.delayed.add(position, due_ms)
                late.append(at)
        if late:
            self._set_alarm()
        return late

    def send(self, consumer: Consumer, part: Slice, partial: dict[int, int] | None) -> None:
        """Deliver a piece of `deliverable`, and remember its consumer."""
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
        """Entries are acknowledged, whoever holds them; returns how many messages that were."""
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
        """Some messages of a pending batch are done with; returns how many were out."""
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
        """Everything that is out with one consumer."""
        return [position for position, owner in self.pending.items() if owner is consumer]

    def redeliver(self, consumer: Consumer, positions: list[Position] | None) -> None:
        """What is named, or everything, that is pending with this consumer comes back."""
        for position in self.held_by(consumer) if positions is None else positions:
            if self.pending.get(position) is consumer:
                self.come_back(position)

    def come_back(self, position: Position) -> None:
        """A pending entry is to be delivered again."""
        owner = self.pending.pop(position)
        messages = self._sizes.pop(position, 1)
        owner.release(messages)
        self._fell(messages)
        self.deliveries[position] = self.deliveries.get(position, 0) + 1
        self.replay.add(position)
        if self._left is not None:
            self._left(position, owner)

    def passed(self, mark_delete: Position) -> None:
        """Everything up to there is done with (expiry, skip)."""
        known = [*self.replay, *self.delayed, *self.pending]
        for ledger_id, entry_id in known:
            if (ledger_id, entry_id) <= mark_delete:
                self.acked(ledger_id, entry_id, entry_id)

    # -- delayed entries ----------------------------------------------------------------------

    def wake_delayed(self) -> bool:
        """What is due joins replay, as far as there is room; True if anything did."""
        room = self.limits.replay_max - len(self.replay)
        if room <= 0 or not len(self.delayed):
            return False
        due = self.delayed.take_due(self._env.clock.wall_ms(), room)
        for position in due:
            self.replay.add(position)
        if len(due) < room:  # else the next acknowledgement looks again
            self._set_alarm()
        return bool(due)

    def _set_alarm(self) -> None:
        """Schedule a look for when the next delayed entry is due."""
        due_ms = self.delayed.next_due_ms
        if due_ms is not None and (self._alarm is None or due_ms < self._alarm):
            self._alarm = due_ms
            self._env.spawn(self._look_at, due_ms)

    async def _look_at(self, due_ms: int) -> None:
        """Sleep in steps, as clocks are set; one task is in charge, that of the soonest alarm."""
        while self._alarm == due_ms:
            seconds = (due_ms - self._env.clock.wall_ms()) / 1000
            if seconds <= 0:
                self._alarm = None
                self._look()
                return
            await trio.sleep(min(seconds, DELAY_TICK_SECONDS))


def _without(piece: Slice, partial: dict[int, int] | None, late: list[int]) -> list[Piece]:
    """A slice without some of its places, as the stretches between them."""
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
