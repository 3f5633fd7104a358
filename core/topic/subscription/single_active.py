"""The dispatcher of Exclusive and Failover: one consumer at a time, in order.

Theory. There is one read position, ahead of the mark-delete position by what the active consumer
has not acknowledged. When the active consumer changes, leaves or requests redelivery, reading
rewinds to the mark-delete position and skips entries that are acknowledged
(`PersistentDispatcherSingleActiveConsumer.java` of Pulsar 4.2).

Invariants: entries are delivered in order, each at most once between two rewinds, and only to the
active consumer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from magnetar.core.dispatch.single import active as choose_active
from magnetar.core.ledger.cursor.cursor import Cursor
from magnetar.core.ledger.log.chain import Position
from magnetar.core.ledger.log.managed_ledger import ManagedLedger
from magnetar.core.ledger.read.tail_cache import Slice
from magnetar.core.topic.compacted.compacted_source import CompactedSource
from magnetar.core.topic.end_of_topic import EndOfTopic
from magnetar.core.topic.subscription.consumer import Consumer
from magnetar.core.topic.subscription.dispatch_limit import DispatchLimit
from magnetar.core.topic.subscription.outstanding import SharedLimits
from magnetar.core.topic.subscription.statistics import SubscriptionStatistics

TURN_BYTES_MAX: Final = 1024 * 1024
"""Delivered to one subscription before others are served."""


class SingleDispatcher:
    """See the module's docstring."""

    def __init__(
        self,
        cursor: Cursor,
        ledger: ManagedLedger,
        source: CompactedSource,
        *,
        failover: bool,
        wall_ms: Callable[[], int],
    ) -> None:
        self.consumers: list[Consumer] = []
        self.active: Consumer | None = None
        self.failover = failover
        self._limit: DispatchLimit | None = None
        self.read: Position = cursor.read_from
        self._cursor = cursor
        self._ledger = ledger
        self._source = source.plain
        self._compacted = source
        self._reads_compacted = False
        self._wall_ms = wall_ms
        self._end = EndOfTopic(cursor)

    # -- the active consumer ------------------------------------------------------------------

    def attach(self, consumer: Consumer) -> None:
        self.consumers.append(consumer)
        self._choose()
        if self.failover and consumer is not self.active:
            consumer.sink.activity(False)

    def detach(self, consumer: Consumer) -> None:
        self.consumers.remove(consumer)
        if consumer is self.active:
            self.active = None
            self.rewind()
        self._choose()
        if not self.consumers:
            self.stop()

    def set_dispatch_limit(self, limit: DispatchLimit | None) -> None:
        self._limit = limit

    def stop(self) -> None:
        """Disconnect all consumers at once: none becomes active meanwhile."""
        self.consumers.clear()
        self.active = None
        self._source.stop()
        self._compacted.stop()

    def _choose(self) -> None:
        """Choose the active consumer; a new one starts from what is not acknowledged."""
        if not self.failover:
            chosen = self.consumers[0] if self.consumers else None
        else:
            chosen = choose_active(self.consumers, self._cursor.topic)
        before, self.active = self.active, chosen
        if chosen is before:
            return
        self.rewind()
        if self.failover:
            if before is not None:
                before.sink.activity(False)
            if chosen is not None:
                chosen.sink.activity(True)

    # -- delivery -----------------------------------------------------------------------------

    def dispatch(self) -> bool:
        """Deliver what may be delivered now; True if the turn ended before the work."""
        consumer = self.active
        if consumer is None:
            return False
        budget = TURN_BYTES_MAX
        while consumer.ready:
            if budget <= 0:
                return True
            found = self._next()
            if found is None:
                if self._ledger.terminated:
                    self._end.announce((consumer,))
                return False
            whole, start = found
            stop = affordable(whole, start, consumer.permits)
            if self._limit is not None:
                stop = self._limit.stop(whole, start, stop)
                if stop == start:
                    return False
            self.read = (whole.ledger_id, whole.first_entry + stop)
            bytes_before = consumer.bytes_out
            self._send(consumer, whole.part(start, stop))
            budget -= consumer.bytes_out - bytes_before
        return False

    def _send(self, consumer: Consumer, part: Slice) -> None:
        """Deliver what is neither acknowledged nor compacted out of these entries."""
        if not self._reads_compacted and not self._cursor.may_have_acked(part):
            consumer.send(part, None, None, self._wall_ms())
            return
        for piece, partial in self._cursor.unacked_parts(part):
            if self._reads_compacted:
                partial = self._compacted.masked(piece, partial)
            consumer.send(piece, None, partial, self._wall_ms())

    def _next(self) -> tuple[Slice, int] | None:
        """The next entries, if they are loaded."""
        if self._reads_compacted:
            self.read = self._compacted.normal(self.read)
            return self._compacted.at(self.read)
        self.read = self._ledger.chain.normal(self.read)
        return self._source.at(self.read)

    # -- going back and on --------------------------------------------------------------------

    def rewind(self) -> None:
        """Deliver everything again that is not acknowledged."""
        active = self.active
        self._end.again()
        self._source.forget()
        if self._reads_compacted:
            self._compacted.stop()
        self._reads_compacted = active is not None and active.request.read_compacted
        self.read = self._compacted.begin() if self._reads_compacted else self._cursor.read_from

    def redeliver(self, consumer: Consumer, positions: list[Position] | None) -> None:
        """Rewind: single entries cannot be delivered again in order."""
        if consumer is self.active:
            self.rewind()

    def came_back(self, positions: Iterable[Position]) -> None:
        """Rewind, as above."""
        self.rewind()

    def moved(self) -> None:
        """The mark-delete position was moved (expiry, skip): read on after it."""
        ledger_id, entry_id = self._cursor.mark_delete
        behind = (ledger_id, entry_id + 1) if self._reads_compacted else self._cursor.read_from
        self.read = max(self.read, behind)

    def acked(self, consumer: Consumer | None, ledger_id: int, first: int, last: int) -> int:
        """The number of acknowledged entries: messages are not tracked here."""
        return last - first + 1

    def acked_partly(self, position: Position, messages: int) -> int:
        """As above, for some messages of a batch."""
        return messages

    def set_limits(self, limits: SharedLimits) -> None:
        """Do nothing: the limits are those of shared subscriptions."""

    @property
    def unacked(self) -> int:
        return 0

    def statistics(self) -> SubscriptionStatistics:
        return SubscriptionStatistics(self.read, self.active, self.unacked)


def affordable(whole: Slice, start: int, permits: int) -> int:
    """The end of the entries from `start` on that the permits allow; at least one entry."""
    if whole.counts is None:
        return min(len(whole.payloads), start + permits)
    counts, stop = whole.counts, start
    while stop < len(counts) and permits > 0:
        permits -= counts[stop]
        stop += 1
    return stop
