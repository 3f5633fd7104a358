"""Consumers: attach, deliver, acknowledge, send again, seek, leave."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from core.entry.pulsar_metadata import message_count
from core.errors import (
    BrokerError,
    Invalid,
    NotAllowed,
    NotReady,
    SubscriptionNotFound,
)
from core.ledger.chain import START, Position
from core.ledger.tail_cache import Slice
from core.names import check_subscription
from core.topic.consumer import Attachment, Consumer, ConsumerRequest
from core.topic.seeking import find_by_time
from core.topic.subscription import Subscription, SubscriptionType
from core.topic.topic import Topic
from core.topic.volatile import VolatileTopic
from wire.pulsar import events, replies

if TYPE_CHECKING:
    from wire.pulsar.session.session import PulsarSession

TYPES: Final[Mapping[events.SubscriptionType, SubscriptionType]] = {
    events.SubscriptionType.EXCLUSIVE: SubscriptionType.EXCLUSIVE,
    events.SubscriptionType.SHARED: SubscriptionType.SHARED,
    events.SubscriptionType.FAILOVER: SubscriptionType.FAILOVER,
    events.SubscriptionType.KEY_SHARED: SubscriptionType.KEY_SHARED,
}
LATEST_LEDGER: Final = 2**63 - 1
"""Stands for "the end" in a message id; its entry part is not to be trusted (C++ cuts it)."""
KNOWS_END_OF_TOPIC: Final = "Pulsar-Java"
"""Other clients take the command for nonsense and drop the connection."""


class Attached:
    """A consumer of this connection: the protocol's side of a core `Consumer`."""

    __slots__ = ("consumer", "id", "partition", "session", "topic")

    def __init__(
        self, session: PulsarSession, consumer_id: int, topic: Topic | VolatileTopic
    ) -> None:
        self.session = session
        self.id = consumer_id
        self.topic = topic
        self.partition = topic.name.partition_index
        self.consumer: Consumer

    @property
    def congested(self) -> bool:
        return self.session.connection.congested

    def deliver(
        self,
        part: Slice,
        redeliveries: Sequence[int] | None,
        partial: Mapping[int, int] | None,
    ) -> None:
        masks = None
        if partial:
            masks = [partial.get(at) for at in range(len(part.payloads))]
        self.session.wire.messages(
            self.id,
            part.ledger_id,
            part.first_entry,
            part.stored() if self.session.wire.exposes_broker_metadata else part.payloads,
            partition=self.partition,
            redelivery_counts=redeliveries,
            ack_sets=masks,
            consumer_epoch=self.consumer.epoch,
        )
        self.session.connection.touch()

    def activity(self, active: bool) -> None:
        self.session.reply(replies.active_consumer_change(self.id, active))

    def end_of_topic(self) -> None:
        if self.session.peer_version.startswith(KNOWS_END_OF_TOPIC):
            self.session.reply(replies.reached_end_of_topic(self.id))

    def closed_by_broker(self) -> None:
        self.session.consumers.pop(self.id, None)
        self.session.reply(replies.close_consumer(self.id))


# -- attaching -------------------------------------------------------------------------------


async def on_subscribe(session: PulsarSession, event: events.Subscribe) -> None:
    """Attach a consumer, once: a repeated request is answered again, not done again."""
    consumers = session.consumers
    if event.consumer_id in consumers:
        if consumers[event.consumer_id] is None:
            raise NotReady("the consumer is already being attached on this connection")
        session.reply(replies.success(event.request_id))
        return
    check_subscription(event.subscription)
    consumers[event.consumer_id] = None
    try:
        topic = await session.topic(event.topic, create=event.create_topic)
        subscription = await _subscription(event, topic)
        if not session.gone:
            _attach(session, event, topic, subscription)
    finally:
        if consumers.get(event.consumer_id) is None:
            consumers.pop(event.consumer_id, None)


def _attach(
    session: PulsarSession,
    event: events.Subscribe,
    topic: Topic | VolatileTopic,
    subscription: Attachment,
) -> None:
    """Put the consumer on the subscription. Nothing is delivered before its first FLOW."""
    if event.read_compacted and (not topic.persistent or not TYPES[event.type].ordered):
        raise NotAllowed("reading compacted needs a persistent topic and one active consumer")
    attached = Attached(session, event.consumer_id, topic)
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
    session.reply(replies.success(event.request_id))


async def _subscription(event: events.Subscribe, topic: Topic | VolatileTopic) -> Attachment:
    if isinstance(topic, VolatileTopic):
        return topic.subscription(event.subscription)
    if not event.durable:
        return topic.reader(event.subscription, await _reader_start(event, topic))
    found = topic.subscriptions.get(event.subscription)
    if found is not None and not found.cursor.durable:
        raise NotAllowed(f"subscription {event.subscription} is a reader's, not durable")
    create = topic.policies.auto_subscription_creation
    if found is None and not create:
        raise SubscriptionNotFound(f"there is no subscription {event.subscription}")
    start = START if event.from_earliest else None
    subscription = await topic.subscription(
        event.subscription, create=create, start=start, properties=dict(event.properties)
    )
    subscription.replicated = event.replicated
    return subscription


async def _reader_start(event: events.Subscribe, topic: Topic) -> Position:
    """The position before the first entry a reader gets."""
    chain = topic.ledger.chain
    if event.start_rollback_seconds:
        since_ms = topic.env.clock.wall_ms() - event.start_rollback_seconds * 1000
        return before(chain.normal(await find_by_time(topic.ledger, since_ms)))
    start = event.start
    if start is None:
        return START if event.from_earliest else chain.confirmed
    if start.ledger_id == LATEST_LEDGER:
        return chain.confirmed
    if start.ledger_id < 0 or start.entry_id < 0:
        return START
    # the start entry itself comes first; the client drops what it does not want of it
    return before(chain.normal((start.ledger_id, start.entry_id)))


def before(position: Position) -> Position:
    """The mark-delete position from which `position` is read next."""
    return (position[0], position[1] - 1)


# -- hot -------------------------------------------------------------------------------------


def on_flow(session: PulsarSession, event: events.Flow) -> None:
    if event.permits <= 0:
        raise Invalid("FLOW must grant at least one permit")
    attached = session.consumers.get(event.consumer_id)
    if attached is not None and attached.consumer.subscription is not None:
        attached.consumer.subscription.flow(attached.consumer, event.permits)


def on_acks(session: PulsarSession, event: events.Acks) -> None:
    attached = session.consumers.get(event.consumer_id)
    if attached is None or attached.consumer.subscription is None:
        _ack_answer(session, event, NotReady("the consumer is not attached"))
        return
    if event.txn is not None:
        _ack_answer(session, event, NotAllowed("Transactions are not enabled."))
        return
    subscription = attached.consumer.subscription
    if not event.cumulative:
        parts = event.partial if session.options.batch_index_acks else ()
        subscription.ack(attached.consumer, event.ranges, parts)
    elif len(event.ranges) + len(event.partial) == 1:
        if event.ranges:
            ledger_id, _first, entry_id = event.ranges[0]
            subscription.ack_to(attached.consumer, (ledger_id, entry_id), None)
        else:
            part = event.partial[0]
            subscription.ack_to(attached.consumer, (part[0], part[1]), part)
    if event.request_id is not None:
        subscription.cursor.when_saved(partial(_ack_answer, session, event))


def _ack_answer(session: PulsarSession, event: events.Acks, error: BrokerError | None) -> None:
    """Tell a client that asked; one that did not is not answered."""
    if event.request_id is not None:
        session.reply(replies.ack_response(event.consumer_id, event.request_id, error))


def on_redeliver(session: PulsarSession, event: events.Redeliver) -> None:
    attached = session.consumers.get(event.consumer_id)
    subscription = attached.consumer.subscription if attached is not None else None
    if attached is None or subscription is None:
        return
    consumer = attached.consumer
    if event.consumer_epoch is not None:
        consumer.epoch = event.consumer_epoch
    positions = [(known.ledger_id, known.entry_id) for known in event.ids] or None
    subscription.redeliver(consumer, positions)


# -- leaving ---------------------------------------------------------------------------------


def on_close_consumer(session: PulsarSession, event: events.CloseConsumer) -> None:
    attached = session.consumers.pop(event.consumer_id, None)
    if attached is not None:
        attached.topic.detach(attached.consumer)
    session.reply(replies.success(event.request_id))


async def on_unsubscribe(session: PulsarSession, event: events.Unsubscribe) -> None:
    attached = _attached(session, event.consumer_id)
    subscription = attached.consumer.subscription
    if subscription is None:
        raise NotReady("the consumer is being detached")
    if not event.force:
        subscription.may_unsubscribe(attached.consumer)
    session.consumers.pop(event.consumer_id, None)
    attached.topic.detach(attached.consumer)
    await attached.topic.unsubscribe(subscription.name, force=True)
    session.reply(replies.success(event.request_id))


def detach_all(session: PulsarSession) -> None:
    """The connection is gone."""
    consumers, session.consumers = session.consumers, {}
    for attached in consumers.values():
        if attached is not None:
            attached.topic.detach(attached.consumer)


# -- moving ----------------------------------------------------------------------------------


async def on_seek(session: PulsarSession, event: events.Seek) -> None:
    """First everybody is sent away, then the cursor moves, then the answer: in this order."""
    attached = _attached(session, event.consumer_id)
    topic = attached.topic
    subscription = attached.consumer.subscription
    if not isinstance(topic, Topic) or not isinstance(subscription, Subscription):
        raise NotAllowed("seek needs a persistent topic")
    if event.position is not None:
        target, part = _seek_target(topic, event.position)
    elif event.publish_time is not None:
        target, part = before(await find_by_time(topic.ledger, event.publish_time)), None
    else:
        raise Invalid("seek names neither a message id nor a time")
    subscription.reset(target, part)
    topic.keep(subscription)
    session.reply(replies.success(event.request_id))


def _seek_target(
    topic: Topic, wanted: events.MessageId
) -> tuple[Position, tuple[int, int, int, int] | None]:
    """The mark-delete position from which `wanted` is read next, and what of it is done with."""
    chain = topic.ledger.chain
    if wanted.ledger_id == LATEST_LEDGER:
        return chain.confirmed, None
    if wanted.ledger_id < 0 or wanted.entry_id < 0:
        return before(chain.first), None
    position = chain.normal((wanted.ledger_id, wanted.entry_id))
    if wanted.ack_mask is None or position != (wanted.ledger_id, wanted.entry_id):
        return before(position), None
    return before(position), (*position, wanted.ack_mask, wanted.batch_size)


# -- asking ----------------------------------------------------------------------------------


async def on_get_last_message_id(session: PulsarSession, event: events.GetLastMessageId) -> None:
    attached = _attached(session, event.consumer_id)
    topic = attached.topic
    if not isinstance(topic, Topic):
        raise NotAllowed("a topic that stores nothing has no last message")
    last = topic.ledger.chain.confirmed
    batch_index = -1
    if last[1] >= 0:
        entries = await topic.ledger.read(last, 1, 1)
        entry = entries.payloads[0]
        count, is_batch = message_count(entry)
        if is_batch:
            batch_index = count - 1
    subscription = attached.consumer.subscription
    mark = subscription.cursor.mark_delete if subscription is not None else START
    session.reply(
        replies.last_message_id(
            event.request_id,
            events.MessageId(last[0], last[1], topic.name.partition_index, batch_index),
            events.MessageId(mark[0], mark[1], topic.name.partition_index),
        )
    )


def _attached(session: PulsarSession, consumer_id: int) -> Attached:
    attached = session.consumers.get(consumer_id)
    if attached is None:
        raise NotReady("the consumer is not attached")
    return attached


HANDLERS: Final[Mapping[type, Any]] = {
    events.Subscribe: on_subscribe,
    events.Flow: on_flow,
    events.Acks: on_acks,
    events.Redeliver: on_redeliver,
    events.CloseConsumer: on_close_consumer,
    events.Unsubscribe: on_unsubscribe,
    events.Seek: on_seek,
    events.GetLastMessageId: on_get_last_message_id,
}
