"""The dispatcher of Shared: entries go to consumers in turn.

Theory. Entries in replay are delivered first (`outstanding.py`), then new ones, read in order from
one read position (`PersistentDispatcherMultipleConsumers.java` of Pulsar 4.2). All chunks of a
large message go to the consumer that got its first one (PIP-37 forbids chunks with Shared; later
clients allow them).

Invariant: an entry below the read position is acknowledged, held by a transaction, pending, waiting
in replay, or delayed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from magnetar.core.dispatch.chunks import ChunkedEntry, ChunkOwners
from magnetar.core.dispatch.shared import Share, choose
from magnetar.core.entry.forms import NATIVE
from magnetar.core.ledger.cursor.cursor import Cursor
from magnetar.core.ledger.log.chain import Position
from magnetar.core.ledger.log.managed_ledger import ManagedLedger
from magnetar.core.ledger.read.tail_cache import Slice
from magnetar.core.topic.end_of_topic import EndOfTopic
from magnetar.core.topic.environment import Environment
from magnetar.core.topic.subscription.consumer import Consumer
from magnetar.core.topic.subscription.dispatch_limit import DispatchLimit
from magnetar.core.topic.subscription.outstanding import Outstanding, SharedLimits
from magnetar.core.topic.subscription.replay import Replay
from magnetar.core.topic.subscription.source import EntrySource
from magnetar.core.topic.subscription.statistics import SubscriptionStatistics

TURN_BYTES_MAX: Final = 1024 * 1024
"""Delivered to one subscription before others are served."""
TURN_ENTRIES_MAX: Final = 1_000
"""Entries examined in one decision, and delayed in one turn."""


class SharedDispatcher:
    """See the module's docstring."""

    def __init__(
        self,
        cursor: Cursor,
        ledger: ManagedLedger,
        env: Environment,
        limits: SharedLimits,
        schedule: Callable[[], None],
    ) -> None:
        self.consumers: list[Consumer] = []
        self._limit: DispatchLimit | None = None
        self.read: Position = cursor.read_from
        self._replay = Replay()
        self.out = Outstanding(cursor, env, limits, schedule, self._replay)
        self._cursor = cursor
        self._ledger = ledger
        self._fresh = EntrySource(ledger, env, schedule, cursor.ack_range)
        self._again = EntrySource(ledger, env, schedule, cursor.ack_range)
        self._chunks: ChunkOwners[Consumer] = ChunkOwners()
        self._turn = 0
        self._end = EndOfTopic(cursor)

    # -- consumers ----------------------------------------------------------------------------

    def attach(self, consumer: Consumer) -> None:
        self.consumers.append(consumer)
        self._end.again()

    def detach(self, consumer: Consumer) -> None:
        self.consumers.remove(consumer)
        self._chunks.left(consumer)
        self.out.redeliver(consumer, None)
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

    def set_limits(self, limits: SharedLimits) -> None:
        self.out.set_limits(limits)

    @property
    def unacked(self) -> int:
        return self.out.unacked

    def statistics(self) -> SubscriptionStatistics:
        return self.out.statistics(self.read)

    # -- delivery -----------------------------------------------------------------------------

    def dispatch(self) -> bool:
        """Deliver what may be delivered now; True if the turn ended before the work."""
        budget, delayed = TURN_BYTES_MAX, len(self.out.delayed)
        while not self.out.blocked:
            self.out.wake_delayed()
            ready = [consumer for consumer in self.consumers if consumer.ready]
            if not ready:
                return False
            if budget <= 0 or len(self.out.delayed) >= delayed + TURN_ENTRIES_MAX:
                return True
            permits = min(sum(consumer.permits for consumer in ready), TURN_ENTRIES_MAX)
            work = self._came_back(permits) if self.out.replay else self._new(permits)
            if work is None:
                if self._ledger.terminated:
                    self._end.announce(self.consumers)
                return False
            if self._limit is not None:
                work = work.part(0, self._limit.stop(work, 0, len(work.payloads)))
                if not work.payloads:
                    return False
            budget -= sum(map(len, work.payloads))
            if not self._deal(work, ready):
                return False
        return False

    def _came_back(self, entries_max: int) -> Slice | None:
        """Entries to redeliver, lowest first; None if there are none, or none is loaded yet."""
        replay = self._replay
        while (run := replay.first_run(entries_max)) is not None:
            first, count = run
            if self._again.is_gone(first):
                replay.discard(first)
                continue
            found = self._again.at(first, count)
            if found is None:
                return None
            whole, start = found
            return whole.part(start, start + count)
        return self._new(entries_max)

    def _new(self, entries_max: int) -> Slice | None:
        """New entries at the read position."""
        if self.out.is_full(self.read):
            return None
        self.read, passing = self.out.pass_delayed(self._ledger.chain.normal(self.read))
        if passing:
            return None
        found = self._fresh.at(self.read)
        if found is None:
            return None
        whole, start = found
        return whole.part(start, start + entries_max)

    def _deal(self, work: Slice, ready: list[Consumer]) -> int:
        """Deliver entries; the read position moves past those that were delivered or dropped."""
        chunks = _chunks_of(work)
        shares: list[Share[Consumer]]
        if chunks:
            deal = self._chunks.choose(len(work.payloads), work.counts, ready, self._turn, chunks)
            shares, self._turn, seen = deal.shares, deal.turn, deal.seen
            if deal.orphans:
                self._settle_orphans(work, deal.orphans)
        else:
            shares, self._turn = choose(len(work.payloads), work.counts, ready, self._turn)
            seen = shares[-1].start + shares[-1].count if shares else 0
        now_ms = self.out.now_ms  # once, since the chunks of a message have one due time
        for share in shares:
            dealt = work.part(share.start, share.start + share.count)
            for piece, partial in self.out.deliverable(dealt, now_ms):
                self.out.send(share.consumer, piece, partial)
            self._drop_acked(work, share)
        self.read = max(self.read, (work.ledger_id, work.first_entry + seen))
        return seen

    def _settle_orphans(self, work: Slice, places: list[int]) -> None:
        """Chunks whose first one nobody has: acknowledge those that nobody will have."""
        ledger_id, first_delayed = work.ledger_id, self.out.delayed.first
        for at in places:
            position = (ledger_id, work.first_entry + at)
            if self._cursor.done_among(position, 1):
                self.out.replay.discard(position)
                continue
            if first_delayed is not None and first_delayed < position:
                due_ms = NATIVE.deliver_at(work.payloads[at])
                if due_ms is not None:
                    self.out.delay_chunk(position, due_ms)
                    continue
            self._cursor.ack_range(ledger_id, position[1], position[1])
            self.out.acked(ledger_id, position[1], position[1])

    def _drop_acked(self, work: Slice, share: Share[Consumer]) -> None:
        """Remove entries from replay that were acknowledged meanwhile."""
        if self.out.replay:
            for at in range(share.start, share.start + share.count):
                self.out.replay.discard((work.ledger_id, work.first_entry + at))

    # -- acknowledgement and coming back ------------------------------------------------------

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


def _chunks_of(work: Slice) -> dict[int, ChunkedEntry]:
    """The entries that are chunks of large messages, by place."""
    found = {}
    for at, payload in enumerate(work.payloads):
        part = NATIVE.chunk(payload)
        if part is not None:
            found[at] = ChunkedEntry(part.uuid, part.chunk_id == 0, part.is_last)
    return found
