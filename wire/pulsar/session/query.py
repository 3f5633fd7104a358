"""Questions about what is attached; requests for features that are not here, refused in kind."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from magnetar.core.kernel.dates import iso_date
from magnetar.core.kernel.errors import NotAllowed, TopicNotFound
from magnetar.wire.pulsar import events, refusals, replies
from magnetar.wire.pulsar.session.absent_consumers import ask
from magnetar.wire.pulsar.session.consume import AttachedConsumer

if TYPE_CHECKING:
    from magnetar.wire.pulsar.session.session import PulsarSession


async def on_consumer_stats(session: PulsarSession, event: events.ConsumerStats) -> None:
    await ask(session, event.consumer_id, partial(_tell_stats, session, event))


async def _tell_stats(
    session: PulsarSession, event: events.ConsumerStats, attached: AttachedConsumer
) -> None:
    consumer = attached.consumer
    subscription = consumer.subscription
    assert subscription is not None  # it has one while its session has it
    rates = consumer.rates.per_second
    session.reply(
        replies.consumer_stats(
            event.request_id,
            replies.ConsumerFigures(
                messages_out_rate=rates.messages,
                bytes_out_rate=rates.bytes,
                redeliver_rate=rates.redelivered,
                ack_rate=rates.acked,
                expired_rate=subscription.rates.per_second.expired,
                consumer_name=consumer.name,
                permits=consumer.permits,
                unacked=consumer.unacked,
                blocked_on_unacked=consumer.blocked,
                address=consumer.request.address,
                connected_since=iso_date(consumer.connected_ms) or "",
                subscription_type=subscription.kind,
                backlog=subscription.cursor.backlog,
            ),
        )
    )


def on_get_schema(_session: PulsarSession, _event: events.GetSchema) -> None:
    """Clients take this answer for "the topic has no schema", which is so."""
    raise TopicNotFound("the topic has no schema")


def on_get_or_create_schema(session: PulsarSession, event: events.GetOrCreateSchema) -> None:
    """Taken and not kept, as in PRODUCER and SUBSCRIBE: a topic without schemas has no version.

    A refusal would be final: Java asks before the first dead letter, and the first retry.
    """
    session.reply(replies.schema_taken(event.request_id))


def on_transaction(session: PulsarSession, event: Any) -> None:
    """The words are those a broker with transactions switched off uses; clients look for them."""
    session.reply(refusals.transactions_are_off(event.request_id))


def on_watch(_session: PulsarSession, _event: events.WatchTopics) -> None:
    """The client goes on by asking for the list now and then."""
    raise NotAllowed("watching topics is not enabled here")


def on_close_watch(session: PulsarSession, event: events.CloseWatch) -> None:
    session.reply(replies.success(event.request_id))


HANDLERS: Final[Mapping[type, Any]] = {
    events.ConsumerStats: on_consumer_stats,
    events.GetSchema: on_get_schema,
    events.GetOrCreateSchema: on_get_or_create_schema,
    events.TcConnect: on_transaction,
    events.NewTxn: on_transaction,
    events.AddPartitionsToTxn: on_transaction,
    events.AddSubscriptionsToTxn: on_transaction,
    events.EndTxn: on_transaction,
    events.EndTxnOnPartition: on_transaction,
    events.EndTxnOnSubscription: on_transaction,
    events.WatchTopics: on_watch,
    events.CloseWatch: on_close_watch,
}
