"""CONSUMER_STATS, and requests for features that this broker refuses or answers trivially."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from magnetar.core.kernel.dates import iso_date
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


HANDLERS: Final[Mapping[type, Any]] = {
    events.ConsumerStats: QueryHandlers.on_consumer_stats,
}
