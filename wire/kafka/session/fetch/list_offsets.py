"""ListOffsets and OffsetForLeaderEpoch: the start and the end of a partition, and offsets by time.

The special timestamps below zero are those of `ListOffsetsRequest` of Kafka 4.3. Offset -1 without
an error code means that there is no such record.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from magnetar.core.kernel.cooperation import Cooperative
from magnetar.core.kernel.errors import BrokerError
from magnetar.wire.kafka.api_keys import ApiKey
from magnetar.wire.kafka.errors import NONE, UNKNOWN_LEADER_EPOCH, UNSUPPORTED_VERSION, code_of
from magnetar.wire.kafka.messages.records import (
    EndedEpochPartition,
    EndedEpochTopic,
    EndEpochPartition,
    ListedOffsetsPartition,
    ListedOffsetsTopic,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)
from magnetar.wire.kafka.partition.logs import EPOCH, PartitionLog
from magnetar.wire.kafka.session.topics import internal

if TYPE_CHECKING:
    from magnetar.wire.kafka.groups.group_records import GroupRecords
    from magnetar.wire.kafka.partition.logs import Logs
    from magnetar.wire.kafka.session.context import Handler, RequestContext

READ_COMMITTED: Final = 1
LATEST: Final = -1
EARLIEST: Final = -2
MAX_TIME: Final = -3
"""The record with the highest timestamp (KIP-734)."""
EARLIEST_HERE: Final = -4
"""The start of the log on the broker's own disk (KIP-405); here the start of the log."""
LATEST_ELSEWHERE: Final = -5
"""The end of tiered storage (KIP-1005); there is none here, so the offset is -1."""
SINCE: Final[Mapping[int, int]] = {
    LATEST: 1,
    EARLIEST: 1,
    MAX_TIME: 7,
    EARLIEST_HERE: 8,
    LATEST_ELSEWHERE: 9,
}
"""The first version of the request that allows each special timestamp."""


class ListOffsetsHandlers:
    """ListOffsets and OffsetForLeaderEpoch."""

    def __init__(self, logs: Logs, records: GroupRecords) -> None:
        self._logs = logs
        self._records = records

    def handlers(self) -> Mapping[int, Handler]:
        """By API key."""
        return {
            ApiKey.LIST_OFFSETS: self.on_list_offsets,
            ApiKey.OFFSET_FOR_LEADER_EPOCH: self.on_offset_for_leader_epoch,
        }

    async def on_list_offsets(
        self, context: RequestContext, request: ListOffsetsRequest
    ) -> ListOffsetsResponse:
        return ListOffsetsResponse(
            topics=[
                ListedOffsetsTopic(
                    name=topic.name,
                    partitions=[
                        await self._find(
                            topic.name, part, (context.version, request.isolation_level)
                        )
                        async for part in Cooperative(topic.partitions)
                    ],
                )
                async for topic in Cooperative(request.topics)
            ]
        )

    async def _find(
        self, name: str, part: ListOffsetsPartition, how: tuple[int, int]
    ) -> ListedOffsetsPartition:
        """Answer one partition; `how` is the version of the request and its isolation level."""
        version, isolation = how
        partition_response = ListedOffsetsPartition(
            partition_index=part.partition_index, error_code=NONE
        )
        if part.timestamp < 0 and version < SINCE.get(part.timestamp, version + 1):
            partition_response.error_code = UNSUPPORTED_VERSION
            return partition_response
        try:
            if internal.is_meant(name):
                await internal.check_is_there(self._records, part.partition_index)
                if part.timestamp in (LATEST, EARLIEST, EARLIEST_HERE):
                    partition_response.offset, partition_response.leader_epoch = 0, EPOCH
                return partition_response
            log = await self._logs.get(name, part.partition_index)
            end = log.stable if isolation == READ_COMMITTED else log.end
            if part.current_leader_epoch > EPOCH:
                partition_response.error_code = UNKNOWN_LEADER_EPOCH
            elif part.timestamp == LATEST:
                partition_response.offset, partition_response.leader_epoch = end, EPOCH
            elif part.timestamp in (EARLIEST, EARLIEST_HERE):
                partition_response.offset, partition_response.leader_epoch = log.start, EPOCH
            elif part.timestamp != LATEST_ELSEWHERE:
                await _find_by_time(log, part.timestamp, end, partition_response)
        except BrokerError as error:
            partition_response.error_code = code_of(error)
        return partition_response

    async def on_offset_for_leader_epoch(
        self, context: RequestContext, request: OffsetForLeaderEpochRequest
    ) -> OffsetForLeaderEpochResponse:
        """The end offset of an epoch (KIP-320). All leaders have epoch 0, since a log is never
        truncated at its end, so the answer is the end of the log.
        """
        return OffsetForLeaderEpochResponse(
            topics=[
                EndedEpochTopic(
                    topic=topic.topic,
                    partitions=[
                        await self._epoch(topic.topic, part)
                        async for part in Cooperative(topic.partitions)
                    ],
                )
                async for topic in Cooperative(request.topics)
            ]
        )

    async def _epoch(self, name: str, part: EndEpochPartition) -> EndedEpochPartition:
        partition_response = EndedEpochPartition(partition=part.partition, error_code=NONE)
        try:
            if internal.is_meant(name):
                await internal.check_is_there(self._records, part.partition)
                end = 0
            else:
                end = (await self._logs.get(name, part.partition)).end
        except BrokerError as error:
            partition_response.error_code = code_of(error)
            return partition_response
        if part.current_leader_epoch > EPOCH:
            partition_response.error_code = UNKNOWN_LEADER_EPOCH
        elif part.leader_epoch >= EPOCH:
            partition_response.leader_epoch, partition_response.end_offset = EPOCH, end
        return partition_response


async def _find_by_time(
    log: PartitionLog, timestamp: int, end: int, partition_response: ListedOffsetsPartition
) -> None:
    """Find the first record with this timestamp or a later one; no offset if it is beyond the end.

    The end may be the last stable offset, so that `read_committed` finds no undecided record.
    """
    times = log.topic.ledger.times
    found = await (times.latest() if timestamp == MAX_TIME else times.first_since(timestamp))
    if found is not None and found.index < end:
        partition_response.offset, partition_response.timestamp = found.index, found.time_ms
        partition_response.leader_epoch = EPOCH
