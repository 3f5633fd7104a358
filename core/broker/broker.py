"""The broker: the loaded topics, and the work that belongs to no single topic.

Sessions of every protocol use it. A topic is loaded on first use, once, even if many clients
request it at the same time. Administrators unload it; housekeeping deletes it when it has been idle
for long enough.

Dispatch happens here, once per sweep of the link: subscriptions with work put themselves on a list
(`look`), and `dispatch` serves that list in order, without a task per subscription.

Invariant: a name has at most one loaded topic, and the former one is closed before it is loaded
again.
"""

from __future__ import annotations

import logging
import math
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial

import trio
from msgspec import Struct

from magnetar.core.broker import rate_sampler
from magnetar.core.broker.attachment import ATTACH_SECONDS, NameCounts
from magnetar.core.broker.catalog import Catalog
from magnetar.core.broker.housekeeping import Housekeeping
from magnetar.core.broker.kept_rows import KeptRows
from magnetar.core.broker.rules import SecurityRules
from magnetar.core.broker.sweep_work import SweepWork
from magnetar.core.broker.topic_counts import TopicCounts
from magnetar.core.broker.topic_ids import TopicIds
from magnetar.core.broker.topic_list import topics_of
from magnetar.core.broker.topic_watches import TopicWatches
from magnetar.core.cluster.ownership import ALONE, Ownership
from magnetar.core.dispatch.selectors import Division
from magnetar.core.kernel.clock import Clock
from magnetar.core.kernel.errors import (
    AlreadyExists,
    BrokerError,
    NotAllowed,
    NotFound,
    NotOwned,
    NotReady,
    TopicNotFound,
)
from magnetar.core.kernel.names import (
    MANAGED_LEDGERS,
    NON_PERSISTENT,
    PERSISTENT,
    NamespaceName,
    TopicName,
)
from magnetar.core.kernel.throttle import UNLIMITED, RateLimit, throttle_for
from magnetar.core.ledger.log.trim import RollLimits
from magnetar.core.ledger.read.loaded_entries import BYTES_MAX, LoadedEntries
from magnetar.core.ledger.read.tail_cache import TailCache
from magnetar.core.ledger.storage import Storage, UnsavedCursor
from magnetar.core.policy.policies import Effective
from magnetar.core.ports.ledger_store import LedgerStore
from magnetar.core.ports.metadata_store import ABSENT, MetadataStore
from magnetar.core.quotas.resource_group import ResourceGroup
from magnetar.core.quotas.resource_groups import ResourceGroups
from magnetar.core.schema.registry import SIZE_MAX, SchemaRegistry
from magnetar.core.security.access import Access
from magnetar.core.topic.environment import Environment
from magnetar.core.topic.non_persistent_topic import NonPersistentTopic
from magnetar.core.topic.persistent_topic import PersistentTopic
from magnetar.core.topic.shadow_topic import (
    SHADOW,
    ShadowTopic,
    new_record,
    source_in,
    source_named,
)
from magnetar.core.topic.topic import Topic
from magnetar.core.transactions.topic_transactions import COORDINATORS, COORDINATORS_TOPIC

log = logging.getLogger(__name__)


READS_MAX = 5  # of a topic's policies, if each time some record has changed meanwhile
POLICIES_PER_REST = 10
"""Topics that get new policies before other tasks run; policies are computed for each."""


def _always(_topic: Topic) -> bool:
    return True


class BrokerSettings(Struct, frozen=True):
    """The settings of a broker."""

    cluster: str = "standalone"
    defaults: Effective = Effective()
    roll: RollLimits = RollLimits()
    publish_rate: RateLimit = UNLIMITED
    """The publish rate of all topics together."""
    tail_cache_bytes_max: int = 24 * 1024 * 1024
    loaded_bytes_max: int = BYTES_MAX
    """Of entries that are read from storage for consumers."""
    cursor_flush_seconds: float = 0.2
    """How long an acknowledgement without a receipt waits for storage, where no policy says so."""
    skips_lost: bool = False
    """Whether readers skip entries that cannot be read."""
    division: Division = Division()
    """How keys are divided among the consumers of a Key_Shared subscription."""
    schema_bytes_max: int = SIZE_MAX
    housekeeping_seconds: float = 30.0
    """The interval of housekeeping."""
    gathers_appends: bool = False
    """Whether appends wait for `Broker.store`, which the link calls in each sweep; else each is
    written at once."""


class Broker:
    """See the module's docstring."""

    def __init__(
        self,
        settings: BrokerSettings,
        ledgers: LedgerStore,
        metadata: MetadataStore,
        clock: Clock,
        schedule: Callable[[], None],
        ownership: Ownership = ALONE,
    ) -> None:
        self.settings = settings
        self.ownership = ownership
        self.clock = clock
        self.metadata = metadata
        self.topics: dict[str, Topic] = {}
        self.access = Access()
        self.catalog = Catalog(metadata, settings.defaults, settings.cluster)
        self.rules = SecurityRules(self.access, self.catalog, metadata)
        self.topic_ids = TopicIds(metadata)
        self.topic_counts = TopicCounts(self.catalog, metadata)
        self.topic_watches = TopicWatches(self)
        self.schemas = SchemaRegistry(metadata, clock, settings.schema_bytes_max)
        self.tail_cache = TailCache(settings.tail_cache_bytes_max)
        self.kept_rows = KeptRows(self.topics)
        self.housekeeping = Housekeeping(self)
        self.groups = ResourceGroups(metadata, clock, self._refresh_group)
        self._schedule = schedule
        work = SweepWork(clock, schedule, gathers=settings.gathers_appends)
        self.dispatch, self.store = work.dispatch, work.store
        """The link calls both in each sweep (`core/link/backend.py`)."""
        self.gather = work.gather
        storage = Storage(
            ledgers,
            metadata,
            self.tail_cache,
            clock,
            settings.roll,
            self.spawn,
            self._cursor_dirty,
            work.gather,
            settings.skips_lost,
        )
        self.env = Environment(
            storage,
            clock,
            self.spawn,
            work.add,
            self._lost,
            settings.division,
            loaded=LoadedEntries(settings.loaded_bytes_max),
            publish_throttle=throttle_for(settings.publish_rate, None, clock.monotonic()),
        )
        self._dirty_cursors: dict[UnsavedCursor, None] = {}  # each once
        self._locks: dict[str, trio.Lock] = {}
        """Locks of the topics that are being loaded, unloaded or deleted."""
        self.attaching = NameCounts()  # topics to which a client is attaching: they are not idle
        self.going = NameCounts()  # namespaces and topics that are deleted: nothing is created
        self.unloaded = 0  # topics so far: each leaves some garbage
        self._stopping = False
        self._nursery: trio.Nursery

    # -- life ---------------------------------------------------------------------------------

    def guard(self, access: Access) -> None:
        """Have clients authenticate, and ask for their rights. Before `run`, and before fronts."""
        self.access = access
        self.rules = SecurityRules(access, self.catalog, self.metadata)

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Serve until cancelled. Call `stop` first to save all data."""
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            await self.catalog.open()
            self.schemas.open()
            await self.rules.open()
            self.groups.open()
            nursery.start_soon(self.rules.run)
            nursery.start_soon(self.groups.run)
            if self.access.asks:
                nursery.start_soon(self.access.live.run, self.clock)
            nursery.start_soon(self._flush_cursors)
            nursery.start_soon(self.housekeeping.run)
            nursery.start_soon(rate_sampler.run, self)
            task_status.started()

    async def stop(self) -> None:
        """Unload every topic, so that the next start finds all cursors saved."""
        self._stopping = True
        async with trio.open_nursery() as nursery:
            for topic in list(self.topics.values()):
                nursery.start_soon(self.unload, topic.name)

    def spawn(self, task: Callable[..., object], *args: object) -> None:
        """Start a task that outlives its caller; none when the broker has ended."""
        try:
            self._nursery.start_soon(task, *args)  # type: ignore[arg-type]  # any coroutine function
        except RuntimeError:  # the nursery is closed
            log.debug("a task is not begun, the broker has ended: %s", task)

    # -- topics -------------------------------------------------------------------------------

    async def topic(
        self,
        name: TopicName,
        *,
        create: bool = True,
        by_order: bool = False,
        any_name: bool = False,
        deadline: float = math.inf,
    ) -> Topic:
        """Load the topic, or create it; `TopicNotFound` if it does not exist and is not created.

        With `by_order`, an administrator creates it, whatever the auto-creation policy. With
        `any_name`, it is also created if its name reads like a partition of a topic that is not
        partitioned. The deadline limits the wait for other tasks that use the topic.
        """
        found = self.topics.get(name.full)
        if found is not None and not found.fenced:
            return found
        async with self._alone_with(name, deadline):
            return await self._loaded(name, create=create, by_order=by_order, any_name=any_name)

    @asynccontextmanager
    async def _alone_with(self, name: TopicName, deadline: float = math.inf) -> AsyncIterator[None]:
        """Alone load, unload or delete a topic; the deadline limits the wait for other tasks."""
        lock = self._locks.setdefault(name.full, trio.Lock())
        try:
            with trio.move_on_at(deadline) as waiting:
                await lock.acquire()
            if waiting.cancelled_caught:
                raise NotReady(f"topic {name} is being loaded or unloaded for too long")
            try:
                yield
            finally:
                lock.release()
        finally:
            if not lock.locked():
                self._locks.pop(name.full, None)

    async def _loaded(
        self,
        name: TopicName,
        *,
        create: bool,
        by_order: bool = False,
        any_name: bool = False,
        for_deletion: bool = False,
    ) -> Topic:
        found = await self._present(name)
        if found is None:
            await self._check_may_exist(name, create=create, by_order=by_order, any_name=any_name)
            found = await self._load(name, for_deletion=for_deletion)
        return found

    async def _present(self, name: TopicName) -> Topic | None:
        """A topic that is loaded; if it is not, this broker may load it."""
        found = self.topics.get(name.full)
        if found is not None and not found.fenced:
            return found
        if found is not None:
            await self._put_away(found)  # an earlier close has failed
        if self._stopping:
            raise NotReady("the server is stopping")
        await self.check_owned(name)
        return None

    async def check_owned(self, name: TopicName) -> None:
        """Raise `NotOwned`, with its address, if another broker serves the topic."""
        owner = await self.ownership.topic(name)
        if owner is not None:
            at = owner.broker_id or "an unknown address"
            raise NotOwned(f"topic {name} is served by the broker at {at}", owner.addresses)

    async def _put_away(self, topic: Topic) -> None:
        """Close a topic in any state, and forget it."""
        try:
            await topic.close()
        except BrokerError as error:
            log.warning("%s: did not close cleanly: %s", topic.name, error)
        self.topics.pop(topic.name.full, None)
        self.unloaded += 1

    def _lost(self, topic: PersistentTopic) -> None:
        """Another owner writes the topic now: detach the clients, which look it up again."""
        self.spawn(self.wait_unloaded, topic)

    async def wait_unloaded(self, topic: Topic, deadline: float = math.inf) -> None:
        """Return when a fenced topic is closed, by this task or another."""
        async with self._alone_with(topic.name, deadline):
            if self.topics.get(topic.name.full) is topic:
                await self._put_away(topic)

    async def _load(self, name: TopicName, *, for_deletion: bool = False) -> Topic:
        policies, group = await self._in_force(name)
        changes = self.catalog.changes
        topic: Topic
        if not name.persistent:
            topic = NonPersistentTopic(self.env, name, policies)
        elif for_deletion and (here := await self._source_here(name)) is not None:
            topic = ShadowTopic(self.env, name, policies, here)
        elif (source := await self.source_of(name)) is not None:
            topic = ShadowTopic(self.env, name, policies, await self._source(source, name))
        else:
            topic = PersistentTopic(self.env, name, policies)
        topic.join(group)
        await topic.load()
        self.topics[name.full] = topic
        self.kept_rows.loaded(name, topic)
        if self.catalog.changes != changes:  # maybe policies, while it was loaded
            self.spawn(self._refresh_policies_of, topic)
        return topic

    async def _in_force(self, name: TopicName) -> tuple[Effective, ResourceGroup | None]:
        """The policies of a topic, and its resource group, of one moment if there is one without
        changes; who changes policies applies them behind that.
        """
        for _ in range(READS_MAX):
            changes = self.catalog.changes
            policies = await self.catalog.effective(name)
            group = await self.groups.find(policies.resource_group)
            if self.catalog.changes == changes:
                break
        return policies, group

    async def add_partition(self, name: TopicName) -> Topic:
        """Create a partition beyond the number of its topic, which is about to be raised."""
        async with self._alone_with(name):
            found = await self._present(name)
            if self._is_going(name):
                raise TopicNotFound(f"topic {name} is deleted")
            return found or await self._load(name)

    # -- shadow topics ------------------------------------------------------------------------

    async def create_shadow(self, name: TopicName, source: TopicName) -> None:
        """Create a topic that shows another's messages; `AlreadyExists` if its name is taken."""
        async with self._alone_with(name):
            if await self._present(name) is not None:
                raise AlreadyExists("This topic already exists")
            await self._check_may_exist(name, create=True, by_order=True, any_name=False)
            shown = await self._source(source, name)
            await shown.ledger.set_property(f"{SHADOW}{name.full}", "")
            path = f"{MANAGED_LEDGERS}/{name.managed_ledger}"
            record = new_record(source, self.clock.wall_ms())
            try:
                version = await self.metadata.put(path, record, ABSENT)
            except AlreadyExists:
                raise AlreadyExists("This topic already exists") from None
            try:
                await self._load(name)
            except BrokerError:  # the source is deleted meanwhile
                await self.metadata.delete(path, version)
                raise

    async def source_of(self, name: TopicName) -> TopicName | None:
        """The topic whose messages a topic shows; None if they are its own. Of partitions, the
        properties of their topic say it.
        """
        if not name.persistent:
            return None
        if not name.partitioned:
            found = await self.metadata.get(f"{MANAGED_LEDGERS}/{name.managed_ledger}")
            if found is not None:
                return source_in(found.value, name)
        return source_named(await self.catalog.properties(name), name)

    async def schemas_of(self, name: TopicName) -> TopicName:
        """The topic whose schemas a topic has."""
        return await self.source_of(name) or name

    async def _source(self, source: TopicName, shadow: TopicName) -> PersistentTopic:
        """The source of a shadow, loaded. The lock of a shadow is held while its source is loaded,
        so a source is never a shadow, nor the shadow itself.
        """
        try:
            if source.persistent and source != shadow and await self.source_of(source) is None:
                found = (await self.topic(source, create=False)).stored
                if found is not None and found.source is None:
                    return found
        except NotFound:
            raise TopicNotFound(
                f"{source}, the source of the shadow topic {shadow}, does not exist"
            ) from None
        raise NotAllowed(f"{source} cannot be the source of the shadow topic {shadow}")

    async def _source_here(self, shadow: TopicName) -> PersistentTopic | None:
        """The source of a shadow that is to be deleted: as it is loaded, or one that has nothing,
        whatever has become of it. None if the topic is no shadow.
        """
        try:
            source = await self.source_of(shadow)
        except TopicNotFound:
            source = shadow  # its record names no topic
        if source is None:
            return None
        here = self.topics.get(source.full)
        if here is not None and here.stored is not None and not here.fenced:
            return here.stored
        nothing = PersistentTopic(self.env, source, self.settings.defaults)
        nothing.fenced = False
        return nothing

    async def _check_may_exist(
        self, name: TopicName, *, create: bool, by_order: bool, any_name: bool
    ) -> None:
        """Raise unless the topic exists or may be created automatically."""
        if self._is_going(name) and not await self.exists(name):
            raise TopicNotFound(f"topic {name} is deleted")
        partitions = await self.catalog.partitions(name.base)
        if name.partitioned and name.partition_index < partitions:
            return
        if not name.partitioned and partitions:
            raise NotAllowed(f"{name} is partitioned: attach to one of its partitions")
        if name.persistent and not partitions and await self.exists(name):
            return
        policies = await self.catalog.effective(name)
        allowed = policies.auto_topic_creation.allowed and not name.internal
        if not create or not (by_order or allowed):
            raise TopicNotFound(f"topic {name} does not exist")
        if partitions and any_name:
            raise TopicNotFound(f"{name.base} has only {partitions} partitions")
        if name.partitioned and not any_name:
            raise NotAllowed(
                f"Illegal topic partition name {name} with max allowed {partitions} partitions"
                if partitions
                else f"Partition metadata not found for the partitioned topic: {name}"
            )
        await self.check_room(name, 1)

    def _is_going(self, name: TopicName) -> bool:
        return str(name.namespace) in self.going or name.base.full in self.going

    async def check_room(self, name: TopicName, topics: int) -> None:
        """Raise `NotAllowed` if the namespace may not have that many more topics or partitions.

        System topics do not count.
        """
        limit = (await self.catalog.effective(name)).max_topics_per_namespace
        if limit and not name.system:
            present = len(await topics_of(self, name.namespace))
            if present + topics > limit:
                raise NotAllowed("Exceed maximum number of topics in namespace.")

    async def exists(self, name: TopicName) -> bool:
        """Whether there is a topic of that name, loaded or not."""
        if name.full in self.topics:
            return True
        if not name.persistent:
            return False
        return await self.metadata.get(f"{MANAGED_LEDGERS}/{name.managed_ledger}") is not None

    async def partitions_or_create(self, name: TopicName, *, create: bool) -> int:
        """How many partitions a client should attach to; 0 for a topic without.

        This may create an unknown topic as a partitioned one, if the policy says so; one without
        partitions is created only when a client attaches.
        """
        if name.partitioned:
            if not create and not await self._is_known_partition(name):
                raise TopicNotFound(f"topic {name} does not exist")
            return 0  # a partition has none; attaching finds out whether it may be created
        if name == COORDINATORS_TOPIC:
            return COORDINATORS
        present = self.topics.get(name.full)
        if present is not None and present.fenced:
            async with self._alone_with(name, trio.current_time() + ATTACH_SECONDS):
                pass  # the deletion is over now
        count = await self.catalog.partitions(name)
        if count or await self.exists(name):
            return count
        creation = (await self.catalog.effective(name)).auto_topic_creation
        if not create or not creation.allowed or name.internal or self._is_going(name):
            raise TopicNotFound(f"topic {name} does not exist")
        if creation.partitions:
            await self.check_room(name, creation.partitions)
            try:
                await self.catalog.create_partitioned(name, creation.partitions)
            except AlreadyExists:  # another client was first
                return await self.catalog.partitions(name)
        return creation.partitions

    async def _is_known_partition(self, name: TopicName) -> bool:
        base = name.base
        count = COORDINATORS if base == COORDINATORS_TOPIC else await self.catalog.partitions(base)
        return name.partition_index < count or await self.exists(name)

    async def unload(self, name: TopicName) -> None:
        """Disconnect all clients; the next one loads the topic again."""
        async with self._alone_with(name):
            topic = self.topics.get(name.full)
            if topic is not None:
                await self._put_away(topic)

    async def delete(
        self, name: TopicName, *, force: bool = False, only_if: Callable[[Topic], bool] = _always
    ) -> bool:
        """Delete one topic (a partition, or one without partitions).

        `only_if` is called when no other task can load or unload it; returns its answer.
        """
        async with self._alone_with(name):
            topic = await self._loaded(name, create=False, for_deletion=True)
            if not force and topic.in_use:
                raise in_use(name)
            if not only_if(topic):
                return False
            await topic.delete(partial(self._forget_records, name))
            self.topics.pop(name.full, None)
            self.unloaded += 1
            return True

    async def _forget_records(self, name: TopicName) -> None:
        """Delete what a topic has in common with its partitions: with the last of them only."""
        if not name.partitioned:
            await self.topic_ids.forget(name)
            await self.forget_schemas(name)

    async def forget_schemas(self, name: TopicName) -> None:
        """Delete the schemas of a topic that is deleted, unless its namesake has them, too: the one
        in the other domain (`records.path_of`).
        """
        domain = NON_PERSISTENT if name.persistent else PERSISTENT
        namesake = TopicName.parse(f"{domain}://{name.full.partition('://')[2]}")
        if not await self.catalog.partitions(namesake) and not await self.exists(namesake):
            await self.schemas.forget(name)

    async def apply_policies(self, namespace: NamespaceName) -> None:
        """Apply changed policies to the loaded topics of a namespace. It is done to the end if the
        caller is cancelled: the change is stored.
        """
        applied = trio.Event()
        self.spawn(self._refresh_policies, namespace, applied)
        await applied.wait()

    async def _refresh_policies(self, namespace: NamespaceName, applied: trio.Event) -> None:
        try:
            for count, topic in enumerate(list(self.topics.values())):
                if count % POLICIES_PER_REST == 0:
                    await trio.lowlevel.checkpoint()
                if topic.name.namespace == namespace:
                    await self._refresh_policies_of(topic)
        finally:
            applied.set()

    async def _refresh_policies_of(self, topic: Topic) -> None:
        try:
            policies, group = await self._in_force(topic.name)
        except BrokerError as error:
            # the namespace is deleted, or cannot be read: the old policies hold
            log.warning("%s: its policies stay as they were: %s", topic.name, error)
            return
        topic.set_policies(policies)
        topic.join(group)

    async def _refresh_group(self, group: ResourceGroup) -> None:
        """The rates of a resource group have changed."""
        for count, topic in enumerate(list(self.topics.values())):
            if count % POLICIES_PER_REST == 0:
                await trio.lowlevel.checkpoint()
            if topic.throttles.group is group:
                topic.join(group)

    # -- cursors ------------------------------------------------------------------------------

    def _cursor_dirty(self, cursor: UnsavedCursor) -> None:
        self._dirty_cursors[cursor] = None

    async def _flush_cursors(self) -> None:
        """Store acknowledgements periodically, many in one snapshot."""
        while True:
            await trio.sleep(self.settings.cursor_flush_seconds)
            if self._dirty_cursors:
                cursors, self._dirty_cursors = self._dirty_cursors, {}
                for cursor in cursors:
                    cursor.flush_if_due()
                self._schedule()


def in_use(name: TopicName) -> NotAllowed:
    """Why a topic is not deleted."""
    return NotAllowed(f"topic {name} has producers or consumers that are connected")
