"""Produce: checks batches and stores them, recompressed if the topic has `compression.type` set.

Large compressed batches, and batches to compress, are checked in a thread, since they would hold up
the loop. Few threads run at a time, as each may hold 64 MiB, and connections take turns
(`partition/inspectors.py`).

Most requests have a common shape, which `single_batch.py` serves.

Invariant: batches of one partition go to storage in the order in which a connection sent them; a
response has the offset or the error of each partition, and is sent after all are certain.
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
    TOPIC_AUTHORIZATION_FAILED,
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
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
"""Older versions may not carry zstd, since consumers of their time cannot read it (KIP-110)."""
ACKS: Final = (-1, 0, 1)
AT_ONCE_MAX: Final = 500
"""Partitions of one request; a task with checkpoints looks up and checks more of them."""
UNKNOWN: Final = (KafkaRefusal(NOT_LEADER), KafkaRefusal(NOT_LEADER))


def on_produce(handler: ProduceHandler, frame: KafkaRequest) -> None:
    """Store the batches at once if all topics are loaded and all batches are cheap to check;
    otherwise do so in a task, for which later requests wait.
    """
    handler.connection.will_write()
    request = frame.request
    assert isinstance(request, ProduceRequest)
    producing = Producing(handler, frame, request)
    if request.acks in ACKS and not producing.check_at_once():
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
    """A batch that may be stored, and the rules that it was checked by."""

    rules: ProduceRules
    batch: bytes | memoryview
    header: BatchHeader


def _bare(refused: KafkaRefusal) -> KafkaRefusal:
    """Drop the traceback: its frames hold megabytes until the next garbage collection, which is
    rare.
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
        """The log of each partition in the order of the request, or its error."""
        self._judged: list[Judged | KafkaRefusal] = []
        """The checked batch of each partition, or its error."""
        self._response = ProduceResponse(responses=[])
        self._now_ms = 0
        self._left = 1
        """Batches without a result, plus one until all were handed to storage."""
        self._size = 0

    # -- look-up and checks -------------------------------------------------------------------

    def check_at_once(self) -> bool:
        """Look up the partitions and check the batches, if all are loaded and cheap. Plain call."""
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
                refusal = self._forbidden(log.topic.name.full)
                if refusal is not None:
                    self._found.append(refusal)
                    self._judged.append(refusal)
                    continue
                judged = self._at_once(log, part.records or b"")
                if judged is None:
                    return False
                self._found.append(log)
                self._judged.append(judged)
        return True

    async def load(self) -> None:
        """Look up the partitions, and load those that are not loaded."""
        logs = self._handler.logs
        self._found.clear()
        async for topic in Cooperative(self._request.topic_data):
            async for part in Cooperative(topic.partition_data):
                try:
                    name = await logs.name_of(topic.topic_id) if self._checks_ids else topic.name
                    if (refusal := self._forbidden(name)) is not None:
                        raise refusal
                    internal.refuse_change(topic.name, topic.topic_id)
                    if self._by_id:
                        log = await logs.by_id(topic.topic_id, part.index)
                    else:
                        log = await logs.get(topic.name, part.index)
                    await log.begin_writing()
                    self._found.append(log)
                except (BrokerError, KafkaRefusal) as error:
                    self._found.append(KafkaRefusal(code_of(error)))

    @property
    def _checks_ids(self) -> bool:
        """Whether rights depend on topics that are named by their ids."""
        return self._by_id and self._handler.guarded

    def _forbidden(self, topic: str) -> KafkaRefusal | None:
        """The refusal if the client may not write to a topic, or not in this transaction."""
        if not self._handler.may_use(self._request.transactional_id):
            return KafkaRefusal(TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
        return None if self._handler.may_write(topic) else KafkaRefusal(TOPIC_AUTHORIZATION_FAILED)

    async def prepare(self) -> None:
        """Check the batches, in a thread where that takes long, and recompress them if their topic
        says so.
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
        """The checked batch or its error; None if the check takes long."""
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
                # clients of Produce 8 and later can name the bad records (KIP-467)
                partition_response.record_errors = [
                    RefusedRecord(batch_index=place, batch_index_error_message=reason)
                    for place, reason in refused.faults
                ]
            refused.__traceback__ = None  # its frames refer to it: see `_bare`
        return partition_response

    def _checked(
        self, log: PartitionLog, judged: Judged | KafkaRefusal
    ) -> tuple[bytes | memoryview, BatchHeader]:
        """The batch and its header; raises if it may not be stored now."""
        if log.topic.fenced:
            raise KafkaRefusal(NOT_LEADER)  # unloaded since the look-up: the client retries
        log.topic.check_producer()
        rules = log.rules()
        if rules.insync > 1 and self._request.acks == -1:
            # only acks=all is bound to it (`Partition.appendRecordsToLeader` of 4.3)
            raise KafkaRefusal(NOT_ENOUGH_REPLICAS, "min.insync.replicas is more than one replica")
        if isinstance(judged, KafkaRefusal):
            raise judged
        if judged.rules is not rules:
            raise KafkaRefusal(NOT_LEADER)  # the rules have changed since: the client retries
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
            if before:  # a duplicate succeeds with its first offset, as in Kafka
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
        """Count a result; after the last one, answer."""
        self._left -= 1
        if self._left:
            return
        self._handler.connection.stored(self._size)
        if self._request.acks != 0:
            # we read no requests for that long; a client of KIP-219 sends none meanwhile
            self._response.throttle_time_ms = round(self._handler.throttle.wait_seconds * 1000)
            self._handler.replies.answer(self._frame, self._response)
        elif any(
            part.error_code
            for topic in self._response.responses
            for part in topic.partition_responses
        ):
            # without a response, this is the only way to report an error: so does
            # `KafkaApis.handleProduceRequest` of 4.3
            self._handler.connection.end("a batch with acks=0 was not stored")


class Part(BatchAppend):
    """The append of one batch of a request, and the response of its partition."""

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
