"""Log directories (KIP-113), reassignments (KIP-455) and elections of leaders (KIP-460).

There is one log directory, and each partition has one replica. So no reassignment is ever in
progress, no election is needed, and a partition may only be "moved" to where it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from magnetar.core.kernel.cooperation import Cooperative
from magnetar.core.kernel.errors import BrokerError, TopicNotFound
from magnetar.core.kernel.names import MANAGED_LEDGERS, TopicName
from magnetar.core.ledger.log import ledger_list_record
from magnetar.wire.kafka.api_keys import ApiKey
from magnetar.wire.kafka.errors import (
    ELECTION_NOT_NEEDED,
    INVALID_REPLICA_ASSIGNMENT,
    LOG_DIR_NOT_FOUND,
    NO_REASSIGNMENT_IN_PROGRESS,
    NONE,
    KafkaRefusal,
    code_and_message,
    code_of,
)
from magnetar.wire.kafka.messages.parts import PartitionError, TopicPartitions
from magnetar.wire.kafka.messages.reassignments import (
    AlteredDirResult,
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    DescribedLogDir,
    DescribedLogDirPartition,
    DescribedLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    ElectedPartition,
    ElectedTopic,
    ElectLeadersRequest,
    ElectLeadersResponse,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    ReassignedPartition,
    ReassignmentPartition,
    ReassignmentTopic,
)
from magnetar.wire.kafka.names import topic_of
from magnetar.wire.kafka.session.topics.metadata import all_names

if TYPE_CHECKING:
    from magnetar.core.broker.broker import Broker
    from magnetar.wire.kafka.groups.group_records import GroupRecords
    from magnetar.wire.kafka.options import KafkaOptions
    from magnetar.wire.kafka.session.context import Handler, RequestContext


class LogDirHandlers:
    """The requests of log directories, reassignments and elections."""

    def __init__(self, broker: Broker, records: GroupRecords, options: KafkaOptions) -> None:
        self._broker = broker
        self._records = records
        self._options = options

    def handlers(self) -> Mapping[int, Handler]:
        """By API key."""
        return {
            ApiKey.ALTER_REPLICA_LOG_DIRS: self.on_alter_log_dirs,
            ApiKey.DESCRIBE_LOG_DIRS: self.on_describe_log_dirs,
            ApiKey.ELECT_LEADERS: self.on_elect_leaders,
            ApiKey.ALTER_PARTITION_REASSIGNMENTS: self.on_alter_reassignments,
            ApiKey.LIST_PARTITION_REASSIGNMENTS: self.on_list_reassignments,
        }

    async def on_describe_log_dirs(
        self, context: RequestContext, request: DescribeLogDirsRequest
    ) -> DescribeLogDirsResponse:
        """The sizes of partitions; those of unloaded ones come from their metadata."""
        options = self._options
        total, usable = options.room()
        return DescribeLogDirsResponse(
            results=[
                DescribedLogDir(
                    error_code=NONE,
                    log_dir=options.data_dir,
                    topics=[
                        DescribedLogDirTopic(name=name, partitions=parts)
                        async for name, requested in Cooperative(
                            await self._requested(request.topics)
                        )
                        if (parts := await self._sizes(name, requested))
                    ],
                    total_bytes=total,
                    usable_bytes=usable,
                )
            ]
        )

    async def _requested(
        self, topics: list[TopicPartitions] | None
    ) -> list[tuple[str, Iterable[int] | None]]:
        """The requested topics and partitions; None means all partitions."""
        if topics is None:
            return [(name, None) for name in await all_names(self._broker, self._records)]
        return [(topic.topic, topic.partitions) for topic in topics]

    async def _sizes(
        self, name: str, requested: Iterable[int] | None
    ) -> list[DescribedLogDirPartition]:
        found: list[DescribedLogDirPartition] = []
        with suppress(BrokerError):  # a missing topic has no size
            base = topic_of(name)
            count = await self._count(base)
            async for index in Cooperative(range(count or 1) if requested is None else requested):
                with suppress(TopicNotFound):
                    size = await self._size(base, index, count)
                    found.append(
                        DescribedLogDirPartition(
                            partition_index=index,
                            partition_size=size,
                            offset_lag=0,
                            is_future_key=False,
                        )
                    )
        return found

    async def _count(self, base: TopicName) -> int:
        """The number of partitions, 0 for an unpartitioned topic; raises `TopicNotFound`."""
        count = await self._broker.catalog.partitions(base)
        if not count and not await self._broker.exists(base):
            raise TopicNotFound(f"there is no topic {base}")
        return count

    async def _size(self, base: TopicName, index: int, count: int) -> int:
        if not 0 <= index < max(count, 1):
            raise TopicNotFound(f"{base} has no partition {index}")
        name = base.partition(index) if count else base
        topic = self._broker.topics.get(name.full)
        if topic is not None:
            return topic.storage_size
        stored = await self._broker.metadata.get(f"{MANAGED_LEDGERS}/{name.managed_ledger}")
        return ledger_list_record.size_of(stored.value) if stored is not None else 0

    async def on_list_reassignments(
        self, _context: RequestContext, _request: ListPartitionReassignmentsRequest
    ) -> ListPartitionReassignmentsResponse:
        """No reassignment is ever in progress."""
        return ListPartitionReassignmentsResponse(error_code=NONE, error_message=None, topics=[])

    async def on_elect_leaders(
        self, context: RequestContext, request: ElectLeadersRequest
    ) -> ElectLeadersResponse:
        """Leaders stay. A request for all partitions (null) gets an empty list."""
        return ElectLeadersResponse(
            replica_election_results=[
                ElectedTopic(
                    topic=topic.topic,
                    partition_result=[
                        await self._elected(topic.topic, index)
                        async for index in Cooperative(topic.partitions)
                    ],
                )
                async for topic in Cooperative(request.topic_partitions or ())
            ]
        )

    async def on_alter_reassignments(
        self, context: RequestContext, request: AlterPartitionReassignmentsRequest
    ) -> AlterPartitionReassignmentsResponse:
        return AlterPartitionReassignmentsResponse(
            allow_replication_factor_change=request.allow_replication_factor_change,
            error_code=NONE,
            error_message=None,
            responses=[
                ReassignmentTopic(
                    name=topic.name,
                    partitions=[
                        await self._moved(topic.name, part)
                        async for part in Cooperative(topic.partitions)
                    ],
                )
                async for topic in Cooperative(request.topics)
            ],
        )

    async def _moved(self, name: str, part: ReassignedPartition) -> ReassignmentPartition:
        partition_response = ReassignmentPartition(
            partition_index=part.partition_index, error_code=NONE
        )
        here = self._options.node_id
        try:
            await self._check_is_there(name, part.partition_index)
            if part.replicas is None:
                raise KafkaRefusal(
                    NO_REASSIGNMENT_IN_PROGRESS, "No partition reassignment is in progress."
                )
            if part.replicas != [here]:
                raise KafkaRefusal(
                    INVALID_REPLICA_ASSIGNMENT, f"broker {here} is the only one there is"
                )
        except (BrokerError, KafkaRefusal) as error:
            partition_response.error_code, partition_response.error_message = code_and_message(
                error
            )
        return partition_response

    async def on_alter_log_dirs(
        self, context: RequestContext, request: AlterReplicaLogDirsRequest
    ) -> AlterReplicaLogDirsResponse:
        return AlterReplicaLogDirsResponse(
            results=[
                AlteredDirResult(
                    topic_name=topic.name,
                    partitions=[
                        await self._put(requested.path, topic.name, index)
                        async for index in Cooperative(topic.partitions)
                    ],
                )
                async for requested in Cooperative(request.dirs)
                async for topic in Cooperative(requested.topics)
            ]
        )

    async def _put(self, path: str, name: str, index: int) -> PartitionError:
        code = NONE if path == self._options.data_dir else LOG_DIR_NOT_FOUND
        try:
            await self._check_is_there(name, index)
        except BrokerError as error:
            code = code_of(error)
        return PartitionError(partition_index=index, error_code=code)

    async def _elected(self, name: str, index: int) -> ElectedPartition:
        code, message = ELECTION_NOT_NEEDED, "The partition has its leader."
        try:
            await self._check_is_there(name, index)
        except BrokerError as error:
            code, message = code_and_message(error)
        return ElectedPartition(partition_id=index, error_code=code, error_message=message)

    async def _check_is_there(self, name: str, index: int) -> None:
        """Raise `BrokerError` if there is no such partition."""
        base = topic_of(name)
        await self._size(base, index, await self._count(base))
