"""Has all sessions read logs that have become sources of their subscriptions.

Rules change, and topics get partitions. From then on messages are stored in logs in which sessions
have no place yet. So before the first one is, every session gets a place there: connected clients
and shared subscriptions read on from it, and records of sessions that sleep are stored with it.

    at the end      of a log that other topics were stored in before (rules)
    the beginning   of a log that is new (partitions)

Invariant: when `read` returns, no session misses a message that is stored in such a log later.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from typing import Final

import trio
from msgspec.structs import replace

from magnetar.core.broker.broker import Broker
from magnetar.core.kernel.cooperation import Cooperative
from magnetar.core.kernel.errors import BrokerError
from magnetar.core.kernel.names import TopicName
from magnetar.wire.mqtt import topics
from magnetar.wire.mqtt.clients.hold import Hold
from magnetar.wire.mqtt.clients.record import SessionRecord, StoredPlace
from magnetar.wire.mqtt.clients.sessions import Sessions
from magnetar.wire.mqtt.clients.shared_groups import SharedGroups
from magnetar.wire.mqtt.delivery.feed import FeedReader
from magnetar.wire.mqtt.delivery.logs import MqttLog, MqttLogs
from magnetar.wire.mqtt.delivery.matcher import Matcher
from magnetar.wire.mqtt.delivery.shared_group import SharedGroup
from magnetar.wire.mqtt.mapping.names import mqtt_topic
from magnetar.wire.mqtt.matching.name_tree import NameTree

log = logging.getLogger(__name__)

AT_ONCE: Final = 20
"""Sessions that get places, and are stored, together."""


class NewLogs:
    """See the module's docstring."""

    def __init__(
        self,
        sessions: Sessions,
        groups: SharedGroups,
        logs: MqttLogs,
        hold: Hold,
        matcher: Matcher[FeedReader],
    ) -> None:
        self._sessions = sessions
        self._groups = groups
        self._logs = logs
        self._hold = hold
        self._matcher = matcher
        self._singles: NameTree[TopicName] = NameTree()
        """Topics that store one MQTT topic each, by that."""

    async def read(self, *, whole: bool) -> None:
        """Read them from their beginning, or else from now on; those of single MQTT topics from
        their beginning, for they are newer than a subscription that does not read them. Raises the
        first error.
        """
        self._singles = await self._logs.singles()
        async with aclosing(self._batches()) as batches:
            async for names in batches:
                await self._all_read(names, whole=whole)
        for log in await self._groups.read_new_logs(whole=whole):
            await self._hold.keep(log, whole=whole or self._logs.is_single(log))

    async def _batches(self) -> AsyncGenerator[Sequence[str], None]:
        """The client ids of connected sessions, of those that are falling asleep, and of sleeping
        ones that miss a log.
        """
        names = [*self._sessions.connected, *self._sessions.records.falling_asleep()]
        for start in range(0, len(names), AT_ONCE):
            yield names[start : start + AT_ONCE]
        batch: list[str] = []
        async with aclosing(self._sessions.records.sleeping()) as sleeping:
            async for client_id, record in sleeping:
                if self._misses(record):
                    batch.append(client_id)
                if len(batch) == AT_ONCE:
                    yield batch
                    batch = []
        yield batch

    def watch(self, broker: Broker) -> None:
        """Notice topics that clients of other protocols create, for subscriptions with wildcards.
        Plain call for every change of a topic's record.
        """
        prefix = self._logs.rules.namespace.managed_ledgers

        def changed(path: str) -> None:
            if not self._logs.rules.has_each:
                return
            name = path.removeprefix(f"{prefix}/")
            if path == prefix:  # anything below may have changed: the port joins reports
                broker.spawn(self._notice_all, prefix, broker)
            elif name != path and "/" not in name:
                self._notice(name, broker)

        broker.metadata.watch(prefix, changed)

    async def _notice_all(self, prefix: str, broker: Broker) -> None:
        try:
            found = await broker.metadata.children(prefix)
        except BrokerError as error:
            log.warning("new topics are not read by MQTT's subscribers yet: %s", error)
            return
        async for name in Cooperative(found):
            self._notice(name, broker)

    def _notice(self, ledger: str, broker: Broker) -> None:
        """Have subscriptions read a topic that is not open yet, if there are some."""
        rules = self._logs.rules
        name = TopicName.of_managed_ledger(f"{rules.namespace}/persistent/{ledger}")
        if self._logs.find(name.full) is not None or not rules.is_single(name.base):
            return
        topic = mqtt_topic(name.base, rules.namespace)
        if topic is not None and self._matcher.targets(topic.encode()):
            broker.spawn(self._read_noticed, name, topic)

    async def _read_noticed(self, name: TopicName, topic: str) -> None:
        try:
            await self.read_single(await self._logs.get(name), topic)
        except BrokerError as error:
            log.warning("%s: not read by MQTT's subscribers: %s", name, error)

    async def read_single(self, log: MqttLog, topic: str) -> None:
        """Have connected clients, and shared subscriptions with members, read the log of one MQTT
        topic, which is new: their subscriptions with wildcards are older.
        """
        for match in self._matcher.targets(topic.encode()):
            reader = match.subscriber
            if isinstance(reader, SharedGroup):
                if not self._logs.may_serve(log, reader.filter):
                    continue
                self._groups.read(reader, (log,), whole=(log.name.full,))
                await self._hold.keep(log, whole=True)
                continue
            client = self._sessions.connected.get(reader.client_id.decode())
            if client is not None:
                await client.read_single(log, topic)

    def _misses(self, record: SessionRecord) -> bool:
        """Whether a session has no place in a log of its filters. Plain call, for it is asked of
        all sessions, of which a change concerns few.
        """
        known = {one.log for one in record.places if one.entry_id >= 0}
        return any(
            not self._logs.are_known(filter, known)
            or any(not self._logs.is_known(base, known) for base in self._singles_of(filter))
            for filter, _ in _filters(record)
        )

    def _singles_of(self, filter: str) -> Iterator[TopicName]:
        for found in self._singles.match(filter):
            if found is not None:  # else it is a step of the search
                yield found[1]

    async def _all_read(self, names: Sequence[str], *, whole: bool) -> None:
        errors: list[BrokerError] = []

        async def read(client_id: str) -> None:
            try:
                await self._read(client_id, whole=whole)
            except BrokerError as error:
                errors.append(error)

        async with trio.open_nursery() as nursery:
            for client_id in names:
                nursery.start_soon(read, client_id)
        if errors:
            raise errors[0]

    async def _read(self, client_id: str, *, whole: bool) -> None:
        async with self._sessions.turn_of(client_id):
            client = self._sessions.connected.get(client_id)
            if client is not None:
                await client.read_new_logs(whole=whole)
                return
            record = await self._sessions.records.read(client_id)
            added = [] if record is None else await self._places(record, whole=whole)
            if record is not None and added:
                record = replace(record, places=(*record.places, *added))
                await self._sessions.records.sleep(client_id, record)

    async def _places(self, record: SessionRecord, *, whole: bool) -> list[StoredPlace]:
        """The places of a session that sleeps in logs that it does not read yet."""
        known = {one.log for one in record.places if one.entry_id >= 0}
        found: dict[str, StoredPlace] = {}
        for filter, qos in _filters(record):
            logs = await self._logs.funnels_of(filter, is_granted=True)
            for base in list(self._singles_of(filter)):
                logs += await self._logs.open_all(base)
            for log in logs:
                if log.name.full in known:
                    continue
                begins = whole or self._logs.is_single(log)
                if qos:
                    await self._hold.keep(log, whole=begins)
                position = log.feed.beginning if begins else log.feed.end
                found.setdefault(log.name.full, StoredPlace(log.name.full, *position, 0))
        return list(found.values())


def _filters(record: SessionRecord) -> Iterator[tuple[str, int]]:
    """The filters of a session that are not shared, with their QoS."""
    for one in record.subscriptions:
        if not one.filter.startswith(topics.SHARE):
            yield one.filter, one.qos
