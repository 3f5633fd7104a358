"""The topics of core in which MQTT's messages are stored, each with its feed.

    closed   its topic is not loaded
    open     loaded: messages can be published, and its feed reads
    marked   the log is durably marked as mixed, so that entries are converted for others

A log stays here as long as its topic is loaded or somebody reads it. If a topic is unloaded that is
being read, it is loaded again at once.

If the topic of a rule has partitions, the CRC-32 of the MQTT topic selects one: the messages of an
MQTT topic stay in order, and librdkafka's default partitioner would select the same one
(`consistent_random`, `rd_kafka_msg_partitioner_consistent` of 2.x).

A topic that this creates is not deleted for being unused, like those that Kafka's clients create.

While the rules change, subscribers read the logs of the old and the new ones, and publishers use
the old ones (`clients/rule_changes.py`).

Invariant: `for_topic` returns only logs that are marked, and whose topic is not being unloaded.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Container
from functools import partial
from typing import Final
from zlib import crc32

import trio

from magnetar.core.broker.attachment import attach
from magnetar.core.broker.broker import Broker
from magnetar.core.broker.topic_list import topics_of
from magnetar.core.kernel.cooperation import Cooperative, KeyedLocks
from magnetar.core.kernel.errors import BrokerError, InvalidName, NotAllowed, NotReady
from magnetar.core.kernel.names import TopicName
from magnetar.core.ledger.log.managed_ledger import MIXED
from magnetar.core.policy.policies import TopicPolicies
from magnetar.core.policy.values import InactiveTopics
from magnetar.core.topic.persistent_topic import PersistentTopic
from magnetar.core.topic.topic import Topic
from magnetar.wire.mqtt.delivery.feed import RETRY_SECONDS, Feed, FeedReader
from magnetar.wire.mqtt.delivery.matcher import Matcher
from magnetar.wire.mqtt.delivery.partitions import ABSENT, PartitionCounts, names_of
from magnetar.wire.mqtt.delivery.stored_messages import TopicOf
from magnetar.wire.mqtt.mapping import names
from magnetar.wire.mqtt.mapping.rules import Rules
from magnetar.wire.mqtt.matching.name_tree import NameTree
from magnetar.wire.mqtt.topics import CACHED_BYTES_MAX, is_name, is_sys, matches

log = logging.getLogger(__name__)

RETRY_SECONDS_MAX: Final = 30.0
PLACES_MAX: Final = 16_384
"""MQTT topics in the cache of their logs."""


class MqttLog:
    """One topic of core. See the module's docstring."""

    def __init__(
        self, name: TopicName, feed: Feed, ended: Callable[[MqttLog], Awaitable[None]]
    ) -> None:
        self.name = name
        self.feed = feed
        self.topic: PersistentTopic | None = None
        """None while it is not loaded."""
        self._ended = ended

    def publisher(self, client_id: str) -> bytes:
        """A client as the publisher of runs in this log."""
        return names.publisher(self.feed.publisher_prefix, client_id)

    async def open(self, topic: PersistentTopic) -> None:
        """The topic is loaded; mark its log before the first entry."""
        if not topic.ledger.mixed and topic.source is None:
            await topic.ledger.set_property(MIXED, "")
        if topic.fenced:
            raise NotReady(f"{self.name} is being unloaded")
        if self.topic is not topic:
            self.topic = topic
            topic.add_listener(self)
            self.feed.attach(topic)

    async def closed(self) -> None:
        """The topic is unloaded."""
        self.topic = None
        self.feed.detach()
        await self._ended(self)

    async def deleted(self) -> None:
        await self.closed()


FoundSingle = Callable[[MqttLog, str], Awaitable[None]]


class MqttLogs:
    """See the module's docstring."""

    def __init__(
        self,
        broker: Broker,
        rules: Rules,
        matcher: Matcher[FeedReader],
        found_single: FoundSingle,
    ) -> None:
        """`found_single` is called with the log that stores one MQTT topic, and that topic, when it
        is opened first: subscriptions with wildcards may be older.
        """
        self.rules = rules
        """Those by which messages are stored."""
        self._read_by: tuple[Rules, ...] = (rules,)
        """Those by which subscribers read."""
        self._found_single = found_single
        self.generation = 0
        """The number of changes in what subscribers read."""
        self._broker = broker
        self._matcher = matcher
        self._known: dict[str, MqttLog] = {}
        self._opening: KeyedLocks[str] = KeyedLocks()
        self._partitions = PartitionCounts(broker)
        self._places: dict[str, MqttLog] = {}
        """A cache of the logs of MQTT topics."""

    # -- a change of the rules --------------------------------------------------------------------

    def begin_change(self, new: Rules) -> None:
        """Have new subscriptions read the logs of these rules, too."""
        self._read_by = (self.rules, new)
        self.generation += 1

    def begin_change_from(self, old: Rules) -> None:
        """Have new subscriptions read the logs of these former rules, too."""
        self._read_by = (old, self.rules)
        self.generation += 1

    def switch(self, new: Rules) -> None:
        """Store by these rules from now on."""
        self.rules = new
        self._places.clear()
        for known in self._known.values():
            known.feed.map_by(self._topics_of(known.name.base))

    def end_change(self) -> None:
        """Have new subscriptions read by the present rules only."""
        self._read_by = (self.rules,)
        self.generation += 1

    # -- for publishers ---------------------------------------------------------------------------

    def for_topic(self, topic: str) -> MqttLog | None:
        """The log of an MQTT topic, if it can be written now, else None. Plain call."""
        found = self._places.get(topic)
        if found is None:
            found = self._place_at_once(topic)
        if found is None or found.topic is None or found.topic.fenced:
            return None
        return found

    def _place_at_once(self, topic: str) -> MqttLog | None:
        """Find the log of an MQTT topic that is not in the cache; None if it is not open."""
        try:
            base = self.rules.topic_for(topic)
        except InvalidName:
            return None  # `open_for` reports it
        count = self._partitions.known(base)
        if count is None:
            return None
        found = self._known.get(_partition(base, topic, count).full)
        if found is not None:
            self._keep_place(topic, found)
        return found

    def _keep_place(self, topic: str, found: MqttLog) -> None:
        if len(topic) > CACHED_BYTES_MAX:
            return
        if len(self._places) >= PLACES_MAX:
            self._places.clear()
        self._places[topic] = found

    async def open_for(self, topic: str) -> MqttLog:
        """The log of an MQTT topic, loaded or created; `InvalidName` if it can have none."""
        while True:
            rules = self.rules
            base = rules.topic_for(topic)
            name = _partition(base, topic, await self._partitions.count(base))
            is_new = name.full not in self._known
            found = await self.get(name)
            if is_new and not rules.is_funnel(base):
                await self._found_single(found, topic)
            if self.rules is rules:  # else they have changed meanwhile
                self._keep_place(topic, found)
                return found

    # -- for subscribers --------------------------------------------------------------------------

    async def sources_of(self, filter: str, *, is_granted: bool = False) -> list[MqttLog]:
        """The logs that may have messages for a filter, which is not shared. Of a subscription that
        is granted already, topics that are not there are left out, and read once they are.
        """
        found = dict.fromkeys(await self.funnels_of(filter, is_granted=is_granted))
        if not is_name(filter) and any(rules.sources(filter).each for rules in self._read_by):
            for base in await self._single_topics(filter):
                found |= dict.fromkeys(await self._opened(filter, base, is_granted))
        return list(found)

    async def funnels_of(self, filter: str, *, is_granted: bool = False) -> list[MqttLog]:
        """The same without topics of their own that only a search by name finds."""
        found: dict[MqttLog, None] = {}
        for rules in self._read_by:
            sources = rules.sources(filter)
            bases = list(sources.funnels)
            if sources.each and is_name(filter):
                bases.append(names.topic_name(filter, rules.namespace))
            for base in bases:
                found |= dict.fromkeys(await self._opened(filter, base, is_granted))
        return list(found)

    async def _opened(self, filter: str, base: TopicName, is_granted: bool) -> list[MqttLog]:
        try:
            return await self.open_all(base)
        except ABSENT as error:
            if not is_granted:
                raise
            if self._partitions.miss(base):
                log.warning("the subscription %s gets nothing of %s: %s", filter, base, error)
            return []

    def are_known(self, filter: str, full: Container[str]) -> bool:
        """Whether the topics that `funnels_of` finds are among these, by their full names. Plain
        call; False if their partitions have to be counted first.
        """
        for rules in self._read_by:
            sources = rules.sources(filter)
            if not all(self.is_known(base, full) for base in sources.funnels):
                return False
            if sources.each and is_name(filter):
                base = names.topic_name(filter, rules.namespace)
                if not self.is_known(base, full):
                    return False
        return True

    def is_known(self, base: TopicName, full: Container[str]) -> bool:
        """The same for one topic, or all its partitions."""
        count = self._partitions.known(base)
        if count is None:  # a topic that is there without partitions never gets some
            return self.rules.is_single(base) and base.full in full
        return all(part.full in full for part in names_of(base, count))

    async def singles(self) -> NameTree[TopicName]:
        """All topics that store one MQTT topic each, by that; before a change, if there is one."""
        found: NameTree[TopicName] = NameTree()
        rules = self._read_by[0]
        if rules.has_each:
            async for full in Cooperative(await topics_of(self._broker, rules.namespace)):
                base = TopicName.parse(full).base
                own = names.mqtt_topic(base, rules.namespace)
                if own is not None and rules.is_single(base):
                    found.set(own, base)
        return found

    def is_single(self, log: MqttLog) -> bool:
        """Whether a log is one of those. A subscription that does not read it is older."""
        return self._read_by[0].is_single(log.name.base)

    def may_serve(self, log: MqttLog, filter: str) -> bool:
        """Whether a filter is about the namespace of a log that stores one MQTT topic: without the
        name of a namespace, it is about that of the listener.
        """
        return names.namespace_of(filter, self.rules.namespace) == log.name.namespace

    async def _single_topics(self, filter: str) -> list[TopicName]:
        """The topics with names of their own that a filter matches."""
        namespace = names.namespace_of(filter, self.rules.namespace)
        bases: dict[TopicName, None] = {}
        for full in await topics_of(self._broker, namespace):
            base = TopicName.parse(full).base
            own = names.mqtt_topic(base, self.rules.namespace)
            single = base.persistent and not self.rules.is_funnel(base)
            if single and own is not None and matches(filter, own):
                bases[base] = None
        return list(bases)

    async def open_all(self, base: TopicName) -> list[MqttLog]:
        """The logs of a topic's partitions, or its only one."""
        return [await self.get(one) for one in names_of(base, await self._partitions.count(base))]

    # -- all of them ------------------------------------------------------------------------------

    async def look_for_partitions(self) -> bool:
        """Look for new partitions, and topics that are back; returns whether there are some."""
        changed = await self._partitions.look()
        if changed:
            self._places.clear()
        return changed

    async def get(self, name: TopicName) -> MqttLog:
        """The log of a topic without partitions or of a partition, loaded or created."""
        known = self._known.get(name.full)
        if known is not None and known.topic is not None and not known.topic.fenced:
            return known  # without the lock, which a thousand SUBSCRIBEs would hand on one by one
        async with self._opening.at(name.full):
            found = self._known.get(name.full) or self._made(name)
            if found.topic is None or found.topic.fenced:
                await self._keep_if_new(name)
                # an MQTT topic may end in `-partition-3`
                await attach(self._broker, name, partial(self._take, found), any_name=True)
            return found

    def find(self, full: str) -> MqttLog | None:
        """The log of that full name, if it is known."""
        return self._known.get(full)

    async def _keep_if_new(self, name: TopicName) -> None:
        """Store that the topic is not deleted for being unused, before it exists."""
        catalog = self._broker.catalog
        if name.partitioned or await self._broker.exists(name):
            return
        async with catalog.changing(name.namespace):
            await catalog.policies(name.namespace)
            if await catalog.topic_policies(name) == TopicPolicies():
                kept = TopicPolicies(inactive_topics=InactiveTopics(delete_while_inactive=False))
                await catalog.set_topic_policies(name, kept)

    def _made(self, name: TopicName) -> MqttLog:
        base = name.base
        prefix = names.publisher_prefix(name, self.rules.namespace)
        feed = Feed(name, self._matcher, self._topics_of(base), self._broker.spawn, prefix)
        return MqttLog(name, feed, self._closed)

    async def _take(self, found: MqttLog, topic: Topic) -> None:
        if topic.stored is None:
            raise NotAllowed(f"{topic.name} keeps nothing: MQTT's messages are stored")
        await found.open(topic.stored)
        self._known[found.name.full] = found

    async def _closed(self, closed: MqttLog) -> None:
        """A topic is unloaded or deleted: load it again if it is read, else forget it."""
        if closed.feed.is_read:
            self._broker.spawn(self._reopen, closed)
        else:
            self._forget(closed)

    def _forget(self, closed: MqttLog) -> None:
        """Nobody needs a log, whose topic is not loaded."""
        if self._known.get(closed.name.full) is not closed:
            return
        del self._known[closed.name.full]
        self._places.clear()
        base = closed.name.base
        parts = names_of(base, self._partitions.known(base) or 0)
        if not any(part.full in self._known for part in parts):
            self._partitions.forget(base)

    async def _reopen(self, closed: MqttLog) -> None:
        wait = RETRY_SECONDS
        while closed.feed.is_read and closed.topic is None:
            try:
                await self.get(closed.name)
            except BrokerError as error:
                log.info("%s: not read by MQTT's subscribers: %s", closed.name, error)
                await trio.sleep(wait)
                wait = min(2 * wait, RETRY_SECONDS_MAX)
        if closed.topic is None:
            self._forget(closed)

    # -- names --------------------------------------------------------------------------------

    def _mqtt_name(self, name: TopicName) -> bytes | None:
        """The MQTT topic that stands for a log: its full name, unless rules store a shorter one
        there.
        """
        found = names.mqtt_topic(name, self.rules.namespace)
        if found is not None and is_sys(found):
            return None
        if found is not None and self.rules.topic_for(found) != name:
            found = names.full_topic(name)
        return found.encode() if found is not None and is_name(found) else None

    def _topics_of(self, base: TopicName) -> TopicOf:
        """How the MQTT topics of other protocols' messages in a topic are found."""
        return partial(self._topic_of, self._mqtt_name(base), self.rules.has_keys(base))

    @staticmethod
    def _topic_of(own: bytes | None, is_funnel: bool, key: bytes | None) -> bytes | None:
        """The MQTT topic of a message of another protocol: its key in a funnel, if that is a
        valid topic name; otherwise the name of the log.
        """
        if not is_funnel or not key:
            return own
        try:
            topic = key.decode()
        except UnicodeDecodeError:
            return own
        return key if is_name(topic) and "\0" not in topic and not is_sys(topic) else own


def _partition(base: TopicName, topic: str, count: int) -> TopicName:
    """The partition of an MQTT topic, or the topic itself if it has none."""
    return base.partition(crc32(topic.encode()) % count) if count else base
