"""A non-persistent topic: messages go to the consumers that are connected, and nowhere else.

Nothing is stored or acknowledged, and nothing waits: an entry is dropped if no consumer has permits
(`NonPersistentDispatcherMultipleConsumers.java` of Pulsar 4.2). Positions are (0, n), where n
counts entries since the topic was loaded.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence

from magnetar.core.dispatch.key_shared import KeyShared, Portion
from magnetar.core.dispatch.shared import Share, choose
from magnetar.core.dispatch.single import active as choose_active
from magnetar.core.entry import header
from magnetar.core.entry.form import TransactionalForm, TransactionKey
from magnetar.core.kernel.clock import Clock
from magnetar.core.kernel.errors import ConsumerBusy, NotReady, SubscriptionBusy
from magnetar.core.kernel.names import TopicName
from magnetar.core.kernel.rates import Inflow, Outflow, Rates
from magnetar.core.ledger.log.appends import Appended
from magnetar.core.ledger.log.chain import Position
from magnetar.core.ledger.read.tail_cache import Slice
from magnetar.core.policy.policies import Effective
from magnetar.core.quotas.resource_group import ResourceGroup
from magnetar.core.topic import restrictions
from magnetar.core.topic.environment import Environment
from magnetar.core.topic.publishing.producer import Producer
from magnetar.core.topic.publishing.producers import Decision, Producers
from magnetar.core.topic.subscription.consumer import (
    NOTHING_NOTED,
    Consumer,
    ConsumerRequest,
    PartialAck,
    Sink,
    Subscription,
)
from magnetar.core.topic.subscription.key_shared import hash_of, mode_of
from magnetar.core.topic.subscription.statistics import NO_TIMES, LastTimes, SubscriptionStatistics
from magnetar.core.topic.subscription.subscribe_rate import Subscribers
from magnetar.core.topic.subscription.subscription import SubscriptionType
from magnetar.core.topic.throttles import TopicThrottles


class NonPersistentCursor:
    """The cursor of a subscription that stores nothing."""

    durable = False
    mark_delete: Position = (-1, -1)
    backlog = 0

    @staticmethod
    def when_saved(done: object) -> None:
        """Call it at once."""
        assert callable(done)
        done(None)


class NonPersistentSubscription:
    """Consumers that share what arrives while they are connected."""

    def __init__(self, name: str, topic: NonPersistentTopic, clock: Clock) -> None:
        self.name = name
        self.type: SubscriptionType | None = None
        self.consumers: list[Consumer] = []
        self.active: Consumer | None = None
        """The active consumer, of types with one."""
        self.keys: KeyShared[Consumer] | None = None
        """The owners of keys, for Key_Shared."""
        self.cursor = NonPersistentCursor()
        self.replicated = False
        self.dropped = 0
        self.outflow_before = Outflow()
        """Counted for consumers that have left."""
        self.rates = Rates(Outflow(), clock.wall_ms())
        self._topic = topic
        self._clock = clock
        self._turn = 0

    @property
    def kind(self) -> str:
        return self.type.value if self.type is not None else ""

    def attach(self, consumer: Consumer, kind: SubscriptionType, consumers_max: int) -> None:
        if self.consumers:
            if self.type is not kind:
                raise SubscriptionBusy(f"subscription {self.name} is of another type")
            if kind is SubscriptionType.EXCLUSIVE:
                raise ConsumerBusy("Exclusive consumer is already connected")
            if consumers_max and len(self.consumers) >= consumers_max:
                raise ConsumerBusy("Subscription reached max consumers limit")
        if kind is SubscriptionType.KEY_SHARED:
            if self.keys is None or not self.consumers:
                self.keys = KeyShared(mode_of(consumer), self._topic.env.division)
            self.keys.attach(consumer, mode_of(consumer), consumer.request.hash_ranges)
        self.type = kind
        self.consumers.append(consumer)
        consumer.subscription = self
        self._choose()
        if kind is SubscriptionType.FAILOVER and consumer is not self.active:
            consumer.sink.activity(False)

    def detach(self, consumer: Consumer) -> None:
        if consumer in self.consumers:
            self.consumers.remove(consumer)
            if self.type is SubscriptionType.KEY_SHARED and self.keys is not None:
                self.keys.detach(consumer)
            consumer.subscription = None
            self.outflow_before = self.outflow_before.plus(consumer.outflow())
            self._choose(leaver=consumer)

    def _choose(self, leaver: Consumer | None = None) -> None:
        """Choose the active consumer, of types with one, and notify those that it concerns."""
        if self.type is None or not self.type.ordered:
            return
        before, self.active = self.active, choose_active(self.consumers, self._topic.name)
        if self.type is SubscriptionType.FAILOVER and self.active is not before:
            if before is not None and before is not leaver:
                before.sink.activity(False)
            if self.active is not None:
                self.active.sink.activity(True)

    def disconnect_all(self) -> None:
        """Detach all consumers and tell their clients to reconnect."""
        consumers, self.consumers = self.consumers, []
        self.active = self.keys = None
        for consumer in consumers:
            consumer.subscription = None
            self.outflow_before = self.outflow_before.plus(consumer.outflow())
            consumer.sink.closed_by_broker()

    def schedule(self) -> None:
        """Do nothing: no entry ever waits."""

    def outflow(self) -> Outflow:
        """Counts since the subscription began."""
        total = self.outflow_before
        for consumer in self.consumers:
            total = total.plus(consumer.outflow())
        return total._replace(dropped=self.dropped)

    def last_times(self) -> LastTimes:
        """The times of connected consumers."""
        return NO_TIMES.with_those(self.consumers)

    def statistics(self) -> SubscriptionStatistics:
        return SubscriptionStatistics(read=(-1, -1))

    def flow(self, consumer: Consumer, permits: int) -> None:
        consumer.grant(permits, self._clock.wall_ms())

    def ack(
        self,
        consumer: Consumer,
        ranges: Sequence[tuple[int, int, int]],
        partial: Sequence[PartialAck] = (),
    ) -> None:
        """Means nothing here."""

    def ack_to(
        self,
        consumer: Consumer,
        position: Position,
        partial: PartialAck | None,
        noted: Mapping[str, int] = NOTHING_NOTED,
    ) -> None:
        """Means nothing here."""

    def redeliver(self, consumer: Consumer, positions: list[Position] | None) -> None:
        """Do nothing: no entry is retained."""

    def may_unsubscribe(self, consumer: Consumer) -> None:
        """Always allowed."""

    def deliver(self, part: Slice) -> None:
        """Deliver what consumers can take now; drop the rest."""
        now_ms = self._clock.wall_ms()
        given = 0
        for share in self._shares(part):
            piece = part.part(share.start, share.start + share.count)
            share.consumer.send(piece, None, None, now_ms)
            given += share.count
        self.dropped += len(part.payloads) - given

    def _shares(self, part: Slice) -> Sequence[Share[Consumer] | Portion[Consumer]]:
        entries = len(part.payloads)
        if self.type is SubscriptionType.KEY_SHARED and self.keys is not None:
            hashes = [hash_of(self.keys, payload) for payload in part.payloads]
            return self.keys.choose(hashes, part.counts, (), entries).portions
        if self.type is not None and self.type.ordered:
            ready = [self.active] if self.active is not None and self.active.ready else []
        else:
            ready = [consumer for consumer in self.consumers if consumer.ready]
        if not ready:
            return ()
        shares, self._turn = choose(entries, part.counts, ready, self._turn)
        return shares


class NonPersistentTopic:
    """See the module's docstring."""

    stored = None
    sequences = None
    """There is no deduplication."""
    storage_size = 0

    def __init__(self, env: Environment, name: TopicName, policies: Effective) -> None:
        self.env = env
        self.name = name
        self.policies = policies
        self.subscriptions: dict[str, NonPersistentSubscription] = {}
        self.fenced = False
        self.messages_in = self.bytes_in = 0
        self.last_published_ms = 0
        self.created_ms = self.last_used_ms = env.clock.wall_ms()
        self.producers = Producers()
        self.rates = Rates(Inflow(), self.created_ms)
        self.outflow_before = Outflow()
        """Of subscriptions that have ended."""
        self._next_entry = 0
        self.throttles = TopicThrottles(env.publish_throttle, env.clock)
        self.subscribers = Subscribers()
        self.looks_at_messages = policies.checks_messages
        """As in `Topic`."""

    async def load(self) -> None:
        """Do nothing."""
        self.set_policies(self.policies)

    async def close(self) -> None:
        """Disconnect all clients."""
        self.fenced = True
        for producer in self.producers.drop_all():
            producer.sink.closed_by_broker()
        for subscription in self.subscriptions.values():
            subscription.disconnect_all()
        self.subscriptions.clear()

    async def delete(self, claimed: Callable[[], Awaitable[None]] | None = None) -> None:
        """Close it: nothing of it is stored, so no other owner is fenced."""
        if claimed is not None:
            await claimed()
        await self.close()

    def set_policies(self, policies: Effective) -> None:
        """Apply changed policies."""
        self.policies = policies
        self.looks_at_messages = policies.checks_messages
        self.throttles.set(policies, self.rates)

    def join(self, group: ResourceGroup | None) -> None:
        """Count what is published against that group; what is delivered never waits."""
        self.throttles.group = group
        self.throttles.set(self.policies, self.rates)

    def inflow(self) -> Inflow:
        """Counts of what was published since the topic was loaded."""
        return Inflow(self.messages_in, self.bytes_in)

    @property
    def in_use(self) -> bool:
        return bool(len(self.producers)) or any(
            one.consumers for one in self.subscriptions.values()
        )

    def idle(self, *, caught_up_is_enough: bool) -> bool:
        """Whether no client is connected."""
        return not len(self.producers) and not self.subscriptions

    # -- producers ----------------------------------------------------------------------------

    def check_producer(self) -> None:
        """Raise unless a producer may attach now."""
        if self.fenced:
            raise NotReady("the topic is being unloaded")

    async def attach_producer(self, producer: Producer) -> bool:
        """Let a producer in; exclusive modes hold while the topic is loaded."""
        self.check_producer()
        decision = self.producers.attach(producer, self.policies.max_producers_per_topic)
        self._carry_out(decision)
        return decision.granted is producer

    def detach_producer(self, producer: Producer) -> None:
        self.last_used_ms = self.env.clock.wall_ms()
        self._carry_out(self.producers.detach(producer))

    @staticmethod
    def _carry_out(decision: Decision) -> None:
        for producer in decision.evicted:
            producer.sink.closed_by_broker()
        for producer, error in decision.refused:
            producer.sink.refused(error)
        if decision.granted is not None:
            decision.granted.sink.granted(decision.epoch)

    def publish(self, payloads: list[bytes], counts: list[int] | None, done: Appended) -> None:
        """Deliver a run to every subscription."""
        if self.fenced:
            done(NotReady("the topic is being unloaded"))
            return
        now_ms = self.env.clock.wall_ms()
        messages = len(payloads) if counts is None else sum(counts)
        heads = header.headers(len(payloads), counts, now_ms, self.messages_in)
        self.messages_in += messages
        self.bytes_in += sum(map(len, payloads))
        self.last_published_ms = now_ms
        part = Slice(0, self._next_entry, payloads, counts, heads)
        self._next_entry += len(payloads)
        for subscription in self.subscriptions.values():
            subscription.deliver(part)
        done((0, part.first_entry))

    def publish_once(
        self,
        name: str,
        highest: int,
        payloads: list[bytes],
        counts: list[int] | None,
        done: Appended,
    ) -> None:
        """As `publish`, without deduplication."""
        del name, highest
        self.publish(payloads, counts, done)

    looks_for_transactions = False

    def show_committed(self, key: TransactionKey) -> None:
        """Do nothing: transactions are not supported."""

    async def end_transaction(
        self, form: TransactionalForm, key: TransactionKey, epoch: int, *, committed: bool
    ) -> None:
        """Do nothing: transactions are not supported."""

    @staticmethod
    def last_sequence_of(_name: str) -> int:
        """-1: sequence ids are not stored."""
        return -1

    # -- subscriptions ------------------------------------------------------------------------

    async def subscription(
        self,
        name: str,
        *,
        create: bool = True,
        start: Position | None = None,
        properties: dict[str, str] | None = None,
    ) -> NonPersistentSubscription:
        """The subscription of that name, which is created if there is none."""
        del create, start, properties
        if self.fenced:
            raise NotReady("the topic is being unloaded")
        found = self.subscriptions.get(name)
        if found is None:
            restrictions.check_subscriptions(self.name, self.policies, len(self.subscriptions))
            found = self.subscriptions[name] = NonPersistentSubscription(name, self, self.env.clock)
        return found

    def attach(
        self,
        subscription: Subscription,
        consumer_id: int,
        request: ConsumerRequest,
        kind: SubscriptionType,
        sink: Sink,
    ) -> Consumer:
        """Attach a consumer to a subscription."""
        if self.fenced:
            raise NotReady("the topic is being unloaded")
        policies, own = self.policies, self._own(subscription)
        restrictions.check_consumer(self.name, policies, self.subscriptions.values(), kind.value)
        if own is None:
            raise NotReady(f"subscription {subscription.name} has ended")
        consumer = Consumer(consumer_id, request, sink, 0, self.env.clock.wall_ms())
        own.attach(consumer, kind, policies.max_consumers_per_subscription)
        return consumer

    def detach(self, consumer: Consumer) -> None:
        """A consumer leaves, and its subscription with the last one."""
        subscription = consumer.subscription
        if subscription is not None:
            subscription.detach(consumer)
            self.forget_if_unused(subscription)
        self.last_used_ms = self.env.clock.wall_ms()

    def forget_if_unused(self, subscription: Subscription) -> None:
        own = self._own(subscription)
        if own is not None and not own.consumers:
            del self.subscriptions[own.name]
            self.outflow_before = self.outflow_before.plus(own.outflow())

    def _own(self, subscription: Subscription) -> NonPersistentSubscription | None:
        """The subscription, unless it has ended."""
        found = self.subscriptions.get(subscription.name)
        return found if found is subscription else None

    async def unsubscribe(self, name: str, *, force: bool) -> None:
        """Remove the subscription; with `force`, disconnect its consumers."""
        subscription = self.subscriptions.pop(name, None)
        if subscription is not None and force:
            subscription.disconnect_all()
