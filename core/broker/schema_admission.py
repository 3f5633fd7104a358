"""Which schemas the producers and consumers of a topic bring, and whether they may attach.

    a producer with a schema       it is added, if it may follow those that are there
           without one             attaches, unless the topic has one and validation is enforced
    a consumer with a schema       the first of an empty topic adds it; else it must be able to read
                                   what is there
           without one, or of any  attaches

As in Pulsar (`AbstractTopic.addSchema`, `PersistentTopic.addSchemaIfIdleOrCheckCompatible` of 4.2).
Nothing is asked on the path of a message: clients write the version into its metadata.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from magnetar.core.kernel.errors import IncompatibleSchema
from magnetar.core.policy.values import SchemaStrategy
from magnetar.core.schema.schema import WITHOUT, SchemaKind, TopicSchema
from magnetar.core.topic.restrictions import check_owns_log

if TYPE_CHECKING:
    from magnetar.core.broker.broker import Broker
    from magnetar.core.topic.topic import Topic


async def admit_producer(
    broker: Broker, topic: Topic, schema: TopicSchema | None, user: str = ""
) -> int | None:
    """The version of a producer's schema; None for one without."""
    if schema is not None and schema.kind not in WITHOUT:
        return await add(broker, topic, schema, user)
    policies = topic.policies
    enforced = policies.schema_validation_enforced or policies.schema_validation_everywhere
    if enforced and (await broker.schemas.versions(topic.name)).latest is not None:
        raise IncompatibleSchema(
            "Producers cannot connect or send message without a schema to topics with a schema "
            "when SchemaValidationEnforced is enabled"
        )
    return None


async def add(broker: Broker, topic: Topic, schema: TopicSchema, user: str = "") -> int:
    """The version of a client's schema, which is added if it is new."""
    if topic.stored is not None:
        check_owns_log(topic.stored)
    system = topic.name.system
    return await broker.schemas.add(
        topic.name,
        schema,
        strategy_of(topic),
        user=user,
        may_be_new=topic.policies.is_allow_auto_update_schema or system,
    )


async def admit_consumer(
    broker: Broker, topic: Topic, schema: TopicSchema | None, user: str = ""
) -> None:
    """Raise unless a consumer with that schema may attach."""
    if schema is None or schema.kind in WITHOUT or schema.kind is SchemaKind.AUTO_CONSUME:
        return
    strategy, source = strategy_of(topic), None if topic.stored is None else topic.stored.source
    name = topic.name if source is None else source.name
    if (await broker.schemas.versions(name)).latest is not None:
        await broker.schemas.check_consumer(name, schema, strategy)
    elif source is not None:
        return  # a schema is the source's to add, whose clients may do so
    elif not _idle(topic):
        if strategy is SchemaStrategy.ALWAYS_COMPATIBLE:
            return
        raise IncompatibleSchema(
            "Failed to add schema to an active topic with empty(BYTES) schema: "
            f"new schema type {schema.kind.name}"
        )
    else:
        await add(broker, topic, schema, user)


def strategy_of(topic: Topic) -> SchemaStrategy:
    """How schemas of a topic are compared."""
    if topic.name.system:
        return SchemaStrategy.ALWAYS_COMPATIBLE
    return topic.policies.schema_compatibility_strategy


def _idle(topic: Topic) -> bool:
    """Whether nobody reads or writes the topic, and nothing is in it."""
    return not (
        topic.producers
        or topic.storage_size
        or any(
            not consumer.request.takes_any_schema
            for subscription in topic.subscriptions.values()
            for consumer in subscription.consumers
        )
    )
