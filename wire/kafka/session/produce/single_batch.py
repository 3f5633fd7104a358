"""The fast path of Produce: one batch for one partition, in a request shape seen before.

It does what `Producing` does for any request, without objects for request and response. An unusual
request goes to `Producing`, before this module has changed anything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from magnetar.core.entry.kafka import form
from magnetar.core.entry.kafka.record_batch import BatchHeader
from magnetar.core.kernel.errors import BrokerError
from magnetar.wire.kafka.errors import NONE, KafkaRefusal
from magnetar.wire.kafka.hot import answer
from magnetar.wire.kafka.messages.records import ProducedPartition, ProducedTopic, ProduceResponse
from magnetar.wire.kafka.partition.batches import checked, for_the_loop
from magnetar.wire.kafka.partition.logs import PartitionLog
from magnetar.wire.kafka.session.produce.batch_append import BatchAppend, check_transaction

if TYPE_CHECKING:
    from magnetar.wire.kafka.session.produce.handler import ProduceHandler
    from magnetar.wire.kafka.wire import RepeatedProduce

WAITING_ACKS: Final = (-1, 1)


def begin(handler: ProduceHandler, request: RepeatedProduce) -> bool:
    """Store the batch if nothing about it is unusual; return whether it did."""
    shape, batch = request.shape, request.records
    logs = handler.logs
    if shape.name:
        log = logs.at_once(shape.name, shape.partition)
    else:
        log = logs.by_id_at_once(shape.topic_id, shape.partition)
    if log is None or not log.writable or shape.acks not in WAITING_ACKS:
        return False
    if handler.guarded and not (
        handler.may_write(log.topic.name.full) and handler.may_use(shape.transactional_id)
    ):
        return False
    rules = log.rules()
    if not rules.plain or not for_the_loop(batch):
        return False
    now_ms = handler.clock.wall_ms()
    try:
        log.topic.check_producer()
        taken, header = checked(batch, rules, now_ms)
        if taken is not batch:
            return False
        single = Single(handler, request, log, header, now_ms)
        if header.producer_id >= 0:
            check_transaction(handler.coordinator, log, header)
            single.remembered, before = log.producers.admit(header, now_ms)
            if before:
                return False
    except (BrokerError, KafkaRefusal):
        return False  # `Producing` finds the same error, and reports it
    handler.connection.storing(single.size)
    single.begin(handler, batch)
    request.release()
    return True


class Single(BatchAppend):
    """The append of the one batch, and the response to its request."""

    __slots__ = ("handler", "request", "size")

    def __init__(
        self,
        handler: ProduceHandler,
        request: RepeatedProduce,
        log: PartitionLog,
        header: BatchHeader,
        now_ms: int,
    ) -> None:
        super().__init__(log, header, now_ms)
        self.handler = handler
        self.request = request
        self.size = len(request.records)

    def wrapped(self, batch: bytes | memoryview, offsets: int) -> bytes:
        body = self.request.body
        if body is not None:
            front = form.head(offsets, self.now_ms)
            if len(front) == body.before:
                return body.behind(front)
        return super().wrapped(batch, offsets)

    def report(self, code: int, offset: int) -> None:
        handler, request, shape = self.handler, self.request, self.request.shape
        handler.connection.stored(self.size)
        if code == NONE and not handler.throttle.waits:
            words, start, rest = shape.answer_words, self.log.start, shape.rest
            number = request.correlation_id
            handler.replies.answer_packed(request, answer(number, words, offset, start, rest))
            return
        partition_response = ProducedPartition(
            index=shape.partition,
            error_code=code,
            base_offset=offset,
            log_start_offset=self.log.start,
        )
        topic = ProducedTopic(
            name=shape.name, topic_id=shape.topic_id, partition_responses=[partition_response]
        )
        owes_ms = round(handler.throttle.wait_seconds * 1000)
        handler.replies.answer(
            request, ProduceResponse(responses=[topic], throttle_time_ms=owes_ms)
        )
