"""The broker: which topics are loaded, and the work that is nobody's in particular.

Sessions of every protocol talk to it. A topic is loaded when somebody asks for it, once, however
many ask at the same time; it is unloaded when told to, and deleted when it has been idle long
enough.

Dispatch happens here, once per sweep of the link: subscriptions that may have something to deliver
put themselves on a list (`look`), and `dispatch` serves that list in order.

Invariant: a name maps to at most one loaded topic; between unloading and loading again the old one
is closed for good.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

import trio
from msgspec import Struct

from core import sampling
from core.catalog import Catalog
from core.clock import Clock
from core.errors import BrokerError, NotAllowed, TopicNotFound
from core.housekeeping import Housekeeping
from core.ledger.cursor import Cursor
from core.ledger.managed import Storage
from core.ledger.tail_cache import TailCache
from core.ledger.trim import RollLimits
from core.names import NamespaceName, TopicName
from core.policies import BrokerDefaults
from core.ports.ledger_store import LedgerStore
from core.ports.metadata_store import MetadataStore
from core.topic.environment import Environment
from core.topic.subscription import Subscription
from core.topic.topic import Topic
from core.topic.volatile import VolatileTopic

log = logging.getLogger(__name__)

AnyTopic = Topic | VolatileTopic


class BrokerSettings(Struct, frozen=True):
    """What the composition root decides."""

    cluster: str = "standalone"
    defaults: BrokerDefaults = BrokerDefaults()
    roll: RollLimits = RollLimits()
    tail_cache_bytes_max: int = 32 * 1024 * 1024
    cursor_flush_seconds: float = 0.2
    """How long an acknowledgement without receipt may wait to be stored."""
    housekeeping_seconds: float = 30.0
    """Between two looks for what is expired, over quota, idle or to be trimmed."""


class Broker:
    """See the module's docstring."""

    def __init__(
        self,
        settings: BrokerSettings,
        ledgers: LedgerStore,
        metadata: MetadataStore,
        clock: Clock,
        soon: Callable[[], None],
    ) -> None:
        self.settings = settings
        self.clock = clock
        self.metadata = metadata
        self.topics: dict[str, AnyTopic] = {}
        self.catalog = Catalog(metadata, settings.defaults, settings.cluster)
        self.tail_cache = TailCache(settings.tail_cache_bytes_max)
        self.housekeeping = Housekeeping(self)
        storage = Storage(
            ledgers, metadata, self.tail_cache, clock, settings.roll, self.spawn, self._cursor_dirty
        )
        self.env = Environment(storage, clock, self.spawn, self._dirty_add)
        self._soon = soon
        self._dirty: list[Subscription] = []
        self._dirty_cursors: list[Cursor] = []
        self._loading: dict[str, trio.Lock] = {}
        self._nursery: trio.Nursery

    # -- life ---------------------------------------------------------------------------------

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Serve until cancelled. `stop` comes first where data is to be saved."""
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            await self.catalog.open()
            nursery.start_soon(self._flush_cursors)
            nursery.start_soon(self.housekeeping.run)
            nursery.start_soon(sampling.run, self)
            task_status.started()

    async def stop(self) -> None:
        """Unload every topic, so that the next start finds all cursors saved."""
        async with trio.open_nursery() as nursery:
            for topic in list(self.topics.values()):
                nursery.start_soon(self._close_quietly, topic)
        self.topics.clear()

    @staticmethod
    async def _close_quietly(topic: AnyTopic) -> None:
        try:
            await topic.close()
        except BrokerError as error:
            log.warning("%s: did not close cleanly: %s", topic.name, error)

    def spawn(self, task: Callable[..., object], *args: object) -> None:
        """Start what outlives its caller."""
        self._nursery.start_soon(task, *args)  # type: ignore[arg-type]  # any coroutine function

    # -- topics -------------------------------------------------------------------------------

    async def topic(
        self, name: TopicName, *, create: bool = True, by_order: bool = False
    ) -> AnyTopic:
        """The loaded topic of that name; `TopicNotFound` if there is none and may be none.

        `by_order` is an administrator's: what the policy says of auto-creation does not matter.
        """
        found = self.topics.get(name.full)
        if found is not None and not found.fenced:
            return found
        lock = self._loading.setdefault(name.full, trio.Lock())
        async with lock:
            found = self.topics.get(name.full)
            if found is None or found.fenced:
                await self._check_may_exist(name, create=create, by_order=by_order)
                found = await self._load(name)
            if not lock.statistics().tasks_waiting:
                self._loading.pop(name.full, None)
        return found

    async def _load(self, name: TopicName) -> AnyTopic:
        policies = await self.catalog.effective(name)
        topic: AnyTopic
        if name.persistent:
            topic = Topic(self.env, name, policies)
        else:
            topic = VolatileTopic(self.env, name, policies)
        await topic.load()
        self.topics[name.full] = topic
        return topic

    async def _check_may_exist(self, name: TopicName, *, create: bool, by_order: bool) -> None:
        """Raise unless the topic exists or may be created by being asked for."""
        partitions = await self.catalog.partitions(name.base)
        if name.partitioned and partitions:
            if name.partition_index < partitions:
                return
            raise TopicNotFound(f"{name.base} has only {partitions} partitions")
        if not name.partitioned and partitions:
            raise NotAllowed(f"{name} is partitioned: attach to one of its partitions")
        if name.persistent and await self.exists(name):
            return
        policies = await self.catalog.effective(name)
        if not create or not (by_order or policies.auto_topic_creation.allowed):
            raise TopicNotFound(f"topic {name} does not exist")
        limit = policies.max_topics_per_namespace
        if limit and len(await self.topics_of(name.namespace)) >= limit:
            raise NotAllowed(f"namespace {name.namespace} has as many topics as it may")

    async def exists(self, name: TopicName) -> bool:
        """Whether a topic of that name is there, loaded or not."""
        if name.full in self.topics:
            return True
        if not name.persistent:
            return False
        return await self.metadata.get(f"/managed-ledgers/{name.managed_ledger}") is not None

    async def partitions_or_create(self, name: TopicName, *, create: bool) -> int:
        """How many partitions a client should attach to; 0 for a topic without.

        An unknown topic may be created as partitioned by this question, if the policy says so; one
        without partitions is created only when somebody attaches.
        """
        if name.partitioned:
            return 0  # a partition has none of its own; whether it exists is seen when attaching
        count = await self.catalog.partitions(name)
        if count or await self.exists(name):
            return count
        creation = (await self.catalog.effective(name)).auto_topic_creation
        if not create or not creation.allowed:
            raise TopicNotFound(f"topic {name} does not exist")
        if creation.partitions:
            await self.catalog.create_partitioned(name, creation.partitions)
        return creation.partitions

    async def topics_of(self, namespace: NamespaceName) -> list[str]:
        """Full names of every topic, partitions as the topics they are, system topics left out."""
        path = f"/managed-ledgers/{namespace}/persistent"
        names = {
            TopicName.of_managed_ledger(f"{namespace}/persistent/{encoded}").full
            for encoded in await self.metadata.children(path)
        }
        for base, partitions in (await self.catalog.partitioned_of(namespace)).items():
            names.update(f"{base}-partition-{index}" for index in range(partitions))
        names.update(
            full for full, topic in self.topics.items() if topic.name.namespace == namespace
        )
        return sorted(full for full in names if not TopicName.parse(full).system)

    async def unload(self, name: TopicName) -> None:
        """Send everybody away; whoever comes again loads it anew."""
        topic = self.topics.get(name.full)
        if topic is not None:
            await topic.close()
            self.topics.pop(name.full, None)

    async def delete(self, name: TopicName, *, force: bool = False) -> None:
        """Delete one topic (a partition, or one without partitions)."""
        topic = await self.topic(name, create=False)
        if not force and topic.in_use:
            raise NotAllowed(f"topic {name} has producers, consumers or subscriptions")
        await topic.delete()
        self.topics.pop(name.full, None)

    def policies_changed(self, namespace: NamespaceName) -> None:
        """Loaded topics of the namespace learn of it before long."""
        self.spawn(self._refresh_policies, namespace)

    async def _refresh_policies(self, namespace: NamespaceName) -> None:
        for topic in list(self.topics.values()):
            if topic.name.namespace == namespace:
                topic.policies = await self.catalog.effective(topic.name)

    # -- dispatch -----------------------------------------------------------------------------

    def _dirty_add(self, subscription: Subscription) -> None:
        self._dirty.append(subscription)
        self._soon()

    def dispatch(self) -> None:
        """A hook of the link: serve every subscription that asked for a look."""
        dirty, self._dirty = self._dirty, []
        for subscription in dirty:
            if subscription.dispatch():
                subscription.look()

    # -- cursors ------------------------------------------------------------------------------

    def _cursor_dirty(self, cursor: Cursor) -> None:
        self._dirty_cursors.append(cursor)

    async def _flush_cursors(self) -> None:
        """Acknowledgements reach storage a moment later, many in one snapshot."""
        while True:
            await trio.sleep(self.settings.cursor_flush_seconds)
            if self._dirty_cursors:
                cursors, self._dirty_cursors = self._dirty_cursors, []
                for cursor in cursors:
                    cursor.flush()
                self._soon()
