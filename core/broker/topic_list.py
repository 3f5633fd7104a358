"""Lists the topics of a namespace: stored topics, partitions, and topics that are only loaded.

The lists are built in steps, because a namespace may have ten thousand topics.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import trio

from magnetar.core.broker.topic_counts import TOPICS_PER_REST
from magnetar.core.kernel.names import PERSISTENT, NamespaceName, TopicName, partition_name

if TYPE_CHECKING:
    from magnetar.core.broker.broker import Broker


async def topics_of(broker: Broker, namespace: NamespaceName, *, system: bool = False) -> list[str]:
    """Full names of all topics and partitions; those of the system only if they are asked for."""
    partitioned = await broker.catalog.partitioned_of(namespace)
    return await _topics_of(broker, namespace, partitioned, system=system)


async def persistent_topics_of(broker: Broker, namespace: NamespaceName) -> set[TopicName]:
    """All persistent topics but the system's, partitioned ones without their partitions. One that
    is only called like a partition is a topic of its own.
    """
    partitioned = await broker.catalog.partitioned_of(namespace)
    names = map(TopicName.parse, await _topics_of(broker, namespace, partitioned, system=False))
    return {
        name.base if 0 <= name.partition_index < partitioned.get(name.base, 0) else name
        for name in names
        if name.persistent
    }


async def _topics_of(
    broker: Broker, namespace: NamespaceName, partitioned: Mapping[TopicName, int], *, system: bool
) -> list[str]:
    names: dict[str, None] = {}  # nearly sorted from the start, so that sorting is no pause
    for count, encoded in enumerate(await broker.metadata.children(namespace.managed_ledgers)):
        if count % TOPICS_PER_REST == 0:
            await trio.lowlevel.checkpoint()
        name = TopicName.of_managed_ledger(f"{namespace}/{PERSISTENT}/{encoded}")
        if system or not name.system:
            names[name.full] = None
    for base, partitions in partitioned.items():
        await trio.lowlevel.checkpoint()
        if system or not base.system:
            names |= dict.fromkeys(partition_name(base.full, index) for index in range(partitions))
    for count, topic in enumerate(list(broker.topics.values())):
        if count % TOPICS_PER_REST == 0:
            await trio.lowlevel.checkpoint()
        if topic.name.namespace == namespace and (system or not topic.name.system):
            names[topic.name.full] = None
    return sorted(names)
