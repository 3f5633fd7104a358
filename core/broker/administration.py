"""Administrative operations on several topics: partitioned topics, namespaces and tenants.

Each is a sequence of steps that may be repeated after an interruption: a name is stored before its
topics are created, and deleted after them. Names that are being deleted are marked as `going` in
the broker, because clients that are disconnected would reconnect and create their topics again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final

import trio

from magnetar.core.broker.broker import Broker, in_use
from magnetar.core.broker.topic_list import topics_of
from magnetar.core.kernel.cooperation import Cooperative
from magnetar.core.kernel.errors import (
    AlreadyExists,
    BrokerError,
    NotAllowed,
    NotFound,
    NotOwned,
    TopicNotFound,
)
from magnetar.core.kernel.names import (
    KEPT_WITH_NAMESPACE,
    SYSTEM_NAMESPACE,
    NamespaceName,
    TopicName,
)
from magnetar.core.ledger.log.chain import START
from magnetar.core.policy.policies import TopicPolicies
from magnetar.core.topic.restrictions import check_changeable
from magnetar.core.topic.shadow_topic import source_named
from magnetar.core.topic.topic import Topic

NAMES_PER_REST: Final = 1_000
"""Names of partitions that are parsed before other tasks run."""
NAMESPACES_PER_REST: Final = 50
"""Namespaces whose policies are read before other tasks run."""
AT_ONCE: Final = 100
"""Partitions created, loaded or deleted at the same time."""


async def create_topic(broker: Broker, name: TopicName) -> Topic:
    """Create a topic without partitions, or a partition that is missing, whether or not
    auto-creation is allowed.
    """
    check_changeable(name)
    is_partitioned = not name.partitioned and await broker.catalog.partitions(name)
    if is_partitioned or await broker.exists(name):
        raise AlreadyExists("This topic already exists")
    return await broker.topic(name, by_order=True)


async def create_shadow(broker: Broker, name: TopicName, source: TopicName) -> None:
    """Create a topic that shows the messages of another one (`core/topic/shadow_topic.py`)."""
    check_changeable(name)
    if name.partitioned:
        raise NotAllowed("partitions are shadows if their topic is one")
    await check_source(broker, source, 0)
    if await broker.catalog.partitions(name) or await broker.exists(name):
        raise AlreadyExists("This topic already exists")
    await broker.create_shadow(name, source)


async def check_source(broker: Broker, source: TopicName, partitions: int) -> None:
    """Raise unless a topic with so many partitions may show the messages of that one."""
    check_changeable(source)
    if not source.persistent:
        raise NotAllowed("Only persistent topic can be the source of a shadow topic")
    present = 0 if source.partitioned else await broker.catalog.partitions(source)
    if not present and not await broker.exists(source):
        raise TopicNotFound(f"the source {source} does not exist")
    if present < partitions or bool(present) is not bool(partitions):
        raise NotAllowed(f"the source {source} has {present} partitions, its shadow {partitions}")
    if await broker.source_of(source) is not None:
        raise NotAllowed(f"{source} is a shadow topic itself, and cannot be the source of another")


async def create_partitioned(
    broker: Broker, name: TopicName, partitions: int, properties: dict[str, str] | None = None
) -> None:
    """Create a partitioned topic with all its partitions."""
    check_changeable(name)
    source = source_named(properties or {}, name)
    if source is not None:
        if not name.persistent:
            raise NotAllowed("Only persistent topic can be a shadow topic")
        await check_source(broker, source, partitions)
    if await broker.exists(name):
        raise AlreadyExists(f"topic {name} exists, without partitions")
    if await broker.catalog.partitions(name):
        raise AlreadyExists(f"topic {name} exists, with partitions")
    await broker.check_room(name, partitions)
    await broker.catalog.create_partitioned(name, partitions, properties)
    await create_missing_partitions(broker, name)


async def grow_partitioned(broker: Broker, name: TopicName, partitions: int) -> None:
    """Add partitions, with the durable subscriptions of the first one from their beginning, so that
    consumers miss nothing that is published before they look for new partitions, as in Pulsar
    (`createSubscriptions` of `PersistentTopicsBase.java` of 4.2).

    The number is raised last: a crash before that leaves partitions that nobody uses yet, and the
    request may be repeated.
    """
    check_changeable(name)
    source = source_named(await broker.catalog.properties(name), name)
    if source is not None:
        await check_source(broker, source, partitions)
    present = await broker.catalog.check_growth(name, partitions)
    await broker.check_room(name, partitions - present)
    numbers = Cooperative(range(present, partitions), NAMES_PER_REST)
    new = [name.partition(number) async for number in numbers]
    try:
        if name.persistent:
            await _add_partitions(broker, name.partition(0), new)
        await broker.catalog.grow_partitioned(name, partitions)
    except BrokerError:
        if await broker.catalog.partitions(name):  # maybe it was raised
            for each in new:
                await broker.unload(each)
        else:  # the topic is deleted meanwhile
            for each in new:
                if await broker.exists(each):
                    await broker.delete(each, force=True)
        raise
    await create_missing_partitions(broker, name)


async def _add_partitions(broker: Broker, first: TopicName, names: list[TopicName]) -> None:
    wanted = await _subscriptions_to_copy(broker, first)

    async def add(new: TopicName) -> None:
        try:
            topic = await broker.add_partition(new)
        except NotOwned:
            return  # the owner creates it
        for left in set(topic.subscriptions) - set(wanted):
            if broker.env.held.refusal(left) is None:  # of an attempt that was given up
                await topic.unsubscribe(left, force=True)
        for subscription, properties in wanted.items():
            await topic.subscription(subscription, start=START, properties=properties)

    await _each(add, names)


async def _subscriptions_to_copy(broker: Broker, first: TopicName) -> dict[str, dict[str, str]]:
    """The durable subscriptions of a partition, with their properties. A front that holds one, or
    places it by numbers of its own, does so in new partitions, too.
    """
    try:
        topic = await broker.topic(first)
    except NotOwned:
        return {}  # consumers create theirs when they attach
    assert topic.stored is not None
    return {
        one.name: dict(one.cursor.properties)
        for one in topic.stored.subscriptions.values()
        if one.cursor.durable
        and not one.cursor.position_properties
        and broker.env.held.refusal(one.name) is None
    }


async def create_missing_partitions(broker: Broker, name: TopicName) -> None:
    """Create partitions that the catalog names and that do not exist, except those of peers.

    A peer creates its own when a client attaches: the record of their number is enough for that.
    """
    names = await partitions_of(broker, name)

    async def load(name: TopicName) -> None:
        with suppress(NotOwned):
            await broker.topic(name, by_order=True)

    await _each(load, names)


async def _each(work: Callable[[TopicName], Awaitable[None]], names: list[TopicName]) -> None:
    """Do it for many at once, so that metadata is written in groups; raises the first error, when
    those that were begun have ended.
    """
    failures: list[BrokerError] = []

    async def attempt(name: TopicName) -> None:
        try:
            await work(name)
        except BrokerError as error:
            failures.append(error)

    for start in range(0, len(names), AT_ONCE):
        async with trio.open_nursery() as nursery:
            for name in names[start : start + AT_ONCE]:
                nursery.start_soon(attempt, name)
        if failures:
            raise failures[0]


async def partitions_of(broker: Broker, name: TopicName) -> list[TopicName]:
    """The partitions of a partitioned topic; `TopicNotFound` if it is none."""
    count = await broker.catalog.partitions(name) if not name.partitioned else 0
    if not count:
        raise TopicNotFound(f"partitioned topic {name} does not exist")
    return await _partitions(name, count)


async def _partitions(name: TopicName, count: int) -> list[TopicName]:
    """So many, with rests: to parse ten thousand names takes 30 ms."""
    return [name.partition(each) async for each in Cooperative(range(count), NAMES_PER_REST)]


async def loaded(broker: Broker, name: TopicName) -> list[Topic]:
    """The loaded topics of a name: all partitions, or the one topic."""
    count = await broker.catalog.partitions(name) if not name.partitioned else 0
    names = await _partitions(name, count) or [name]
    return [await broker.topic(each, create=False) for each in names]


async def delete_topic(broker: Broker, name: TopicName, *, force: bool) -> None:
    """Delete one topic, or one partition, with its policies."""
    check_changeable(name)
    if not name.partitioned and await broker.catalog.partitions(name):
        raise NotAllowed(f"{name} is partitioned: delete it as such")
    await broker.delete(name, force=force)
    if not name.partitioned:
        await broker.catalog.forget_topic(name)


async def delete_partitioned(broker: Broker, name: TopicName, *, force: bool) -> None:
    """Delete all partitions, then the name; unless forced, only if none is in use.

    The topic's id goes after the partitions: a partition that another broker owns ends the deletion
    (`Fenced`), and the topic stays known by its id.
    """
    check_changeable(name)
    present = [each for each in await partitions_of(broker, name) if await broker.exists(each)]
    if not force:
        for each in present:
            await broker.check_owned(each)
            here = broker.topics.get(each.full)
            if here is not None and here.in_use:
                raise in_use(each)
    for each in await _beyond(broker, name):
        await broker.add_partition(each)
        await broker.delete(each, force=True)

    async def delete(partition: TopicName) -> None:
        await broker.delete(partition, force=True)

    with broker.going.one_more(name.full):
        await _each(delete, present)
        await broker.topic_ids.forget(name)
        await broker.forget_schemas(name)
        await broker.catalog.forget_topic(name)


async def _beyond(broker: Broker, name: TopicName) -> list[TopicName]:
    """Partitions beyond the number, which a growth that failed has left."""
    if not name.persistent:
        return []
    count = await broker.catalog.partitions(name)
    begin, found = f"{name.full}-partition-", []
    for full in await topics_of(broker, name.namespace, system=True):
        if full.startswith(begin):
            each = TopicName.parse(full)
            if each.base == name and each.partition_index >= count:
                found.append(each)
    return found


async def delete_namespace(broker: Broker, namespace: NamespaceName, *, force: bool) -> None:
    """Delete an empty namespace, or with `force` one with everything in it."""
    _check_deletable(namespace)
    await broker.catalog.policies(namespace)
    with broker.going.one_more(str(namespace)):
        await _delete_topics(broker, namespace, force, f"namespace {namespace} still has topics")
        await broker.schemas.forget_all(namespace)
        await broker.catalog.delete_namespace(namespace)


async def delete_topics(broker: Broker, namespace: NamespaceName, *, force: bool) -> None:
    """Delete all topics of a namespace, which stays; without `force` there may be none."""
    _check_deletable(namespace)
    await broker.catalog.policies(namespace)
    with broker.going.one_more(str(namespace)):
        await _delete_topics(broker, namespace, force, "Cannot delete non empty bundle")


async def _delete_topics(broker: Broker, namespace: NamespaceName, force: bool, why: str) -> None:
    topics = [TopicName.parse(full) for full in await topics_of(broker, namespace, system=True)]
    if not force and any(name.base.local not in KEPT_WITH_NAMESPACE for name in topics):
        raise AlreadyExists(why)
    for name in topics:
        if await broker.exists(name):
            await broker.delete(name, force=True)
    partitioned = await broker.catalog.partitioned_of(namespace)
    for name in partitioned:
        await broker.topic_ids.forget(name)
        await broker.forget_schemas(name)
    for base in [*partitioned, *topics]:
        await broker.catalog.forget_topic(base)


async def delete_tenant(broker: Broker, tenant: str, *, force: bool) -> None:
    """Delete an empty tenant, or with `force` one with everything in it."""
    if force:
        for namespace in await broker.catalog.namespaces(tenant):
            _check_deletable(NamespaceName.parse(namespace))
        for namespace in await broker.catalog.namespaces(tenant):
            await delete_namespace(broker, NamespaceName.parse(namespace), force=True)
    await broker.catalog.delete_tenant(tenant)


def _check_deletable(namespace: NamespaceName) -> None:
    if str(namespace) == SYSTEM_NAMESPACE:
        raise NotAllowed(f"{namespace} has the topics of this server itself, which stay")


async def delete_resource_group(broker: Broker, name: str) -> None:
    """Delete a resource group that no namespace is in."""
    async with broker.groups.naming:
        if await _has_namespaces(broker, name):
            raise NotAllowed("ResourceGroup is in use")
        await broker.groups.delete(name)


async def _has_namespaces(broker: Broker, group: str) -> bool:
    for tenant in await broker.catalog.tenants():
        try:
            namespaces = await broker.catalog.namespaces(tenant)
        except NotFound:
            continue  # it was deleted meanwhile
        async for namespace in Cooperative(namespaces, NAMESPACES_PER_REST):
            try:
                policies = await broker.catalog.policies(NamespaceName.parse(namespace))
            except NotFound:
                continue
            if policies.resource_group == group:
                return True
    return False


async def set_topic_policies(broker: Broker, name: TopicName, policies: TopicPolicies) -> None:
    """Store the policies of a topic; its namespace is being changed (`Catalog.changing`)."""
    check_changeable(name)
    await broker.catalog.set_topic_policies(name, policies)


async def unload_namespace(broker: Broker, namespace: NamespaceName) -> None:
    """Unload all topics of a namespace; clients reconnect."""
    await broker.catalog.policies(namespace)
    for topic in list(broker.topics.values()):
        if topic.name.namespace == namespace:
            await broker.unload(topic.name)
