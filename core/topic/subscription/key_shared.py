"""The dispatcher of Key_Shared: entries of one key go to one consumer, in order (PIP-34, PIP-379).

Theory. As `shared.py`, but the hash of an entry's key selects its consumer
(`core/dispatch/key_shared.py`, which also keeps the order when consumers attach or leave). If that
consumer cannot take an entry now, the entry joins replay. Later entries of its key wait behind it;
entries of other keys are delivered, up to a limit of waiting entries. `key_queues.py` has them by
hash and owner, so that a dispatch costs nothing for entries that wait.

Invariant: entries of one key are delivered in order; `_hashes` has the hash of each entry that is
pending or in replay, except for delayed ones, which are read again for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from heapq import heapify, heappop, heappush
from typing import Final

from msgspec.structs import replace

from magnetar.core.dispatch.key_shared import KeyShared, Mode
from magnetar.core.entry.forms import NATIVE
from magnetar.core.ledger.cursor.cursor import Cursor
from magnetar.core.ledger.log.chain import Position
from magnetar.core.ledger.log.managed_ledger import ManagedLedger
from magnetar.core.ledger.read.tail_cache import Slice
from magnetar.core.topic.end_of_topic import EndOfTopic
from magnetar.core.topic.environment import Environment
from magnetar.core.topic.subscription.consumer import Consumer
from magnetar.core.topic.subscription.dispatch_limit import DispatchLimit
from magnetar.core.topic.subscription.key_queues import KeyQueues
from magnetar.core.topic.subscription.outstanding import Outstanding, SharedLimits
from magnetar.core.topic.subscription.single_active import affordable
from magnetar.core.topic.subscription.source import EntrySource
from magnetar.core.topic.subscription.statistics import SubscriptionStatistics

TURN_ENTRIES_MAX: Final = 400
"""Entries examined in one turn. A decision by key costs 10 to 20 us if all keys differ, and other
subscriptions should wait no longer than some milliseconds."""
LOOK_ENTRIES_MAX: Final = 200
"""Entries examined in one decision."""


class KeyedDispatcher:
    """See the module's docstring."""

    def __init__(
        self,
        cursor: Cursor,
        ledger: ManagedLedger,
        env: Environment,
        limits: SharedLimits,
        schedule: Callable[[], None],
        mode: Mode,
    ) -> None:
        self.consumers: list[Consumer] = []
        self._limit: DispatchLimit | None = None
        self.read: Position = cursor.read_from
        self.keys: KeyShared[Consumer] = KeyShared(mode, env.division)
        self._hashes: dict[Position, int] = {}
        self._held = KeyQueues(self.keys, self._hashes)
        self.out = Outstanding(cursor, env, limits, schedule, self._held, self._left)
        self._cursor = cursor
        self._ledger = ledger
        self._schedule = schedule
        self._fresh = EntrySource(ledger, env, schedule, cursor.ack_range)
        self._again = EntrySource(ledger, env, schedule, cursor.ack_range)
        self._end = EndOfTopic(cursor)

    # -- consumers ----------------------------------------------------------------------------

    def attach(self, consumer: Consumer) -> None:
        request = consumer.request
        self.keys.attach(consumer, mode_of(consumer), request.hash_ranges)
        self._held.reform()
        self.consumers.append(consumer)
        self._end.again()

    def detach(self, consumer: Consumer) -> None:
        self.consumers.remove(consumer)
        self.out.redeliver(consumer, None)
        self.keys.detach(consumer)
        self._held.reform()
        if not self.consumers:
            self.stop()

    def set_dispatch_limit(self, limit: DispatchLimit | None) -> None:
        self._limit = limit

    def stop(self) -> None:
        """The last consumer has left."""
        self.consumers.clear()
        self.out.clear()
        self._fresh.stop()
        self._again.stop()
        self._hashes.clear()

    def set_limits(self, limits: SharedLimits) -> None:
        self.out.set_limits(limits)

    @property
    def unacked(self) -> int:
        return self.out.unacked

    def statistics(self) -> SubscriptionStatistics:
        keys = self.keys
        return replace(
            self.out.statistics(self.read),
            sticky=keys.mode.sticky,
            out_of_order=keys.mode.out_of_order,
            draining=keys.draining(),
            drained_total=keys.drained_total,
            hash_ranges={
                consumer.name: list(keys.ranges_of(consumer)) for consumer in self.consumers
            },
        )

    # -- delivery -----------------------------------------------------------------------------

    def dispatch(self) -> bool:
        """Deliver what may be delivered now; True if the turn ended before the work."""
        self.out.wake_delayed()
        if not any(consumer.ready for consumer in self.consumers):
            return False
        if not self._learn_hashes():
            return False
        seen = self._deliver_again()
        if seen is None:
            return False
        if seen and self.out.wake_delayed():
            return True  # there is room again for what was due long ago
        while not self.out.blocked:
            if seen >= TURN_ENTRIES_MAX:
                return True
            permits = sum(consumer.permits for consumer in self.consumers if consumer.ready)
            if not permits:
                return False
            work = None if self.out.is_full(self.read) else self._new(permits)
            if work is None:
                if self._ledger.terminated:
                    self._end.announce(self.consumers)
                return self._held_too_much
            seen += self._deal_new(work)
        return False

    @property
    def _held_too_much(self) -> bool:
        """Whether entries are held back that may be delivered: others, which a plan had permits
        for, were acknowledged or are not due.
        """
        return any(self._head(consumer) is not None for consumer in self.consumers)

    def _head(self, consumer: Consumer) -> Position | None:
        """The first entry that waits for a consumer, if that is ready."""
        return self._held.head(consumer) if consumer.ready else None

    def _new(self, permits: int) -> Slice | None:
        """The next new entries, no more than can be delivered or held back."""
        self.read, passing = self.out.pass_delayed(self._ledger.chain.normal(self.read))
        if passing:
            return None
        found = self._fresh.at(self.read)
        if found is None:
            return None
        whole, start = found
        look = min(LOOK_ENTRIES_MAX, permits + self._room)
        stop = min(start + look, len(whole.payloads))
        if self._limit is not None:
            stop = self._limit.stop(whole, start, stop)
        return whole.part(start, stop) if stop > start else None

    @property
    def _room(self) -> int:
        """How many more entries may be held back."""
        return self.out.limits.replay_max - len(self._held)

    def _deal_new(self, work: Slice) -> int:
        """Deliver or hold back new entries; returns how many of them."""
        hashes = [hash_of(self.keys, payload) for payload in work.payloads]
        ledger_id, first = work.ledger_id, work.first_entry
        plan = self.keys.choose(hashes, work.counts, self._held.hashes_waiting, self._room)
        now_ms = self.out.now_ms  # once, since the chunks of a message have one due time
        for portion in plan.portions:
            stop = portion.start + portion.count
            part = work.part(portion.start, stop)
            self._send(portion.consumer, part, hashes[portion.start : stop], now_ms)
        for at in plan.held:
            position = (ledger_id, first + at)
            if not self._cursor.acks.is_acked(position):
                self._hashes[position] = hashes[at]
                self._held.add(position)
        self.read = max(self.read, (ledger_id, first + plan.seen))
        return max(plan.seen, 1)

    def _send(self, consumer: Consumer, part: Slice, hashes: list[int], now_ms: int) -> None:
        for piece, partial in self.out.deliverable(part, now_ms):
            for at in range(len(piece.payloads)):
                entry_id = piece.first_entry + at
                hash_ = hashes[entry_id - part.first_entry]
                self._hashes[(piece.ledger_id, entry_id)] = hash_
                self.keys.sent(consumer, hash_)
            self.out.send(consumer, piece, partial)

    def _deliver_again(self) -> int | None:
        """Deliver waiting entries, lowest first; returns how many, None if one must be loaded."""
        turns = []
        for rank, consumer in enumerate(self.consumers):
            head = self._head(consumer)
            if head is not None:
                turns.append((head, rank, consumer))
        heapify(turns)
        seen = 0
        while turns and seen < TURN_ENTRIES_MAX and not self.out.blocked:
            position, rank, consumer = heappop(turns)
            if self._again.is_gone(position):
                self._forget(position)
            else:
                found = self._again.at(position, LOOK_ENTRIES_MAX)
                sent = self._send_run(consumer, *found) if found is not None else 0
                if not sent:
                    return None
                seen += sent
            head = self._head(consumer)
            if head is not None:
                heappush(turns, (head, rank, consumer))
        return seen

    def _send_run(self, consumer: Consumer, whole: Slice, start: int) -> int:
        """Deliver consecutive waiting entries of this consumer from `start` on."""
        stop = affordable(whole, start, min(consumer.permits, LOOK_ENTRIES_MAX))
        if self._limit is not None:
            stop = self._limit.stop(whole, start, stop)
        hashes = self._held.take_run(consumer, stop - start)
        part = whole.part(start, start + len(hashes))
        self._send(consumer, part, hashes, self.out.now_ms)
        for at in range(len(hashes)):
            position = (part.ledger_id, part.first_entry + at)
            if position not in self.out.pending:  # acknowledged meanwhile, or not due
                self._hashes.pop(position, None)
        return len(hashes)

    def _learn_hashes(self) -> bool:
        """Compute the hashes of entries that were delayed; False while one must be loaded."""
        unread = self._held.unread
        while (run := unread.first_run(LOOK_ENTRIES_MAX)) is not None:
            (ledger_id, first), count = run
            if self._again.is_gone((ledger_id, first)):
                self._forget((ledger_id, first))
                continue
            found = self._again.at((ledger_id, first), count)
            if found is None:
                return False
            whole, start = found
            for at, payload in enumerate(whole.payloads[start : start + count]):
                position = (ledger_id, first + at)
                self._hashes[position] = hash_of(self.keys, payload)
                self._held.learned(position)
        return True

    def _forget(self, position: Position) -> None:
        self._held.discard(position)
        self._hashes.pop(position, None)

    # -- acknowledgement and coming back ------------------------------------------------------

    def _left(self, position: Position, owner: Consumer | None) -> None:
        """Settle a pending entry, which may free its hash."""
        hash_ = self._hashes.get(position)
        if position not in self.out.replay:
            self._hashes.pop(position, None)
        if owner is not None and hash_ is not None and self.keys.returned(owner, hash_):
            self._held.freed(hash_)
            self._schedule()

    def acked(self, _consumer: Consumer | None, ledger_id: int, first: int, last: int) -> int:
        return self.out.acked(ledger_id, first, last)

    def acked_partly(self, position: Position, messages: int) -> int:
        return self.out.acked_partly(position, messages)

    def came_back(self, positions: Iterable[Position]) -> None:
        self.out.came_back(position for position in positions if position < self.read)

    def redeliver(self, consumer: Consumer, positions: list[Position] | None) -> None:
        self.out.redeliver(consumer, positions)

    def moved(self) -> None:
        """The mark-delete position was moved (expiry, skip): drop what it passed."""
        self.out.passed(self._cursor.mark_delete)
        self.read = max(self.read, self._cursor.read_from)


def mode_of(consumer: Consumer) -> Mode:
    """The key-sharing mode that this consumer requests."""
    return Mode(consumer.request.sticky, consumer.request.out_of_order)


def hash_of(keys: KeyShared[Consumer], payload: bytes) -> int:
    """The hash of an entry's key."""
    return keys.hash_of(NATIVE.ordering_key(payload) or b"")
