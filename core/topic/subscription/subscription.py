"""A subscription: a cursor, the consumers attached to it, and the dispatcher that serves them.

It checks which consumers may attach (type, mode, number), moves the cursor by acknowledgements, and
detaches consumers before a reset or deletion. The dispatcher assigns entries to consumers.

Invariant: the dispatcher always matches `type`; no consumer attaches while it is `fenced`.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from magnetar.core.entry.form import TransactionKey
from magnetar.core.kernel.errors import (
    BrokerError,
    ConsumerBusy,
    Invalid,
    NotAllowed,
    NotReady,
    SubscriptionBusy,
)
from magnetar.core.kernel.rates import Inflow, Outflow, Rates
from magnetar.core.kernel.throttle import RateLimit, Throttle, throttle_for
from magnetar.core.ledger.compacted.compacted_topic import CompactedTopic
from magnetar.core.ledger.cursor.cursor import Cursor
from magnetar.core.ledger.cursor.pending_acks import NOTHING, EntryRange, HeldPart, Released
from magnetar.core.ledger.log.chain import Position
from magnetar.core.ledger.log.managed_ledger import ManagedLedger
from magnetar.core.topic.compacted.compacted_source import CompactedSource
from magnetar.core.topic.environment import Environment
from magnetar.core.topic.subscription.consumer import NOTHING_NOTED, Consumer, PartialAck
from magnetar.core.topic.subscription.dispatch_limit import DispatchLimit
from magnetar.core.topic.subscription.key_shared import KeyedDispatcher, mode_of
from magnetar.core.topic.subscription.outstanding import SharedLimits
from magnetar.core.topic.subscription.shared import SharedDispatcher
from magnetar.core.topic.subscription.single_active import SingleDispatcher
from magnetar.core.topic.subscription.source import EntrySource
from magnetar.core.topic.subscription.statistics import NO_TIMES, LastTimes, SubscriptionStatistics
from magnetar.core.topic.throttles import TopicThrottles


class SubscriptionType(enum.Enum):
    EXCLUSIVE = "Exclusive"
    SHARED = "Shared"
    FAILOVER = "Failover"
    KEY_SHARED = "Key_Shared"

    @property
    def ordered(self) -> bool:
        """Whether one consumer is served at a time, so that it may acknowledge cumulatively."""
        return self in (SubscriptionType.EXCLUSIVE, SubscriptionType.FAILOVER)


class Dispatcher(Protocol):
    """Serves consumers; see `single_active.py`, `shared.py` and `key_shared.py`."""

    consumers: list[Consumer]

    @property
    def unacked(self) -> int: ...

    def statistics(self) -> SubscriptionStatistics: ...

    def attach(self, consumer: Consumer) -> None: ...

    def detach(self, consumer: Consumer) -> None: ...

    def stop(self) -> None: ...

    def set_limits(self, limits: SharedLimits) -> None: ...

    def set_dispatch_limit(self, limit: DispatchLimit | None) -> None: ...

    def dispatch(self) -> bool: ...

    def redeliver(self, consumer: Consumer, positions: list[Position] | None) -> None: ...

    def acked(self, consumer: Consumer | None, ledger_id: int, first: int, last: int) -> int: ...

    def came_back(self, positions: Iterable[Position]) -> None:
        """These entries are no longer held by a transaction, and not acknowledged."""
        ...

    def acked_partly(self, position: Position, messages: int) -> int: ...

    def moved(self) -> None: ...


class PersistentSubscription:
    """See the module's docstring."""

    def __init__(
        self,
        env: Environment,
        ledger: ManagedLedger,
        cursor: Cursor,
        limits: SharedLimits,
        compacted: CompactedTopic,
    ) -> None:
        self.name = cursor.name
        self.cursor = cursor
        self.type: SubscriptionType | None = None
        """Set by the first consumer; a later one may change it while none is attached."""
        self.dispatcher: Dispatcher | None = None
        self.fenced = False
        self._over = False
        """Deleted, or unloaded with its topic: fenced for good."""
        self.is_dirty = False
        self.replicated = False
        self.kept_until_ms = 0
        """Until when the cursor of a reader that seeks is retained without a consumer."""
        self.outflow_before = Outflow()
        """Of consumers that have left."""
        self.rates = Rates(Outflow(), env.clock.wall_ms())
        self.messages_expired = 0
        self.last_expired_ms = 0
        self.last_mark_delete_ms = 0
        """When the mark-delete position last moved."""
        self._last_times = NO_TIMES
        """Of consumers that have left."""
        self._env = env
        self._ledger = ledger
        self._limits = limits
        self._compacted = compacted
        self._throttle: Throttle | None = None
        self._dispatch_limit: DispatchLimit | None = None

    @property
    def kind(self) -> str:
        """The type by name, empty before the first consumer."""
        return self.type.value if self.type is not None else ""

    # -- consumers ----------------------------------------------------------------------------

    @property
    def consumers(self) -> Sequence[Consumer]:
        return self.dispatcher.consumers if self.dispatcher is not None else ()

    def attach(self, consumer: Consumer, kind: SubscriptionType, consumers_max: int) -> None:
        """Attach a consumer, or raise. Plain call, so that nothing changes in between."""
        if self.fenced:
            raise NotReady(f"subscription {self.name} is being reset or closed")
        present = self.consumers
        if present:
            if self.type is not kind:
                assert self.type is not None
                raise SubscriptionBusy(
                    f"subscription {self.name} is of type {self.type.value}, not {kind.value}"
                )
            if kind is SubscriptionType.EXCLUSIVE:
                raise ConsumerBusy("Exclusive consumer is already connected")
            if consumers_max and len(present) >= consumers_max:
                raise ConsumerBusy("Subscription reached max consumers limit")
        dispatcher = self.dispatcher
        if dispatcher is None or not present:
            dispatcher = self._new_dispatcher(kind, consumer)
        dispatcher.attach(consumer)
        self.dispatcher, self.type = dispatcher, kind
        consumer.subscription = self
        dispatcher.set_dispatch_limit(self._dispatch_limit)
        consumer.set_dispatch_limit(self._dispatch_limit)
        self.cursor.used(self._env.clock.wall_ms())
        self.schedule()

    def _new_dispatcher(self, kind: SubscriptionType, first: Consumer) -> Dispatcher:
        """Create a dispatcher, which starts from the first unacknowledged entry."""
        if kind is SubscriptionType.SHARED:
            return SharedDispatcher(
                self.cursor, self._ledger, self._env, self._limits, self.schedule
            )
        if kind is SubscriptionType.KEY_SHARED:
            return KeyedDispatcher(
                self.cursor, self._ledger, self._env, self._limits, self.schedule, mode_of(first)
            )
        ledger, cursor, env = self._ledger, self.cursor, self._env
        plain = EntrySource(ledger, env, self.schedule, cursor.ack_range)
        source = CompactedSource(plain, self._compacted, ledger, cursor, env, self.schedule)
        return SingleDispatcher(
            self.cursor,
            self._ledger,
            source,
            failover=kind is SubscriptionType.FAILOVER,
            wall_ms=self._env.clock.wall_ms,
        )

    def detach(self, consumer: Consumer) -> None:
        """A consumer leaves; its pending entries go to others."""
        if consumer.subscription is not self or self.dispatcher is None:
            return
        self._remember(consumer)
        self.dispatcher.detach(consumer)
        self.cursor.used(self._env.clock.wall_ms())
        self.schedule()

    def _remember(self, consumer: Consumer) -> None:
        """Add the counts of a consumer that leaves."""
        consumer.subscription = None
        self.outflow_before = self.outflow_before.plus(consumer.outflow())
        self._last_times = self._last_times.with_those((consumer,))

    def _moved_from(self, mark_delete: Position) -> None:
        """Note the time if the cursor has moved from there."""
        if self.cursor.mark_delete > mark_delete:
            self.last_mark_delete_ms = self._env.clock.wall_ms()

    def outflow(self) -> Outflow:
        """Counts since the topic was loaded."""
        total = self.outflow_before
        for consumer in self.consumers:
            total = total.plus(consumer.outflow())
        return total._replace(expired=self.messages_expired)

    def last_times(self) -> LastTimes:
        """Times of all consumers since the topic was loaded."""
        return self._last_times.with_those(self.consumers)

    def statistics(self) -> SubscriptionStatistics:
        """A snapshot of dispatch."""
        if self.dispatcher is None:
            return SubscriptionStatistics(self.cursor.read_from)
        return self.dispatcher.statistics()

    def disconnect_all(self) -> None:
        """Detach all consumers and tell their clients to reconnect."""
        consumers = list(self.consumers)
        if self.dispatcher is not None:
            self.dispatcher.stop()
            self.dispatcher = None
        for consumer in consumers:
            self._remember(consumer)
            consumer.sink.closed_by_broker()
        if consumers:
            self.cursor.used(self._env.clock.wall_ms())

    def set_limits(self, limits: SharedLimits, unacked_per_consumer: int) -> None:
        """Apply changed policies, to attached consumers as well."""
        self._limits = limits
        if self.dispatcher is None or self.type is None or self.type.ordered:
            return
        self.dispatcher.set_limits(limits)
        for consumer in self.consumers:
            consumer.limit_unacked(unacked_per_consumer)
        self.schedule()

    def set_rates(self, own: RateLimit, topic: TopicThrottles, inflow: Rates[Inflow]) -> None:
        """Set the dispatch rates: the subscription's own, and those of its topic."""
        now = self._env.clock.monotonic()
        self._throttle = throttle_for(own, self._throttle, now, inflow)
        throttles = topic.dispatch if self._throttle is None else (self._throttle, *topic.dispatch)
        if throttles == (
            self._dispatch_limit.throttles if self._dispatch_limit is not None else ()
        ):
            return
        self._end_limit()
        self._dispatch_limit = (
            DispatchLimit(throttles, topic.turns, self._env, self.schedule) if throttles else None
        )
        if self.dispatcher is not None:
            self.dispatcher.set_dispatch_limit(self._dispatch_limit)
            for consumer in self.consumers:
                consumer.set_dispatch_limit(self._dispatch_limit)
            self.schedule()

    def _end_limit(self) -> None:
        if self._dispatch_limit is not None:
            self._dispatch_limit.end()

    # -- the four verbs of a consumer ---------------------------------------------------------

    def flow(self, consumer: Consumer, permits: int) -> None:
        consumer.grant(permits, self._env.clock.wall_ms())
        self.schedule()

    def ack(
        self,
        consumer: Consumer,
        ranges: Sequence[tuple[int, int, int]],
        partial: Sequence[PartialAck] = (),
    ) -> None:
        """Acknowledge entries (ledger, first, last) and parts of batches."""
        dispatcher = self.dispatcher
        if dispatcher is None or self.fenced:  # it was about a position that is left behind
            return
        consumer.last_acked_ms = self._env.clock.wall_ms()
        mark_delete = self.cursor.mark_delete
        acked = 0
        for ledger_id, first, last in ranges:
            acked += dispatcher.acked(consumer, ledger_id, first, last)
            self.cursor.ack_range(ledger_id, first, last)
        for ledger_id, entry_id, unacked, size in partial:
            acked += self._ack_part(dispatcher, consumer, (ledger_id, entry_id), unacked, size)
        consumer.messages_acked += acked
        self._moved_from(mark_delete)
        self.schedule()

    def _ack_part(
        self,
        dispatcher: Dispatcher,
        consumer: Consumer,
        position: Position,
        unacked: int,
        size: int,
    ) -> int:
        """Acknowledge messages of one batch; returns how many were not before."""
        before = self.cursor.acks.bits(position)
        if self.cursor.ack_bits(position, unacked, size):
            return dispatcher.acked(consumer, position[0], position[1], position[1])
        was = before.bit_count() if before is not None else max(size, 0)
        left = self.cursor.acks.bits(position)
        now = left.bit_count() if left is not None else was
        return dispatcher.acked_partly(position, was - now) if was > now else 0

    def ack_to(
        self,
        consumer: Consumer,
        position: Position,
        partial: PartialAck | None,
        noted: Mapping[str, int] = NOTHING_NOTED,
    ) -> None:
        """Acknowledge everything up to `position`; ignored if entries are delivered out of order.

        `noted` is stored with the cursor, until the client acknowledges more.
        """
        if self.fenced or self.type is None or not self.type.ordered:
            return
        mark_delete = self.cursor.mark_delete
        unacked, size = (None, 0) if partial is None else partial[2:]
        consumer.messages_acked += self.cursor.ack_to(position, unacked, size)
        consumer.last_acked_ms = self._env.clock.wall_ms()
        if self.cursor.mark_delete > mark_delete:
            self.cursor.set_position_properties(noted)
        self._moved_from(mark_delete)
        if self._ledger.terminated:
            self.schedule()  # the end of the topic may be due

    # -- transactions ---------------------------------------------------------------------------

    def hold(
        self,
        consumer: Consumer,
        key: TransactionKey,
        ranges: Sequence[EntryRange],
        parts: Sequence[HeldPart],
    ) -> None:
        """Acknowledge in an open transaction: until its end, nobody is delivered these messages.

        `TransactionConflict` if another one does, or if they are acknowledged.
        """
        dispatcher = self._held_by(consumer)
        left = [self._left(part) for part in parts]
        self.cursor.hold(key, ranges, parts)
        consumer.last_acked_ms = self._env.clock.wall_ms()
        held = 0
        for ledger_id, first, last in ranges:
            held += dispatcher.acked(consumer, ledger_id, first, last)
        for part, before in zip(parts, left, strict=True):
            position, now = (part[0], part[1]), self._left(part)
            if now:
                held += dispatcher.acked_partly(position, before - now) if before > now else 0
            else:
                held += dispatcher.acked(consumer, part[0], part[1], part[1])
        consumer.messages_acked += held
        self.schedule()

    def _left(self, part: HeldPart) -> int:
        """How many messages of a batch are neither acknowledged nor held."""
        position = (part[0], part[1])
        left = self.cursor.pending.left_of(position, self.cursor.acks.bits(position))
        return part[3] if left is None else left.bit_count()

    def hold_up_to(self, consumer: Consumer, key: TransactionKey, up_to: HeldPart) -> None:
        """The same for everything up to a position, where one consumer is served at a time."""
        self._held_by(consumer)
        if self.type is None or not self.type.ordered:
            raise NotAllowed("messages are acknowledged one by one in a shared subscription")
        self.cursor.hold_up_to(key, up_to)
        consumer.last_acked_ms = self._env.clock.wall_ms()

    def _held_by(self, consumer: Consumer) -> Dispatcher:
        if not self.cursor.durable:
            raise NotAllowed("a subscription that is not durable takes part in no transaction")
        if self.fenced or self.dispatcher is None or consumer.subscription is not self:
            raise NotReady(f"subscription {self.name} is being reset or closed")
        return self.dispatcher

    async def end_transaction(self, key: TransactionKey, *, committed: bool) -> None:
        """Show its end, perhaps not for the first time; durable on return."""
        self.show_end(key, committed=committed)
        await self.cursor.saved()

    def show_end(self, key: TransactionKey, *, committed: bool) -> None:
        """Acknowledge what the transaction holds here, or deliver it again. It is not durable yet:
        the decision is. A repetition changes nothing. Plain call.
        """
        mark_delete = self.cursor.mark_delete
        held = self.cursor.end_transaction(key, committed=committed)
        if committed:
            self._drop_acked(held)
            self._moved_from(mark_delete)
        elif self.dispatcher is not None and self.consumers and held is not NOTHING:
            self.dispatcher.came_back(self._unheld(held))
        self.schedule()

    def _drop_acked(self, held: Released) -> None:
        """Have dispatch forget batches whose last messages a transaction has acknowledged."""
        for ledger_id, entry_id, _, _ in held.parts if self.dispatcher is not None else ():
            if self.cursor.acks.is_acked((ledger_id, entry_id)) and self.dispatcher is not None:
                self.dispatcher.acked(None, ledger_id, entry_id, entry_id)

    def _unheld(self, held: Released) -> Iterator[Position]:
        acks = self.cursor.acks
        for ledger_id, first, last in held.ranges:
            for entry_id in range(first, last + 1):
                if not acks.is_acked((ledger_id, entry_id)):
                    yield ledger_id, entry_id
        for ledger_id, entry_id, _, _ in held.parts:
            if not acks.is_acked((ledger_id, entry_id)):
                yield ledger_id, entry_id

    def redeliver(self, consumer: Consumer, positions: list[Position] | None) -> None:
        """Deliver these entries again, or (None) all that this consumer has not acknowledged."""
        if self.dispatcher is not None and consumer.subscription is self:
            self.dispatcher.redeliver(consumer, positions)
            self.schedule()

    # -- dispatch -----------------------------------------------------------------------------

    def schedule(self) -> None:
        """Request a dispatch at the end of this sweep."""
        if not self.is_dirty and self.dispatcher is not None and self.dispatcher.consumers:
            self.is_dirty = True
            self._env.dirty(self)

    def dispatch(self) -> bool:
        """Deliver entries; True if there is more to do at once."""
        self.is_dirty = False
        return self.dispatcher is not None and not self.fenced and self.dispatcher.dispatch()

    # -- moving the cursor from outside -------------------------------------------------------

    async def seek(self, mark_delete: Position, partial: PartialAck | None = None) -> None:
        """Set the cursor to `mark_delete`, durably, and detach all consumers.

        Consumers are detached last: a client that reconnects before its seek is answered discards
        the messages that it receives meanwhile (`ConsumerImpl.duringSeek` of Pulsar's client).
        """
        if self.fenced:
            raise SubscriptionBusy(f"subscription {self.name} is being reset already")
        self.fenced = True
        try:
            self.cursor.reset(mark_delete)
            if partial is not None:
                self.cursor.ack_bits((partial[0], partial[1]), partial[2], partial[3])
            await self.cursor.saved()
        finally:
            self.disconnect_all()
            self.fenced = self._over

    def skip_to(self, position: Position) -> None:
        """Acknowledge entries up to `position` (expiry, clear backlog)."""
        mark_delete = self.cursor.mark_delete
        if position > mark_delete:
            self.cursor.ack_to(position)
            self._moved_from(mark_delete)
            if self.dispatcher is not None:
                self.dispatcher.moved()
            self.schedule()

    def expire_to(self, position: Position) -> int:
        """Acknowledge entries up to `position` as expired; returns how many were not before."""
        before = self.cursor.backlog
        self.skip_to(position)
        expired = before - self.cursor.backlog
        if expired:
            self.messages_expired += expired
            self.last_expired_ms = self._env.clock.wall_ms()
        return expired

    def skip(self, entries: int) -> None:
        """Acknowledge the next unacknowledged entries."""
        chain, acks, mark_delete = self._ledger.chain, self.cursor.acks, self.cursor.mark_delete
        position = acks.next_unacked(chain.after(self.cursor.mark_delete))
        while entries > 0 and chain.has(position):
            ledger_id, first = position
            # one by one if there are holes, else as many as the ledger has
            run = 1 if acks.holed else min(entries, chain.entries_from(position))
            self.cursor.ack_range(ledger_id, first, first + run - 1)
            entries -= run
            position = acks.next_unacked(position)
        self._moved_from(mark_delete)
        if self.dispatcher is not None:
            self.dispatcher.moved()
        self.schedule()

    def may_unsubscribe(self, consumer: Consumer) -> None:
        """Raise unless this is the only consumer."""
        if any(other is not consumer for other in self.consumers):
            raise Invalid("unsubscribe failed: other consumers are connected to the subscription")

    async def delete(self) -> None:
        """End the subscription; its consumers are detached."""
        self.fenced = self._over = True
        self.disconnect_all()
        try:
            await self.cursor.delete()
        except BrokerError:
            self.fenced = self._over = False
            raise

    async def close(self) -> None:
        """The topic is unloaded: detach all consumers, save the cursor."""
        self.fenced = self._over = True
        self._end_limit()
        self.disconnect_all()
        await self.cursor.close()
