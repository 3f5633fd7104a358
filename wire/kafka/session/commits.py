"""What groups have committed: a durable cursor of the topic for each group and partition.

The offset itself, its epoch and the time are stored with the cursor's position; so a commit holds
back what the group has still to read from being deleted, and stands in Pulsar's stats as a
subscription of the group's name. A commit is answered when it is stored.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from core.errors import BrokerError
from core.ledger.chain import START, Position
from wire.kafka.errors import (
    NONE,
    OFFSET_METADATA_TOO_LARGE,
    UNKNOWN_MEMBER_ID,
    code_of,
)
from wire.kafka.groups.group import State
from wire.kafka.messages.offsets import (
    CommitPartition,
    CommittedTopic,
    FetchedOffsetsGroup,
    FetchedOffsetsPartition,
    FetchedOffsetsTopic,
    FetchOffsetsGroup,
    FetchOffsetsTopic,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
)
from wire.kafka.messages.parts import PartitionError
from wire.kafka.session.logs import Log

if TYPE_CHECKING:
    from wire.kafka.session.session import KafkaSession
    from wire.kafka.wire import Asked

METADATA_BYTES_MAX: Final = 4096
OFFSET: Final = "kafka.offset"
EPOCH: Final = "kafka.leader-epoch"
TIME: Final = "kafka.committed-ms"
METADATA: Final = "kafka.metadata"
"""A property of the subscription; the others stand beside its position."""


async def on_offset_commit(session: KafkaSession, asked: Asked) -> OffsetCommitResponse:
    request = asked.request
    assert isinstance(request, OffsetCommitRequest)
    refusal = _refusal(session, request)
    answers = []
    for topic in request.topics:
        parts = [
            PartitionError(
                partition_index=part.partition_index,
                error_code=refusal or await _commit(session, request.group_id, topic.name, part),
            )
            for part in topic.partitions
        ]
        answers.append(CommittedTopic(name=topic.name, partitions=parts))
    return OffsetCommitResponse(topics=answers)


def _refusal(session: KafkaSession, request: OffsetCommitRequest) -> int:
    """Whether whoever commits may: a member of this generation, or anybody if nobody is in."""
    groups = session.front.groups
    group = groups.find(request.group_id)
    if request.generation_id_or_member_epoch < 0 and not request.member_id:
        in_use = group is not None and group.state is not State.EMPTY
        return UNKNOWN_MEMBER_ID if in_use else NONE
    if group is None:
        return UNKNOWN_MEMBER_ID
    return group.may_commit(
        request.member_id,
        request.generation_id_or_member_epoch,
        request.group_instance_id,
        groups.now(),
    )


async def _commit(session: KafkaSession, group: str, name: str, part: CommitPartition) -> int:
    metadata = part.committed_metadata or ""
    if len(metadata.encode()) > METADATA_BYTES_MAX:
        return OFFSET_METADATA_TOO_LARGE
    try:
        log = await session.front.logs.get(name, part.partition_index)
        mark = await _mark_before(log, part.committed_offset)
        await session.front.registry.add(group, (name, part.partition_index))
        cursor = (await log.topic.subscription(group, start=mark)).cursor
        cursor.longs = {
            OFFSET: part.committed_offset,
            EPOCH: part.committed_leader_epoch,
            TIME: session.broker.clock.wall_ms(),
        }
        if cursor.properties.get(METADATA, "") != metadata:
            cursor.properties[METADATA] = metadata
            cursor.touched()
        cursor.reset(mark)
        await cursor.saved()
    except BrokerError as error:
        return code_of(error)
    return NONE


async def _mark_before(log: Log, offset: int) -> Position:
    """The last entry that a reader from `offset` on does not need any more."""
    if offset <= log.start:
        return START
    if offset >= log.end:
        return log.topic.ledger.chain.confirmed
    ledger_id, entry_id = await log.places.find(offset)
    return (ledger_id, entry_id - 1)


async def on_offset_fetch(session: KafkaSession, asked: Asked) -> OffsetFetchResponse:
    request = asked.request
    assert isinstance(request, OffsetFetchRequest)
    if request.groups:
        return OffsetFetchResponse(groups=[await _of_group(session, one) for one in request.groups])
    one = FetchOffsetsGroup(group_id=request.group_id, topics=request.topics)
    return OffsetFetchResponse(topics=(await _of_group(session, one)).topics)


async def _of_group(session: KafkaSession, asked: FetchOffsetsGroup) -> FetchedOffsetsGroup:
    topics = asked.topics
    if topics is None:
        topics = await _committed_to(session, asked.group_id)
    return FetchedOffsetsGroup(
        group_id=asked.group_id,
        error_code=NONE,
        topics=[
            FetchedOffsetsTopic(
                name=topic.name,
                partitions=[
                    await _fetched(session, asked.group_id, topic.name, index)
                    for index in topic.partition_indexes
                ],
            )
            for topic in topics
        ],
    )


async def _committed_to(session: KafkaSession, group: str) -> list[FetchOffsetsTopic]:
    """All partitions of which the group has committed something."""
    found: dict[str, list[int]] = {}
    for name, index in sorted(await session.front.registry.partitions(group)):
        found.setdefault(name, []).append(index)
    return [FetchOffsetsTopic(name=name, partition_indexes=ids) for name, ids in found.items()]


async def _fetched(
    session: KafkaSession, group: str, name: str, index: int
) -> FetchedOffsetsPartition:
    """What was committed; -1 for nothing, which is no error."""
    told = FetchedOffsetsPartition(
        partition_index=index, committed_offset=-1, metadata="", error_code=NONE
    )
    try:
        log = await session.front.logs.get(name, index)
    except BrokerError:
        return told
    subscription = log.topic.subscriptions.get(group)
    if subscription is not None and OFFSET in subscription.cursor.longs:
        cursor = subscription.cursor
        told.committed_offset = cursor.longs[OFFSET]
        told.committed_leader_epoch = cursor.longs.get(EPOCH, -1)
        told.metadata = cursor.properties.get(METADATA, "")
    return told


HANDLERS: Final[Mapping[int, Any]] = {8: on_offset_commit, 9: on_offset_fetch}
