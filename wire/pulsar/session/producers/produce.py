"""PRODUCER, SEND and CLOSE_PRODUCER: attach producers in four modes, publish, detach."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from magnetar.core.broker.attachment import attach
from magnetar.core.broker.connection_throttle import ConnectionThrottle
from magnetar.core.broker.schema_admission import admit_producer
from magnetar.core.entry.pulsar.metadata import has_encryption_keys
from magnetar.core.kernel.cooperation import Cooperative
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
from magnetar.wire.pulsar.session.attachment_limit import DETACHED, check_attached
from magnetar.wire.pulsar.session.lookup import topic_name
from magnetar.wire.pulsar.session.needs import allows, to_produce
from magnetar.wire.pulsar.session.producers.attached_producer import AttachedProducer
from magnetar.wire.pulsar.session.producers.publish_limit import PublishLimit
from magnetar.wire.pulsar.session.schemas import topic_schema, version_bytes
from magnetar.wire.pulsar.session.transactions.participation import OFF

if TYPE_CHECKING:
    from magnetar.core.broker.broker import Broker
    from magnetar.wire.pulsar.session.client import PulsarClient
    from magnetar.wire.pulsar.session.requests import RequestQueue
    from magnetar.wire.pulsar.session.transactions.participation import TransactionParticipation

MODES: Final[Mapping[events.AccessMode, AccessMode]] = {
    events.AccessMode.SHARED: AccessMode.SHARED,
    events.AccessMode.EXCLUSIVE: AccessMode.EXCLUSIVE,
    events.AccessMode.WAIT_FOR_EXCLUSIVE: AccessMode.WAIT_FOR_EXCLUSIVE,
    events.AccessMode.EXCLUSIVE_WITH_FENCING: AccessMode.EXCLUSIVE_WITH_FENCING,
}
PRODUCER_LEFT_SECONDS: Final = 30.0
"""How long messages of a closed producer are ignored; later ones are an error."""
CHECKED_PER_REST: Final = 100
"""Producers whose right is looked at before other tasks run."""
LEFT_MAX: Final = 1_000
"""Closed producers that a connection remembers; beyond it, the oldest is forgotten."""


class ConnectionProducers:
    """The producers of one connection: PRODUCER, SEND, CLOSE_PRODUCER."""

    __slots__ = (
        "_attached",
        "_coming",
        "_left",
        "_requests",
        "broker",
        "client",
        "limit",
        "participation",
    )

    def __init__(
        self,
        client: PulsarClient,
        broker: Broker,
        requests: RequestQueue,
        pending_max: int,
        participation: TransactionParticipation,
    ) -> None:
        self.client = client
        self.broker = broker
        throttle = ConnectionThrottle(
            broker.clock, broker.spawn, client.connection, client.reassure
        )
        self.limit = PublishLimit(client.connection, throttle, pending_max)
        self._requests = requests
        self.participation = participation
        self._attached: dict[int, AttachedProducer] = {}
        """By producer id."""
        self._coming: dict[int, int] = {}
        """The request ids of producers that are being attached, by producer id."""
        self._left: dict[int, float] = {}
        """When each producer was closed: its messages may still be under way."""

    def __len__(self) -> int:
        return len(self._attached) + len(self._coming)

    # -- attaching ----------------------------------------------------------------------------

    def on_producer(self, event: events.Producer) -> None:
        """Attach a producer. A repeated request is answered again and changes nothing.

        The client may give up meanwhile: see `SubscribeHandlers.on_subscribe`.
        """
        producer_id, coming = event.producer_id, self._coming
        present = self._attached.get(producer_id)
        if present is not None:
            present.reply_success(event.request_id)
            return
        if producer_id in coming:
            raise NotReady("the producer is already being attached on this connection")
        check_length("producer", event.name)
        check_properties("producer", event.metadata)
        check_attached(self._attached, coming)
        coming[producer_id] = event.request_id
        self._requests.add(self._produce, event)

    async def _produce(self, event: events.Producer) -> None:
        producer_id, coming = event.producer_id, self._coming
        if coming.get(producer_id) != event.request_id:
            return  # the client has given up while the request waited
        try:
            await attach(self.broker, topic_name(event.topic), partial(self._enter, event))
        finally:
            if coming.get(producer_id) == event.request_id:
                del coming[producer_id]

    async def _enter(self, event: events.Producer, topic: Topic) -> None:
        """Attach, unless the client has given up."""
        producer_id, coming = event.producer_id, self._coming
        await self.broker.housekeeping.check_quota_of_newcomer(topic)
        if event.transactional and self.participation.transactions is None:
            raise OFF
        version = await self._prepare(event, topic)
        name = event.name or await self.broker.catalog.new_producer_name()
        if coming.get(producer_id) == event.request_id:
            self.client.check(*to_produce(topic.name))  # it may have been lost meanwhile
            del coming[producer_id]
            await self._attach(event, AttachedProducer(self, event, topic, version), name)

    async def _prepare(self, event: events.Producer, topic: Topic) -> bytes:
        """Check and prepare the topic before a producer attaches; the version of its schema."""
        topic.check_producer()
        if topic.policies.encryption_required and not event.encrypted:
            raise Invalid(f"Encryption is required in {topic.name}")
        schema, user = topic_schema(event.schema), self.client.principal
        version = await admit_producer(self.broker, topic, schema, user)
        if event.initial_subscription and topic.stored is not None:
            create = topic.policies.auto_subscription_creation
            if not create and event.initial_subscription not in topic.subscriptions:
                raise NotAllowed("subscriptions are not created automatically here")
            await topic.subscription(event.initial_subscription, create=create, start=START)
        return version_bytes(version)

    async def _attach(self, event: events.Producer, attached: AttachedProducer, name: str) -> None:
        """Register it before the await: a CLOSE_PRODUCER that comes meanwhile finds it."""
        client = self.client
        request = ProducerRequest(
            name=name,
            name_is_users=bool(event.name) and event.name_is_users,
            epoch=event.epoch,
            mode=MODES[event.access_mode],
            topic_epoch=event.topic_epoch,
            metadata=event.metadata,
            address=client.peer,
            client_version=client.version,
            partial=client.features.partial_producer,
        )
        now_ms = self.broker.clock.wall_ms()
        attached.producer = Producer(event.producer_id, request, attached, now_ms)
        self._attached[event.producer_id] = attached
        client.connection.will_write()
        try:
            granted = await self._take_place(attached)
        except BrokerError as error:
            attached.attach_failed(error)
            raise
        refusal = attached.accepted()
        if refusal is not None:
            raise refusal
        if not granted:
            attached.reply_success(event.request_id)

    async def _take_place(self, attached: AttachedProducer) -> bool:
        """Attach to the topic; if the name is taken, try again once its holder is found dead."""
        topic, producer = attached.topic, attached.producer
        try:
            return await topic.attach_producer(producer)
        except ProducerBusy:
            holder = topic.producers.named(producer.name)
            sink = holder.sink if holder is not None else None
            if not isinstance(sink, AttachedProducer):
                raise
            if not await liveness.is_gone(sink.client, self.client):
                raise
        if not self.has(attached):
            raise NotReady("the producer was closed while it was being attached")
        return await topic.attach_producer(producer)

    # -- attached producers -------------------------------------------------------------------

    def has(self, attached: AttachedProducer) -> bool:
        """Whether it is attached."""
        return self._attached.get(attached.id) is attached

    def expect_again(self, attached: AttachedProducer) -> None:
        """Its attempt failed, and its request is tried again or refused."""
        self._coming[attached.id] = attached.request_id

    def forget(self, attached: AttachedProducer) -> None:
        """Detach it; its messages that are under way from the client are not an error."""
        attached.producer.sink = DETACHED
        if self.has(attached):
            del self._attached[attached.id]
            while len(self._left) >= LEFT_MAX:
                del self._left[next(iter(self._left))]
            self._left.pop(attached.id, None)
            self._left[attached.id] = self.broker.clock.monotonic()

    # -- publishing ---------------------------------------------------------------------------

    def on_sends(self, event: events.Sends) -> None:
        attached = self._attached.get(event.producer_id)
        if attached is None or not attached.ready:
            self._check_left(event.producer_id)
            return
        if event.txn is not None:
            refusal = self.participation.refusal(attached.topic.stored, event.txn)
            if refusal is not None:
                attached.refuse_each(event, refusal)
                return
            event = self.participation.stated(event, event.txn)
        if attached.encrypted_only and not _all_encrypted(event.payloads):
            attached.refuse_each(event, Invalid("Messages must be encrypted"))
        elif (malformed := hot.malformed(event.payloads)) or attached.topic.looks_at_messages:
            attached.publish_checked(event, self.broker.clock.wall_ms(), malformed)
        else:
            attached.publish(event)

    def _check_left(self, producer_id: int) -> None:
        """Ignore messages of a producer that was just closed; its client sends them again."""
        left_at = self._left.get(producer_id)
        if left_at is None or self.broker.clock.monotonic() - left_at > PRODUCER_LEFT_SECONDS:
            raise Invalid("a message of a producer that is not attached")

    def on_bad_checksum(self, event: events.BadChecksum) -> None:
        error = ChecksumMismatch("the message did not arrive as it was sent")
        self.client.reply(replies.send_error(event.producer_id, event.sequence_id, error))

    # -- leaving ------------------------------------------------------------------------------

    def on_close_producer(self, event: events.CloseProducer) -> None:
        """Answer once all earlier messages are stored."""
        self._coming.pop(event.producer_id, None)
        attached = self._attached.get(event.producer_id)
        if attached is None:
            self.client.reply(replies.success(event.request_id))
            return
        attached.forget()
        attached.topic.detach_producer(attached.producer)
        attached.close_when_stored(event.request_id)

    async def lose_rights(self) -> None:
        """Close the producers whose client may not publish any more."""
        async for attached in Cooperative(list(self._attached.values()), CHECKED_PER_REST):
            if self.has(attached) and not allows(self.client, to_produce(attached.topic.name)):
                attached.topic.detach_producer(attached.producer)
                attached.lost_right()

    def detach_all(self) -> None:
        """Detach everything: the connection is closed."""
        self._coming.clear()
        producers, self._attached = self._attached, {}
        for attached in producers.values():
            attached.topic.detach_producer(attached.producer)
            attached.producer.sink = DETACHED


def _all_encrypted(payloads: list[bytes]) -> bool:
    return all(has_encryption_keys(payload) for payload in payloads)


HANDLERS: Final[Mapping[type, Any]] = {
    events.Producer: ConnectionProducers.on_producer,
    events.Sends: ConnectionProducers.on_sends,
    events.BadChecksum: ConnectionProducers.on_bad_checksum,
    events.CloseProducer: ConnectionProducers.on_close_producer,
}
