"""FLOW, ACK and REDELIVER: delivery to attached consumers, and acknowledgements."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import trio

from magnetar.core.broker.attachment import ATTACH_SECONDS
from magnetar.core.kernel.cooperation import Cooperative
from magnetar.core.kernel.errors import BrokerError, Invalid, NotReady
from magnetar.core.kernel.pieces import size_of
from magnetar.core.ledger.read.tail_cache import Slice
from magnetar.core.topic.subscription.consumer import NOTHING_NOTED, Consumer
from magnetar.core.topic.topic import Topic
from magnetar.wire.pulsar import commands_pb2 as pb
from magnetar.wire.pulsar import events, replies
from magnetar.wire.pulsar.session.attachment_limit import DETACHED
from magnetar.wire.pulsar.session.consumers.absent_consumers import AbsentConsumers
from magnetar.wire.pulsar.session.needs import allows, to_consume
from magnetar.wire.pulsar.wire import Recipient

if TYPE_CHECKING:
    from magnetar.core.broker.broker import Broker
    from magnetar.wire.pulsar.session.client import PulsarClient
    from magnetar.wire.pulsar.session.transactions.participation import TransactionParticipation

log = logging.getLogger(__name__)

KNOWS_END_OF_TOPIC: Final = ("Pulsar-Java", "Pulsar-WebSocket")
"""The clients that get REACHED_END_OF_TOPIC; to Go's and C++'s it is an invalid command, and they
close the connection (`ClientConnection.cc`, `internal/connection.go`).
"""

KNOWS_CONSUMERS_LATE: Final = "Pulsar-Go"
"""These clients drop commands for a consumer that come right behind its SUCCESS, before they have
registered it (`grabConn` of 0.19). So commands wait for its first FLOW. Apache's broker sends
ACTIVE_CONSUMER_CHANGE a second later (`activeConsumerFailoverDelayTimeMillis`).
"""

NOTED_LETTERS_MAX: Final = 10_000
"""Total length of the property names that a client stores with its position."""
CHECKED_PER_REST: Final = 100
"""Consumers whose right is looked at before other tasks run."""
VALIDATION_ERRORS: Final[Mapping[int, str]] = {
    number: name for name, number in pb.CommandAck.ValidationError.items()
}


class AttachedConsumer:
    """A consumer of this connection: the protocol's side of a core `Consumer`."""

    __slots__ = (
        "active",
        "client",
        "consumer",
        "consumers",
        "durable",
        "gave_up",
        "id",
        "known",
        "partition",
        "subscription",
        "topic",
    )

    def __init__(
        self, consumers: ConnectionConsumers, event: events.Subscribe, topic: Topic
    ) -> None:
        self.consumers = consumers
        self.client = consumers.client
        self.id = event.consumer_id
        self.topic = topic
        self.subscription = event.subscription
        self.durable = event.durable and topic.stored is not None
        """Whether its subscription is durable."""
        self.partition = topic.name.partition_index
        self.gave_up = False
        """Whether it has acknowledged a message because it cannot read it."""
        self.known = False
        """Whether SUCCESS is sent to its SUBSCRIBE; no other command may come before it."""
        self.active: bool | None = None
        """The activity to report with SUCCESS; None for none."""
        self.consumer: Consumer

    def welcome(self, request_id: int) -> None:
        """Answer its SUBSCRIBE."""
        self.client.reply(replies.success(request_id))
        if not self.client.version.startswith(KNOWS_CONSUMERS_LATE):
            self.confirm()

    def confirm(self) -> None:
        self.known = True
        if self.active is not None:
            self.activity(self.active)

    @property
    def congested(self) -> bool:
        connection = self.client.connection
        if not connection.congested:
            return False
        if connection.answers or not self.consumer.messages_acked:
            return True
        connection.answers = True  # few small messages never prove that somebody reads them
        return connection.congested

    def deliver(
        self,
        part: Slice,
        redeliveries: Sequence[int] | None,
        partial: Mapping[int, int] | None,
    ) -> None:
        masks = None
        if partial:
            masks = [partial.get(at) for at in range(len(part.payloads))]
        to = Recipient(self.id, self.partition, self.consumer.epoch)
        self.client.wire.messages(to, part, redeliveries, masks)
        self.client.connection.packed(size_of(part.payloads))

    def activity(self, active: bool) -> None:
        if not self.known:
            self.active = active
            return
        self.client.reply(replies.active_consumer_change(self.id, active))

    def end_of_topic(self) -> None:
        if self.client.version.startswith(KNOWS_END_OF_TOPIC):
            self.client.reply(replies.reached_end_of_topic(self.id))

    def closed_by_broker(self) -> None:
        self.consumers.note_absent(self)
        self.client.reply(replies.close_consumer(self.id))

    def note_unreadable(self, validation_error: int) -> None:
        """Log that the client acknowledges a message that it cannot read, so as not to get it
        again.

        One line per consumer, not per message.
        """
        if not self.gave_up:
            self.gave_up = True
            reason = VALIDATION_ERRORS.get(validation_error, "for a reason unknown")
            log.warning("%s: gave up messages of %s: %s", self.client.peer, self.topic.name, reason)


class ConnectionConsumers:
    """The consumers of one connection: FLOW, ACK, REDELIVER_UNACKNOWLEDGED_MESSAGES."""

    __slots__ = (
        "_batch_index_acks",
        "_broker",
        "absent",
        "attached",
        "client",
        "coming",
        "participation",
    )

    def __init__(
        self,
        client: PulsarClient,
        broker: Broker,
        batch_index_acks: bool,
        participation: TransactionParticipation,
    ) -> None:
        self.client = client
        self._broker = broker
        self._batch_index_acks = batch_index_acks
        self.participation = participation
        self.attached: dict[int, AttachedConsumer] = {}
        """By consumer id."""
        self.coming: dict[int, int] = {}
        """The request ids of consumers that are being attached, by consumer id."""
        self.absent = AbsentConsumers()
        """Consumers that the broker has closed and that are expected back."""

    # -- who is attached ----------------------------------------------------------------------

    def schedule(self) -> None:
        """The client receives again: dispatch to every consumer."""
        for attached in self.attached.values():
            if attached.consumer.subscription is not None:
                attached.consumer.subscription.schedule()

    def note_absent(self, attached: AttachedConsumer) -> None:
        """Note that the broker has closed a consumer, which its client will attach again."""
        if self.attached.get(attached.id) is attached:
            del self.attached[attached.id]
            self.absent.left(attached)
        attached.consumer.sink = DETACHED

    async def lose_rights(self) -> None:
        """Close the consumers whose client may not read any more. It subscribes again, and hears
        that then (`Consumer.checkPermissionsAsync` of 4.2).
        """
        async for attached in Cooperative(list(self.attached.values()), CHECKED_PER_REST):
            here = self.attached.get(attached.id) is attached
            need = to_consume(attached.topic.name, attached.subscription)
            if here and not allows(self.client, need):
                self.detach(attached)
                attached.closed_by_broker()

    async def ask(
        self, consumer_id: int, answer: Callable[[AttachedConsumer], Awaitable[None]]
    ) -> None:
        """Answer a request about a consumer; try again if its topic is unloaded meanwhile.

        `answer` changes nothing if it fails.
        """
        deadline = trio.current_time() + ATTACH_SECONDS
        while True:
            attached = self.attached.get(consumer_id)
            if attached is None:
                await self.absent.back(consumer_id, deadline)
                continue
            topic = attached.topic
            try:
                await answer(attached)
                return
            except BrokerError:
                here = self.attached.get(consumer_id) is attached
                if (here and not topic.fenced) or trio.current_time() >= deadline:
                    raise
            if topic.fenced:
                await self._broker.wait_unloaded(topic, deadline)

    def detach_all(self) -> None:
        """Detach everything: the connection is closed."""
        self.coming.clear()
        self.absent.all_over()
        consumers, self.attached = self.attached, {}
        for attached in consumers.values():
            self.detach(attached)

    def detach(self, attached: AttachedConsumer) -> None:
        """Have a consumer leave its topic; nothing is said to it any more."""
        attached.topic.detach(attached.consumer)
        attached.consumer.sink = DETACHED

    # -- at work ------------------------------------------------------------------------------

    def on_flow(self, event: events.Flow) -> None:
        if event.permits <= 0:
            raise Invalid("FLOW must grant at least one permit")
        attached = self.attached.get(event.consumer_id)
        if attached is not None and attached.consumer.subscription is not None:
            if not attached.known:
                attached.confirm()
            attached.consumer.subscription.flow(attached.consumer, event.permits)

    def on_acks(self, event: events.Acks) -> None:
        attached = self.attached.get(event.consumer_id)
        if attached is None or attached.consumer.subscription is None:
            self.participation.answer(event, NotReady("the consumer is not attached"))
            return
        if event.txn is not None:
            self.participation.acknowledge(attached.topic.stored, attached.consumer, event)
            return
        subscription = attached.consumer.subscription
        if event.validation_error is not None:
            attached.note_unreadable(event.validation_error)
        if not event.cumulative:
            parts = event.partial if self._batch_index_acks else ()
            subscription.ack(attached.consumer, event.ranges, parts)
        elif len(event.ranges) + len(event.partial) == 1:
            if event.ranges:
                ledger_id, _first, entry_id = event.ranges[0]
                subscription.ack_to(attached.consumer, (ledger_id, entry_id), None, _noted(event))
            else:
                part = event.partial[0]
                subscription.ack_to(attached.consumer, (part[0], part[1]), part, _noted(event))
        if event.request_id is not None:
            subscription.cursor.when_saved(partial(self._answer_ack, event))

    def _answer_ack(self, event: events.Acks, error: BrokerError | None) -> None:
        """Answer a client that wants receipts (`isAckReceiptEnabled`); others get none."""
        if event.request_id is not None:
            self.client.reply(replies.ack_response(event.consumer_id, event.request_id, error))

    def on_redeliver(self, event: events.Redeliver) -> None:
        attached = self.attached.get(event.consumer_id)
        subscription = attached.consumer.subscription if attached is not None else None
        if attached is None or subscription is None:
            return
        consumer = attached.consumer
        if event.consumer_epoch is not None:
            consumer.epoch = event.consumer_epoch
        positions = [(known.ledger_id, known.entry_id) for known in event.ids] or None
        subscription.redeliver(consumer, positions)


def _noted(event: events.Acks) -> Mapping[str, int]:
    """The properties to store with the position, up to what a cursor may have."""
    noted = event.properties
    if not noted or sum(map(len, noted)) > NOTED_LETTERS_MAX:
        return NOTHING_NOTED
    return noted


HANDLERS: Final[Mapping[type, Any]] = {
    events.Flow: ConnectionConsumers.on_flow,
    events.Acks: ConnectionConsumers.on_acks,
    events.Redeliver: ConnectionConsumers.on_redeliver,
}
