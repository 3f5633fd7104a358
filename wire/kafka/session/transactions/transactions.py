"""The requests of Kafka's transactional producers (KIP-98), on the coordinator of core.

InitProducerId assigns a producer id and an epoch to a transactional id. A later producer with the
same transactional id gets a higher epoch, which fences the earlier one, and an open transaction is
aborted. The producer then adds partitions and groups, writes, and ends the transaction.

Kafka answers CONCURRENT_TRANSACTIONS while it writes the markers of the last transaction, and the
client retries. Here the request waits for the markers instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from magnetar.core.kernel.cooperation import Cooperative
from magnetar.core.kernel.errors import BrokerError
from magnetar.core.security.actions import CLUSTER_NAME, Action, ResourceType
from magnetar.core.transactions.slot import TransactionSlot
from magnetar.core.transactions.transaction import Transaction, TransactionState
from magnetar.wire.kafka.api_keys import ApiKey
from magnetar.wire.kafka.errors import (
    CLUSTER_AUTHORIZATION_FAILED,
    CONCURRENT_TRANSACTIONS,
    INVALID_PRODUCER_EPOCH,
    INVALID_PRODUCER_ID_MAPPING,
    INVALID_REQUEST,
    INVALID_TRANSACTION_TIMEOUT,
    INVALID_TXN_STATE,
    NONE,
    OPERATION_NOT_ATTEMPTED,
    PRODUCER_FENCED,
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    KafkaRefusal,
)
from magnetar.wire.kafka.groups.offsets import commit_code
from magnetar.wire.kafka.messages.transactions import (
    AddedPartition,
    AddedTopic,
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    EndTxnRequest,
    EndTxnResponse,
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from magnetar.wire.kafka.services import PRODUCER_IDS

if TYPE_CHECKING:
    from magnetar.core.ports.metadata_store import MetadataStore
    from magnetar.core.transactions.coordinator import TransactionCoordinator
    from magnetar.wire.kafka.partition.logs import Logs
    from magnetar.wire.kafka.session.context import Caller, Handler, RequestContext

EPOCH_MAX: Final = 32_765
"""The highest epoch that InitProducerId assigns; then a new producer id follows. Epochs from 32766
on count as exhausted in Kafka, and serve to fence (`TransactionMetadata.isEpochExhausted`).
"""
FENCED_VERSIONS: Final[Mapping[int, int]] = {
    ApiKey.INIT_PRODUCER_ID: 4,
    ApiKey.ADD_PARTITIONS_TO_TXN: 2,
    ApiKey.ADD_OFFSETS_TO_TXN: 2,
    ApiKey.END_TXN: 2,
}
"""The version from which on each request has PRODUCER_FENCED; before it, the code of KIP-98."""


class TransactionHandlers:
    """InitProducerId, AddPartitionsToTxn, AddOffsetsToTxn and EndTxn."""

    def __init__(
        self,
        coordinator: TransactionCoordinator,
        logs: Logs,
        metadata: MetadataStore,
        timeout_ms_max: int,
    ) -> None:
        self._coordinator = coordinator
        self._logs = logs
        self._metadata = metadata
        self._timeout_ms_max = timeout_ms_max

    def handlers(self) -> Mapping[int, Handler]:
        """By API key."""
        return {
            ApiKey.INIT_PRODUCER_ID: self.on_init_producer_id,
            ApiKey.ADD_PARTITIONS_TO_TXN: self.on_add_partitions,
            ApiKey.ADD_OFFSETS_TO_TXN: self.on_add_offsets,
            ApiKey.END_TXN: self.on_end_txn,
        }

    async def on_init_producer_id(
        self, context: RequestContext, request: InitProducerIdRequest
    ) -> InitProducerIdResponse:
        response = InitProducerIdResponse(error_code=NONE, producer_epoch=0)
        try:
            _check_rights(context.caller, request.transactional_id)
            if request.transactional_id is None:
                response.producer_id = await self._metadata.next(PRODUCER_IDS)
            else:
                found = await self._taken(context, request, request.transactional_id)
                response.producer_id, response.producer_epoch = found.writer, found.epoch
        except (BrokerError, KafkaRefusal) as error:
            response.error_code, response.producer_epoch = commit_code(error), -1
        return response

    async def _taken(
        self, context: RequestContext, request: InitProducerIdRequest, name: str
    ) -> Transaction:
        """Assign the transactional id to the caller, and abort its open transaction."""
        timeout_ms = request.transaction_timeout_ms
        if not name:
            raise KafkaRefusal(INVALID_REQUEST, "a transactional id is not empty")
        if not 0 < timeout_ms <= self._timeout_ms_max:
            raise KafkaRefusal(INVALID_TRANSACTION_TIMEOUT)
        coordinator = self._coordinator
        while True:
            async with coordinator.alone_with(name, settled=True) as slot:
                found = slot.transaction
                _refuse_if_of_sink(found)
                if found is None:
                    writer = await self._metadata.next(PRODUCER_IDS)
                    made = Transaction(name, writer, 0, timeout_ms)
                    return await coordinator.store(slot, made)
                if request.producer_id >= 0 and _is_repeated(found, context, request):
                    return found
                if found.state is not TransactionState.ONGOING:
                    return await self._next_epoch(slot, request)
                await coordinator.decide(slot, commit=False, epoch=found.epoch + 1)

    async def _next_epoch(
        self, slot: TransactionSlot, request: InitProducerIdRequest
    ) -> Transaction:
        found = slot.transaction
        assert found is not None
        writer, epoch = found.writer, found.epoch + 1
        if epoch > EPOCH_MAX:
            writer, epoch = await self._metadata.next(PRODUCER_IDS), 0
        return await self._coordinator.store(
            slot,
            found,
            writer=writer,
            epoch=epoch,
            previous_epoch=request.producer_epoch,
            timeout_ms=request.transaction_timeout_ms,
            state=TransactionState.EMPTY,
        )

    async def on_add_partitions(
        self, context: RequestContext, request: AddPartitionsToTxnRequest
    ) -> AddPartitionsToTxnResponse:
        requested = [(topic.name, index) for topic in request.topics for index in topic.partitions]
        codes = dict.fromkeys(requested, NONE)
        try:
            logs = await self._ready_logs(codes)
            if any(codes.values()):
                codes = {where: code or OPERATION_NOT_ATTEMPTED for where, code in codes.items()}
            else:
                await self._add(context, request, logs)
        except (BrokerError, KafkaRefusal) as error:
            codes = dict.fromkeys(requested, commit_code(error))
        return AddPartitionsToTxnResponse(
            results_by_topic=[
                AddedTopic(
                    name=topic.name,
                    results_by_partition=[
                        AddedPartition(
                            partition_index=index, partition_error_code=codes[topic.name, index]
                        )
                        for index in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )

    async def _ready_logs(self, codes: dict[tuple[str, int], int]) -> list[str]:
        """The full names of the partitions that are ready; sets the error codes of the others."""
        logs = []
        async for where in Cooperative(list(codes)):
            try:
                log = await self._logs.get(*where)
                await log.begin_writing()
                await log.topic.begin_transactions()
                logs.append(log.topic.name.full)
            except (BrokerError, KafkaRefusal) as error:
                codes[where] = commit_code(error)
        return logs

    async def _add(
        self, context: RequestContext, request: AddPartitionsToTxnRequest, logs: list[str]
    ) -> None:
        coordinator = self._coordinator
        async with coordinator.alone_with(request.transactional_id, settled=True) as slot:
            found = checked(slot, request.producer_id, request.producer_epoch, _fenced(context))
            if found.state is not TransactionState.ONGOING or not slot.logs.issuperset(logs):
                await coordinator.extend(slot, logs=logs)

    async def on_add_offsets(
        self, context: RequestContext, request: AddOffsetsToTxnRequest
    ) -> AddOffsetsToTxnResponse:
        coordinator, name = self._coordinator, request.transactional_id
        response = AddOffsetsToTxnResponse(error_code=NONE)
        try:
            async with coordinator.alone_with(name, settled=True) as slot:
                checked(slot, request.producer_id, request.producer_epoch, _fenced(context))
                await coordinator.extend(slot, participants=[request.group_id])
        except (BrokerError, KafkaRefusal) as error:
            response.error_code = commit_code(error)
        return response

    async def on_end_txn(self, context: RequestContext, request: EndTxnRequest) -> EndTxnResponse:
        coordinator, name = self._coordinator, request.transactional_id
        response = EndTxnResponse(error_code=NONE)
        try:
            async with coordinator.alone_with(name, settled=True) as slot:
                found = checked(slot, request.producer_id, request.producer_epoch, _fenced(context))
                _refuse_if_of_sink(found)
                requested = (
                    TransactionState.COMMITTED if request.committed else TransactionState.ABORTED
                )
                if found.state is TransactionState.ONGOING:
                    await coordinator.decide(slot, commit=request.committed)
                elif found.state is not requested:
                    raise KafkaRefusal(INVALID_TXN_STATE)
        except (BrokerError, KafkaRefusal) as error:
            response.error_code = commit_code(error)
        return response


def _check_rights(caller: Caller, transactional_id: str | None) -> None:
    """Raise `KafkaRefusal` unless the client may produce: with that transactional id, or with some
    topic, or by the right of the cluster that older clients' administrators gave (KIP-679).
    """
    if transactional_id is not None:
        if not caller.must(Action.WRITE, ResourceType.TRANSACTION, transactional_id):
            raise KafkaRefusal(TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
        return
    if caller.may(Action.IDEMPOTENT_WRITE, ResourceType.CLUSTER, CLUSTER_NAME):
        return
    if not caller.may_somewhere(Action.WRITE, ResourceType.TOPIC):
        raise KafkaRefusal(CLUSTER_AUTHORIZATION_FAILED)


def _is_repeated(
    found: Transaction, context: RequestContext, request: InitProducerIdRequest
) -> bool:
    """Whether a producer that names its id (KIP-360) repeats a request whose response was lost.

    Raises `KafkaRefusal` if it is neither the present producer nor the one before.
    """
    producer_id, epoch = request.producer_id, request.producer_epoch
    if (
        producer_id == found.writer
        and epoch == found.previous_epoch
        and found.state is TransactionState.EMPTY
    ):
        return True
    if producer_id != found.writer or epoch != found.epoch:
        raise KafkaRefusal(_fenced(context))
    return False


def _refuse_if_of_sink(found: Transaction | None) -> None:
    """A sink's transactions begin and end with its batches (`core/transactions/sinks.py`)."""
    if found is not None and found.sink:
        raise KafkaRefusal(INVALID_TXN_STATE, f"it belongs to sink {found.sink}")


def _fenced(context: RequestContext) -> int:
    newer = context.version >= FENCED_VERSIONS[context.key]
    return PRODUCER_FENCED if newer else INVALID_PRODUCER_EPOCH


def checked(slot: TransactionSlot, writer: int, epoch: int, fenced: int) -> Transaction:
    """The transaction of a slot, if it belongs to this producer id and epoch."""
    found = slot.transaction
    if found is None or found.writer != writer:
        raise KafkaRefusal(INVALID_PRODUCER_ID_MAPPING)
    if found.epoch != epoch:
        raise KafkaRefusal(fenced)
    if found.decided:
        raise KafkaRefusal(CONCURRENT_TRANSACTIONS)
    return found
