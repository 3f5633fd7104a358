"""Partitions as Kafka sees them: a topic of ours each, found by name and number.

A topic of ours without partitions has one, itself.

Invariant: a log that is returned is loaded and not on its way out; whoever waits in between asks
again.
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
from magnetar.wire.kafka.configs import ProduceRules, rules
from magnetar.wire.kafka.errors import UNKNOWN_TOPIC_ID, KafkaRefusal
from magnetar.wire.kafka.names import called, topic_of
from magnetar.wire.kafka.partition.producer_snapshots import ProducerImages, fold_of
from magnetar.wire.kafka.partition.producer_states import Census, ProducerStates

EPOCH: Final = 0
"""Of every leader: logs never lose their end, so there is nothing to tell epochs apart by."""
NAMES_MAX: Final = 50_000
"""Of topics that clients name by their ids."""


class PartitionLog:
    """One partition: a loaded topic, and what readers by offset want to know of it."""

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
        """By which clients know it."""
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
        """While its fold begins or ends."""

    @property
    def start(self) -> int:
        """The lowest offset that is still there, or the end if nothing is."""
        return self.topic.ledger.first_index

    @property
    def end(self) -> int:
        """The offset that the next message gets, as far as readers are concerned."""
        return self.topic.ledger.confirmed_index

    @property
    def stable(self) -> int:
        """Below this offset it is decided what becomes of every message."""
        return self.topic.ledger.transactions.stable_index(self.end)

    def rules(self) -> ProduceRules:
        """What holds for batches that are written here, as of now."""
        if self._policies is not self.topic.policies:
            self._policies = self.topic.policies
            self._rules = rules(self._policies, self._defaults, self._bytes_max)
        return self._rules

    async def begin_writing(self) -> None:
        """Have it known that the log is mixed, so that Pulsar's consumers are given their form, and
        know who has written it.
        """
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
        """The state of the producers that have written the log, if any of Kafka's have."""
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
    def watched(self, news: Callable[[], None]) -> Iterator[None]:
        """Have `news` called whenever there is more to read."""
        self.topic.watch(news)
        try:
            yield
        finally:
            self.topic.unwatch(news)


class Logs:
    """See the module's docstring."""

    def __init__(self, broker: Broker, defaults: Mapping[str, str], bytes_max: int) -> None:
        self._broker = broker
        self._defaults = defaults
        self._bytes_max = bytes_max
        self._census = Census()
        self._known: dict[tuple[str, int], PartitionLog] = {}
        """By the names that clients use, which may be several for one."""
        self._of_topics: dict[PersistentTopic, PartitionLog] = {}
        self._names: dict[bytes, str] = {}
        """What clients call topics whose id they know. A name may have passed to another topic."""

    def at_once(self, name: str, partition: int) -> PartitionLog | None:
        """A log that is loaded; None says nothing. Plain call."""
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
        """The loaded log of a partition, by its topic's id; None says nothing. Plain call."""
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
            raise TopicNotFound(f"{name} keeps nothing, so there is nothing to read by offset")
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
        """Its topic is put away, or deleted."""
        self._of_topics.pop(log.topic, None)
        for name in log.names:
            if self._known.get(name) is log:
                del self._known[name]

    async def by_id(self, topic_id: bytes, partition: int) -> PartitionLog:
        """As `get`; `KafkaRefusal` for an id that no topic has."""
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
