"""Consumers come and go: subscribe, close, unsubscribe."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from magnetar.core.broker.attachment import attach
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
from magnetar.core.topic.persistent_topic import PersistentTopic
from magnetar.core.topic.restrictions import check_properties
from magnetar.core.topic.seek import find_by_time, mark_before
from magnetar.core.topic.subscription.consumer import ConsumerRequest, Subscription
from magnetar.core.topic.subscription.subscription import SubscriptionType
from magnetar.core.topic.topic import Topic
from magnetar.wire.pulsar import events, replies
from magnetar.wire.pulsar.session import liveness
from magnetar.wire.pulsar.session.attachment_limit import DETACHED, check_attached
from magnetar.wire.pulsar.session.consume import AttachedConsumer
from magnetar.wire.pulsar.session.lookup import topic_name

if TYPE_CHECKING:
    from magnetar.wire.pulsar.session.session import PulsarSession

TYPES: Final[Mapping[events.SubscriptionType, SubscriptionType]] = {
    events.SubscriptionType.EXCLUSIVE: SubscriptionType.EXCLUSIVE,
    events.SubscriptionType.SHARED: SubscriptionType.SHARED,
    events.SubscriptionType.FAILOVER: SubscriptionType.FAILOVER,
    events.SubscriptionType.KEY_SHARED: SubscriptionType.KEY_SHARED,
}


def on_subscribe(session: PulsarSession, event: events.Subscribe) -> None:
    """Attach a consumer, once: a repeated request is answered again, not done again.

    The client may give up meanwhile: its CLOSE_CONSUMER takes the id off `consumers_coming`, and
    perhaps another request has put it there again.
    """
    consumer_id, coming = event.consumer_id, session.consumers_coming
    if consumer_id in session.consumers:
        session.reply(replies.success(event.request_id))
        return
    if consumer_id in coming:
        raise NotReady("the consumer is already being attached on this connection")
    check_subscription(event.subscription)
    check_length("consumer", event.consumer_name)
    check_properties("consumer", event.metadata)
    check_properties("subscription", event.properties)
    check_attached(session.consumers, coming)
    coming[consumer_id] = event.request_id
    session.wait_for(_subscribe, event)


async def _subscribe(session: PulsarSession, event: events.Subscribe) -> None:
    consumer_id, coming = event.consumer_id, session.consumers_coming
    take_place = partial(_take_place, session, event)
    if coming.get(consumer_id) != event.request_id:
        return  # the client has given up while it waited for its turn
    try:
        name = topic_name(event.topic)
        await attach(session.broker, name, take_place, create=event.create_topic)
    finally:
        if coming.get(consumer_id) == event.request_id:
            del coming[consumer_id]


async def _take_place(session: PulsarSession, event: events.Subscribe, topic: Topic) -> None:
    """Unless the client has given up; once more if who was in the way turns out to be dead."""
    consumer_id, coming = event.consumer_id, session.consumers_coming
    who = (session.peer.rpartition(":")[0], event.consumer_name, consumer_id)
    await topic.subscribers.admit(who, topic.policies.subscribe_rate, session.broker.clock)
    while coming.get(consumer_id) == event.request_id:
        subscription = await _subscription(event, topic)
        if coming.get(consumer_id) != event.request_id:
            topic.forget_if_unused(subscription)
            return
        try:
            _attach(session, event, topic, subscription)
            return
        except ConsumerBusy:
            if not await _holder_is_gone(session, event, subscription):
                raise


async def _holder_is_gone(
    session: PulsarSession, event: events.Subscribe, subscription: Subscription
) -> bool:
    """Whether who has an exclusive subscription to itself turned out to be dead."""
    exclusive = event.type is events.SubscriptionType.EXCLUSIVE
    for consumer in list(subscription.consumers) if exclusive else ():
        if isinstance(consumer.sink, AttachedConsumer):
            return await liveness.is_gone(consumer.sink.session, session)
    return False


def _attach(
    session: PulsarSession,
    event: events.Subscribe,
    topic: Topic,
    subscription: Subscription,
) -> None:
    """Put the consumer on the subscription. Nothing is delivered before its first FLOW."""
    if event.read_compacted and (topic.stored is None or not TYPES[event.type].ordered):
        raise NotAllowed("reading compacted needs a persistent topic and one active consumer")
    attached = AttachedConsumer(session, event, topic)
    shared = event.key_shared
    request = ConsumerRequest(
        name=event.consumer_name,
        priority=event.priority_level,
        epoch=event.consumer_epoch,
        metadata=event.metadata,
        address=session.peer,
        client_version=session.peer_version,
        hash_ranges=shared.ranges if shared else (),
        sticky=shared.sticky if shared else False,
        out_of_order=shared.out_of_order_allowed if shared else False,
        read_compacted=event.read_compacted,
    )
    try:
        attached.consumer = topic.attach(
            subscription, event.consumer_id, request, TYPES[event.type], attached
        )
    except BrokerError:
        topic.forget_if_unused(subscription)
        raise
    session.consumers[event.consumer_id] = attached
    session.away.over(event.consumer_id)
    attached.welcome(event.request_id)


async def _subscription(event: events.Subscribe, topic: Topic) -> Subscription:
    stored = topic.stored
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
    """The position before the first entry a reader gets."""
    chain = topic.ledger.chain
    if event.start_rollback_seconds:
        since_ms = topic.env.clock.wall_ms() - event.start_rollback_seconds * 1000
        return mark_before(chain, await find_by_time(topic.ledger, since_ms))
    start = event.start
    if start is None:
        return START if event.from_earliest else chain.confirmed
    # the start entry itself comes first; the client drops what it does not want of it
    # (`getNonDurableSubscription` in `PersistentTopic.java`)
    return mark_before(chain, (start.ledger_id, start.entry_id))


# -- leaving ---------------------------------------------------------------------------------


def on_close_consumer(session: PulsarSession, event: events.CloseConsumer) -> None:
    session.consumers_coming.pop(event.consumer_id, None)
    session.away.over(event.consumer_id)
    attached = session.consumers.pop(event.consumer_id, None)
    if attached is not None:
        attached.topic.detach(attached.consumer)
    session.reply(replies.success(event.request_id))


async def on_unsubscribe(session: PulsarSession, event: events.Unsubscribe) -> None:
    """A consumer that was detached a moment ago does not come back for this: it is closed."""
    consumer_id = event.consumer_id
    attached = session.consumers.get(consumer_id) or session.away.get(consumer_id)
    if attached is None:
        raise ConsumerNotFound(f"consumer {consumer_id} is not attached")
    subscription = attached.consumer.subscription
    if subscription is not None and not event.force:
        subscription.may_unsubscribe(attached.consumer)
    # first the consumer leaves: sent away by the deletion, its client would subscribe anew
    session.consumers.pop(consumer_id, None)
    session.away.over(consumer_id)
    attached.topic.detach(attached.consumer)
    if attached.durable:
        delete = partial(_delete, attached.subscription, event.force)
        try:
            await attach(session.broker, attached.topic.name, delete, create=False)
        except BrokerError:
            session.reply(replies.close_consumer(consumer_id))
            raise
    session.reply(replies.success(event.request_id))


async def _delete(name: str, force: bool, topic: Topic) -> None:
    await topic.unsubscribe(name, force=force)


def detach_all(session: PulsarSession) -> None:
    """The connection is gone."""
    session.consumers_coming.clear()
    session.away.all_over()
    consumers, session.consumers = session.consumers, {}
    for attached in consumers.values():
        attached.topic.detach(attached.consumer)
        attached.consumer.sink = DETACHED


HANDLERS: Final[Mapping[type, Any]] = {
    events.Subscribe: on_subscribe,
    events.CloseConsumer: on_close_consumer,
    events.Unsubscribe: on_unsubscribe,
}
