"""A consumer: its permits, its unacknowledged messages, and the sink to which entries go.

Permits count messages, but whole entries are delivered, so permits may become negative. Permits
granted while the consumer is blocked count later (`Consumer.java` of Pulsar 4.2, `flowPermits` and
`sendMessages`, does both).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Protocol

from magnetar.core.kernel.pieces import size_of
from magnetar.core.kernel.rates import Outflow, Rates
from magnetar.core.kernel.structs import FrozenStruct
from magnetar.core.ledger.log.chain import Position
from magnetar.core.ledger.read.tail_cache import Slice
from magnetar.core.ports.ledger_store import Done
from magnetar.core.topic.subscription.chunk_counts import ChunksOut

if TYPE_CHECKING:
    from magnetar.core.topic.subscription.dispatch_limit import DispatchLimit
    from magnetar.core.topic.subscription.statistics import LastTimes, SubscriptionStatistics

PartialAck = tuple[int, int, int, int]
"""(ledger, entry, bits of the batch indexes not acknowledged, size of the batch or 0): PIP-54."""

NOTHING_NOTED: Final[Mapping[str, int]] = MappingProxyType({})


class Progress(Protocol):
    """A cursor as sessions use it."""

    @property
    def durable(self) -> bool: ...

    @property
    def mark_delete(self) -> Position: ...

    @property
    def backlog(self) -> int: ...

    def when_saved(self, done: Done) -> None: ...


class Subscription(Protocol):
    """A subscription of any topic, as its consumers use it."""

    @property
    def name(self) -> str: ...

    @property
    def kind(self) -> str: ...

    @property
    def cursor(self) -> Progress: ...

    @property
    def consumers(self) -> Sequence[Consumer]: ...

    @property
    def rates(self) -> Rates[Outflow]: ...

    def flow(self, consumer: Consumer, permits: int) -> None: ...

    def ack(
        self,
        consumer: Consumer,
        ranges: Sequence[tuple[int, int, int]],
        partial: Sequence[PartialAck] = (),
    ) -> None: ...

    def ack_to(
        self,
        consumer: Consumer,
        position: Position,
        partial: PartialAck | None,
        noted: Mapping[str, int] = NOTHING_NOTED,
    ) -> None: ...

    def redeliver(self, consumer: Consumer, positions: list[Position] | None) -> None: ...

    def may_unsubscribe(self, consumer: Consumer) -> None: ...

    def detach(self, consumer: Consumer) -> None: ...

    def schedule(self) -> None: ...

    @property
    def replicated(self) -> bool: ...

    def outflow(self) -> Outflow:
        """Counts since it began."""
        ...

    def last_times(self) -> LastTimes: ...

    def statistics(self) -> SubscriptionStatistics:
        """A snapshot."""
        ...


class Sink(Protocol):
    """The protocol's side of a consumer. Plain calls; nothing here waits."""

    @property
    def congested(self) -> bool:
        """Whether delivery pauses because the peer does not read."""
        ...

    def deliver(
        self,
        part: Slice,
        redeliveries: Sequence[int] | None,
        partial: Mapping[int, int] | None,
    ) -> None:
        """Send entries. `redeliveries` counts earlier deliveries of each, None if all are first;
        `partial` gives, by offset in `part`, the bits of batch indexes not yet acknowledged.
        """
        ...

    def activity(self, active: bool) -> None:
        """Failover: this consumer has become, or is no longer, the one that is served."""
        ...

    def end_of_topic(self) -> None:
        """The topic is terminated and this consumer has seen everything."""
        ...

    def closed_by_broker(self) -> None:
        """The consumer is detached (unload, seek, deletion); its client is to attach again."""
        ...


class ConsumerRequest(FrozenStruct, frozen=True):
    """How a client asks to attach."""

    name: str
    priority: int = 0
    epoch: int | None = None
    metadata: Mapping[str, str] = {}
    address: str = ""
    client_version: str = ""
    hash_ranges: tuple[tuple[int, int], ...] = ()
    sticky: bool = False
    out_of_order: bool = False
    read_compacted: bool = False
    takes_any_schema: bool = False
    """Whether its client reads whatever schema the topic has."""


class Consumer:
    """See the module's docstring."""

    __slots__ = (
        "_dispatch_limit",
        "blocked",
        "bytes_out",
        "chunks_out",
        "connected_ms",
        "entries_out",
        "epoch",
        "first_flow_ms",
        "first_sent_ms",
        "id",
        "last_acked_ms",
        "last_consumed_ms",
        "last_flow_ms",
        "messages_acked",
        "messages_out",
        "messages_redelivered",
        "permits",
        "rates",
        "request",
        "sink",
        "subscription",
        "unacked",
        "unacked_max",
        "withheld",
    )

    def __init__(
        self, consumer_id: int, request: ConsumerRequest, sink: Sink, unacked_max: int, now_ms: int
    ) -> None:
        self.id = consumer_id
        self.request = request
        self.sink = sink
        self.subscription: Subscription | None = None
        self._dispatch_limit: DispatchLimit | None = None
        self.epoch = request.epoch
        self.permits = 0
        self.withheld = 0
        """Permits granted while blocked on unacknowledged messages."""
        self.unacked = 0
        self.unacked_max = unacked_max
        self.blocked = False
        """The limit of unacknowledged messages is reached; half must be acknowledged first."""
        self.connected_ms = now_ms
        self.messages_out = self.bytes_out = self.entries_out = 0
        self.messages_acked = self.messages_redelivered = 0
        self.chunks_out = ChunksOut()
        self.rates = Rates(Outflow(), now_ms)
        self.last_acked_ms = self.last_consumed_ms = self.last_flow_ms = 0
        self.first_sent_ms = self.first_flow_ms = 0

    @property
    def name(self) -> str:
        return self.request.name

    def outflow(self) -> Outflow:
        """Counts since it attached."""
        return Outflow(
            self.messages_out,
            self.bytes_out,
            self.messages_acked,
            self.messages_redelivered,
            chunks=self.chunks_out.count,
        )

    @property
    def priority(self) -> int:
        return self.request.priority

    @property
    def ready(self) -> bool:
        """Whether an entry may be delivered now."""
        return self.permits > 0 and not self.blocked and not self.sink.congested

    def grant(self, permits: int, now_ms: int) -> None:
        """The client grants permits for more messages (CommandFlow)."""
        self.last_flow_ms = now_ms
        self.first_flow_ms = self.first_flow_ms or now_ms
        if self.blocked:
            self.withheld += permits
        else:
            self.permits += permits

    def set_dispatch_limit(self, limit: DispatchLimit | None) -> None:
        """Set the limit by which delivered messages are counted, if there is one."""
        self._dispatch_limit = limit

    def hold(self, messages: int) -> None:
        """Count delivered messages; at the limit of unacknowledged ones, block."""
        self.unacked += messages
        if self.unacked_max and self.unacked >= self.unacked_max:
            self.blocked = True

    def release(self, messages: int) -> None:
        """Count settled messages; unblock at half the limit."""
        self.unacked = max(self.unacked - messages, 0)
        if self.blocked and self.unacked <= self.unacked_max // 2:
            self._unblock()

    def limit_unacked(self, unacked_max: int) -> None:
        """Apply a changed limit; 0 is no limit."""
        self.unacked_max = unacked_max
        if unacked_max and self.unacked >= unacked_max:
            self.blocked = True
        elif self.blocked and (not unacked_max or self.unacked <= unacked_max // 2):
            self._unblock()

    def _unblock(self) -> None:
        self.blocked = False
        self.permits += self.withheld
        self.withheld = 0

    def send(
        self,
        part: Slice,
        redeliveries: Sequence[int] | None,
        partial: Mapping[int, int] | None,
        now_ms: int,
    ) -> int:
        """Deliver entries and spend permits; returns the number of messages."""
        messages = part.messages()
        if partial:
            for offset, bits in partial.items():
                whole = 1 if part.counts is None else part.counts[offset]
                messages -= whole - bits.bit_count()
        size = size_of(part.payloads)
        self.permits -= messages
        self.messages_out += messages
        self.entries_out += len(part.payloads)
        self.bytes_out += size
        self.chunks_out.note(part, size)
        if self._dispatch_limit is not None:
            self._dispatch_limit.spend(messages, size)
        self.last_consumed_ms = now_ms
        self.first_sent_ms = self.first_sent_ms or now_ms
        if redeliveries is not None:
            self.messages_redelivered += sum(1 for count in redeliveries if count)
        self.sink.deliver(part, redeliveries, partial)
        return messages
