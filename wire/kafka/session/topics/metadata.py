"""Metadata, DescribeTopicPartitions and DescribeCluster: the topics, and the brokers of each."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NoReturn

from magnetar.core.broker import topic_list
from magnetar.core.kernel.cooperation import Cooperative
from magnetar.core.kernel.errors import AlreadyExists, BrokerError, TopicNotFound
from magnetar.core.kernel.names import DEFAULT_NAMESPACE, NamespaceName, TopicName
from magnetar.core.security.actions import CLUSTER_NAME, Action, ResourceType
from magnetar.wire.kafka.api_keys import ApiKey
from magnetar.wire.kafka.codec.declare import NO_UUID
from magnetar.wire.kafka.errors import (
    INVALID_REQUEST,
    NONE,
    TOPIC_AUTHORIZATION_FAILED,
    KafkaRefusal,
    code_of,
)
from magnetar.wire.kafka.messages.basics import (
    DescribeClusterRequest,
    DescribeClusterResponse,
    DescribedBroker,
    DescribedPartition,
    DescribedTopic,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataTopic,
    TopicCursor,
)
from magnetar.wire.kafka.names import called, new_topic_of, topic_of
from magnetar.wire.kafka.partition.logs import EPOCH
from magnetar.wire.kafka.session.authorized_operations import OMITTED, operations
from magnetar.wire.kafka.session.topics import creation, internal

if TYPE_CHECKING:
    from magnetar.core.broker.broker import Broker
    from magnetar.wire.kafka.groups.group_records import GroupRecords
    from magnetar.wire.kafka.options import KafkaOptions
    from magnetar.wire.kafka.partition.logs import Logs
    from magnetar.wire.kafka.session.context import Caller, Handler, RequestContext
    from magnetar.wire.kafka.session.topics.brokers import Brokers

IDS_VERSION: Final = 12
"""The first version of Metadata that names topics by id (KIP-516)."""
PARTITIONS_MAX: Final = 2_000
"""Partitions of one response: Kafka's default of `max.request.partition.size.limit` (KIP-966)."""


class MetadataHandlers:
    """Metadata, DescribeTopicPartitions and DescribeCluster."""

    def __init__(
        self,
        broker: Broker,
        brokers: Brokers,
        logs: Logs,
        records: GroupRecords,
        options: KafkaOptions,
        defaults: Mapping[str, str],
    ) -> None:
        self._broker = broker
        self._brokers = brokers
        self._logs = logs
        self._records = records
        self._options = options
        self._defaults = defaults

    def handlers(self) -> Mapping[int, Handler]:
        """By API key."""
        return {
            ApiKey.METADATA: self.on_metadata,
            ApiKey.DESCRIBE_CLUSTER: self.on_describe_cluster,
            ApiKey.DESCRIBE_TOPIC_PARTITIONS: self.on_describe_topic_partitions,
        }

    async def on_metadata(
        self, context: RequestContext, request: MetadataRequest
    ) -> MetadataResponse:
        if context.version < IDS_VERSION and any(
            one.name is None or one.topic_id != NO_UUID for one in request.topics or []
        ):
            return _refused_ids(request)
        caller = context.caller
        everything = request.topics is None or (context.version == 0 and not request.topics)
        requested = request.topics or []
        if everything:
            requested = [MetadataRequestTopic(name=name) for name in await self._visible(caller)]
        create = request.allow_auto_topic_creation and not everything
        asks = request.include_topic_authorized_operations
        return MetadataResponse(
            brokers=self._brokers.all(caller),
            cluster_id=self._brokers.cluster_id,
            controller_id=self._options.node_id,
            topics=[
                await self._describe(caller, topic, create=create, with_operations=asks)
                async for topic in Cooperative(requested)
            ],
            cluster_authorized_operations=_of_cluster(
                caller, asked=request.include_cluster_authorized_operations
            ),
        )

    async def _visible(self, caller: Caller) -> list[str]:
        """The topics that the client may describe."""
        return [
            name
            for name in await all_names(self._broker, self._records)
            if caller.may(Action.DESCRIBE, ResourceType.TOPIC, name)
        ]

    async def _describe(
        self,
        caller: Caller,
        requested: MetadataRequestTopic,
        *,
        create: bool,
        with_operations: bool,
    ) -> MetadataTopic:
        topic_response = MetadataTopic(
            error_code=NONE,
            name=requested.name,
            topic_id=requested.topic_id,
            partitions=[],
        )
        try:
            if internal.is_meant(requested.name, requested.topic_id):
                _check(caller, Action.DESCRIBE, internal.OFFSETS)
                await internal.check_is_there(self._records)
                topic_response.name, topic_response.topic_id, count = (
                    internal.OFFSETS,
                    internal.TOPIC_ID,
                    internal.PARTITIONS,
                )
                topic_response.is_internal = True
            else:
                count = await self._find(caller, topic_response, create=create)
        except (BrokerError, KafkaRefusal) as error:
            topic_response.error_code = code_of(error)
            if topic_response.error_code == TOPIC_AUTHORIZATION_FAILED:
                # which name has an id, or which id a name, is not for everybody
                topic_response.name = requested.name
                topic_response.topic_id = requested.topic_id
            return topic_response
        assert topic_response.name is not None
        if with_operations:
            topic_response.topic_authorized_operations = operations(
                caller, ResourceType.TOPIC, topic_response.name
            )
        topic_response.partitions = [
            await self._brokers.partition(caller, name, index, EPOCH)
            async for index, name in Cooperative(
                enumerate(await self._full_names(topic_response.name, count))
            )
        ]
        return topic_response

    async def _full_names(self, text: str, count: int) -> list[TopicName]:
        """The topic of core for each partition."""
        name = topic_of(text)
        if await self._broker.catalog.partitions(name):
            return [name.partition(index) for index in range(count)]
        return [name] * count

    async def _find(self, caller: Caller, topic_response: MetadataTopic, *, create: bool) -> int:
        """The number of partitions; fills in name and id."""
        if topic_response.name is None:
            topic_response.name = await self._logs.name_of(topic_response.topic_id)
        _check(caller, Action.DESCRIBE, topic_response.name)
        name = topic_of(topic_response.name)
        count = await self._partitions(name)
        if not count:
            if create and not caller.may(Action.CREATE, ResourceType.CLUSTER, CLUSTER_NAME):
                _check(caller, Action.CREATE, topic_response.name)
            await self._make(topic_response.name, create=create)
        topic_response.topic_id = await self._broker.topic_ids.of(name)
        return count

    async def _partitions(self, name: TopicName) -> int:
        """The number of partitions in Kafka; 0 if the topic does not exist."""
        broker = self._broker
        return await broker.catalog.partitions(name) or int(await broker.exists(name))

    async def _make(self, text: str, *, create: bool) -> NoReturn:
        """Create a topic that Metadata names, if that is allowed, and raise `TopicNotFound`.

        Kafka's controller creates it in the background, so the first response has an error as well
        (`DefaultAutoTopicCreationManager` of 4.3), and clients retry.
        """
        name = new_topic_of(text)
        policies = await self._broker.catalog.effective(name)
        if not create or not policies.auto_topic_creation.allowed:
            raise TopicNotFound(f"topic {called(name)} does not exist")
        with suppress(AlreadyExists):
            await creation.create(self._broker, self._defaults, name, self._options.partitions, {})
        raise TopicNotFound(f"topic {called(name)} is about to be made")

    async def on_describe_topic_partitions(
        self, context: RequestContext, request: DescribeTopicPartitionsRequest
    ) -> DescribeTopicPartitionsResponse:
        """Describe topics in order of name; a cursor names the first that did not fit (KIP-966)."""
        named = sorted({topic.name for topic in request.topics})
        names = named or await self._visible(context.caller)
        first = 0
        if request.cursor is not None:
            names = [name for name in names if name >= request.cursor.topic_name]
            if names and names[0] == request.cursor.topic_name:
                first = max(request.cursor.partition_index, 0)
        left = min(max(request.response_partition_limit, 1), PARTITIONS_MAX)
        response = DescribeTopicPartitionsResponse(topics=[])
        async for name in Cooperative(names):
            if left <= 0:
                response.next_cursor = TopicCursor(topic_name=name, partition_index=0)
                break
            result = await self._described(context.caller, name)
            count = len(result.partitions)
            result.partitions = result.partitions[first : first + left]
            response.topics.append(result)
            if first + left < count:
                response.next_cursor = TopicCursor(topic_name=name, partition_index=first + left)
                break
            left -= len(result.partitions)
            first = 0
        return response

    async def _described(self, caller: Caller, name: str) -> DescribedTopic:
        requested = MetadataRequestTopic(name=name)
        found = await self._describe(caller, requested, create=False, with_operations=True)
        return DescribedTopic(
            error_code=found.error_code,
            name=name,
            topic_id=found.topic_id if found.error_code == NONE else NO_UUID,
            partitions=[
                DescribedPartition(
                    error_code=part.error_code,
                    partition_index=part.partition_index,
                    leader_id=part.leader_id,
                    leader_epoch=EPOCH,
                    replica_nodes=part.replica_nodes,
                    isr_nodes=part.isr_nodes,
                    eligible_leader_replicas=[],
                    last_known_elr=[],
                    offline_replicas=[],
                )
                for part in found.partitions
            ],
            topic_authorized_operations=found.topic_authorized_operations,
            is_internal=found.is_internal,
        )

    async def on_describe_cluster(
        self, context: RequestContext, request: DescribeClusterRequest
    ) -> DescribeClusterResponse:
        return DescribeClusterResponse(
            error_code=NONE,
            endpoint_type=request.endpoint_type,
            cluster_id=self._brokers.cluster_id,
            controller_id=self._options.node_id,
            brokers=[
                DescribedBroker(broker_id=one.node_id, host=one.host, port=one.port)
                for one in self._brokers.all(context.caller)
            ],
            cluster_authorized_operations=_of_cluster(
                context.caller, asked=request.include_cluster_authorized_operations
            ),
        )


def _check(caller: Caller, action: Action, topic: str) -> None:
    if not caller.must(action, ResourceType.TOPIC, topic):
        raise KafkaRefusal(TOPIC_AUTHORIZATION_FAILED)


def _of_cluster(caller: Caller, *, asked: bool) -> int:
    """What the client may do with the cluster; nothing if it may not describe it."""
    if not asked:
        return OMITTED
    if not caller.may(Action.DESCRIBE, ResourceType.CLUSTER, CLUSTER_NAME):
        return 0
    return operations(caller, ResourceType.CLUSTER, CLUSTER_NAME)


def _refused_ids(request: MetadataRequest) -> MetadataResponse:
    """Versions 10 and 11 have a field for ids, but refuse them (KAFKA-12701, `KafkaApis.scala`)."""
    return MetadataResponse(
        brokers=[],
        topics=[
            MetadataTopic(
                error_code=INVALID_REQUEST,
                name=one.name or "",
                topic_id=one.topic_id,
                partitions=[],
                topic_authorized_operations=OMITTED,
            )
            for one in request.topics or []
        ],
    )


async def all_names(broker: Broker, records: GroupRecords) -> list[str]:
    """The topics of the default namespace, whose names need no prefix."""
    namespace = NamespaceName.parse(DEFAULT_NAMESPACE)
    found = map(called, await topic_list.persistent_topics_of(broker, namespace))
    return sorted({*found, *await internal.names(records)})
