"""A persistent topic: a managed ledger, its producers and its subscriptions.

A subscription is a cursor of the ledger. Published messages are neither parsed nor copied here.

States, as in Pulsar (`PersistentTopic.java` of 4.2, `isFenced`): a topic is open from the end of
`load` until `close` or `delete` begin. Then it is `fenced`: everything new is refused as "not
ready", so that clients look the topic up again.

Invariants: nothing is published while the topic is fenced; closing waits for appends in flight; a
topic that another owner has taken over stores nothing when it closes.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from urllib.parse import unquote

import trio

from magnetar.core.entry.form import TransactionalForm, TransactionKey
from magnetar.core.kernel.completion import Completion
from magnetar.core.kernel.errors import (
    BrokerError,
    Fenced,
    NotAllowed,
    NotReady,
    QuotaExceeded,
    QuotaHeld,
    StorageFull,
    SubscriptionNotFound,
    Terminated,
)
from magnetar.core.kernel.names import TopicName
from magnetar.core.kernel.rates import Inflow, Outflow, Rates
from magnetar.core.ledger.compacted.compacted_topic import CompactedTopic
from magnetar.core.ledger.cursor.cursor import Cursor
from magnetar.core.ledger.log.appends import Appended
from magnetar.core.ledger.log.chain import Position
from magnetar.core.ledger.log.log_rules import log_rules
from magnetar.core.ledger.log.managed_ledger import LogState, ManagedLedger
from magnetar.core.policy.policies import Effective
from magnetar.core.ports.ledger_store import Done
from magnetar.core.quotas.resource_group import ResourceGroup
from magnetar.core.topic import restrictions
from magnetar.core.topic.environment import Environment
from magnetar.core.topic.publishing.admission import carry_out, remember
from magnetar.core.topic.publishing.deduplication import CURSOR as DEDUPLICATION
from magnetar.core.topic.publishing.deduplication import Deduplication
from magnetar.core.topic.publishing.producer import Producer
from magnetar.core.topic.publishing.producers import NO_CHANGE, Producers
from magnetar.core.topic.publishing.sequences import ProducerSequences
from magnetar.core.topic.subscription.consumer import Consumer, ConsumerRequest, Sink, Subscription
from magnetar.core.topic.subscription.outstanding import limits_of
from magnetar.core.topic.subscription.subscribe_rate import Subscribers
from magnetar.core.topic.subscription.subscription import PersistentSubscription, SubscriptionType
from magnetar.core.topic.throttles import TopicThrottles
from magnetar.core.topic.topic import TopicListener
from magnetar.core.topic.transaction_buffer import (
    TransactionalMarker,
    TransactionalRun,
    TransactionBuffer,
)

log = logging.getLogger(__name__)

READER_KEPT_MS = 60_000
"""How long the cursor of a reader that seeks is retained: a seek disconnects the reader."""


class PersistentTopic:
    """See the module's docstring."""

    def __init__(self, env: Environment, name: TopicName, policies: Effective) -> None:
        self.name = name
        self._internal = name.internal
        self.env = env
        self.policies = policies
        self.ledger = self._new_ledger()
        self.compacted = CompactedTopic(env.storage, self.ledger)
        self.ledger.rules = log_rules(env.storage.roll, policies)
        self.subscriptions: dict[str, PersistentSubscription] = {}
        self.producers = Producers()
        self._watchers: list[Callable[[], None]] = []  # called when more may be read
        self.shadows: list[PersistentTopic] = []  # which show its messages (`shadow_topic.py`)
        self.source: PersistentTopic | None = None  # whose messages it shows, if it is one of them
        self.fenced = True
        self.quota_hit: QuotaHeld | QuotaExceeded | None = None
        """Set while a backlog quota refuses producers."""
        self.created_ms = self.last_used_ms = env.clock.wall_ms()
        self.messages_in = self.bytes_in = 0
        self.rates = Rates(Inflow(), self.created_ms)
        self.throttles = TopicThrottles(env.publish_throttle, env.clock)
        self.subscribers = Subscribers()
        self.deduplication = Deduplication(env.storage, self.ledger, policies)
        self._listeners: list[TopicListener] = []
        self.transactions = TransactionBuffer(env.storage, self.ledger)
        self.looks_at_messages = False
        """Each message of a run is checked before the run is published. Computed once, because
        every run reads it.
        """
        self.outflow_before = Outflow()
        """Counted for subscriptions that have ended."""
        self._attaching = trio.Lock()
        """Held while subscriptions are created or deleted, and while the topic ends."""

    def _new_ledger(self) -> ManagedLedger:
        storage, name = self.env.storage, self.name.managed_ledger
        return ManagedLedger(storage, name, self._advanced, self._lost)

    # -- life ---------------------------------------------------------------------------------

    async def load(self) -> None:
        """Open the ledger and every durable subscription."""
        await self.ledger.open()
        self.created_ms = self.ledger.ledgers.created_ms or self.created_ms
        names = list(map(unquote, await self.env.storage.metadata.children(self.ledger.path)))
        stored = DEDUPLICATION in names
        for name in names:
            if name == DEDUPLICATION:
                continue
            cursor = Cursor(self.env.storage, self.ledger, name, (-1, -1), durable=True)
            await cursor.open()
            self._add(cursor)
        await self.deduplication.load(on=self.policies.deduplication, stored=stored)
        if self.source is None:
            await self.transactions.load()
        self._set_looks()
        self._set_rates()
        remember(self.producers, self.ledger)
        self.fenced = False

    def add_listener(self, listener: TopicListener) -> None:
        """Have a listener called when the topic ends."""
        self._listeners.append(listener)

    async def begin_transactions(self) -> None:
        """Store that the log has transactions, before the first entry of one."""
        self.check_may_have_transactions()
        if self.transactions.present:
            return
        async with self._attaching:
            if self.transactions.present:
                return
            self.looks_at_messages = True
            await self.transactions.check_from_now_on()
            if self.fenced:
                raise NotReady("the topic is being unloaded")
            await self.transactions.begin()

    def check_may_have_transactions(self) -> None:
        """Raise `NotAllowed` if it may have no more of them."""
        restrictions.check_changeable(self.name)
        self.transactions.index.check_room(self.env.aborted.count)

    def show_committed(self, key: TransactionKey) -> None:
        """Have readers not wait for the marker of a transaction that is committed, which follows.
        Plain call.
        """
        self.transactions.index.show_committed(key)

    async def end_transaction(
        self, form: TransactionalForm, key: TransactionKey, epoch: int, *, committed: bool
    ) -> None:
        """Append the marker that ends a transaction, and wait until it is stored."""
        waiting = Completion[None]()
        self.end_at_once(form, key, epoch, waiting.done, committed=committed)
        await waiting.result()

    def end_at_once(
        self,
        form: TransactionalForm,
        key: TransactionKey,
        epoch: int,
        done: Done,
        *,
        committed: bool,
    ) -> None:
        """The same as a plain call."""
        if not self.transactions.present or self.ledger.terminated:
            done(None)  # there never was one, or none was open when the log ended
            return
        entry = form.marker(key, epoch, self.env.clock.wall_ms(), committed=committed)
        marker = TransactionalMarker(self.ledger, key, done, committed=committed)
        self.publish([entry], [1], marker.stored)

    def _lost(self) -> None:
        """Another owner has taken the log over."""
        self.fenced = True
        self.env.lost(self)
        for shadow in list(self.shadows):
            shadow._lost()

    def _add(self, cursor: Cursor) -> PersistentSubscription:
        subscription = PersistentSubscription(
            self.env, self.ledger, cursor, limits_of(self.policies), self.compacted
        )
        self.subscriptions[cursor.name] = subscription
        self._set_rates_of(subscription)
        self.ledger.cache_tail(True)
        return subscription

    def set_policies(self, policies: Effective) -> None:
        """Apply changed policies, to connected clients as well."""
        self.policies = policies
        self.ledger.rules = log_rules(self.env.storage.roll, policies)
        for subscription in self.subscriptions.values():
            subscription.set_limits(limits_of(policies), policies.max_unacked_per_consumer)
        self._set_rates()
        self._set_looks()
        if policies.deduplication is not self.deduplication.on:
            self.env.spawn(self._change_deduplication)

    async def _turn_deduplication(self) -> None:
        await self.deduplication.turn(on=self.policies.deduplication)
        self._set_looks()

    def _set_looks(self) -> None:
        checked = self.deduplication.on or self.policies.checks_messages
        self.looks_at_messages = checked or self.transactions.checked

    async def _change_deduplication(self) -> None:
        async with self._attaching:
            try:
                if not self.fenced:
                    await self._turn_deduplication()
            except BrokerError as error:
                log.error("%s: deduplication stays as it was: %s", self.name, error)

    def join(self, group: ResourceGroup | None) -> None:
        self.throttles.group = group
        self._set_rates()

    def _set_rates(self) -> None:
        self.throttles.set(self.policies, self.rates)
        for subscription in self.subscriptions.values():
            self._set_rates_of(subscription)

    def _set_rates_of(self, subscription: PersistentSubscription) -> None:
        own = self.policies.dispatch_rate_of(subscription.name)
        subscription.set_rates(own, self.throttles, self.rates)

    async def close(self) -> None:
        """Unload: disconnect all clients, wait for appends in flight, save the cursors.

        This waits for a cursor that is being created: stored later, it would exist beside the next
        owner of the topic, which has not loaded it.
        """
        self._fence()
        async with self._attaching:
            for subscription in list(self.subscriptions.values()):
                await subscription.close()
            await self.deduplication.close()
        await self.ledger.close()
        await self.transactions.close()
        for listener in self._listeners:
            await listener.closed()

    async def delete(self, claimed: Callable[[], Awaitable[None]] | None = None) -> None:
        """Delete the topic and everything in it, including a cursor that is just being created.

        Any other owner is fenced before anything is destroyed, then `claimed` is called. The list
        of ledgers goes last: ZooKeeper deletes no node that has children, and a topic that is
        deleted halfway can be deleted again.
        """
        self._fence()
        async with self._attaching:
            await self.ledger.claim()
            await self._check_cursors()
            if claimed is not None:
                await claimed()
            for subscription in list(self.subscriptions.values()):
                await subscription.delete()
            self.subscriptions.clear()
            await self.deduplication.delete()
        await self.transactions.delete()
        for listener in self._listeners:
            await listener.deleted()
        await self.ledger.delete()

    async def _check_cursors(self) -> None:
        """`Fenced` if there is a cursor that another owner has created."""
        known = {DEDUPLICATION, *self.subscriptions}
        stored = await self.env.storage.metadata.children(self.ledger.path)
        if not known.issuperset(map(unquote, stored)):
            reason = Fenced("another owner has taken this topic over")
            self.ledger.fence(reason)
            raise reason

    def _fence(self) -> None:
        """Refuse what is new from now on, and whoever keeps something of the log does no longer,
        even if it cannot be closed.
        """
        self.fenced = True
        self.ledger.notice.leave()
        self.disconnect_producers()
        for shadow in list(self.shadows):
            shadow._lost()

    def disconnect_producers(self) -> None:
        for producer in self.producers.drop_all():
            producer.sink.closed_by_broker()

    async def terminate(self) -> Position:
        """Terminate the topic and return its last position.

        Producers are disconnected, as in Pulsar (`PersistentTopic.terminate`): their clients
        reconnect, get the reason, and fail what the application sends. Not while a transaction is
        open in the topic: a terminated log takes no marker, and readers would wait for it for ever.
        """
        restrictions.check_changeable(self.name)
        self.transactions.index.check_none_open()  # before any producer is refused
        last = await self.ledger.terminate()
        self.disconnect_producers()
        self._advanced()
        return last

    # -- publishing ---------------------------------------------------------------------------

    def publish(self, payloads: list[bytes], counts: list[int] | None, done: Appended) -> None:
        """Store a run of one producer. Plain call; see `ManagedLedger.append`."""
        if self.fenced:
            done(NotReady("the topic is being unloaded"))
            return
        self.messages_in += len(payloads) if counts is None else sum(counts)
        self.bytes_in += self.ledger.append(payloads, counts, done)

    def in_transaction(self, key: TransactionKey, done: Appended) -> Appended:
        """The callback for `publish` of a run that belongs to a transaction."""
        return TransactionalRun(self.ledger, key, self.env.clock.wall_ms(), done).stored

    def publish_once(
        self,
        name: str,
        highest: int,
        payloads: list[bytes],
        counts: list[int] | None,
        done: Appended,
    ) -> None:
        """As `publish`, for messages that are not duplicates. `highest` is the last sequence id, -1
        if it does not count yet (a chunk that is not the last, PIP-37).
        """
        self.publish(payloads, counts, self.deduplication.begin(name, highest, done))

    @property
    def stored(self) -> PersistentTopic:
        return self

    @property
    def looks_for_transactions(self) -> bool:
        return self.transactions.checked

    @property
    def sequences(self) -> ProducerSequences | None:
        return self.deduplication.sequences

    @property
    def storage_size(self) -> int:
        return self.ledger.size

    @property
    def last_published_ms(self) -> int:
        """0 if nothing was published since the topic was loaded."""
        return self.ledger.written_ms

    def last_sequence_of(self, name: str) -> int:
        """The last stored sequence id of a producer of that name; -1 if it is not known."""
        return self.deduplication.last_of(name)

    def _advanced(self) -> None:
        """More may be read: notify subscriptions and watchers."""
        for subscription in self.subscriptions.values():
            subscription.schedule()
        for watcher in list(self._watchers):
            watcher()
        for shadow in self.shadows:
            shadow._advanced()

    def watch(self, notify: Callable[[], None]) -> None:
        """Have `notify` called when more may be read, until `unwatch`; for readers by index."""
        self._watchers.append(notify)
        self.ledger.cache_tail(True)

    def unwatch(self, notify: Callable[[], None]) -> None:
        self._watchers.remove(notify)

    def check_producer(self) -> None:
        """Raise unless a producer may attach now. Some fronts ask for each request."""
        if self._internal:
            restrictions.check_changeable(self.name)
        if self.fenced:
            raise NotReady("the topic is being unloaded")
        if self.ledger.terminated:
            raise Terminated("the topic is terminated")
        if self.quota_hit is not None:
            raise self.quota_hit
        # refused here, a client backs off; it does not when a message is refused
        ledgers, writes = self.env.storage.ledgers, self.ledger.state is LogState.WRITING
        quorums = None if writes else self.ledger.rules.quorums
        if not ledgers.writable(quorums):
            raise StorageFull(ledgers.refusal(quorums))

    async def attach_producer(self, producer: Producer) -> bool:
        """Let a producer in; False if it has to wait for the topic."""
        self.check_producer()
        decision = self.producers.attach(producer, self.policies.max_producers_per_topic)
        await carry_out(decision, self.producers, self.ledger)
        return decision.granted is producer

    def detach_producer(self, producer: Producer) -> None:
        """A producer leaves; the first one that waits may attach."""
        self.last_used_ms = self.env.clock.wall_ms()
        decision = self.producers.detach(producer)
        if decision is not NO_CHANGE:
            self.env.spawn(carry_out, decision, self.producers, self.ledger)

    # -- subscriptions ------------------------------------------------------------------------

    async def subscription(
        self,
        name: str,
        *,
        create: bool = True,
        start: Position | None = None,
        properties: dict[str, str] | None = None,
    ) -> PersistentSubscription:
        """The durable subscription of that name; a new one begins after `start`, or at the end."""
        self.env.held.check(name)
        restrictions.check_changeable(self.name)
        return await self._subscription(name, create=create, start=start, properties=properties)

    async def hold(self, name: str, start: Position | None = None) -> PersistentSubscription:
        """The subscription of that name, for its holder (`subscription/held.py`)."""
        return await self._subscription(name, start=start)

    async def _subscription(
        self,
        name: str,
        *,
        create: bool = True,
        start: Position | None = None,
        properties: dict[str, str] | None = None,
    ) -> PersistentSubscription:
        async with self._attaching:
            if self.fenced:
                raise NotReady("the topic is being unloaded")
            found = self.subscriptions.get(name)
            if found is not None:
                return found
            if not create:
                raise SubscriptionNotFound(f"there is no subscription {name} on {self.name}")
            restrictions.check_subscriptions(self.name, self.policies, len(self.subscriptions))
            begin = self.ledger.chain.confirmed if start is None else start
            cursor = Cursor(self.env.storage, self.ledger, name, begin, durable=True)
            cursor.properties.update(properties or {})
            await cursor.create()
            return self._add(cursor)

    def reader(self, name: str, start: Position) -> PersistentSubscription:
        """A non-durable subscription after `start`, which ends with its consumer."""
        if self.fenced:
            raise NotReady("the topic is being unloaded")
        self.env.held.check(name)
        found = self.subscriptions.get(name)
        if found is not None:
            if found.cursor.durable:
                raise NotAllowed(f"subscription {name} is durable, a reader may not take its name")
            return found
        cursor = Cursor(self.env.storage, self.ledger, name, start, durable=False)
        return self._add(cursor)

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
            raise NotReady(f"subscription {subscription.name} is being deleted")
        unacked_max = 0 if kind.ordered else policies.max_unacked_per_consumer
        consumer = Consumer(consumer_id, request, sink, unacked_max, self.env.clock.wall_ms())
        own.attach(consumer, kind, policies.max_consumers_per_subscription)
        return consumer

    def detach(self, consumer: Consumer) -> None:
        """A consumer leaves; a reader's subscription goes with it."""
        subscription = consumer.subscription
        if subscription is None:
            return
        subscription.detach(consumer)
        self.last_used_ms = self.env.clock.wall_ms()
        own = self._own(subscription)
        if own is not None:
            own.kept_until_ms = 0
            self._forget_if_unused(own)

    def forget_if_unused(self, subscription: Subscription) -> None:
        """End a reader's subscription that has no consumer."""
        own = self._own(subscription)
        if own is not None:
            self._forget_if_unused(own)

    def _own(self, subscription: Subscription) -> PersistentSubscription | None:
        """The subscription, unless it has ended."""
        found = self.subscriptions.get(subscription.name)
        return found if found is subscription else None

    def _forget_if_unused(self, own: PersistentSubscription) -> None:
        if own.consumers or own.cursor.durable:
            return
        if own.kept_until_ms <= self.env.clock.wall_ms():
            self._drop(own)

    def forget_readers(self) -> None:
        """End subscriptions of readers that have not reconnected after a seek."""
        for subscription in list(self.subscriptions.values()):
            self._forget_if_unused(subscription)

    async def snapshot_if_due(self) -> None:
        """Store what deduplication knows, if that was not stored for as long as the policy says."""
        if not self.fenced:
            await self.deduplication.snapshot_if_due(self.policies.deduplication_snapshot_interval)

    def forget_silent_producers(self) -> None:
        """Remove producers that have been absent for long from deduplication."""
        here = [producer.name for producer in self.producers.all()]
        away_ms = self.policies.deduplication_inactivity_minutes * 60_000
        self.deduplication.forget_silent(here, self.env.clock.wall_ms(), away_ms)

    def _drop(self, subscription: PersistentSubscription) -> None:
        if self.subscriptions.get(subscription.name) is subscription:
            del self.subscriptions[subscription.name]
            subscription.disconnect_all()
            self.outflow_before = self.outflow_before.plus(subscription.outflow())
            self.ledger.cache_tail(bool(self.subscriptions or self.shadows))

    def keep(self, subscription: PersistentSubscription) -> None:
        """Retain the cursor of a reader that is about to seek."""
        if not subscription.cursor.durable:
            subscription.kept_until_ms = self.env.clock.wall_ms() + READER_KEPT_MS

    async def unsubscribe(self, name: str, *, force: bool) -> None:
        """Delete a subscription; unless forced, only if it has no consumers."""
        self.env.held.check(name)
        await self._unsubscribe(name, force=force)

    async def release(self, name: str) -> None:
        """Delete a subscription that its holder needs no longer."""
        await self._unsubscribe(name, force=True)

    async def _unsubscribe(self, name: str, *, force: bool) -> None:
        async with self._attaching:
            if self.fenced:  # the cursor may belong to the next owner
                raise NotReady("the topic is being unloaded")
            subscription = self.subscriptions.get(name)
            if subscription is None:
                raise SubscriptionNotFound(f"there is no subscription {name} on {self.name}")
            if subscription.consumers and not force:
                raise NotAllowed(f"subscription {name} has active consumers")
            await subscription.delete()
            self._drop(subscription)

    # -- what housekeeping asks and does -------------------------------------------------------

    def inflow(self) -> Inflow:
        """Counts of what was published since the topic was loaded."""
        return Inflow(self.messages_in, self.bytes_in, entries=self.ledger.entries_added)

    @property
    def in_use(self) -> bool:
        return bool(len(self.producers)) or any(
            one.consumers for each in (self, *self.shadows) for one in each.subscriptions.values()
        )

    def idle(self, *, caught_up_is_enough: bool) -> bool:
        """Whether there are no producers, and no consumers or nothing left to consume."""
        if len(self.producers) or self.shadows or self.fenced:
            return False
        if caught_up_is_enough:
            return all(
                not one.consumers and not one.cursor.backlog for one in self.subscriptions.values()
            )
        return not self.subscriptions

    def hit_quota(self, refusal: QuotaHeld | QuotaExceeded | None) -> None:
        """Refuse producers because of a backlog quota, or (None) no longer."""
        newly = refusal is not None and self.quota_hit is None
        self.quota_hit = refusal
        if newly:
            self.disconnect_producers()
