"""ListOffsets, OffsetForLeaderEpoch: where a partition begins and ends."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from core.errors import BrokerError
from wire.kafka.errors import NONE, UNKNOWN_LEADER_EPOCH, UNSUPPORTED_VERSION, code_of
from wire.kafka.messages.records import (
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

if TYPE_CHECKING:
    from wire.kafka.session.session import KafkaSession
    from wire.kafka.wire import Asked

LATEST: Final = -1
EARLIEST: Final = -2
EARLIEST_HERE: Final = -4
EPOCH: Final = 0
"""Of every leader: logs never lose their end, so there is nothing to tell epochs apart by."""


async def on_list_offsets(session: KafkaSession, asked: Asked) -> ListOffsetsResponse:
    request = asked.request
    assert isinstance(request, ListOffsetsRequest)
    return ListOffsetsResponse(
        topics=[
            ListedOffsetsTopic(
                name=topic.name,
                partitions=[await _find(session, topic.name, part) for part in topic.partitions],
            )
            for topic in request.topics
        ]
    )


async def _find(
    session: KafkaSession, name: str, part: ListOffsetsPartition
) -> ListedOffsetsPartition:
    told = ListedOffsetsPartition(partition_index=part.partition_index, error_code=NONE)
    try:
        log = await session.front.logs.get(name, part.partition_index)
    except BrokerError as error:
        told.error_code = code_of(error)
        return told
    told.leader_epoch = 0
    if part.timestamp == LATEST:
        told.offset = log.end
    elif part.timestamp in (EARLIEST, EARLIEST_HERE):
        told.offset = log.start
    else:
        told.error_code = UNSUPPORTED_VERSION  # nothing is found by its time yet
    return told


async def on_offset_for_leader_epoch(
    session: KafkaSession, asked: Asked
) -> OffsetForLeaderEpochResponse:
    """No epoch ever ends here: nothing is cut off a log at its end."""
    request = asked.request
    assert isinstance(request, OffsetForLeaderEpochRequest)
    return OffsetForLeaderEpochResponse(
        topics=[
            EndedEpochTopic(
                topic=topic.topic,
                partitions=[await _epoch(session, topic.topic, part) for part in topic.partitions],
            )
            for topic in request.topics
        ]
    )


async def _epoch(session: KafkaSession, name: str, part: EndEpochPartition) -> EndedEpochPartition:
    told = EndedEpochPartition(partition=part.partition, error_code=NONE)
    try:
        log = await session.front.logs.get(name, part.partition)
    except BrokerError as error:
        told.error_code = code_of(error)
        return told
    if part.current_leader_epoch > EPOCH:
        told.error_code = UNKNOWN_LEADER_EPOCH
    elif part.leader_epoch >= EPOCH:
        told.leader_epoch, told.end_offset = EPOCH, log.end
    return told


HANDLERS: Final[Mapping[int, Any]] = {2: on_list_offsets, 23: on_offset_for_leader_epoch}
