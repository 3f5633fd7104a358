"""DeleteRecords: moves the start of a log (KIP-107).

Invariant: records that were reported as deleted never come back, and no consumer gets them. Batches
stay whole, so the first one may begin before the offset: clients drop its earlier records.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from magnetar.core.kernel.cooperation import Cooperative
from magnetar.core.kernel.errors import BrokerError
from magnetar.core.topic.log_start import begin_at
from magnetar.wire.kafka.api_keys import ApiKey
from magnetar.wire.kafka.errors import (
    NONE,
    OFFSET_OUT_OF_RANGE,
    POLICY_VIOLATION,
    KafkaRefusal,
    code_of,
)
from magnetar.wire.kafka.messages.records import (
    DeletedRecordsPartition,
    DeletedRecordsTopic,
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
)
from magnetar.wire.kafka.session.topics import internal

if TYPE_CHECKING:
    from magnetar.wire.kafka.partition.logs import Logs, PartitionLog
    from magnetar.wire.kafka.session.context import Handler, RequestContext

ALL: Final = -1
"""Up to the end of the log (`DeleteRecordsRequest.HIGH_WATERMARK`)."""


class DeleteRecordsHandlers:
    """DeleteRecords."""

    def __init__(self, logs: Logs) -> None:
        self._logs = logs

    def handlers(self) -> Mapping[int, Handler]:
        """By API key."""
        return {
            ApiKey.DELETE_RECORDS: self.on_delete_records,
        }

    async def on_delete_records(
        self, context: RequestContext, request: DeleteRecordsRequest
    ) -> DeleteRecordsResponse:
        return DeleteRecordsResponse(
            topics=[
                DeletedRecordsTopic(
                    name=topic.name,
                    partitions=[
                        await self._delete(topic.name, part)
                        async for part in Cooperative(topic.partitions)
                    ],
                )
                async for topic in Cooperative(request.topics)
            ]
        )

    async def _delete(self, name: str, part: DeleteRecordsPartition) -> DeletedRecordsPartition:
        partition_response = DeletedRecordsPartition(
            partition_index=part.partition_index, low_watermark=-1, error_code=NONE
        )
        try:
            internal.refuse_change(name)
            log = await self._logs.get(name, part.partition_index)
            await _delete_before(log, log.end if part.offset == ALL else part.offset)
            partition_response.low_watermark = log.start
        except (BrokerError, KafkaRefusal) as error:
            partition_response.error_code = code_of(error)
        return partition_response


async def _delete_before(log: PartitionLog, offset: int) -> None:
    """The two refusals are those of `Partition.deleteRecordsOnLeader` of Kafka 4.3."""
    if not log.rules().limited:
        raise KafkaRefusal(POLICY_VIOLATION, "only compaction deletes records of this topic")
    if not 0 <= offset <= log.end:
        raise KafkaRefusal(OFFSET_OUT_OF_RANGE, "there is no such offset yet")
    if offset > log.start:
        await begin_at(log.topic, offset, await log.places.find(offset))
