"""Topic creation as Kafka's clients expect it: with configs, and never auto-deleted.

A topic's own configs are stored before the topic exists, so that others never apply to it. A topic
that Kafka's clients create is not deleted for being unused, and the limits of the log alone end
what it holds (`wire/kafka/configs.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec.structs import replace

from magnetar.core.broker import administration
from magnetar.core.kernel.errors import AlreadyExists
from magnetar.core.kernel.names import TopicName
from magnetar.core.policy.policies import TopicPolicies
from magnetar.core.policy.values import InactiveTopics
from magnetar.wire.kafka import configs
from magnetar.wire.kafka.names import called
from magnetar.wire.kafka.session.topics import internal

if TYPE_CHECKING:
    from magnetar.core.broker.broker import Broker


async def is_there(broker: Broker, name: TopicName) -> bool:
    """Whether the topic exists, with partitions or without."""
    return bool(await broker.catalog.partitions(name)) or await broker.exists(name)


async def check_is_new(broker: Broker, name: TopicName) -> None:
    """`AlreadyExists` for an existing topic, and for internal ones."""
    if called(name) == internal.OFFSETS or await is_there(broker, name):
        raise AlreadyExists(f"Topic '{called(name)}' already exists.")


async def create(
    broker: Broker,
    defaults: Mapping[str, str],
    name: TopicName,
    partitions: int,
    requested: Mapping[str, str],
) -> None:
    """Create a topic with checked configs; `defaults` are the server's."""
    async with broker.catalog.changing(name.namespace):
        await check_is_new(broker, name)
        await broker.catalog.policies(name.namespace)
        decided = configs.applied(TopicPolicies(), requested, defaults)
        inactive = InactiveTopics(delete_while_inactive=False)
        decided = replace(decided, inactive_topics=inactive)
        await administration.set_topic_policies(broker, name, decided)
    await administration.create_partitioned(broker, name, partitions)
