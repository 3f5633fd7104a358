"""OffsetCommit and OffsetFetch: the checks of members, and the committed offsets.

`groups/offsets.py` stores offsets. Commits of one connection to one group are stored in the order
of arrival.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Set
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Final

from magnetar.core.kernel.cooperation import Cooperative
from magnetar.core.kernel.errors import BrokerError
from magnetar.core.security.actions import Action, ResourceType
from magnetar.wire.kafka.api_keys import ApiKey
from magnetar.wire.kafka.codec.declare import NO_UUID
from magnetar.wire.kafka.errors import (
    COORDINATOR_LOAD_IN_PROGRESS,
    COORDINATOR_NOT_AVAILABLE,
    GROUP_AUTHORIZATION_FAILED,
    INVALID_REQUEST,
    NONE,
    OFFSET_METADATA_TOO_LARGE,
    TOPIC_AUTHORIZATION_FAILED,
    UNKNOWN_MEMBER_ID,
    UNSTABLE_OFFSET_COMMIT,
    UNSUPPORTED_VERSION,
    KafkaRefusal,
)
from magnetar.wire.kafka.groups.commit import NEVER_MS, CommittedPosition
from magnetar.wire.kafka.groups.offsets import commit_code
from magnetar.wire.kafka.groups.subscriptions import TopicPartition
from magnetar.wire.kafka.groups.task_order import TaskOrder
from magnetar.wire.kafka.groups.transactional_offsets import unstable
from magnetar.wire.kafka.messages.offsets import (
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
from magnetar.wire.kafka.messages.parts import PartitionError
from magnetar.wire.kafka.messages.transactions import TxnCommitPartition
from magnetar.wire.kafka.names import topic_of
from magnetar.wire.kafka.session.topics.brokers import ready

if TYPE_CHECKING:
    from magnetar.core.broker.broker import Broker
    from magnetar.core.transactions.coordinator import TransactionCoordinator
    from magnetar.wire.kafka.groups.coordinator import GroupCoordinator
    from magnetar.wire.kafka.groups.offset_commits import OffsetCommits
    from magnetar.wire.kafka.groups.subscriptions import Subscriptions
    from magnetar.wire.kafka.partition.logs import Logs
    from magnetar.wire.kafka.session.context import Caller, Handler, RequestContext

NOTE_BYTES_MAX: Final = 4096
"""Metadata of one offset: Kafka's default of `offset.metadata.max.bytes`."""
PARTITIONS_MAX: Final = 50_000
"""Partitions of one request."""
RETRIABLE: Final = (COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE)
MANY_GROUPS_VERSION: Final = 8
"""From this version on OffsetFetch has a list of groups (KIP-709)."""
EPOCHS_VERSION: Final = 9
"""From this version on requests have the member epoch (KIP-848)."""
IDS_VERSION: Final = 10
"""From this version on topics are named by their ids (KIP-848, with KIP-516's ids)."""

Turn = AbstractAsyncContextManager[None]


class OffsetHandlers:
    """OffsetCommit and OffsetFetch."""

    def __init__(
        self,
        broker: Broker,
        groups: GroupCoordinator,
        commits: OffsetCommits,
        subscriptions: Subscriptions,
        logs: Logs,
        transactions: TransactionCoordinator,
    ) -> None:
        self._broker = broker
        self._groups = groups
        self._offsets = commits.offsets
        self._commits = commits
        self._subscriptions = subscriptions
        self._logs = logs
        self._transactions = transactions
        self._turns = TaskOrder()

    def handlers(self) -> Mapping[int, Handler]:
        """By API key."""
        return {
            ApiKey.OFFSET_COMMIT: self.on_offset_commit,
            ApiKey.OFFSET_FETCH: self.on_offset_fetch,
        }

    def on_offset_commit(
        self, context: RequestContext, request: OffsetCommitRequest
    ) -> Awaitable[OffsetCommitResponse]:
        """Plain, so that commits take their turns in the order of arrival."""
        turn = self._turns.take((context.caller, request.group_id))
        return self._committed(request, context.version, turn)

    async def _committed(
        self, request: OffsetCommitRequest, version: int, turn: Turn
    ) -> OffsetCommitResponse:
        requested: dict[TopicPartition, CommittedPosition] = {}
        count = sum(len(topic.partitions) for topic in request.topics)
        refusal = (
            INVALID_REQUEST
            if count > PARTITIONS_MAX
            else await ready(self._groups, request.group_id)
        )
        refusal = refusal or self._refusal(request, version)
        now_ms = self._broker.clock.wall_ms()
        named = []
        for topic in request.topics:
            code, name = refusal, topic.name
            if code == NONE and version >= IDS_VERSION:
                code, name = await self._named(topic.topic_id)
            named.append((code, name))
            for part in topic.partitions:
                if (code or note_refusal(part)) == NONE:
                    commit = commit_of(part, now_ms, request.retention_time_ms)
                    requested[name, part.partition_index] = commit
        codes = await self._commits.store(request.group_id, requested, turn)
        return OffsetCommitResponse(
            topics=[
                CommittedTopic(
                    name=topic.name,
                    topic_id=topic.topic_id,
                    partitions=[
                        PartitionError(
                            partition_index=part.partition_index,
                            error_code=code
                            or note_refusal(part)
                            or codes.get((name, part.partition_index), NONE),
                        )
                        for part in topic.partitions
                    ],
                )
                for topic, (code, name) in zip(request.topics, named, strict=True)
            ]
        )

    async def _named(self, topic_id: bytes) -> tuple[int, str]:
        """The name of the topic with an id, or the error code."""
        try:
            return NONE, await self._logs.name_of(topic_id)
        except (BrokerError, KafkaRefusal) as error:
            return commit_code(error), ""

    def _refusal(self, request: OffsetCommitRequest, version: int) -> int:
        """The error code unless the sender is a member of this generation, or neither the group has
        members nor the request a generation. The member id does not count then: librdkafka's
        consumers of the newer protocol send one even if they never join.
        """
        groups = self._groups
        if request.generation_id_or_member_epoch < 0 and not groups.in_use(request.group_id):
            return NONE
        newer = groups.consumer(request.group_id)
        if newer is not None:
            member = newer.members.get(request.member_id)
            if version < EPOCHS_VERSION and member is not None and member.classic is None:
                return UNSUPPORTED_VERSION
            return newer.check_commit(request.member_id, request.generation_id_or_member_epoch)
        group = groups.find(request.group_id)
        if group is None:
            return UNKNOWN_MEMBER_ID
        return group.may_commit(
            request.member_id,
            request.generation_id_or_member_epoch,
            request.group_instance_id,
            groups.now(),
        )

    async def on_offset_fetch(
        self, context: RequestContext, request: OffsetFetchRequest
    ) -> OffsetFetchResponse:
        requested = request.groups
        if context.version < MANY_GROUPS_VERSION:
            requested = [FetchOffsetsGroup(group_id=request.group_id, topics=request.topics)]
        # A transaction may end while offsets are read: some before it has changed them, and some
        # behind. So what is changed meanwhile is not stable either.
        with self._commits.noted() as changed:
            groups = [await self._of_group(context, one) for one in requested]
        for group in groups if request.require_stable else ():
            name = group.group_id
            self._refuse(group, unstable(self._transactions.all(), name) | changed[name])
        if context.version >= MANY_GROUPS_VERSION:
            return OffsetFetchResponse(groups=groups)
        (found,) = groups
        return OffsetFetchResponse(topics=found.topics, error_code=found.error_code)

    def _refuse(self, group: FetchedOffsetsGroup, waiting: Set[TopicPartition]) -> None:
        """Refuse offsets that are not stable (KIP-447): the client retries until the transaction
        has ended.
        """
        for topic in group.topics if waiting else ():
            name = topic.name or self._logs.name_at_once(topic.topic_id)
            for part in topic.partitions:
                if (name, part.partition_index) in waiting:
                    part.error_code, part.committed_offset = UNSTABLE_OFFSET_COMMIT, -1

    async def _of_group(
        self, context: RequestContext, requested: FetchOffsetsGroup
    ) -> FetchedOffsetsGroup:
        """The offsets of the named topics, or of all topics if the list is null."""
        group_response = FetchedOffsetsGroup(
            group_id=requested.group_id, error_code=NONE, topics=[]
        )
        caller, version = context.caller, context.version
        if not caller.must(Action.DESCRIBE, ResourceType.GROUP, requested.group_id):
            group_response.error_code = GROUP_AUTHORIZATION_FAILED
            return group_response
        count = sum(len(topic.partition_indexes) for topic in requested.topics or ())
        code = (
            INVALID_REQUEST
            if count > PARTITIONS_MAX
            else await ready(self._groups, requested.group_id)
        )
        group_response.error_code = code or self._stale(requested)
        if group_response.error_code != NONE:
            return group_response
        try:
            topics = requested.topics
            if topics is None:
                topics = await self._committed_to(requested.group_id, version, caller)
        except BrokerError as error:
            group_response.error_code = commit_code(error)
            return group_response
        async for topic in Cooperative(topics):
            found = await self._of_topic(requested.group_id, topic, context)
            group_response.topics.append(found)
            # clients retry on these errors of a group, but most raise those of a partition
            codes = (part.error_code for part in found.partitions)
            again = (code for code in codes if code in RETRIABLE)
            group_response.error_code = next(again, group_response.error_code)
        return group_response

    def _stale(self, requested: FetchOffsetsGroup) -> int:
        """The error code of a member id or a member epoch that is not valid in the group.

        Current Go clients send the generation of classic members here, which is not checked
        (`ClassicGroup.validateOffsetFetch` of 4.3). A group without members does not check either:
        the sender learns at its next heartbeat that it is no member.
        """
        if requested.member_id is None and requested.member_epoch < 0:
            return NONE
        group = self._groups.consumer(requested.group_id)
        return (
            NONE
            if group is None
            else group.check_commit(requested.member_id or "", requested.member_epoch)
        )

    async def _of_topic(
        self, group_id: str, topic: FetchOffsetsTopic, context: RequestContext
    ) -> FetchedOffsetsTopic:
        code, name = NONE, topic.name
        if context.version >= IDS_VERSION:
            code, name = await self._named(topic.topic_id)
        if code == NONE and not context.caller.must(Action.DESCRIBE, ResourceType.TOPIC, name):
            code = TOPIC_AUTHORIZATION_FAILED
        parts = []
        async for index in Cooperative(topic.partition_indexes):
            if code == NONE:
                parts.append(await self._fetched(group_id, (name, index)))
            else:
                parts.append(
                    FetchedOffsetsPartition(
                        partition_index=index, committed_offset=-1, metadata="", error_code=code
                    )
                )
        return FetchedOffsetsTopic(name=topic.name, topic_id=topic.topic_id, partitions=parts)

    async def _committed_to(
        self, group: str, version: int, caller: Caller
    ) -> list[FetchOffsetsTopic]:
        """The partitions with a committed offset of the group, as far as the client may know."""
        found: dict[str, list[int]] = {}
        for name, index in sorted(await self._subscriptions.partitions(group)):
            if not caller.may(Action.DESCRIBE, ResourceType.TOPIC, name):
                continue
            found.setdefault(name, []).append(index)
        ids = self._broker.topic_ids
        return [
            FetchOffsetsTopic(
                name=name,
                topic_id=await ids.of(topic_of(name)) if version >= IDS_VERSION else NO_UUID,
                partition_indexes=indexes,
            )
            for name, indexes in found.items()
        ]

    async def _fetched(self, group: str, where: TopicPartition) -> FetchedOffsetsPartition:
        """The committed offset; -1 without an error if there is none, as in Kafka."""
        partition_response = FetchedOffsetsPartition(
            partition_index=where[1], committed_offset=-1, metadata="", error_code=NONE
        )
        try:
            found = await self._offsets.fetch(group, where)
        except BrokerError as error:
            partition_response.error_code = commit_code(error)
            return partition_response
        if found is not None:
            partition_response.committed_offset, partition_response.metadata = (
                found.offset,
                found.note,
            )
            partition_response.committed_leader_epoch = found.epoch
        return partition_response


def note_refusal(part: CommitPartition | TxnCommitPartition) -> int:
    """The error code if the metadata of an offset is too long."""
    note = (part.committed_metadata or "").encode()
    return OFFSET_METADATA_TOO_LARGE if len(note) > NOTE_BYTES_MAX else NONE


def commit_of(
    part: CommitPartition | TxnCommitPartition, now_ms: int, retention_ms: int = -1
) -> CommittedPosition:
    """The commit of one partition. Requests up to version 4 may set its retention (KIP-211 removed
    that). Negative offsets are stored as in Kafka: KafkaJS resets a group to the earliest offset by
    -2 and to the latest by -1, and its consumers resolve them after OffsetFetch.
    """
    return CommittedPosition(
        offset=part.committed_offset,
        epoch=part.committed_leader_epoch,
        note=part.committed_metadata or "",
        committed_ms=now_ms,
        expires_ms=NEVER_MS if retention_ms < 0 else now_ms + retention_ms,
    )
