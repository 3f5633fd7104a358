"""The append of one checked batch: the check of its transaction, and the report of its outcome.

Invariant: `report` is called once, after the batch is stored or has failed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from magnetar.core.entry.kafka import form
from magnetar.core.entry.kafka.record_batch import TRANSACTIONAL, BatchHeader
from magnetar.core.kernel.errors import BrokerError
from magnetar.core.ledger.log.chain import Position
from magnetar.wire.kafka.errors import (
    INVALID_PRODUCER_EPOCH,
    INVALID_TXN_STATE,
    NONE,
    KafkaRefusal,
    code_of,
)
from magnetar.wire.kafka.partition.logs import PartitionLog
from magnetar.wire.kafka.partition.producer_states import BatchMetadata

if TYPE_CHECKING:
    from magnetar.core.transactions.coordinator import TransactionCoordinator
    from magnetar.wire.kafka.session.produce.handler import ProduceHandler


def check_transaction(
    coordinator: TransactionCoordinator, log: PartitionLog, header: BatchHeader
) -> None:
    """Raise `KafkaRefusal` unless the batch fits its producer's open transaction, or its absence.

    A transactional batch needs an open transaction that has the partition: otherwise a late batch
    would hang a transaction that nobody ends (KIP-890, part 1). Versions before 12 of Produce do
    not add the partition themselves. INVALID_PRODUCER_EPOCH makes the client abort and go on;
    PRODUCER_FENCED would be fatal (KIP-588, `ProducerAppendInfo.checkProducerEpoch` of 4.3).
    """
    producer_id = header.producer_id
    if header.attributes & TRANSACTIONAL:
        if coordinator.admits(producer_id, header.producer_epoch, log.topic.name.full):
            return
        transaction = coordinator.of_writer(producer_id)
        if transaction is not None and transaction.epoch != header.producer_epoch:
            raise KafkaRefusal(INVALID_PRODUCER_EPOCH, "the producer has another epoch by now")
        raise KafkaRefusal(INVALID_TXN_STATE, "the partition is in no transaction of this producer")
    if producer_id in log.topic.ledger.transactions.open:
        # as `ProducerAppendInfo.appendDataBatch` of 4.3 does
        raise KafkaRefusal(INVALID_TXN_STATE, "this producer has a transaction open here")


class BatchAppend(ABC):
    """One batch; subclasses define how its outcome is reported."""

    __slots__ = ("header", "log", "now_ms", "remembered")

    def __init__(self, log: PartitionLog, header: BatchHeader, now_ms: int) -> None:
        self.log = log
        self.header = header
        self.now_ms = now_ms
        self.remembered: BatchMetadata | None = None
        """The batch in its producer's state, if it has a producer id (KIP-98)."""

    @abstractmethod
    def report(self, code: int, offset: int) -> None:
        """Report an error code, or the offset if it is NONE."""

    def begin(self, handler: ProduceHandler, batch: bytes | memoryview) -> None:
        topic, offsets, now_ms = self.log.topic, self.header.last_delta + 1, self.now_ms
        throttles = topic.throttles.publish
        if throttles:
            handler.throttle.spend(throttles, offsets, len(batch))
        topic.last_used_ms = now_ms
        topic.publish([self.wrapped(batch, offsets)], [offsets], self._stored)

    def wrapped(self, batch: bytes | memoryview, offsets: int) -> bytes:
        """The batch as an entry."""
        return form.wrapped(batch, offsets, self.now_ms)

    def _stored(self, result: Position | BrokerError) -> None:
        log, remembered = self.log, self.remembered
        if isinstance(result, BrokerError):
            code = code_of(result)
            if remembered is not None:
                log.producers.failed(self.header.producer_id, remembered, code)
            self.report(code, -1)
            return
        offset = log.topic.ledger.delivered_index(result)
        if remembered is not None:
            log.producers.stored(remembered, offset)
            if self.header.attributes & TRANSACTIONAL and log.topic.transactions.present:
                index = log.topic.transactions.index
                index.wrote(self.header.producer_id, offset, result, self.now_ms)
        self.report(NONE, offset)
