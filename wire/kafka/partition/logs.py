"""The logs of Kafka's partitions, found by topic and number; each is a topic of core.

A topic without partitions has one partition in Kafka, number 0.

Invariant: a returned log is loaded, and was not being unloaded; after an await look it up again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

import trio

from magnetar.core.broker.broker import Broker
from magnetar.core.kernel.errors import NotReady, TopicNotFound
from magnetar.core.kernel.names import TopicName
from magnetar.core.ledger.fold.fold import Fold
from magnetar.core.ledger.log.managed_ledger import MIXED
from magnetar.core.ledger.read.index_lookup import IndexLookup
from magnetar.core.topic.persistent_topic import PersistentTopic
from magnetar.core.topic.restrictions import check_owns_log
from magnetar.wire.kafka.configs import ProduceRules, rules
from magnetar.wire.kafka.errors import UNKNOWN_TOPIC_ID, KafkaRefusal
from magnetar.wire.kafka.names import called, topic_of
from magnetar.wire.kafka.partition.producer_snapshots import ProducerImages, fold_of
from magnetar.wire.kafka.partition.producer_states import Census, ProducerStates

EPOCH: Final = 0
"""The leader epoch of every partition (KIP-101). An epoch tells clients whether a new leader has
truncated the log; ours never lose their end, so it stays the same.
"""
NAMES_MAX: Final = 50_000
"""Cached names of topics that clients name by id (KIP-516)."""


class PartitionLog:
    """One partition: a loaded topic with its offsets and its producers."""

    __slots__ = (
        "_bytes_max",
        "_closed",
        "_defaults",
        "_fold",
        "_forget",
        "_policies",
        "_rules",
        "_turn",
        "names",
        "places",
        "producers",
        "topic",
        "topic_id",
        "writable",
    )

    def __init__(
        self,
        topic: PersistentTopic,
        topic_id: bytes,
        defaults: Mapping[str, str],
        bytes_max: int,
        forget: Callable[[PartitionLog], None],
        census: Census,
    ) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.names: list[tuple[str, int]] = []
        """The names and numbers that clients have used for it."""
        self._defaults = defaults
        self._bytes_max = bytes_max
        self._forget = forget
        self._policies = topic.policies
        self._rules = rules(topic.policies, defaults, bytes_max)
        self.writable = False
        """The log is marked as mixed, durably, and its producers are loaded."""
        self.places = IndexLookup(topic.ledger)
        self.producers = ProducerStates(census)
        self._fold: Fold[ProducerImages] | None = None
        self._closed = False
        self._turn = trio.Lock()
        """Held while its fold opens or closes."""

    @property
    def start(self) -> int:
        """The log start offset: the lowest offset in the log, or its end if it is empty."""
        return self.topic.ledger.first_index

    @property
    def end(self) -> int:
        """The high watermark: the offset behind the last message that is stored."""
        return self.topic.ledger.confirmed_index

    @property
    def stable(self) -> int:
        """The last stable offset: below it every transaction has ended (KIP-98)."""
        return self.topic.ledger.transactions.stable_index(self.end)

    def rules(self) -> ProduceRules:
        """The present rules for batches of this topic."""
        if self._policies is not self.topic.policies:
            self._policies = self.topic.policies
            self._rules = rules(self._policies, self._defaults, self._bytes_max)
        return self._rules

    async def begin_writing(self) -> None:
        """Mark the log as mixed, so that entries are converted for Pulsar's consumers, and load the
        state of its producers.
        """
        check_owns_log(self.topic)
        async with self._turn:
            if self.writable:
                return
            if self._closed:
                raise NotReady(f"{self.topic.name} is being unloaded")
            if self._fold is None:
                self._fold = await self._loaded()
            if not self.topic.ledger.mixed:
                await self.topic.ledger.set_property(MIXED, "")
            self.writable = True

    async def _loaded(self) -> Fold[ProducerImages]:
        """Load the state of Kafka's producers, if any have written to the log."""
        fold = fold_of(self.topic.env.storage, self.topic.ledger, self.producers)
        try:
            if self.topic.ledger.mixed:
                await fold.load()
            else:
                await fold.begin(stored=False)
        except BaseException:
            self.producers.clear()  # the next try begins anew
            raise
        return fold

    async def closed(self) -> None:
        """The topic is unloaded: no write is under way, and none can begin."""
        self._forget(self)
        async with self._turn:
            self._closed = True
            try:
                if self._fold is not None:
                    await self._fold.close()
            finally:
                self.producers.clear()

    async def deleted(self) -> None:
        self._forget(self)
        async with self._turn:
            self._closed = True
            self.producers.clear()
            fold = self._fold or fold_of(self.topic.env.storage, self.topic.ledger, self.producers)
            await fold.delete()

    @contextmanager
    def watched(self, notify: Callable[[], None]) -> Iterator[None]:
        """Call `notify` whenever there is more to read."""
        self.topic.watch(notify)
        try:
            yield
        finally:
            self.topic.unwatch(notify)


class Logs:
    """See the module's docstring."""

    def __init__(self, broker: Broker, defaults: Mapping[str, str], bytes_max: int) -> None:
        self._broker = broker
        self._defaults = defaults
        self._bytes_max = bytes_max
        self._census = Census()
        self._known: dict[tuple[str, int], PartitionLog] = {}
        """Logs by the names that clients use; one log may have several."""
        self._of_topics: dict[PersistentTopic, PartitionLog] = {}
        self._names: dict[bytes, str] = {}
        """Names of topics by id. A name may belong to another topic by now: compare the id."""

    def at_once(self, name: str, partition: int) -> PartitionLog | None:
        """The log if it is loaded and in the cache, else None. Plain call."""
        found = self._known.get((name, partition))
        if found is None:
            return None
        if found.topic.fenced:
            del self._known[name, partition]
            return None
        return found

    def name_at_once(self, topic_id: bytes) -> str:
        """The cached name of the topic with that id; empty if it is not cached."""
        return self._names.get(topic_id, "")

    def by_id_at_once(self, topic_id: bytes, partition: int) -> PartitionLog | None:
        """As `at_once`, by the id of the topic. Plain call."""
        found = self.at_once(self.name_at_once(topic_id), partition)
        return found if found is not None and found.topic_id == topic_id else None

    async def name_of(self, topic_id: bytes) -> str:
        """The name of the topic with that id."""
        found = await self._broker.topic_ids.name_of(topic_id)
        if found is None:
            self._names.pop(topic_id, None)
            raise KafkaRefusal(UNKNOWN_TOPIC_ID, "no topic has this id")
        while len(self._names) >= NAMES_MAX:
            del self._names[next(iter(self._names))]
        name = self._names[topic_id] = called(found)
        return name

    async def get(self, name: str, partition: int) -> PartitionLog:
        """`TopicNotFound` if there is no such partition; nothing is created."""
        found = self.at_once(name, partition)
        if found is not None:
            return found
        base = topic_of(name)
        topic = (await self._broker.topic(await self._full(base, partition), create=False)).stored
        if topic is None:
            raise TopicNotFound(f"{name} is not persistent, so it has no offsets")
        topic_id = await self._broker.topic_ids.of(base)
        if topic.fenced:
            raise NotReady(f"{name} is being unloaded")
        found = self._of_topics.get(topic)
        if found is None:
            found = self._of_topics[topic] = PartitionLog(
                topic, topic_id, self._defaults, self._bytes_max, self._forget, self._census
            )
            topic.add_listener(found)
        if (name, partition) not in self._known:
            self._known[name, partition] = found
            found.names.append((name, partition))
        return found

    def _forget(self, log: PartitionLog) -> None:
        """Drop a log whose topic is unloaded or deleted."""
        self._of_topics.pop(log.topic, None)
        for name in log.names:
            if self._known.get(name) is log:
                del self._known[name]

    async def by_id(self, topic_id: bytes, partition: int) -> PartitionLog:
        """As `get`, by the id of the topic. If the topic was recreated, it has another id, and
        UNKNOWN_TOPIC_ID makes clients refresh their metadata (KIP-516).
        """
        found = self.by_id_at_once(topic_id, partition)
        if found is None:
            found = await self.get(await self.name_of(topic_id), partition)
            if found.topic_id != topic_id:
                raise KafkaRefusal(UNKNOWN_TOPIC_ID, "the topic with this id is gone")
        return found

    async def _full(self, base: TopicName, partition: int) -> TopicName:
        count = await self._broker.catalog.partitions(base)
        if not 0 <= partition < max(count, 1):
            raise TopicNotFound(f"{base} has no partition {partition}")
        return base.partition(partition) if count else base
