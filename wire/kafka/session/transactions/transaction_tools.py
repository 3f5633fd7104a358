"""The requests of tools about transactions and producers (KIP-664)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from magnetar.core.entry.kafka import form
from magnetar.core.kernel.cooperation import Cooperative
from magnetar.core.kernel.errors import BrokerError
from magnetar.core.kernel.names import TopicName
from magnetar.core.security.actions import Action, ResourceType
from magnetar.core.transactions.transaction import Transaction, TransactionState
from magnetar.wire.kafka.api_keys import ApiKey
from magnetar.wire.kafka.errors import (
    NONE,
    TRANSACTIONAL_ID_NOT_FOUND,
    KafkaRefusal,
    code_and_message,
    code_of,
)
from magnetar.wire.kafka.messages.parts import PartitionError, TopicErrors, TopicPartitions
from magnetar.wire.kafka.messages.transactions import (
    DescribedProducer,
    DescribedProducersPartition,
    DescribedProducersTopic,
    DescribedTransaction,
    DescribeProducersRequest,
    DescribeProducersResponse,
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    ListedTransaction,
    ListTransactionsRequest,
    ListTransactionsResponse,
    WriteMarker,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
    WrittenMarker,
)
from magnetar.wire.kafka.names import called
from magnetar.wire.kafka.session.long_lists import long_list
from magnetar.wire.kafka.session.topics import internal

if TYPE_CHECKING:
    from magnetar.core.kernel.clock import Clock
    from magnetar.core.transactions.coordinator import TransactionCoordinator
    from magnetar.wire.kafka.groups.group_records import GroupRecords
    from magnetar.wire.kafka.partition.logs import Logs
    from magnetar.wire.kafka.session.context import Caller, Handler, RequestContext

STATES: Final[Mapping[TransactionState, str]] = {
    TransactionState.EMPTY: "Empty",
    TransactionState.ONGOING: "Ongoing",
    TransactionState.COMMITTING: "PrepareCommit",
    TransactionState.ABORTING: "PrepareAbort",
    TransactionState.COMMITTED: "CompleteCommit",
    TransactionState.ABORTED: "CompleteAbort",
}
"""The names of `TransactionState` in Kafka, which tools show (KIP-664)."""


class TransactionToolHandlers:
    """ListTransactions, DescribeTransactions, DescribeProducers and WriteTxnMarkers."""

    def __init__(
        self, coordinator: TransactionCoordinator, logs: Logs, records: GroupRecords, clock: Clock
    ) -> None:
        self._coordinator = coordinator
        self._logs = logs
        self._records = records
        self._clock = clock

    def handlers(self) -> Mapping[int, Handler]:
        """By API key."""
        return {
            ApiKey.WRITE_TXN_MARKERS: self.on_write_txn_markers,
            ApiKey.DESCRIBE_PRODUCERS: self.on_describe_producers,
            ApiKey.DESCRIBE_TRANSACTIONS: self.on_describe_transactions,
            ApiKey.LIST_TRANSACTIONS: self.on_list_transactions,
        }

    async def on_list_transactions(
        self, context: RequestContext, request: ListTransactionsRequest
    ) -> ListTransactionsResponse:
        known = set(STATES.values())
        now_ms = self._clock.wall_ms()

        def requested(found: Transaction) -> bool:
            if request.state_filters and STATES[found.state] not in request.state_filters:
                return False
            if request.producer_id_filters and found.writer not in request.producer_id_filters:
                return False
            if request.duration_filter < 0:
                return True
            return (
                found.state is TransactionState.ONGOING
                and now_ms - found.began_ms >= request.duration_filter
            )

        return ListTransactionsResponse(
            error_code=NONE,
            unknown_state_filters=[name for name in request.state_filters if name not in known],
            transaction_states=[
                ListedTransaction(
                    transactional_id=found.name,
                    producer_id=found.writer,
                    transaction_state=STATES[found.state],
                )
                for found in self._coordinator.all()
                if requested(found)
                and context.caller.may(Action.DESCRIBE, ResourceType.TRANSACTION, found.name)
            ],
        )

    async def on_describe_transactions(
        self, context: RequestContext, request: DescribeTransactionsRequest
    ) -> list[bytes]:
        coordinator = self._coordinator

        async def described(name: str) -> DescribedTransaction:
            return _described(context.caller, name, coordinator.find(name))

        response = DescribeTransactionsResponse(transaction_states=[])
        return await long_list(context, response, request.transactional_ids, described)

    async def on_describe_producers(
        self, context: RequestContext, request: DescribeProducersRequest
    ) -> DescribeProducersResponse:
        return DescribeProducersResponse(
            topics=[
                DescribedProducersTopic(
                    name=topic.name,
                    partitions=[
                        await self._producers(topic.name, index)
                        async for index in Cooperative(topic.partition_indexes)
                    ],
                )
                async for topic in Cooperative(request.topics)
            ]
        )

    async def _producers(self, name: str, index: int) -> DescribedProducersPartition:
        partition_response = DescribedProducersPartition(
            partition_index=index, error_code=NONE, active_producers=[]
        )
        try:
            if internal.is_meant(name):
                await internal.check_is_there(self._records, index)
                return partition_response
            log = await self._logs.get(name, index)
            if log.topic.ledger.mixed:
                await log.begin_writing()
        except (BrokerError, KafkaRefusal) as error:
            partition_response.error_code, partition_response.error_message = code_and_message(
                error
            )
            return partition_response
        begun = log.topic.ledger.transactions.open
        partition_response.active_producers = [
            DescribedProducer(
                producer_id=number,
                producer_epoch=producer.epoch,
                last_sequence=producer.last_stored,
                last_timestamp=producer.last_ms,
                coordinator_epoch=0 if number in begun else -1,
                current_txn_start_offset=begun[number].first if number in begun else -1,
            )
            for number, producer in log.producers.all()
        ]
        return partition_response

    async def on_write_txn_markers(
        self, context: RequestContext, request: WriteTxnMarkersRequest
    ) -> WriteTxnMarkersResponse:
        """Write the markers of a transaction that its coordinator has forgotten (KIP-664)."""
        return WriteTxnMarkersResponse(
            markers=[
                WrittenMarker(
                    producer_id=marker.producer_id,
                    topics=[
                        TopicErrors(
                            name=topic.name,
                            partitions=[
                                await self._marked(marker, topic.name, index)
                                async for index in Cooperative(topic.partition_indexes)
                            ],
                        )
                        async for topic in Cooperative(marker.topics)
                    ],
                )
                async for marker in Cooperative(request.markers)
            ]
        )

    async def _marked(self, marker: WriteMarker, name: str, index: int) -> PartitionError:
        response = PartitionError(partition_index=index, error_code=NONE)
        try:
            log = await self._logs.get(name, index)
            await log.begin_writing()
            await log.topic.end_transaction(
                form,
                marker.producer_id,
                marker.producer_epoch,
                committed=marker.transaction_result,
            )
        except (BrokerError, KafkaRefusal) as error:
            response.error_code = code_of(error)
        return response


def _described(caller: Caller, name: str, found: Transaction | None) -> DescribedTransaction:
    """A transaction, with those of its topics that the client may describe."""
    if found is None:
        return DescribedTransaction(
            error_code=TRANSACTIONAL_ID_NOT_FOUND,
            transactional_id=name,
            transaction_state="",
            transaction_timeout_ms=0,
            transaction_start_time_ms=0,
            producer_id=0,
            producer_epoch=0,
            topics=[],
        )
    partitions: dict[str, list[int]] = {}
    for log in map(TopicName.parse, found.logs):
        partitions.setdefault(called(log.base), []).append(max(log.partition_index, 0))
    goes_on = found.state is TransactionState.ONGOING or found.decided
    return DescribedTransaction(
        error_code=NONE,
        transactional_id=name,
        transaction_state=STATES[found.state],
        transaction_timeout_ms=found.timeout_ms,
        transaction_start_time_ms=found.began_ms if goes_on else -1,
        producer_id=found.writer,
        producer_epoch=found.epoch,
        topics=[
            TopicPartitions(topic=topic, partitions=ids)
            for topic, ids in partitions.items()
            if caller.may(Action.DESCRIBE, ResourceType.TOPIC, topic)
        ],
    )
