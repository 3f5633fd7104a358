"""What all MQTT connections share: logs, subscriptions, sessions, retained messages.

The packets' handlers use it (`session/`); `front.py` opens and runs it.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final
from urllib.parse import quote_plus

import trio

from magnetar.core.broker.broker import Broker
from magnetar.core.entry.forms import form_of
from magnetar.core.entry.mqtt import form
from magnetar.core.entry.mqtt import run as runs
from magnetar.core.kernel.completion import Completion
from magnetar.core.kernel.errors import BrokerError, Corrupted
from magnetar.core.kernel.names import NamespaceName, TopicName
from magnetar.core.ledger.log.chain import Position
from magnetar.core.security.identity import Identity
from magnetar.wire.mqtt.budget import MemoryBudget
from magnetar.wire.mqtt.clients.departures import Departures
from magnetar.wire.mqtt.clients.hold import SUBSCRIPTION, Hold
from magnetar.wire.mqtt.clients.keep_alive import KeepAlive
from magnetar.wire.mqtt.clients.new_logs import NewLogs
from magnetar.wire.mqtt.clients.record import StoredPlace, StoredWill
from magnetar.wire.mqtt.clients.rule_changes import RuleChanges
from magnetar.wire.mqtt.clients.sessions import ConnectedSession, Sessions
from magnetar.wire.mqtt.clients.shared_groups import SharedGroups
from magnetar.wire.mqtt.clients.statistics import MqttStatistics
from magnetar.wire.mqtt.clients.sys_topics import SysTopics
from magnetar.wire.mqtt.codec.publishes import TopicNames
from magnetar.wire.mqtt.delivery.feed import FeedReader, MessagePlace
from magnetar.wire.mqtt.delivery.logs import MqttLog, MqttLogs
from magnetar.wire.mqtt.delivery.matcher import Matcher
from magnetar.wire.mqtt.delivery.sent_messages import MessageSource
from magnetar.wire.mqtt.delivery.subscriber import Subscriber
from magnetar.wire.mqtt.mapping.rules import Rules
from magnetar.wire.mqtt.options import MqttOptions
from magnetar.wire.mqtt.rights.topic_rights import Asker, TopicRights
from magnetar.wire.mqtt.storage.keyed_log import KeyedLog
from magnetar.wire.mqtt.storage.retained import (
    RetainedMessage,
    RetainedMessages,
    RetainedWrite,
)
from magnetar.wire.mqtt.storage.stored_rules import StoredRules
from magnetar.wire.mqtt.topics import SHARE
from magnetar.wire.mqtt.traffic import Traffic

log = logging.getLogger(__name__)

SESSIONS: Final = TopicName.parse("persistent://pulsar/system/__mqtt_sessions")
GROUPS: Final = TopicName.parse("persistent://pulsar/system/__mqtt_groups")
RETAINED: Final = TopicName.parse("persistent://pulsar/system/__mqtt_retained")
SAVE_SECONDS: Final = 0.2
"""How long acknowledgements of QoS 1 may wait for storage, as for Pulsar's cursors."""
SAVES_PER_ROUND: Final = 500
"""Records that are stored in one round, of which there are five a second."""
PARTITIONS_SECONDS: Final = 10.0
"""How often the numbers of partitions are read again."""
READ_ENTRIES: Final = 1_000
READ_BYTES: Final = 1024 * 1024


class MqttServices:
    """See the module's docstring."""

    def __init__(self, broker: Broker, options: MqttOptions) -> None:
        self.broker = broker
        self.options = options
        self.traffic = Traffic()
        self.names = TopicNames()
        namespace = NamespaceName.parse(options.namespace)
        self.rights = TopicRights(broker.access, namespace, options.acl)
        self.alias_memory = MemoryBudget(options.aliases_bytes_max)
        """For topics to which clients have given an alias."""
        self.unreleased_memory = MemoryBudget(options.unreleased_bytes_max)
        """For identifiers of QoS 2 that clients have not released."""
        self.window_memory = MemoryBudget(options.windows_bytes_max)
        """For messages in flight to connected clients."""
        self.will_memory = MemoryBudget(options.wills_bytes_max)
        """For wills of connected clients."""
        rules = Rules(namespace, options.rules, confined=options.confined)
        suffix = f"-{quote_plus(options.namespace)}" if options.confined else ""
        self.matcher: Matcher[FeedReader] = Matcher()
        self.logs = MqttLogs(broker, rules, self.matcher, self._read_single)
        self.retained = RetainedMessages(
            broker,
            KeyedLog(broker, _named(RETAINED, suffix)),
            options.retained_bytes_max,
            options.retained_names_bytes_max,
        )
        self.sessions = Sessions(
            KeyedLog(broker, _named(SESSIONS, suffix)),
            broker.clock,
            self.publish_will,
            options.sleeping_bytes_max,
        )
        self.groups = SharedGroups(
            KeyedLog(broker, _named(GROUPS, suffix)),
            self.logs,
            self.matcher,
            broker.spawn,
            self._may_read,
        )
        self.sessions.ended = self.groups.ended
        self.departures = Departures(self.sessions, broker.spawn)
        self.hold = Hold(broker, self.sessions, self.groups, SUBSCRIPTION + suffix)
        self.new_logs = NewLogs(self.sessions, self.groups, self.logs, self.hold, self.matcher)
        self.rule_changes = RuleChanges(
            StoredRules(broker.metadata, rules.namespace), self.logs, self.new_logs, options.rules
        )
        self.keep_alive = KeepAlive(broker.clock)
        self.sys_topics = SysTopics(
            broker.clock, self.matcher, self.traffic, self.statistics, options
        )
        self.dirty_clients: list[ConnectedSession] = []
        """Clients whose records are to be stored soon."""

    # -- life ---------------------------------------------------------------------------------

    async def open(self) -> None:
        """Load sessions and retained messages."""
        await self.retained.open()
        await self.sessions.open(self.groups.replayed)
        await self.groups.open()
        await self.rule_changes.open()
        await self._warn_of_missing_namespaces()
        self.new_logs.watch(self.broker)

    async def _warn_of_missing_namespaces(self) -> None:
        for namespace in {name.namespace for name in self.logs.rules.funnels}:
            try:
                await self.broker.catalog.policies(namespace)
            except BrokerError as error:
                log.warning("publishes by the rules for %s are refused: %s", namespace, error)

    async def run(self) -> None:
        """Run the background work until cancelled."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.sessions.run)
            nursery.start_soon(self.keep_alive.run)
            nursery.start_soon(self.hold.run)
            nursery.start_soon(self.retained.run)
            nursery.start_soon(self._save_dirty_clients)
            nursery.start_soon(self._look_for_partitions)
            nursery.start_soon(self.sys_topics.run)

    async def _save_dirty_clients(self) -> None:
        while True:
            await trio.sleep(SAVE_SECONDS)
            self.save_dirty_clients()

    def save_dirty_clients(self) -> None:
        """Store the records of some clients that have changed."""
        dirty = self.dirty_clients[:SAVES_PER_ROUND]
        del self.dirty_clients[:SAVES_PER_ROUND]
        for client in dirty:
            client.save_if_dirty()
        self.groups.save_dirty()

    async def _look_for_partitions(self) -> None:
        """Have subscribers read new partitions of their topics."""
        are_new = False
        while True:
            await trio.sleep(PARTITIONS_SECONDS)
            try:
                are_new = await self.logs.look_for_partitions() or are_new
                if are_new:
                    await self.new_logs.read(whole=True)
                    are_new = False
            except BrokerError as error:
                log.warning("partitions of MQTT's topics are looked at again: %s", error)

    async def stop(self) -> None:
        """End all connections, and store their sessions."""
        await self.sessions.stop()
        await self.groups.stop()

    def statistics(self) -> MqttStatistics:
        return MqttStatistics(
            connected=len(self.sessions.connected),
            connected_max=self.sessions.connected_max,
            asleep=self.sessions.records.asleep,
            expired=self.sessions.expired,
            waiting=self.hold.waiting.messages,
            waiting_bytes=self.hold.waiting.bytes,
            session_bytes=self.sessions.records.bytes_in_memory,
            session_bytes_stored=self.sessions.records.bytes_stored,
            subscriptions=self.matcher.count,
            subscription_bytes=self.matcher.bytes + self.groups.bytes,
            shared_subscriptions=self.groups.count,
            retained=self.retained.count,
            retained_bytes=self.retained.bytes,
        )

    async def _read_single(self, log: MqttLog, topic: str) -> None:
        await self.new_logs.read_single(log, topic)

    # -- subscriptions ------------------------------------------------------------------------

    def join(
        self,
        subscriber: Subscriber,
        feeds: dict[str, list[MqttLog]],
        filter: str,
        logs: list[MqttLog],
        *,
        whole: bool = False,
    ) -> None:
        """Have a subscriber read the logs of a filter, besides those that it reads already; `feeds`
        are those of all its filters. `whole` has it read them from their beginning.
        """
        feeds[filter] = [*dict.fromkeys((*feeds.get(filter, ()), *logs))]
        for log in logs:
            if log.feed.is_read_by(subscriber):
                continue
            if whole:
                place = MessagePlace(log.feed.beginning, 0)
                log.feed.resume(subscriber)
                subscriber.lag(log.feed, place)
            else:
                log.feed.join(subscriber)
        if whole:
            subscriber.has_room()

    def leave(self, subscriber: Subscriber, feeds: dict[str, list[MqttLog]], filter: str) -> None:
        """Stop reading the logs that only this filter needs."""
        for log in feeds.pop(filter, []):
            if not any(log in each for each in feeds.values()):
                log.feed.leave(subscriber)
                subscriber.leave(log.feed)

    def unsubscribe_all(
        self, subscriber: Subscriber, feeds: Mapping[str, Sequence[MqttLog]]
    ) -> None:
        """The subscriber's connection is closed."""
        for filter in subscriber.subscriptions.by_filter:
            if not filter.startswith(SHARE):
                self.matcher.remove(subscriber, filter)
        for log in {log for each in feeds.values() for log in each}:
            log.feed.leave(subscriber)

    def _may_read(self, member: Subscriber, filter: str, names: Sequence[TopicName]) -> bool:
        """Whether a connected member of a shared subscription may read these topics; if not, its
        connection ends.
        """
        if not self.rights.generation:
            return True
        client = self.sessions.connected.get(member.client_id.decode())
        return client is not None and client.may_read(filter, names)

    async def source_named(self, name: str) -> MessageSource:
        """The source of messages in flight with that name."""
        if name == self.retained.full_name:
            return self.retained
        return (await self.logs.get(TopicName.parse(name))).feed

    # -- messages without a connection ----------------------------------------------------------

    def check_may_publish(self, asker: Asker, topic: str) -> None:
        """Raise `InvalidName` or `Unauthorized` unless a client may publish to an MQTT topic."""
        refusal = self.rights.publish_refusal(asker, topic, self.logs.rules.topic_for(topic))
        if refusal is not None:
            raise refusal

    async def publish_will(self, client_id: str, will: StoredWill) -> None:
        """Publish a will; stored when this returns. Rights may have changed since CONNECT."""
        method = "CONNECT" if will.host else ""  # a host is noted of who has authenticated
        asker = Asker(Identity(will.principal, will.roles, method), client_id, will.host)
        self.check_may_publish(asker, will.topic)
        log = await self.logs.open_for(will.topic)
        topic = log.topic
        assert topic is not None
        topic.check_producer()
        now_ms = self.broker.clock.wall_ms()
        stored = Completion[Position]()
        done = stored.done
        if will.retain:  # before others receive it, who may know from it that it is retained
            await self.retained.prepare()
            kept = Completion[Position]()
            message = RetainedMessage(
                client_id, will.topic, will.payload, will.qos, will.properties
            )
            write = self.retained.put(message, now_ms, kept.done)
            done = partial(self._will_logged, write, stored)
            await kept.result()
        first = runs.PUBLISH | will.qos << 1 | will.retain
        packet = runs.packet(first, will.topic.encode(), will.properties, will.payload)
        head = runs.head(log.publisher(client_id), has_properties=True)
        topic.publish([form.head(1, now_ms) + head + packet], [1], done)
        await stored.result()

    def _will_logged(
        self, write: RetainedWrite, stored: Completion[Position], result: Position | BrokerError
    ) -> None:
        self.retained.logged(write)
        stored.done(result)

    async def received_since(self, client_id: str, mark: StoredPlace) -> Sequence[int]:
        """Packet identifiers of a client's messages of QoS 2 in a log, from a mark on: those of
        which its record does not know (`session/publish.py`).
        """
        found: list[int] = []
        log = await self.logs.get(TopicName.parse(mark.log))
        topic, wanted = log.topic, log.publisher(client_id)
        assert topic is not None
        ledger = topic.ledger
        position = ledger.chain.normal((mark.ledger_id, mark.entry_id))
        while ledger.chain.has(position):
            part = await ledger.losses.read_round(position, READ_ENTRIES, READ_BYTES)
            for place in range(len(part.payloads)):
                found += _received(part.sent(place), wanted)
            behind = part.first_entry + len(part.payloads)
            position = ledger.chain.normal((part.ledger_id, behind))
        return found


def _named(topic: TopicName, suffix: str) -> TopicName:
    """The topic of a mount point that stands for one of the server's."""
    return TopicName.parse(topic.full + suffix)


def _received(sent: bytes, publisher: bytes) -> list[int]:
    """The packet identifiers of QoS 2 in an entry of that publisher."""
    if form_of(sent) is not form:
        return []
    try:
        run = form.run_of(sent)
        if run.client_id != publisher:
            return []
        return [runs.packet_id_of(run, packet) for packet in run if packet.qos == 2]
    except Corrupted:
        return []
