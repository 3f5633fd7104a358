"""TxnOffsetCommit: offsets that a transaction commits when it commits itself (KIP-98, KIP-447).

They are stored in the transaction's record, and committed after it (`groups/offset_commits.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec.structs import replace

from magnetar.core.kernel.cooperation import Cooperative
from magnetar.core.kernel.errors import BrokerError, InvalidName
from magnetar.core.transactions.transaction import PendingCommit, TransactionState
from magnetar.wire.kafka.api_keys import ApiKey
from magnetar.wire.kafka.errors import (
    ILLEGAL_GENERATION,
    INVALID_GROUP_ID,
    INVALID_PRODUCER_EPOCH,
    INVALID_TXN_STATE,
    NONE,
    STALE_MEMBER_EPOCH,
    UNKNOWN_MEMBER_ID,
    KafkaRefusal,
)
from magnetar.wire.kafka.groups.offsets import commit_code
from magnetar.wire.kafka.groups.subscriptions import TopicPartition
from magnetar.wire.kafka.groups.transactional_offsets import TransactionalOffsets, encode
from magnetar.wire.kafka.messages.parts import PartitionError, TopicErrors
from magnetar.wire.kafka.messages.transactions import (
    TxnCommitPartition,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
)
from magnetar.wire.kafka.session.groups.offsets import commit_of, note_refusal
from magnetar.wire.kafka.session.transactions import transactions

if TYPE_CHECKING:
    from magnetar.core.kernel.clock import Clock
    from magnetar.core.transactions.coordinator import TransactionCoordinator
    from magnetar.wire.kafka.groups.coordinator import GroupCoordinator
    from magnetar.wire.kafka.groups.offsets import Offsets
    from magnetar.wire.kafka.session.context import Handler, RequestContext


class TxnOffsetCommitHandlers:
    """TxnOffsetCommit."""

    def __init__(
        self,
        coordinator: TransactionCoordinator,
        groups: GroupCoordinator,
        offsets: Offsets,
        clock: Clock,
    ) -> None:
        self._coordinator = coordinator
        self._groups = groups
        self._offsets = offsets
        self._clock = clock

    def handlers(self) -> Mapping[int, Handler]:
        """By API key."""
        return {
            ApiKey.TXN_OFFSET_COMMIT: self.on_txn_offset_commit,
        }

    async def on_txn_offset_commit(
        self, context: RequestContext, request: TxnOffsetCommitRequest
    ) -> TxnOffsetCommitResponse:
        now_ms = self._clock.wall_ms()
        codes: dict[TopicPartition, int] = {}
        offsets: TransactionalOffsets = []
        order = self._offsets.next_order()
        async for topic in Cooperative(request.topics):
            for part in topic.partitions:
                where = (topic.name, part.partition_index)
                code = codes[where] = self._refusal(request.group_id, where, part)
                if code == NONE:
                    commit = replace(commit_of(part, now_ms), order=order)
                    offsets.append((*where, commit))
        try:
            self._offsets.check_group(request.group_id)
            await self._groups.ready(request.group_id)
            self._check_member(request)
            await self._extend(request, offsets)
        except InvalidName:
            codes = dict.fromkeys(codes, INVALID_GROUP_ID)
        except (BrokerError, KafkaRefusal) as error:
            codes = dict.fromkeys(codes, commit_code(error))
        return TxnOffsetCommitResponse(
            topics=[
                TopicErrors(
                    name=topic.name,
                    partitions=[
                        PartitionError(
                            partition_index=part.partition_index,
                            error_code=codes[topic.name, part.partition_index],
                        )
                        for part in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )

    def _refusal(self, group: str, where: TopicPartition, part: TxnCommitPartition) -> int:
        """The error code of a commit that would fail after the transaction, as far as is known now.

        For a subscription that Pulsar's consumers hold this is UNKNOWN_MEMBER_ID, at which a
        producer aborts its transaction; NON_EMPTY_GROUP would be fatal to it
        (`TxnOffsetCommitHandler` in `TransactionManager.java` of 4.3).
        """
        if self._offsets.is_held(group, where):
            return UNKNOWN_MEMBER_ID
        return note_refusal(part)

    def _check_member(self, request: TxnOffsetCommitRequest) -> None:
        """Raise `KafkaRefusal` unless the sender belongs to the generation that it names (KIP-447).

        Requests of older producers name no member and no generation, and pass.
        """
        groups = self._groups
        unnamed = not request.member_id or not groups.in_use(request.group_id)
        if request.generation_id < 0 and unnamed:
            return
        newer, group = groups.consumer(request.group_id), groups.find(request.group_id)
        code = UNKNOWN_MEMBER_ID
        if newer is not None:
            code = newer.check_commit(request.member_id, request.generation_id)
            # producers know the classic error code only
            code = ILLEGAL_GENERATION if code == STALE_MEMBER_EPOCH else code
        elif group is not None:
            code = group.may_commit(
                request.member_id, request.generation_id, request.group_instance_id, groups.now()
            )
        if code != NONE:
            raise KafkaRefusal(code)

    async def _extend(self, request: TxnOffsetCommitRequest, offsets: TransactionalOffsets) -> None:
        coordinator = self._coordinator
        async with coordinator.alone_with(request.transactional_id, settled=True) as slot:
            producer_id, epoch = request.producer_id, request.producer_epoch
            found = transactions.checked(slot, producer_id, epoch, INVALID_PRODUCER_EPOCH)
            if (
                found.state is not TransactionState.ONGOING
                or request.group_id not in found.participants
            ):
                raise KafkaRefusal(INVALID_TXN_STATE)
            if offsets:
                made = PendingCommit(request.group_id, encode(offsets))
                await coordinator.extend(slot, pending=[made])
