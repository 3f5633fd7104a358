"""A non-persistent topic: what is published goes to whoever is there, and nowhere else.

Nothing is stored, nothing is acknowledged, nothing waits: an entry that no consumer can take at once
is dropped. Positions are (0, n), counting entries since the topic was loaded.

It has the surface of `Topic` as far as sessions use it; what needs storage is refused there.
"""

from __future__ import annotations

from collections.abc import Sequence

from core.clock import Clock
from core.dispatch import single as choice
from core.dispatch.shared import choose
from core.entry import header
from core.errors import BrokerError, ConsumerBusy, NotReady, SubscriptionBusy
from core.ledger.chain import Position
from core.ledger.managed import Appended
from core.ledger.tail_cache import Slice
from core.names import TopicName
from core.policies import Effective
from core.topic.consumer import Consumer, ConsumerRequest, Sink
from core.topic.environment import Environment
from core.topic.subscription import PartialAck, SubscriptionType


class VolatileCursor:
    """There is nothing to remember."""

    durable = False
    mark_delete: Position = (-1, -1)
    backlog = 0

    @staticmethod
    def when_saved(done: object) -> None:
        """At once: there is nothing to wait for."""
        assert callable(done)
        done(None)


class VolatileSubscription:
    """Consumers that share what comes in while they are there."""

    def __init__(self, name: str, topic: VolatileTopic, clock: Clock) -> None:
        self.name = name
        self.type: SubscriptionType | None = None
        self.consumers: list[Consumer] = []
        self.cursor = VolatileCursor()
        self.replicated = False
        self.dropped = 0
        self._topic = topic
        self._clock = clock
        self._turn = 0

    def attach(self, consumer: Consumer, kind: SubscriptionType, consumers_max: int) -> None:
        if self.consumers:
            if self.type is not kind:
                raise SubscriptionBusy(f"subscription {self.name} is of another type")
            full = consumers_max and len(self.consumers) >= consumers_max
            if kind is SubscriptionType.EXCLUSIVE or full:
                raise ConsumerBusy(f"subscription {self.name} has as many consumers as it may")
        self.type = kind
        self.consumers.append(consumer)
        consumer.subscription = self  # type: ignore[assignment]  # the same surface

    def detach(self, consumer: Consumer) -> None:
        if consumer in self.consumers:
            self.consumers.remove(consumer)
            consumer.subscription = None

    def flow(self, consumer: Consumer, permits: int) -> None:
        consumer.grant(permits, self._clock.wall_ms())

    def ack(
        self,
        consumer: Consumer,
        ranges: Sequence[tuple[int, int, int]],
        partial: Sequence[PartialAck] = (),
    ) -> None:
        """Means nothing here."""

    def ack_to(self, consumer: Consumer, position: Position, partial: PartialAck | None) -> None:
        """Means nothing here."""

    def redeliver(self, consumer: Consumer, positions: list[Position] | None) -> None:
        """There is nothing to send again."""

    def may_unsubscribe(self, consumer: Consumer) -> None:
        """Anybody may."""

    def deliver(self, part: Slice) -> None:
        """Give out what can be taken now; the rest is gone."""
        now_ms = self._clock.wall_ms()
        if self.type is not None and self.type.ordered:
            active = choice.active(self.consumers, self._topic.name)
            ready = [active] if active is not None and active.ready else []
        else:
            ready = [consumer for consumer in self.consumers if consumer.ready]
        given = 0
        if ready:
            shares, self._turn = choose(len(part.payloads), part.counts, ready, self._turn)
            for share in shares:
                piece = part.part(share.start, share.start + share.count)
                share.consumer.send(piece, None, None, now_ms)
                given += share.count
        self.dropped += len(part.payloads) - given


class VolatileTopic:
    """See the module's docstring."""

    persistent = False

    def __init__(self, env: Environment, name: TopicName, policies: Effective) -> None:
        self.env = env
        self.name = name
        self.policies = policies
        self.subscriptions: dict[str, VolatileSubscription] = {}
        self.fenced = False
        self.messages_in = self.bytes_in = 0
        self.last_published_ms = 0
        self.created_ms = self.last_used_ms = env.clock.wall_ms()
        self._next_entry = 0
