"""Produce: batches are checked and stored, as they came or as their log has them compressed.

What takes longer than the loop has time for (much that is compressed, or is to be) is looked
through in a thread; a few at a time, since each may have 64 MiB in hand, and connections in turn
(`inspectors.py`).

Most requests are of one kind, and never come here (`single_batch.py`).

Invariant: batches of one partition go to storage in the order they came on a connection; a response
says of each partition where its batch is stored, or why it is not, when that is certain.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from magnetar.core.entry.kafka.compression import Oversized
from magnetar.core.entry.kafka.record_batch import CODEC, BatchHeader
from magnetar.core.kernel.cooperation import Cooperative
from magnetar.core.kernel.errors import BrokerError
from magnetar.wire.kafka.configs import ProduceRules
from magnetar.wire.kafka.errors import (
    INVALID_REQUIRED_ACKS,
    NONE,
    NOT_ENOUGH_REPLICAS,
    NOT_LEADER,
    UNSUPPORTED_COMPRESSION,
    KafkaRefusal,
    code_and_message,
    code_of,
)
from magnetar.wire.kafka.hot import BY_ID_VERSION
from magnetar.wire.kafka.messages.records import (
    ProducedPartition,
    ProducedTopic,
    ProducePartition,
    ProduceRequest,
    ProduceResponse,
    RefusedRecord,
)
from magnetar.wire.kafka.partition.batches import BadRecords, checked, for_the_loop, prepared
from magnetar.wire.kafka.partition.logs import PartitionLog
from magnetar.wire.kafka.session.produce.batch_append import BatchAppend, check_transaction
from magnetar.wire.kafka.session.topics import internal

if TYPE_CHECKING:
    from magnetar.wire.kafka.session.produce.handler import ProduceHandler
    from magnetar.wire.kafka.wire import KafkaRequest

ZSTD: Final = 4
ZSTD_VERSION: Final = 7
"""Before it, clients could not read what is compressed with it."""
ACKS: Final = (-1, 0, 1)
AT_ONCE_MAX: Final = 500
"""Partitions of one request: more of them are found and judged with rests in between."""
UNKNOWN: Final = (KafkaRefusal(NOT_LEADER), KafkaRefusal(NOT_LEADER))


def on_produce(handler: ProduceHandler, frame: KafkaRequest) -> None:
    """Store what can be stored at once; where a topic has to be loaded first, or a batch takes its
    time, later ones wait.
    """
    handler.connection.will_write()
    request = frame.request
    assert isinstance(request, ProduceRequest)
    producing = Producing(handler, frame, request)
    if request.acks in ACKS and not producing.look():
        if not frame.weight and not handler.replies.weigh(frame):
            return
        handler.replies.hold_for(_load(producing))
    else:
        producing.begin()


async def _load(producing: Producing) -> None:
    await producing.load()
    await producing.prepare()
    producing.begin()


class Judged(NamedTuple):
    """A batch that may be stored, by these rules."""

    rules: ProduceRules
    batch: bytes | memoryview
    header: BatchHeader


def _bare(refused: KafkaRefusal) -> KafkaRefusal:
    """Without the frames it comes from: they hold megabytes, and would until the next collection
    of garbage, which is rare.
    """
    refused.__context__ = refused.__cause__ = None
    return refused.with_traceback(None)


class Producing:
    """One request on its way to storage."""

    __slots__ = (
        "_by_id",
        "_found",
        "_frame",
        "_handler",
        "_judged",
        "_left",
        "_now_ms",
        "_request",
        "_response",
        "_size",
    )

    def __init__(
        self, handler: ProduceHandler, frame: KafkaRequest, request: ProduceRequest
    ) -> None:
        self._handler = handler
        self._frame = frame
        self._request = request
        self._by_id = frame.version >= BY_ID_VERSION
        self._found: list[PartitionLog | KafkaRefusal] = []
        """Partitions in the order of the request, or why they are not to be had."""
        self._judged: list[Judged | KafkaRefusal] = []
        """And what becomes of the batch for each."""
        self._response = ProduceResponse(responses=[])
        self._now_ms = 0
        self._left = 1
        """Batches without a result, and one for handing them over."""
        self._size = 0

    # -- where it goes ------------------------------------------------------------------------

    def look(self) -> bool:
        """Find all partitions, if they are loaded, and judge the batches, if that does not take
        long. Plain call.
        """
        if sum(len(topic.partition_data) for topic in self._request.topic_data) > AT_ONCE_MAX:
            return False
        logs = self._handler.logs
        self._found.clear()
        self._judged.clear()
        self._now_ms = self._handler.clock.wall_ms()
        for topic in self._request.topic_data:
            for part in topic.partition_data:
                if self._by_id:
                    log = logs.by_id_at_once(topic.topic_id, part.index)
                else:
                    log = logs.at_once(topic.name, part.index)
                if log is None or not log.writable:
                    return False
                judged = self._at_once(log, part.records or b"")
                if judged is None:
                    return False
                self._found.append(log)
                self._judged.append(judged)
        return True

    async def load(self) -> None:
        """Load what is not loaded."""
        logs = self._handler.logs
        self._found.clear()
        async for topic in Cooperative(self._request.topic_data):
            async for part in Cooperative(topic.partition_data):
                try:
                    internal.refuse_change(topic.name, topic.topic_id)
                    if self._by_id:
                        log = await logs.by_id(topic.topic_id, part.index)
                    else:
                        log = await logs.get(topic.name, part.index)
                    await log.begin_writing()
                    self._found.append(log)
                except (BrokerError, KafkaRefusal) as error:
                    self._found.append(KafkaRefusal(code_of(error)))

    async def prepare(self) -> None:
        """Judge the batches, and bring those that came otherwise into the form that their logs are
        to have.
        """
        self._judged.clear()
        self._now_ms = self._handler.clock.wall_ms()
        async for log, part in Cooperative(zip(self._found, self._parts(), strict=True)):
            if isinstance(log, KafkaRefusal):
                self._judged.append(log)
                continue
            batch = part.records or b""
            self._judged.append(self._at_once(log, batch) or await self._in_time(log, batch))

    def _parts(self) -> Iterator[ProducePartition]:
        return (part for topic in self._request.topic_data for part in topic.partition_data)

    def _at_once(
        self, log: PartitionLog, batch: bytes | memoryview
    ) -> Judged | KafkaRefusal | None:
        """What becomes of a batch, if that is quickly decided."""
        rules = log.rules()
        if rules.codec is not None or not for_the_loop(batch):
            return None
        try:
            return Judged(rules, *checked(batch, rules, self._now_ms))
        except Oversized:
            return None
        except KafkaRefusal as refused:
            return _bare(refused)

    async def _in_time(self, log: PartitionLog, batch: bytes | memoryview) -> Judged | KafkaRefusal:
        rules, handler = log.rules(), self._handler
        run, account = handler.inspectors.run, handler.inspected
        try:
            found = await run(account, len(batch), prepared, batch, rules, self._now_ms)
        except KafkaRefusal as refused:
            return _bare(refused)
        return Judged(rules, *found)

    # -- storing ------------------------------------------------------------------------------

    def begin(self) -> None:
        found = zip(self._found, self._judged, strict=True)
        for topic in self._request.topic_data:
            topic_response = ProducedTopic(
                name=topic.name, topic_id=topic.topic_id, partition_responses=[]
            )
            self._response.responses.append(topic_response)
            for part in topic.partition_data:
                topic_response.partition_responses.append(self._store(part, *next(found, UNKNOWN)))
        self._handler.connection.storing(self._size)
        if self._request.acks == 0:
            self._handler.replies.answer(self._frame, None)
        self.one_less()

    def _store(
        self,
        part: ProducePartition,
        log: PartitionLog | KafkaRefusal,
        judged: Judged | KafkaRefusal,
    ) -> ProducedPartition:
        partition_response = ProducedPartition(index=part.index, error_code=NONE, base_offset=-1)
        if self._request.acks not in ACKS:
            partition_response.error_code = INVALID_REQUIRED_ACKS
            return partition_response
        if isinstance(log, KafkaRefusal):
            partition_response.error_code = log.code
            return partition_response
        try:
            batch, header = self._checked(log, judged)
            self._append(log, partition_response, batch, header)
        except (BrokerError, KafkaRefusal) as refused:
            partition_response.error_code, reason = code_and_message(refused)
            partition_response.error_message = reason or None
            if isinstance(refused, BadRecords):
                partition_response.record_errors = [
                    RefusedRecord(batch_index=place, batch_index_error_message=reason)
                    for place, reason in refused.faults
                ]
            refused.__traceback__ = None  # in whose frames it is itself: see `_bare`
        return partition_response

    def _checked(
        self, log: PartitionLog, judged: Judged | KafkaRefusal
    ) -> tuple[bytes | memoryview, BatchHeader]:
        """What may be stored there."""
        if log.topic.fenced:
            raise KafkaRefusal(NOT_LEADER)  # unloaded a moment ago: the client looks for it again
        log.topic.check_producer()
        rules = log.rules()
        if rules.insync > 1 and self._request.acks == -1:
            raise KafkaRefusal(NOT_ENOUGH_REPLICAS, "there is one replica, and more are wanted")
        if isinstance(judged, KafkaRefusal):
            raise judged
        if judged.rules is not rules:
            raise KafkaRefusal(NOT_LEADER)  # other rules than a moment ago: likewise
        _, batch, header = judged
        if header.attributes & CODEC == ZSTD and self._frame.version < ZSTD_VERSION:
            raise KafkaRefusal(UNSUPPORTED_COMPRESSION, "zstd needs a newer Produce")
        if header.producer_id >= 0:
            check_transaction(self._handler.coordinator, log, header)
        return batch, header

    def _append(
        self,
        log: PartitionLog,
        partition_response: ProducedPartition,
        batch: bytes | memoryview,
        header: BatchHeader,
    ) -> None:
        part = Part(self, partition_response, log, header, self._now_ms)
        if header.producer_id >= 0:
            part.remembered, before = log.producers.admit(header, self._now_ms)
            if before:
                if part.remembered.offset >= 0:
                    partition_response.base_offset, partition_response.log_start_offset = (
                        part.remembered.offset,
                        log.start,
                    )
                else:
                    self._left += 1
                    part.remembered.waiting.append(part.report)
                return
        if log.rules().append_time:
            partition_response.log_append_time_ms = self._now_ms
        self._left += 1
        self._size += len(batch)
        part.begin(self._handler, batch)

    def one_less(self) -> None:
        """One more batch has its result; after the last of them, answer."""
        self._left -= 1
        if self._left:
            return
        self._handler.connection.stored(self._size)
        if self._request.acks != 0:
            # it is not read for so long: who knows it does not wonder
            self._response.throttle_time_ms = round(
                self._handler.publish_throttle.wait_seconds * 1000
            )
            self._handler.replies.answer(self._frame, self._response)
        elif any(
            part.error_code
            for topic in self._response.responses
            for part in topic.partition_responses
        ):
            self._handler.connection.end("a batch that wants no answer was not stored")


class Part(BatchAppend):
    """One batch, and what is said of its partition."""

    __slots__ = ("partition_response", "producing")

    def __init__(
        self,
        producing: Producing,
        partition_response: ProducedPartition,
        log: PartitionLog,
        header: BatchHeader,
        now_ms: int,
    ) -> None:
        super().__init__(log, header, now_ms)
        self.producing = producing
        self.partition_response = partition_response

    def report(self, code: int, offset: int) -> None:
        self.partition_response.error_code, self.partition_response.base_offset = code, offset
        self.partition_response.log_start_offset = self.log.start
        self.producing.one_less()
