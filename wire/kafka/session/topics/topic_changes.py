"""CreateTopics, DeleteTopics and CreatePartitions.

A request for something that this server does not have, such as replicas, is refused rather than
ignored.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from magnetar.core.broker import administration
from magnetar.core.kernel.cooperation import Cooperative
from magnetar.core.kernel.errors import BrokerError
from magnetar.core.security.actions import Action, ResourceType
from magnetar.wire.kafka import configs
from magnetar.wire.kafka.api_keys import ApiKey
from magnetar.wire.kafka.codec.declare import NO_UUID
from magnetar.wire.kafka.errors import (
    INVALID_PARTITIONS,
    INVALID_REPLICA_ASSIGNMENT,
    INVALID_REPLICATION_FACTOR,
    INVALID_REQUEST,
    NONE,
    THROTTLING_QUOTA_EXCEEDED,
    TOPIC_AUTHORIZATION_FAILED,
    KafkaRefusal,
    code_and_message,
)
from magnetar.wire.kafka.messages.topics import (
    CreatedConfig,
    CreatedPartitionsTopic,
    CreatedTopic,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreateTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeletedTopic,
    DeleteTopic,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)
from magnetar.wire.kafka.names import new_topic_of, topic_of
from magnetar.wire.kafka.session import shown_configs
from magnetar.wire.kafka.session.topics import creation, internal

if TYPE_CHECKING:
    from magnetar.core.broker.broker import Broker
    from magnetar.wire.kafka.options import KafkaOptions
    from magnetar.wire.kafka.partition.logs import Logs
    from magnetar.wire.kafka.session.context import Handler, RequestContext

DEFAULT: Final = -1
"""In place of a number: the broker's default (KIP-464)."""
PARTITIONS_MAX: Final = 10_000
"""Partitions of one topic."""


class TopicChangeHandlers:
    """CreateTopics, DeleteTopics and CreatePartitions."""

    def __init__(
        self, broker: Broker, logs: Logs, options: KafkaOptions, defaults: Mapping[str, str]
    ) -> None:
        self._broker = broker
        self._logs = logs
        self._options = options
        self._defaults = defaults

    def handlers(self) -> Mapping[int, Handler]:
        """By API key."""
        return {
            ApiKey.CREATE_TOPICS: self.on_create_topics,
            ApiKey.DELETE_TOPICS: self.on_delete_topics,
            ApiKey.CREATE_PARTITIONS: self.on_create_partitions,
        }

    async def on_create_topics(
        self, context: RequestContext, request: CreateTopicsRequest
    ) -> CreateTopicsResponse:
        times = Counter(topic.name for topic in request.topics)
        response = [
            await self._created(context, topic, for_real=not request.validate_only)
            async for topic in Cooperative(request.topics)
            if times[topic.name] == 1
        ]
        response += [
            CreatedTopic(
                name=name, error_code=INVALID_REQUEST, error_message="Duplicate topic in request."
            )
            for name, count in times.items()
            if count > 1
        ]
        return CreateTopicsResponse(topics=response)

    async def _created(
        self, context: RequestContext, topic: CreateTopic, *, for_real: bool
    ) -> CreatedTopic:
        topic_response = CreatedTopic(name=topic.name, error_code=NONE, error_message=None)
        try:
            name = new_topic_of(topic.name)
            partitions = self._checked(topic)
            requested = {one.name: configs.check(one.name, one.value) for one in topic.configs}
            configs.check_together(requested)
            await creation.check_is_new(self._broker, name)
            await self._broker.catalog.policies(name.namespace)
            if for_real:
                _count(context, partitions)
                await creation.create(self._broker, self._defaults, name, partitions, requested)
                topic_response.topic_id = await self._broker.topic_ids.of(name)
            if not context.caller.may(Action.DESCRIBE_CONFIGS, ResourceType.TOPIC, topic.name):
                topic_response.topic_config_error_code = TOPIC_AUTHORIZATION_FAILED
                return topic_response
            topic_response.num_partitions, topic_response.replication_factor = partitions, 1
            topic_response.configs = [
                CreatedConfig(
                    name=one.name,
                    value=one.value,
                    read_only=False,
                    config_source=one.source,
                    is_sensitive=False,
                )
                for one in shown_configs.of_new_topic(self._defaults, requested)
            ]
        except (BrokerError, KafkaRefusal) as error:
            topic_response.error_code, topic_response.error_message = code_and_message(error)
        return topic_response

    def _checked(self, topic: CreateTopic) -> int:
        """The number of partitions of a new topic, if it may be created."""
        requested = topic.num_partitions
        if topic.assignments:
            if requested != DEFAULT or topic.replication_factor != DEFAULT:
                raise KafkaRefusal(
                    INVALID_REQUEST, "assignments stand in place of numbers, not beside them"
                )
            return self._assigned(
                {one.partition_index: one.broker_ids for one in topic.assignments}
            )
        if topic.replication_factor not in (DEFAULT, 1):
            factor = topic.replication_factor
            raise KafkaRefusal(
                INVALID_REPLICATION_FACTOR,
                f"Replication factor: {factor} larger than available brokers: 1."
                if factor > 1
                else "Replication factor must be larger than 0, or -1 to use the default value.",
            )
        if requested == DEFAULT:
            requested = self._options.partitions
        if not 1 <= requested <= PARTITIONS_MAX:
            raise KafkaRefusal(
                INVALID_PARTITIONS,
                f"a topic has from 1 to {PARTITIONS_MAX} partitions, not {requested}",
            )
        return requested

    def _assigned(self, brokers: Mapping[int, list[int]]) -> int:
        """The number of partitions of a manual assignment, which may only name this broker."""
        if sorted(brokers) != list(range(len(brokers))):
            raise KafkaRefusal(
                INVALID_REPLICA_ASSIGNMENT, "partitions are counted from 0 without a gap"
            )
        if any(ids != [self._options.node_id] for ids in brokers.values()):
            raise KafkaRefusal(
                INVALID_REPLICA_ASSIGNMENT, "there is one broker to put partitions on"
            )
        return len(brokers)

    async def on_delete_topics(
        self, context: RequestContext, request: DeleteTopicsRequest
    ) -> DeleteTopicsResponse:
        requested = [DeleteTopic(name=name, topic_id=NO_UUID) for name in request.topic_names]
        return DeleteTopicsResponse(
            responses=[
                await self._deleted(context, topic)
                async for topic in Cooperative(requested + request.topics)
            ]
        )

    async def _deleted(self, context: RequestContext, topic: DeleteTopic) -> DeletedTopic:
        """Delete a topic with its subscriptions, as Kafka's clients expect."""
        topic_response = DeletedTopic(name=topic.name, topic_id=topic.topic_id, error_code=NONE)
        broker = self._broker
        try:
            internal.refuse_change(topic.name, topic.topic_id)
            if topic.name is None:
                topic_response.name = await self._logs.name_of(topic.topic_id)
            elif topic.topic_id != NO_UUID:
                raise KafkaRefusal(
                    INVALID_REQUEST, "a topic is given by its name or by its id, not by both"
                )
            name = topic_of(topic_response.name or "")
            if topic.name is not None and await creation.is_there(broker, name):
                topic_response.topic_id = await broker.topic_ids.of(name)
            partitions = await broker.catalog.partitions(name)
            _count(context, partitions or 1)
            if partitions:
                await administration.delete_partitioned(broker, name, force=True)
            else:
                await administration.delete_topic(broker, name, force=True)
        except (BrokerError, KafkaRefusal) as error:
            topic_response.error_code, topic_response.error_message = code_and_message(error)
        return topic_response

    async def on_create_partitions(
        self, context: RequestContext, request: CreatePartitionsRequest
    ) -> CreatePartitionsResponse:
        return CreatePartitionsResponse(
            results=[
                await self._enlarged(context, topic, for_real=not request.validate_only)
                async for topic in Cooperative(request.topics)
            ]
        )

    async def _enlarged(
        self, context: RequestContext, topic: CreatePartitionsTopic, *, for_real: bool
    ) -> CreatedPartitionsTopic:
        topic_response = CreatedPartitionsTopic(name=topic.name, error_code=NONE)
        broker = self._broker
        try:
            internal.refuse_change(topic.name)
            name = topic_of(topic.name)
            present = len(await administration.partitions_of(broker, name))
            if topic.count <= present or topic.count > PARTITIONS_MAX:
                raise KafkaRefusal(
                    INVALID_PARTITIONS,
                    f"Topic currently has {present} partitions, which is higher than the requested "
                    f"{topic.count}."
                    if topic.count < present
                    else f"Topic already has {present} partitions."
                    if topic.count == present
                    else f"a topic has {PARTITIONS_MAX} partitions at most",
                )
            if topic.assignments is not None:
                new = [one.broker_ids for one in topic.assignments]
                if len(new) != topic.count - present:
                    raise KafkaRefusal(
                        INVALID_REPLICA_ASSIGNMENT, "each new partition needs its brokers"
                    )
                self._assigned(dict(enumerate(new)))
            if for_real:
                _count(context, topic.count - present)
                async with broker.catalog.changing(name.namespace):
                    await administration.grow_partitioned(broker, name, topic.count)
        except (BrokerError, KafkaRefusal) as error:
            topic_response.error_code, topic_response.error_message = code_and_message(error)
        return topic_response


def _count(context: RequestContext, partitions: int) -> None:
    """Count mutations; raises `KafkaRefusal` beyond the client's quota (KIP-599)."""
    if context.mutations is not None and not context.mutations.take(partitions):
        raise KafkaRefusal(THROTTLING_QUOTA_EXCEEDED, "The throttling quota has been exceeded.")
