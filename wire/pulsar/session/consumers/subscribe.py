"""SUBSCRIBE, CLOSE_CONSUMER and UNSUBSCRIBE: attach consumers and detach them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from magnetar.core.broker.attachment import attach
from magnetar.core.broker.schema_admission import admit_consumer
from magnetar.core.kernel.errors import (
    BrokerError,
    ConsumerBusy,
    ConsumerNotFound,
    NotAllowed,
    NotReady,
    SubscriptionNotFound,
)
from magnetar.core.kernel.names import check_length, check_subscription
from magnetar.core.ledger.log.chain import START, Position
from magnetar.core.topic.compacted.compacted_reads import mark_by_time
from magnetar.core.topic.persistent_topic import PersistentTopic
from magnetar.core.topic.restrictions import check_properties
from magnetar.core.topic.seek import mark_before
from magnetar.core.topic.subscription.consumer import ConsumerRequest, Subscription
from magnetar.core.topic.subscription.subscription import SubscriptionType
from magnetar.core.topic.topic import Topic
from magnetar.wire.pulsar import events, replies
from magnetar.wire.pulsar.session import liveness
from magnetar.wire.pulsar.session.attachment_limit import check_attached
from magnetar.wire.pulsar.session.consumers.consume import AttachedConsumer
from magnetar.wire.pulsar.session.lookup import topic_name
from magnetar.wire.pulsar.session.needs import to_consume
from magnetar.wire.pulsar.session.schemas import is_any, topic_schema

if TYPE_CHECKING:
    from magnetar.core.broker.broker import Broker
    from magnetar.wire.pulsar.session.client import PulsarClient
    from magnetar.wire.pulsar.session.consumers.consume import ConnectionConsumers
    from magnetar.wire.pulsar.session.requests import RequestQueue

TYPES: Final[Mapping[events.SubscriptionType, SubscriptionType]] = {
    events.SubscriptionType.EXCLUSIVE: SubscriptionType.EXCLUSIVE,
    events.SubscriptionType.SHARED: SubscriptionType.SHARED,
    events.SubscriptionType.FAILOVER: SubscriptionType.FAILOVER,
    events.SubscriptionType.KEY_SHARED: SubscriptionType.KEY_SHARED,
}


class SubscribeHandlers:
    """SUBSCRIBE, CLOSE_CONSUMER, UNSUBSCRIBE."""

    __slots__ = ("_broker", "_client", "_consumers", "_requests")

    def __init__(
        self,
        client: PulsarClient,
        broker: Broker,
        requests: RequestQueue,
        consumers: ConnectionConsumers,
    ) -> None:
        self._client = client
        self._broker = broker
        self._requests = requests
        self._consumers = consumers

    def on_subscribe(self, event: events.Subscribe) -> None:
        """Attach a consumer. A repeated request is answered again and changes nothing.

        The client may give up meanwhile: its CLOSE_CONSUMER removes the id from `coming`, and a
        later SUBSCRIBE may have added it again.
        """
        consumer_id, coming = event.consumer_id, self._consumers.coming
        if consumer_id in self._consumers.attached:
            self._client.reply(replies.success(event.request_id))
            return
        if consumer_id in coming:
            raise NotReady("the consumer is already being attached on this connection")
        check_subscription(event.subscription)
        check_length("consumer", event.consumer_name)
        check_properties("consumer", event.metadata)
        check_properties("subscription", event.properties)
        check_attached(self._consumers.attached, coming)
        coming[consumer_id] = event.request_id
        self._requests.add(self._subscribe, event)

    async def _subscribe(self, event: events.Subscribe) -> None:
        consumer_id, coming = event.consumer_id, self._consumers.coming
        if coming.get(consumer_id) != event.request_id:
            return  # the client has given up while the request waited
        try:
            name, take_place = topic_name(event.topic), partial(self._take_place, event)
            await attach(self._broker, name, take_place, create=event.create_topic)
        finally:
            if coming.get(consumer_id) == event.request_id:
                del coming[consumer_id]

    async def _take_place(self, event: events.Subscribe, topic: Topic) -> None:
        """Attach, unless the client has given up; try again if an exclusive holder was dead."""
        consumer_id, coming = event.consumer_id, self._consumers.coming
        who = (self._client.peer.rpartition(":")[0], event.consumer_name, consumer_id)
        await topic.subscribers.admit(who, topic.policies.subscribe_rate, self._broker.clock)
        schema, user = topic_schema(event.schema), self._client.principal
        await admit_consumer(self._broker, topic, schema, user)
        while coming.get(consumer_id) == event.request_id:
            subscription = await _subscription(event, topic)
            if coming.get(consumer_id) != event.request_id:
                topic.forget_if_unused(subscription)
                return
            try:
                self._attach(event, topic, subscription)
                return
            except ConsumerBusy:
                if not await self._holder_is_gone(event, subscription):
                    raise

    async def _holder_is_gone(self, event: events.Subscribe, subscription: Subscription) -> bool:
        """Whether the only consumer of an exclusive subscription is found to be dead."""
        exclusive = event.type is events.SubscriptionType.EXCLUSIVE
        for consumer in list(subscription.consumers) if exclusive else ():
            if isinstance(consumer.sink, AttachedConsumer):
                return await liveness.is_gone(consumer.sink.client, self._client)
        return False

    def _attach(self, event: events.Subscribe, topic: Topic, subscription: Subscription) -> None:
        """Attach the consumer to its subscription. Nothing is delivered before its first FLOW."""
        self._client.check(*to_consume(topic.name, event.subscription))  # lost meanwhile?
        attached = AttachedConsumer(self._consumers, event, topic)
        shared = event.key_shared
        request = ConsumerRequest(
            name=event.consumer_name,
            priority=event.priority_level,
            epoch=event.consumer_epoch,
            metadata=event.metadata,
            address=self._client.peer,
            client_version=self._client.version,
            hash_ranges=shared.ranges if shared else (),
            sticky=shared.sticky if shared else False,
            out_of_order=shared.out_of_order_allowed if shared else False,
            read_compacted=event.read_compacted,
            takes_any_schema=is_any(event.schema),
        )
        try:
            attached.consumer = topic.attach(
                subscription, event.consumer_id, request, TYPES[event.type], attached
            )
        except BrokerError:
            topic.forget_if_unused(subscription)
            raise
        self._consumers.attached[event.consumer_id] = attached
        self._consumers.absent.over(event.consumer_id)
        attached.welcome(event.request_id)

    def on_close_consumer(self, event: events.CloseConsumer) -> None:
        consumers = self._consumers
        consumers.coming.pop(event.consumer_id, None)
        consumers.absent.over(event.consumer_id)
        attached = consumers.attached.pop(event.consumer_id, None)
        if attached is not None:
            consumers.detach(attached)
        self._client.reply(replies.success(event.request_id))

    async def on_unsubscribe(self, event: events.Unsubscribe) -> None:
        """Delete a subscription. A consumer that was detached just before is closed."""
        consumer_id, consumers = event.consumer_id, self._consumers
        attached = consumers.attached.get(consumer_id) or consumers.absent.get(consumer_id)
        if attached is None:
            raise ConsumerNotFound(f"consumer {consumer_id} is not attached")
        subscription = attached.consumer.subscription
        if subscription is not None and not event.force:
            subscription.may_unsubscribe(attached.consumer)
        # detached by the deletion, the client would subscribe again: so detach it first
        consumers.attached.pop(consumer_id, None)
        consumers.absent.over(consumer_id)
        consumers.detach(attached)
        if attached.durable:
            delete = partial(_delete, attached.subscription, event.force)
            try:
                await attach(self._broker, attached.topic.name, delete, create=False)
            except BrokerError:
                self._client.reply(replies.close_consumer(consumer_id))
                raise
        self._client.reply(replies.success(event.request_id))


async def _subscription(event: events.Subscribe, topic: Topic) -> Subscription:
    stored = topic.stored
    if event.read_compacted and (stored is None or not TYPES[event.type].ordered):
        raise NotAllowed("reading compacted needs a persistent topic and one active consumer")
    if stored is None:
        return await topic.subscription(event.subscription)
    if not event.durable:
        return stored.reader(event.subscription, await _reader_start(event, stored))
    found = stored.subscriptions.get(event.subscription)
    if found is not None and not found.cursor.durable:
        raise NotAllowed(f"subscription {event.subscription} is a reader's, not durable")
    create = stored.policies.auto_subscription_creation
    if found is None and not create:
        raise SubscriptionNotFound(f"there is no subscription {event.subscription}")
    start = START if event.from_earliest else None
    subscription = await stored.subscription(
        event.subscription, create=create, start=start, properties=dict(event.properties)
    )
    subscription.replicated = event.replicated
    return subscription


async def _reader_start(event: events.Subscribe, topic: PersistentTopic) -> Position:
    """The position before the first entry that a reader gets."""
    chain = topic.ledger.chain
    if event.start_rollback_seconds:
        since_ms = topic.env.clock.wall_ms() - event.start_rollback_seconds * 1000
        return await mark_by_time(topic, since_ms, compacted=event.read_compacted)
    start = event.start
    if start is None:
        return START if event.from_earliest else chain.confirmed
    # the start entry is delivered; the client drops the messages that it has read
    # (`getNonDurableSubscription` in `PersistentTopic.java`)
    horizon = topic.compacted.horizon if event.read_compacted else START
    return mark_before(chain, (start.ledger_id, start.entry_id), horizon)


async def _delete(name: str, force: bool, topic: Topic) -> None:
    await topic.unsubscribe(name, force=force)


HANDLERS: Final[Mapping[type, Any]] = {
    events.Subscribe: SubscribeHandlers.on_subscribe,
    events.CloseConsumer: SubscribeHandlers.on_close_consumer,
    events.Unsubscribe: SubscribeHandlers.on_unsubscribe,
}
