"""`/admin/v2/proxy-stats`: the producers and consumers that are WebSockets, by topic.

Apache's WebSocket service has these paths (`WebSocketProxyStatsV2` of 4.2). A WebSocket is one
client there, whatever the partitions of its topic; here it attaches to each of them, so what one
connection has of a topic is counted together.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from starlette.exceptions import HTTPException

from magnetar.core.broker import administration
from magnetar.core.kernel.cooperation import Cooperative
from magnetar.core.topic.topic import Topic
from magnetar.wire.http.request import AdminRequest
from magnetar.wire.http.rights import Needs
from magnetar.wire.http.routes import NotHere, Table

CLIENT_VERSION: Final = "Pulsar-WebSocket"
"""As CONNECT of the Pulsar front's WebSockets states it."""
TOPICS_PER_REST: Final = 20


class TopicWebSockets:
    """The WebSockets of one topic, with all its partitions."""

    def __init__(self) -> None:
        self._producers: dict[str, int] = {}
        """Messages by address."""
        self._consumers: dict[tuple[str, str], dict[str, Any]] = {}
        """By address and subscription."""

    def add(self, topic: Topic) -> None:
        for producer in topic.producers.all():
            if producer.request.client_version == CLIENT_VERSION:
                address = producer.request.address
                self._producers[address] = self._producers.get(address, 0) + producer.messages_in
        for name, subscription in topic.subscriptions.items():
            for consumer in subscription.consumers:
                if consumer.request.client_version == CLIENT_VERSION:
                    shown = self._consumers.setdefault(
                        (consumer.request.address, name),
                        {
                            "remoteConnection": f"/{consumer.request.address}",
                            "subscriptionName": name,
                            "subscriptionType": subscription.kind,
                            "subscriptionMode": (
                                "Durable" if subscription.cursor.durable else "NonDurable"
                            ),
                            "numberOfMsgDelivered": 0,
                        },
                    )
                    shown["numberOfMsgDelivered"] += consumer.messages_out

    @property
    def any(self) -> bool:
        return bool(self._producers or self._consumers)

    def shown(self) -> dict[str, Any]:
        return {
            "producerStats": [
                {"remoteConnection": f"/{address}", "numberOfMsgPublished": count}
                for address, count in self._producers.items()
            ],
            "consumerStats": list(self._consumers.values()),
        }


async def _of(topics: Iterable[Topic]) -> dict[str, dict[str, Any]]:
    found: dict[str, TopicWebSockets] = {}
    async for topic in Cooperative(list(topics), TOPICS_PER_REST):
        found.setdefault(topic.name.base.full, TopicWebSockets()).add(topic)
    return {name: each.shown() for name, each in found.items() if each.any}


async def stats(request: AdminRequest) -> dict[str, dict[str, Any]]:
    """Of all topics that have any."""
    return await _of(request.broker.topics.values())


async def of_topic(request: AdminRequest) -> dict[str, Any]:
    """Of one topic, or of one partition; 404 if it has none, as there."""
    loaded = request.broker.topics
    names = [request.topic]
    if await request.partitioned():
        names = await administration.partitions_of(request.broker, request.topic)
    found = await _of(loaded[name.full] for name in names if name.full in loaded)
    if not found:
        raise HTTPException(404, "Topic does not exist")
    (only,) = found.values()
    return only


NO_METRICS: Final = NotHere("this server's metrics are at /metrics, in the form of Prometheus")
TABLE: Final[Table] = (
    ("GET", "/stats", stats, Needs.SUPERUSER),
    ("GET", "/metrics", NO_METRICS, Needs.SUPERUSER),
)
TOPICS: Final[Table] = (("GET", "/{tenant}/{namespace}/{topic}/stats", of_topic, Needs.TOPIC),)
