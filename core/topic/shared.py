"""Serving many consumers at once: Shared and Key_Shared.

Theory. New entries are read in order at one read position and dealt out; each entry that is out is
*pending* with the consumer it went to. What comes back unacknowledged (negative acknowledgement,
ack timeout, a consumer that left) goes to the *replay* set with its count of deliveries raised, and
replay goes before new reads. Delayed entries wait in a heap until their time and then join replay.

    new --deal--> pending --ack--> gone
                    |  ^
        come back   v  | deal
                  replay <--due-- delayed

Invariants: an entry is in at most one of pending, replay and delayed; an entry below the read position
that is in none of them is acknowledged; at most `replay_max` entries wait in replay before new reads
stop (so Key_Shared looks ahead no further).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

import trio
from msgspec import Struct

from core.dispatch.shared import Share, choose
from core.entry.pulsar_metadata import deliver_at_time
from core.ledger.chain import Position
from core.ledger.cursor import Cursor
from core.ledger.managed import ManagedLedger
from core.ledger.tail_cache import Slice
from core.topic.consumer import Consumer
from core.topic.replay import Delayed, Replay
from core.topic.source import EntrySource

if TYPE_CHECKING:
    from core.topic.environment import Environment

TURN_BYTES_MAX: Final = 1024 * 1024
"""Delivered to one subscription before others have their turn."""
TURN_ENTRIES_MAX: Final = 1_000
"""Entries looked at in one decision."""
DELAY_TICK_SECONDS: Final = 1.0
"""Delayed entries come at most so much late."""


class SharedLimits(Struct, frozen=True):
    """Where a shared subscription stops, and what happens there."""

    unacked_max: int = 200_000
    """Unacknowledged messages of all consumers together: dispatch stops until half are acked."""
    replay_max: int = 20_000
    """Entries waiting to be delivered again: new reads stop."""


class SharedDispatcher:
    """See the module's docstring. `KeyedDispatcher` deals by key and is otherwise the same."""

    def __init__(
        self,
        cursor: Cursor,
        ledger: ManagedLedger,
        env: Environment,
        limits: SharedLimits,
        look: Callable[[], None],
    ) -> None:
        self.consumers: list[Consumer] = []
        self.pending: dict[Position, Consumer] = {}
        self.sizes: dict[Position, int] = {}
        """Messages of a pending entry, where it is not one."""
        self.deliveries: dict[Position, int] = {}
        """How often an entry went out, where it came back."""
        self.replay = Replay()
        self.delayed = Delayed()
        self.read: Position = cursor.read_from
        self.unacked = 0
        self.blocked = False
        """Too many messages are unacknowledged, all consumers together."""
        self.cursor = cursor
        self._ledger = ledger
        self._env = env
        self._limits = limits
        self._look = look
        self._source = EntrySource(ledger, env.spawn, look)
        self._replay_source = EntrySource(ledger, env.spawn, look)
        self._turn = 0
        self._alarm: int | None = None

    # -- consumers ----------------------------------------------------------------------------

    def attach(self, consumer: Consumer) -> None:
        self.consumers.append(consumer)

    def detach(self, consumer: Consumer) -> None:
        self.consumers.remove(consumer)
        for position in [p for p, owner in self.pending.items() if owner is consumer]:
            self._come_back(position)

    # -- delivery -----------------------------------------------------------------------------

    def dispatch(self) -> bool:
        """Deliver what may be delivered now; True if the turn ended before the work."""
        self._wake_delayed()
        budget = TURN_BYTES_MAX
        while not self.blocked:
            ready = [consumer for consumer in self.consumers if consumer.ready]
            if not ready:
                return False
            if budget <= 0:
                return True
            work = self._replayed(ready) or self._fresh(ready)
            if work is None:
                self._tell_end()
                return False
            budget -= sum(map(len, work.payloads))
            self._deal(work, ready)
        return False

    def _replayed(self, ready: list[Consumer]) -> Slice | None:
        """Entries that came back, lowest first."""
        chain = self._ledger.chain
        while (run := self.replay.first_run(_permits(ready), None)) is not None:
            first, count = run
            if not chain.has(first) or chain.normal(first) != first:
                self.replay.discard(first)  # trimmed meanwhile
                continue
            found = self._replay_source.at(first, count)
            if found is None:
                return None
            whole, start = found
            return whole.part(start, start + count)
        return None

    def _fresh(self, ready: list[Consumer]) -> Slice | None:
        """The next new entries, as many as can be paid for."""
        if len(self.replay) >= self._limits.replay_max:
            return None
        self.read = self._ledger.chain.normal(self.read)
        found = self._source.at(self.read)
        if found is None:
            return None
        whole, start = found
        return whole.part(start, start + _permits(ready))

    def _deal(self, work: Slice, ready: list[Consumer]) -> None:
        """Give the entries out; the read position moves past all that were."""
        dealt = 0
        shares: list[Share[Consumer]]
        shares, self._turn = choose(len(work.payloads), work.counts, ready, self._turn)
        for share in shares:
            part = work.part(share.start, share.start + share.count)
            for piece, partial in self._wanted(part):
                self._deliver(share.consumer, piece, partial)
            dealt = share.start + share.count
        self._advance(work, dealt)

    def _advance(self, work: Slice, count: int) -> None:
        """Entries of `work` up to `count` have been seen to."""
        end = (work.ledger_id, work.first_entry + count)
        if end > self.read:
            self.read = end

    def _wanted(self, part: Slice) -> Iterator[tuple[Slice, dict[int, int] | None]]:
        """What of a slice is to be delivered now: not acknowledged, not delayed."""
        pieces: Iterator[tuple[Slice, dict[int, int] | None]] = iter([(part, None)])
        if self.cursor.holed:
            pieces = self.cursor.unacked_parts(part)
        now_ms = self._env.clock.wall_ms()
        for piece, partial in pieces:
            late = self._delays(piece, now_ms)
            if not late:
                yield piece, partial
                continue
            for start, stop in _gaps(late, len(piece.payloads)):
                bits = {at - start: mask for at, mask in (partial or {}).items() if start <= at < stop}
                yield piece.part(start, stop), bits or None

    def _delays(self, piece: Slice, now_ms: int) -> list[int]:
        """Set entries aside that are not due yet; returns their places in the slice."""
        late = []
        for at, payload in enumerate(piece.payloads):
            due_ms = deliver_at_time(payload)
            if due_ms is not None and due_ms > now_ms:
                position = (piece.ledger_id, piece.first_entry + at)
                self.replay.discard(position)
                self.delayed.add(position, due_ms)
                late.append(at)
        if late:
            self._set_alarm()
        return late

    def _deliver(self, consumer: Consumer, part: Slice, partial: dict[int, int] | None) -> None:
        ledger_id, entry_id = part.ledger_id, part.first_entry
        pending, counts = self.pending, part.counts
        redeliveries = None
        if self.deliveries or self.replay:
            redeliveries = []
            for at in range(entry_id, entry_id + len(part.payloads)):
                position = (ledger_id, at)
                self.replay.discard(position)
                redeliveries.append(self.deliveries.get(position, 0))
        for at in range(len(part.payloads)):
            position = (ledger_id, entry_id + at)
            pending[position] = consumer
            messages = 1 if counts is None else counts[at]
            if partial and at in partial:
                messages = partial[at].bit_count()
            if messages != 1:
                self.sizes[position] = messages
        messages = consumer.send(part, redeliveries, partial, self._env.clock.wall_ms())
        consumer.hold(messages)
        self.unacked += messages
        if self._limits.unacked_max and self.unacked >= self._limits.unacked_max:
            self.blocked = True

    # -- acknowledgement ----------------------------------------------------------------------

    def acked(self, consumer: Consumer, ledger_id: int, first: int, last: int) -> int:
        """Entries are done with, whoever holds them; returns how many messages that were."""
        total = 0
        pop = self.pending.pop
        for entry_id in range(first, last + 1):
            position = (ledger_id, entry_id)
            owner = pop(position, None)
            if owner is None:
                self.replay.discard(position)
                self.delayed.discard(position)
                continue
            messages = self.sizes.pop(position, 1) if self.sizes else 1
            if self.deliveries:
                self.deliveries.pop(position, None)
            total += messages
            owner.release(messages)
            self._left(position, owner)
        self._fell(total)
        return total

    def acked_partly(self, position: Position, messages: int) -> int:
        """Some messages of a pending batch are done with."""
        owner = self.pending.get(position)
        if owner is None:
            return 0
        self.sizes[position] = self.sizes.get(position, 1) - messages
        owner.release(messages)
        self._fell(messages)
        return messages

    def _fell(self, messages: int) -> None:
        self.unacked -= messages
        if self.blocked and self.unacked <= self._limits.unacked_max // 2:
            self.blocked = False

    def _left(self, position: Position, owner: Consumer) -> None:
        """An entry is no longer pending with `owner`: of interest where keys must drain."""

    # -- coming back --------------------------------------------------------------------------

    def redeliver(self, consumer: Consumer, positions: list[Position] | None) -> None:
        """What is named, or everything, that is pending with this consumer comes back."""
        if positions is None:
            positions = [p for p, owner in self.pending.items() if owner is consumer]
        for position in positions:
            if self.pending.get(position) is consumer:
                self._come_back(position)

    def _come_back(self, position: Position) -> None:
        owner = self.pending.pop(position)
        messages = self.sizes.pop(position, 1)
        owner.release(messages)
        self._fell(messages)
        self.deliveries[position] = self.deliveries.get(position, 0) + 1
        self.replay.add(position)
        self._left(position, owner)

    def rewind(self) -> None:
        """Start over from what is not acknowledged."""
        for position in list(self.pending):
            self._come_back(position)

    def moved(self) -> None:
        """The mark-delete position was moved from outside: what it passed is done with."""
        mark_delete = self.cursor.mark_delete
        for waiting in (self.replay, self.delayed):
            for position in [p for p in waiting if p <= mark_delete]:
                waiting.discard(position)
        for position in [p for p in self.pending if p <= mark_delete]:
            self.acked(self.pending[position], position[0], position[1], position[1])
        self.read = max(self.read, self.cursor.read_from)

    # -- delayed entries ----------------------------------------------------------------------

    def _wake_delayed(self) -> None:
        if len(self.delayed):
            for position in self.delayed.take_due(self._env.clock.wall_ms()):
                self.replay.add(position)
            self._set_alarm()

    def _set_alarm(self) -> None:
        """Have somebody look when the next delayed entry is due."""
        due_ms = self.delayed.next_due_ms
        if due_ms is not None and (self._alarm is None or due_ms < self._alarm):
            self._alarm = due_ms
            self._env.spawn(self._look_at, due_ms)

    async def _look_at(self, due_ms: int) -> None:
        seconds = (due_ms - self._env.clock.wall_ms()) / 1000
        await trio.sleep(min(max(seconds, 0.0), DELAY_TICK_SECONDS))
        if self._alarm == due_ms:
            self._alarm = None
            if self.consumers:
                self._set_alarm()
        self._look()

    def _tell_end(self) -> None:
        """All of a terminated topic has been delivered and acknowledged."""
        if self._ledger.terminated and not self.cursor.backlog:
            for consumer in self.consumers:
                consumer.sink.end_of_topic()


def _permits(ready: list[Consumer]) -> int:
    return min(max(sum(consumer.permits for consumer in ready), 1), TURN_ENTRIES_MAX)


def _gaps(skipped: list[int], count: int) -> Iterator[tuple[int, int]]:
    """The stretches of 0..count that lie between skipped places."""
    start = 0
    for at in [*skipped, count]:
        if at > start:
            yield start, at
        start = at + 1
