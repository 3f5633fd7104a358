"""The topics under `$SYS`: figures of the server, under mosquitto's names.

They are in memory only, with QoS 0 and as if retained. A new subscription gets all of them; then,
every `sys_interval` seconds, those that have changed. Wildcards of the first level do not match
them [MQTT-4.7.2-1], and clients cannot publish there.

`publish/bytes` is of whole packets, where mosquitto counts payloads. What is stored is retained
messages, and what sessions have not read yet, of the last round of `hold.py`. `messages/stored`,
`clients/active` and `clients/inactive` are older names that monitors still use.

Averages are mosquitto's: of each interval, weighted so that the last minute, 5 or 15 minutes count
for 63 %.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import trio

from magnetar.core.entry.mqtt.run import PUBLISH, RETAIN, StoredPublish
from magnetar.core.kernel.clock import Clock
from magnetar.wire.mqtt.clients.statistics import MqttStatistics
from magnetar.wire.mqtt.delivery.feed import FeedReader
from magnetar.wire.mqtt.delivery.matcher import Grant, Matcher, TopicSubscription
from magnetar.wire.mqtt.delivery.stored_messages import Messages
from magnetar.wire.mqtt.delivery.subscriber import Subscriber
from magnetar.wire.mqtt.options import MqttOptions
from magnetar.wire.mqtt.topics import is_sys, matches
from magnetar.wire.mqtt.traffic import Traffic

BROKER: Final = "$SYS/broker/"
AVERAGED: Final = {
    "load/messages/received": "packets_received",
    "load/messages/sent": "packets_sent",
    "load/bytes/received": "bytes_received",
    "load/bytes/sent": "bytes_sent",
    "load/publish/received": "publishes_received",
    "load/publish/sent": "publishes_sent",
    "load/publish/dropped": "publishes_dropped",
    "load/sockets": "connections",
    "load/connections": "connects",
}
"""Topics of averages a minute, and the counters that they follow."""
MINUTES: Final = (1, 5, 15)


class SysTopics:
    """See the module's docstring."""

    def __init__(
        self,
        clock: Clock,
        matcher: Matcher[FeedReader],
        traffic: Traffic,
        statistics: Callable[[], MqttStatistics],
        options: MqttOptions,
    ) -> None:
        self._clock = clock
        self._matcher = matcher
        self._traffic = traffic
        self._statistics = statistics
        self._version = options.version
        self._interval = options.sys_interval_seconds
        self._began = clock.monotonic()
        self._values: dict[str, bytes] = {}
        """What was published last, by topic."""
        self._counts = dict.fromkeys(AVERAGED, 0)
        self._averages = {(name, minutes): 0.0 for name in AVERAGED for minutes in MINUTES}

    async def run(self) -> None:
        """Publish again and again, unless the interval is 0."""
        while self._interval:
            self.publish()
            await trio.sleep(self._interval)

    # -- values -----------------------------------------------------------------------------------

    def _read(self) -> dict[str, bytes]:
        """All values as they are now."""
        traffic, now = self._traffic, self._statistics()
        figures: dict[str, object] = {
            "version": self._version,
            "uptime": f"{self._clock.monotonic() - self._began:.0f} seconds",
            "messages/received": traffic.packets_received,
            "messages/sent": traffic.packets_sent,
            "bytes/received": traffic.bytes_received,
            "bytes/sent": traffic.bytes_sent,
            "publish/messages/received": traffic.publishes_received,
            "publish/messages/sent": traffic.publishes_sent,
            "publish/messages/dropped": traffic.publishes_dropped,
            "publish/bytes/received": traffic.publish_bytes_received,
            "publish/bytes/sent": traffic.publish_bytes_sent,
            "messages/stored": now.retained + now.waiting,
            "store/messages/count": now.retained + now.waiting,
            "store/messages/bytes": now.retained_bytes + now.waiting_bytes,
            "clients/connected": now.connected,
            "clients/active": now.connected,
            "clients/disconnected": now.asleep,
            "clients/inactive": now.asleep,
            "clients/total": now.connected + now.asleep,
            "clients/maximum": now.connected_max,
            "clients/expired": now.expired,
            "subscriptions/count": now.subscriptions,
            "shared_subscriptions/count": now.shared_subscriptions,
            "retained messages/count": now.retained,
            "retained messages/bytes": now.retained_bytes,
        }
        for (name, minutes), average in self._averages.items():
            figures[f"{name}/{minutes}min"] = f"{average:.2f}"
        return {BROKER + name: str(value).encode() for name, value in figures.items()}

    def _average(self) -> None:
        """Advance the averages by one interval."""
        for name, counter in AVERAGED.items():
            count = getattr(self._traffic, counter)
            a_minute = (count - self._counts[name]) * 60 / self._interval
            self._counts[name] = count
            for minutes in MINUTES:
                kept = math.exp(-self._interval / (60 * minutes))
                before = self._averages[name, minutes]
                self._averages[name, minutes] = a_minute + kept * (before - a_minute)

    # -- messages ---------------------------------------------------------------------------------

    def publish(self) -> None:
        """Send what has changed since the last time."""
        self._average()
        values = self._read()
        touched: dict[FeedReader, None] = {}
        for topic, value in values.items():
            if value == self._values.get(topic):
                continue
            messages, packet = self._message(topic, value)
            for match in self._matcher.targets(packet.topic):
                match.subscriber.send_unconfirmed(messages, packet, match.others)
                touched[match.subscriber] = None
        self._values = values
        for reader in touched:
            reader.flush()

    def replay(self, subscriber: Subscriber, subscription: TopicSubscription) -> None:
        """Send all values, as they are now, that a new subscription matches."""
        if not (self._interval and is_sys(subscription.filter)):
            return
        identifiers = (subscription.identifier,) if subscription.identifier else ()
        grant = Grant(0, True, identifiers)  # RETAIN is 1
        for topic, value in self._read().items():
            if matches(subscription.filter, topic):
                subscriber.send_unconfirmed(*self._message(topic, value), grant)
        subscriber.flush()

    def _message(self, topic: str, value: bytes) -> tuple[Messages, StoredPublish]:
        packet = StoredPublish(0, PUBLISH | RETAIN, topic.encode(), b"", value, 0, 0)
        return Messages(b"", self._clock.wall_ms(), (packet,)), packet
