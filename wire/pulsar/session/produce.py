"""Producers come and go: attach (in four modes), check what they send, leave."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from magnetar.core.broker.attachment import attach
from magnetar.core.entry.pulsar.metadata import has_encryption_keys
from magnetar.core.kernel.errors import (
    BrokerError,
    ChecksumMismatch,
    Invalid,
    NotAllowed,
    NotReady,
    ProducerBusy,
)
from magnetar.core.kernel.names import check_length
from magnetar.core.ledger.log.chain import START
from magnetar.core.topic.publishing.producer import AccessMode, Producer, ProducerRequest
from magnetar.core.topic.restrictions import check_properties
from magnetar.core.topic.topic import Topic
from magnetar.wire.pulsar import events, hot, replies
from magnetar.wire.pulsar.session import liveness
from magnetar.wire.pulsar.session.attached_producer import AttachedProducer
from magnetar.wire.pulsar.session.attachment_limit import DETACHED, check_attached
from magnetar.wire.pulsar.session.lookup import topic_name

if TYPE_CHECKING:
    from magnetar.wire.pulsar.session.session import PulsarSession

MODES: Final[Mapping[events.AccessMode, AccessMode]] = {
    events.AccessMode.SHARED: AccessMode.SHARED,
    events.AccessMode.EXCLUSIVE: AccessMode.EXCLUSIVE,
    events.AccessMode.WAIT_FOR_EXCLUSIVE: AccessMode.WAIT_FOR_EXCLUSIVE,
    events.AccessMode.EXCLUSIVE_WITH_FENCING: AccessMode.EXCLUSIVE_WITH_FENCING,
}


PRODUCER_LEFT_SECONDS: Final = 30.0
"""So long after it was closed a producer's messages are overlooked; then they are a mistake."""


# -- attaching -------------------------------------------------------------------------------


def on_producer(session: PulsarSession, event: events.Producer) -> None:
    """Attach a producer, once: a repeated request is answered again, not done again.

    The client may give up meanwhile: see `subscribe.on_subscribe`.
    """
    producer_id, coming = event.producer_id, session.producers_coming
    present = session.producers.get(producer_id)
    if present is not None:
        present.say_granted(event.request_id)
        return
    if producer_id in coming:
        raise NotReady("the producer is already being attached on this connection")
    check_length("producer", event.name)
    check_properties("producer", event.metadata)
    check_attached(session.producers, coming)
    coming[producer_id] = event.request_id
    session.wait_for(_produce, event)


async def _produce(session: PulsarSession, event: events.Producer) -> None:
    producer_id, coming = event.producer_id, session.producers_coming
    enter = partial(_enter, session, event)
    if coming.get(producer_id) != event.request_id:
        return  # the client has given up while it waited for its turn
    try:
        await attach(session.broker, topic_name(event.topic), enter)
    finally:
        if coming.get(producer_id) == event.request_id:
            del coming[producer_id]


async def _enter(session: PulsarSession, event: events.Producer, topic: Topic) -> None:
    """Unless the client has given up."""
    producer_id, coming = event.producer_id, session.producers_coming
    await session.broker.housekeeping.check_quota_of_newcomer(topic)
    await _prepare(event, topic)
    name = event.name or await session.broker.catalog.new_producer_name()
    if coming.get(producer_id) == event.request_id:
        del coming[producer_id]
        await _attach(session, event, topic, name)


async def _prepare(event: events.Producer, topic: Topic) -> None:
    """What must be so before a producer may attach."""
    topic.check_producer()
    if topic.policies.encryption_required and not event.encrypted:
        raise Invalid(f"Encryption is required in {topic.name}")
    if event.transactional:
        raise NotAllowed("Transactions are not enabled.")
    if event.initial_subscription and topic.stored is not None:
        create = topic.policies.auto_subscription_creation
        if not create and event.initial_subscription not in topic.subscriptions:
            raise NotAllowed("subscriptions are not created automatically here")
        await topic.subscription(event.initial_subscription, create=create, start=START)


async def _attach(session: PulsarSession, event: events.Producer, topic: Topic, name: str) -> None:
    """Into the session first: a close that comes while the topic is being taken finds it there."""
    attached = AttachedProducer(session, event, topic)
    request = ProducerRequest(
        name=name,
        name_is_users=bool(event.name) and event.name_is_users,
        epoch=event.epoch,
        mode=MODES[event.access_mode],
        topic_epoch=event.topic_epoch,
        metadata=event.metadata,
        address=session.peer,
        client_version=session.peer_version,
        partial=session.features.partial_producer,
    )
    attached.producer = Producer(event.producer_id, request, attached, topic.env.clock.wall_ms())
    session.producers[event.producer_id] = attached
    session.connection.will_write()
    try:
        granted = await _take_place(session, attached)
    except BrokerError as error:
        attached.turned_away(error)
        raise
    attached.coming = False
    if attached.refusal is not None:
        raise attached.refusal
    if not granted:
        attached.say_granted(event.request_id)


async def _take_place(session: PulsarSession, attached: AttachedProducer) -> bool:
    """Attach to the topic; if the name is taken, once more when who has it turns out to be dead."""
    topic, producer = attached.topic, attached.producer
    try:
        return await topic.attach_producer(producer)
    except ProducerBusy:
        holder = topic.producers.named(producer.name)
        sink = holder.sink if holder is not None else None
        if not isinstance(sink, AttachedProducer) or not await liveness.is_gone(
            sink.session, session
        ):
            raise
    if session.producers.get(attached.id) is not attached:
        raise NotReady("the producer was closed while it was being attached")
    return await topic.attach_producer(producer)


# -- publishing ------------------------------------------------------------------------------


def on_sends(session: PulsarSession, event: events.Sends) -> None:
    attached = session.producers.get(event.producer_id)
    if attached is None or not attached.ready:
        _check_left(session, event.producer_id)
        return
    if event.txn is not None:
        _refuse_each(session, event, NotAllowed("Transactions are not enabled."))
    elif attached.encrypted_only and not _all_encrypted(event.payloads):
        _refuse_each(session, event, Invalid("Messages must be encrypted"))
    elif (malformed := hot.malformed(event.payloads)) or attached.topic.looks_at_messages:
        attached.publish_checked(event, session.broker.clock.wall_ms(), malformed)
    else:
        attached.publish(event)


def _check_left(session: PulsarSession, producer_id: int) -> None:
    """Messages of a producer closed a moment ago were on their way: they will come again."""
    left_at = session.producers_left.get(producer_id)
    if left_at is None or session.broker.clock.monotonic() - left_at > PRODUCER_LEFT_SECONDS:
        raise Invalid("a message of a producer that is not attached")


def _all_encrypted(payloads: list[bytes]) -> bool:
    return all(has_encryption_keys(payload) for payload in payloads)


def _refuse_each(session: PulsarSession, run: events.Sends, error: BrokerError) -> None:
    for echo in run.sequences:
        session.reply(replies.send_error(run.producer_id, hot.sequence_of(echo)[0], error))


def on_bad_checksum(session: PulsarSession, event: events.BadChecksum) -> None:
    error = ChecksumMismatch("the message did not arrive as it was sent")
    session.reply(replies.send_error(event.producer_id, event.sequence_id, error))


# -- leaving ---------------------------------------------------------------------------------


def on_close_producer(session: PulsarSession, event: events.CloseProducer) -> None:
    """Answered when everything sent before is stored."""
    session.producers_coming.pop(event.producer_id, None)
    attached = session.producers.get(event.producer_id)
    if attached is None:
        session.reply(replies.success(event.request_id))
        return
    attached.forget()
    attached.topic.detach_producer(attached.producer)
    if attached.waits:
        attached.closing = event.request_id
    else:
        session.reply(replies.success(event.request_id))


def detach_all(session: PulsarSession) -> None:
    """The connection is gone."""
    session.producers_coming.clear()
    producers, session.producers = session.producers, {}
    for attached in producers.values():
        attached.topic.detach_producer(attached.producer)
        attached.producer.sink = DETACHED


HANDLERS: Final[Mapping[type, Any]] = {
    events.Producer: on_producer,
    events.Sends: on_sends,
    events.BadChecksum: on_bad_checksum,
    events.CloseProducer: on_close_producer,
}
