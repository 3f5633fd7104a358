"""Consumers at work: deliver, acknowledge, send again."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from magnetar.core.kernel.errors import BrokerError, Invalid, NotAllowed, NotReady
from magnetar.core.ledger.read.tail_cache import Slice
from magnetar.core.topic.subscription.consumer import NOTHING_NOTED, Consumer
from magnetar.core.topic.topic import Topic
from magnetar.wire.pulsar import commands_pb2 as pb
from magnetar.wire.pulsar import events, replies
from magnetar.wire.pulsar.wire import Recipient

if TYPE_CHECKING:
    from magnetar.wire.pulsar.session.session import PulsarSession

log = logging.getLogger(__name__)

# Go's and C++'s clients take REACHED_END_OF_TOPIC for an invalid command and close the connection
# (`ClientConnection.cc`, `internal/connection.go`)
KNOWS_END_OF_TOPIC: Final = "Pulsar-Java"
"""Other clients take the command for nonsense and drop the connection."""

KNOWS_CONSUMERS_LATE: Final = "Pulsar-Go"
"""It reads on before it has noted a consumer that SUCCESS was said of (`grabConn` of 0.19), and
drops what it reads of it then. With its first FLOW, which it sends next, it is sure to know. Apache
says who becomes active a second later (`activeConsumerFailoverDelayTimeMillis`).
"""

NOTED_LETTERS_MAX: Final = 10_000
"""Of the names of what a client has stored with its position."""
VALIDATION_ERRORS: Final[Mapping[int, str]] = {
    number: name for name, number in pb.CommandAck.ValidationError.items()
}


class AttachedConsumer:
    """A consumer of this connection: the protocol's side of a core `Consumer`."""

    __slots__ = (
        "active",
        "consumer",
        "durable",
        "gave_up",
        "id",
        "known",
        "partition",
        "session",
        "subscription",
        "topic",
    )

    def __init__(self, session: PulsarSession, event: events.Subscribe, topic: Topic) -> None:
        self.session = session
        self.id = event.consumer_id
        self.topic = topic
        self.subscription = event.subscription
        self.durable = event.durable and topic.stored is not None
        """Its subscription outlives it."""
        self.partition = topic.name.partition_index
        self.gave_up = False
        """It has acknowledged a message because it cannot read it."""
        self.known = False
        """Its client knows of it: nothing is said to it before the SUCCESS of its SUBSCRIBE."""
        self.active: bool | None = None
        """What it hears then, if anything."""
        self.consumer: Consumer

    def welcome(self, request_id: int) -> None:
        """It is attached."""
        self.session.reply(replies.success(request_id))
        if not self.session.peer_version.startswith(KNOWS_CONSUMERS_LATE):
            self.becomes_known()

    def becomes_known(self) -> None:
        self.known = True
        if self.active is not None:
            self.activity(self.active)

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
        to = Recipient(self.id, self.partition, self.consumer.epoch)
        self.session.wire.messages(to, part, redeliveries, masks)
        self.session.connection.packed(sum(map(len, part.payloads)))

    def activity(self, active: bool) -> None:
        if not self.known:
            self.active = active
            return
        self.session.reply(replies.active_consumer_change(self.id, active))

    def end_of_topic(self) -> None:
        if self.session.peer_version.startswith(KNOWS_END_OF_TOPIC):
            self.session.reply(replies.reached_end_of_topic(self.id))

    def closed_by_broker(self) -> None:
        if self.session.consumers.get(self.id) is self:
            del self.session.consumers[self.id]
            self.session.away.left(self)
        self.session.reply(replies.close_consumer(self.id))


def on_flow(session: PulsarSession, event: events.Flow) -> None:
    if event.permits <= 0:
        raise Invalid("FLOW must grant at least one permit")
    attached = session.consumers.get(event.consumer_id)
    if attached is not None and attached.consumer.subscription is not None:
        if not attached.known:
            attached.becomes_known()
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
    if event.validation_error is not None and not attached.gave_up:
        attached.gave_up = True  # one line per consumer, not per message
        # it is done with all the same: nobody could read it the next time either
        reason = VALIDATION_ERRORS.get(event.validation_error, "for a reason unknown")
        log.warning("%s: gave up messages of %s: %s", session.peer, attached.topic.name, reason)
    if not event.cumulative:
        parts = event.partial if session.options.batch_index_acks else ()
        subscription.ack(attached.consumer, event.ranges, parts)
    elif len(event.ranges) + len(event.partial) == 1:
        if event.ranges:
            ledger_id, _first, entry_id = event.ranges[0]
            subscription.ack_to(attached.consumer, (ledger_id, entry_id), None, _noted(event))
        else:
            part = event.partial[0]
            subscription.ack_to(attached.consumer, (part[0], part[1]), part, _noted(event))
    if event.request_id is not None:
        subscription.cursor.when_saved(partial(_ack_answer, session, event))


def _noted(event: events.Acks) -> Mapping[str, int]:
    """What is to be stored with the position; more than a cursor may have is not kept."""
    noted = event.properties
    if not noted or sum(map(len, noted)) > NOTED_LETTERS_MAX:
        return NOTHING_NOTED
    return noted


def _ack_answer(session: PulsarSession, event: events.Acks, error: BrokerError | None) -> None:
    """Answer a client that wants receipts (`isAckReceiptEnabled`); others get none."""
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


HANDLERS: Final[Mapping[type, Any]] = {
    events.Flow: on_flow,
    events.Acks: on_acks,
    events.Redeliver: on_redeliver,
}
