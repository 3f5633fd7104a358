"""A stored session in memory again, for a client that connects.

    load       subscriptions, unreleased QoS 2 identifiers, the logs that it reads, and from where:
               awaits, so the client takes part in nothing yet
    restore    places and messages in flight go to the subscriber, which joins its feeds and groups:
               a plain call, so that nothing is published between

Invariant: a log, or a topic, that is gone costs the session what it had there, and no more: else it
would never connect again.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from magnetar.core.ledger.log.chain import START
from magnetar.wire.mqtt import topics
from magnetar.wire.mqtt.delivery.feed import Feed, MessagePlace
from magnetar.wire.mqtt.delivery.matcher import TopicSubscription, weight
from magnetar.wire.mqtt.delivery.partitions import ABSENT
from magnetar.wire.mqtt.delivery.sent_messages import MessageSource, Resumed, Sent
from magnetar.wire.mqtt.errors import ConnectRefused
from magnetar.wire.mqtt.reason_codes import ReasonCode
from magnetar.wire.mqtt.session.client import FORMER, ConnectedClient

if TYPE_CHECKING:
    from magnetar.wire.mqtt.clients.record import SessionRecord
    from magnetar.wire.mqtt.delivery.logs import MqttLog
    from magnetar.wire.mqtt.services import MqttServices

log = logging.getLogger(__name__)


class Resumption:
    """See the module's docstring."""

    def __init__(
        self, services: MqttServices, client: ConnectedClient, record: SessionRecord
    ) -> None:
        self._services = services
        self._client = client
        self._record = record
        self._places: dict[Feed, MessagePlace] = {}
        """Where to read on."""
        self._in_flight: list[Resumed] = []
        self._shared: list[tuple[TopicSubscription, Sequence[MqttLog]]] = []
        """Shared subscriptions, and their logs."""

    async def load(self) -> None:
        """Raises `ConnectRefused` if there is no memory for the session."""
        client, record = self._client, self._record
        self._subscribe()
        self._resume_received(record.received)
        logs = await self._logs()
        sources = [await self._source_named(one.log, logs) for one in record.places]
        self._places = {
            source: MessagePlace((one.ledger_id, one.entry_id), one.place)
            for source, one in zip(sources, record.places, strict=True)
            if isinstance(source, Feed)
        }
        await self._also_read(logs)
        self._in_flight = [
            Resumed(
                one.packet_id,
                Sent(source, MessagePlace((one.ledger_id, one.entry_id), one.place)),
                one.qos,
                one.released,
            )
            for one in record.in_flight
            if (source := sources[one.log]) is not None
        ]
        if record.crashed:
            for mark in record.marks:
                with _skipped(mark.log):
                    later = await self._services.received_since(client.client_id, mark)
                    self._resume_received(later)

    def _subscribe(self) -> None:
        """Restore subscriptions, if there is memory for them."""
        services, client, record = self._services, self._client, self._record
        size = sum(weight(one.filter) for one in record.subscriptions)
        if size and not self._has_room_for(size):
            raise ConnectRefused(ReasonCode.QUOTA_EXCEEDED, "no memory for its subscriptions")
        for one in record.subscriptions:
            subscription = TopicSubscription(
                one.filter, one.qos, one.no_local, one.retain_as_published, one.identifier
            )
            client.subscriber.subscriptions.add(subscription)
            if not one.filter.startswith(topics.SHARE):
                services.matcher.add(client.subscriber, subscription)

    def _has_room_for(self, size: int) -> bool:
        """Whether there is memory for subscriptions of that size."""
        taken = self._services.matcher.bytes + self._services.groups.bytes
        return taken + size <= self._services.options.subscriptions_bytes_max

    def _resume_received(self, numbers: Sequence[int]) -> None:
        if not self._client.publisher.unreleased.resume(numbers):
            raise ConnectRefused(ReasonCode.QUOTA_EXCEEDED, "no memory for unreleased messages")

    async def _logs(self) -> dict[str, MqttLog]:
        """Find the logs of all filters; returns those of filters that are not shared, by full
        name.
        """
        services, client = self._services, self._client
        logs: dict[str, MqttLog] = {}
        for filter, subscription in client.subscriber.subscriptions.by_filter.items():
            if filter.startswith(topics.SHARE):
                found = await services.groups.logs_of(filter, is_granted=True)
                self._shared.append((subscription, found))
                continue
            found = await services.logs.sources_of(filter, is_granted=True)
            client.feeds[filter] = found
            logs.update((log.name.full, log) for log in found)
        return logs

    async def _source_named(self, name: str, logs: Mapping[str, MqttLog]) -> MessageSource | None:
        """Where messages of a record are stored; None if that is gone."""
        if name in logs:
            return logs[name].feed
        with _skipped(name):
            return await self._services.source_named(name)
        return None

    async def _also_read(self, logs: Mapping[str, MqttLog]) -> None:
        """Read on in logs of former rules, as far as there are messages, and logs without a place
        from their beginning: they are newer than the session's last connection.
        """
        client, record = self._client, self._record
        for one in record.places:
            former = None if one.log in logs else self._services.logs.find(one.log)
            position = (one.ledger_id, one.entry_id)
            if former is None or not START < position < former.feed.end:
                continue
            filters = [each.filter for each in record.subscriptions]
            if all(client.read_refusal(each, [former.name]) is None for each in filters):
                client.feeds.setdefault(FORMER, []).append(former)
        keeps = any(one.qos for one in record.subscriptions)
        for each in logs.values():
            if each.feed not in self._places:
                self._places[each.feed] = MessagePlace(each.feed.beginning, 0)
                if keeps:
                    await self._services.hold.keep(each, whole=True)

    def restore(self) -> None:
        """Give the subscriber its places and messages in flight, and join its feeds and groups."""
        client, places, found = self._client, self._places, self._record
        client.logs_changed()
        read = {log.feed: None for logs in client.feeds.values() for log in logs}
        for feed in read:
            if feed in places:
                feed.resume(client.subscriber)
            else:
                feed.join(client.subscriber)
        lagging = {feed: place for feed, place in places.items() if feed in read}
        doubts = {feed: feed.begun for feed in lagging}
        if not found.crashed:
            stored = {one.log: (one.ledger_id, one.entry_id) for one in found.doubts}
            doubts = {one: stored[one.full_name] for one in lagging if one.full_name in stored}
        client.subscriber.restore(lagging, self._in_flight, doubts)
        for subscription, logs in self._shared:
            self._services.groups.enter(client.client_id, client.subscriber, subscription, logs)


@contextmanager
def _skipped(name: str) -> Iterator[None]:
    """Resume a session without a log that is not there: it would never connect again."""
    try:
        yield
    except ABSENT as error:
        log.warning("a session is resumed without %s: %s", name, error)
