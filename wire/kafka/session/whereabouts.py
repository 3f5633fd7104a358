"""ListOffsets: where a partition begins and ends, and what was written when."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from core.errors import BrokerError
from wire.kafka.errors import NONE, code_of
from wire.kafka.messages.records import (
    ListedOffsetsPartition,
    ListedOffsetsTopic,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
)

if TYPE_CHECKING:
    from wire.kafka.session.session import KafkaSession
    from wire.kafka.wire import Asked

LATEST: Final = -1
EARLIEST: Final = -2
EARLIEST_HERE: Final = -4


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
    return told


HANDLERS: Final[Mapping[int, Any]] = {2: on_list_offsets}
