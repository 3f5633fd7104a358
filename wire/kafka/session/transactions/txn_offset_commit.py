"""TxnOffsetCommit: offsets that are committed if a transaction is (KIP-98, KIP-447).

The transaction's coordinator stores them as promises; `keep` commits them with it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from magnetar.core.kernel.cooperation import Cooperative
from magnetar.core.kernel.errors import BrokerError, NotReady
from magnetar.core.transactions.transaction import Promise, TransactionState
from magnetar.wire.kafka.api_keys import ApiKey
from magnetar.wire.kafka.errors import (
    ILLEGAL_GENERATION,
    INVALID_PRODUCER_EPOCH,
    INVALID_TXN_STATE,
    NONE,
    STALE_MEMBER_EPOCH,
    UNKNOWN_MEMBER_ID,
    KafkaRefusal,
)
from magnetar.wire.kafka.groups.commit import CommittedPosition
from magnetar.wire.kafka.groups.offsets import commit_code
from magnetar.wire.kafka.groups.subscriptions import TopicPartition
from magnetar.wire.kafka.groups.transactional_offsets import TransactionalOffsets, decode, encode
from magnetar.wire.kafka.messages.parts import PartitionError, TopicErrors
from magnetar.wire.kafka.messages.transactions import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
)
from magnetar.wire.kafka.session.groups.offsets import RETRIABLE, commit_of, note_refusal, store
from magnetar.wire.kafka.session.transactions import transactions

if TYPE_CHECKING:
    from magnetar.core.kernel.clock import Clock
    from magnetar.core.transactions.coordinator import TransactionCoordinator
    from magnetar.wire.kafka.front import KafkaFront
    from magnetar.wire.kafka.groups.coordinator import GroupCoordinator
    from magnetar.wire.kafka.session.context import Handler, RequestContext

log = logging.getLogger(__name__)


class TxnOffsetCommitHandlers:
    """TxnOffsetCommit."""

    def __init__(
        self, coordinator: TransactionCoordinator, groups: GroupCoordinator, clock: Clock
    ) -> None:
        self._coordinator = coordinator
        self._groups = groups
        self._clock = clock

    def handlers(self) -> Mapping[int, Handler]:
        """By the kinds of requests that they answer."""
        return {
            ApiKey.TXN_OFFSET_COMMIT: self.on_txn_offset_commit,
        }

    async def on_txn_offset_commit(
        self, context: RequestContext, request: TxnOffsetCommitRequest
    ) -> TxnOffsetCommitResponse:
        now_ms = self._clock.wall_ms()
        codes: dict[TopicPartition, int] = {}
        offsets: TransactionalOffsets = []
        async for topic in Cooperative(request.topics):
            for part in topic.partitions:
                code = codes[topic.name, part.partition_index] = note_refusal(part)
                if code == NONE:
                    offsets.append((topic.name, part.partition_index, commit_of(part, now_ms)))
        try:
            await self._groups.ready(request.group_id)
            self._check_member(request)
            await self._extend(request, offsets)
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

    def _check_member(self, request: TxnOffsetCommitRequest) -> None:
        """A member that names a generation must belong to it; one that names none may commit."""
        groups = self._groups
        stranger = not request.member_id or not groups.in_use(request.group_id)
        if request.generation_id < 0 and stranger:
            return
        newer, group = groups.consumer(request.group_id), groups.find(request.group_id)
        code = UNKNOWN_MEMBER_ID
        if newer is not None:
            code = newer.check_commit(request.member_id, request.generation_id)
            # producers know the older word only
            code = ILLEGAL_GENERATION if code == STALE_MEMBER_EPOCH else code
        elif group is not None:
            code = group.may_commit(
                request.member_id, request.generation_id, request.group_instance_id, groups.now()
            )
        if code != NONE:
            raise KafkaRefusal(code)

    async def _extend(self, request: TxnOffsetCommitRequest, offsets: TransactionalOffsets) -> None:
        coordinator = self._coordinator
        async with coordinator.alone_with(request.transactional_id, settled=True) as place:
            number, epoch = request.producer_id, request.producer_epoch
            found = transactions.checked(place, number, epoch, INVALID_PRODUCER_EPOCH)
            if found.state is not TransactionState.ONGOING or request.group_id not in found.parties:
                raise KafkaRefusal(INVALID_TXN_STATE)
            if offsets:
                made = Promise(request.group_id, encode(offsets))
                await coordinator.extend(place, promises=[made])


async def keep(front: KafkaFront, promises: Iterable[Promise]) -> None:
    """The transaction is committed, and so are these."""
    by_group: dict[str, dict[TopicPartition, CommittedPosition]] = {}
    for promise in promises:
        commits = by_group.setdefault(promise.to, {})
        commits |= {(topic, index): commit for topic, index, commit in decode(promise.says)}
    for group, commits in by_group.items():
        turn = front.commit_turns.take(("promises", group))
        codes = await store(front.groups, front.offsets, group, commits, turn)
        if any(code in RETRIABLE for code in codes.values()):
            raise NotReady(f"offsets of group {group} cannot be stored now")
        lost = {where: code for where, code in codes.items() if code != NONE}
        if lost:
            log.error("group %s: offsets of a transaction are not kept: %s", group, lost)
