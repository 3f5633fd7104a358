"""CONSUMER_STATS, and requests for features that this broker refuses or answers trivially."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from magnetar.core.kernel.dates import iso_date
from magnetar.core.kernel.errors import NotAllowed, TopicNotFound
from magnetar.wire.pulsar import events, replies

if TYPE_CHECKING:
    from magnetar.wire.pulsar.session.client import PulsarClient
    from magnetar.wire.pulsar.session.consumers.consume import AttachedConsumer, ConnectionConsumers


class QueryHandlers:
    """CONSUMER_STATS, and requests for features that are refused."""

    __slots__ = ("_client", "_consumers")

    def __init__(self, client: PulsarClient, consumers: ConnectionConsumers) -> None:
        self._client = client
        self._consumers = consumers

    async def on_consumer_stats(self, event: events.ConsumerStats) -> None:
        await self._consumers.ask(event.consumer_id, partial(self._reply_stats, event))

    async def _reply_stats(self, event: events.ConsumerStats, attached: AttachedConsumer) -> None:
        consumer = attached.consumer
        subscription = consumer.subscription
        assert subscription is not None  # an attached consumer has a subscription
        rates = consumer.rates.per_second
        self._client.reply(
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

    def on_get_schema(self, _event: events.GetSchema) -> None:
        """Answer that the topic has no schema, as clients read this error."""
        raise TopicNotFound("the topic has no schema")

    def on_get_or_create_schema(self, event: events.GetOrCreateSchema) -> None:
        """Accept a schema without storing it, as in PRODUCER and SUBSCRIBE: the topic has no
        versions.

        A refusal would be final: Java's client sends this before its first dead letter and retry.
        """
        self._client.reply(replies.schema_taken(event.request_id))

    def on_watch(self, _event: events.WatchTopics) -> None:
        """Refuse to watch a list of topics; the client polls the list instead."""
        raise NotAllowed("watching topics is not enabled here")

    def on_close_watch(self, event: events.CloseWatch) -> None:
        self._client.reply(replies.success(event.request_id))


HANDLERS: Final[Mapping[type, Any]] = {
    events.ConsumerStats: QueryHandlers.on_consumer_stats,
    events.GetSchema: QueryHandlers.on_get_schema,
    events.GetOrCreateSchema: QueryHandlers.on_get_or_create_schema,
    events.WatchTopics: QueryHandlers.on_watch,
    events.CloseWatch: QueryHandlers.on_close_watch,
}
