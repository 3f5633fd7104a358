"""Lists the topics of a namespace: stored topics, partitions, and topics that are only loaded.

The list is built in steps, because a namespace may have ten thousand topics.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import trio

from magnetar.core.kernel.names import NamespaceName, TopicName, partition_name

if TYPE_CHECKING:
    from magnetar.core.broker.broker import Broker

TOPICS_PER_REST: Final = 100
"""Topics listed before other tasks run."""


async def topics_of(broker: Broker, namespace: NamespaceName, *, system: bool = False) -> list[str]:
    """Full names of all topics and partitions; those of the system only if they are asked for."""
    path = f"/managed-ledgers/{namespace}/persistent"
    names: dict[str, None] = {}  # nearly sorted from the start, so that sorting is no pause
    for count, encoded in enumerate(await broker.metadata.children(path)):
        if count % TOPICS_PER_REST == 0:
            await trio.lowlevel.checkpoint()
        name = TopicName.of_managed_ledger(f"{namespace}/persistent/{encoded}")
        if system or not name.system:
            names[name.full] = None
    for base, partitions in (await broker.catalog.partitioned_of(namespace)).items():
        await trio.lowlevel.checkpoint()
        if system or not base.system:
            names |= dict.fromkeys(partition_name(base.full, index) for index in range(partitions))
    for count, topic in enumerate(list(broker.topics.values())):
        if count % TOPICS_PER_REST == 0:
            await trio.lowlevel.checkpoint()
        if topic.name.namespace == namespace and (system or not topic.name.system):
            names[topic.name.full] = None
    return sorted(names)
