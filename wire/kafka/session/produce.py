"""Produce: batches are checked and stored, as they came or as their log has them compressed.

Most requests are of one kind, and never come here (`single.py`).

Invariant: batches of one partition go to storage in the order they came on a connection; a response
says of each partition where its batch is stored, or why it is not, when that is certain.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import trio

from core.entry.kafka_batch import CODEC, BatchHeader
from core.errors import BrokerError
from wire.kafka.batches import BadRecord, as_compressed, checked
from wire.kafka.errors import (
    INVALID_REQUIRED_ACKS,
    NONE,
    NOT_ENOUGH_REPLICAS,
    NOT_LEADER,
    UNSUPPORTED_COMPRESSION,
    Refused,
    code_of,
)
from wire.kafka.hot import BY_ID_VERSION
from wire.kafka.messages.records import (
    ProducedPartition,
    ProducedTopic,
    ProducePartition,
    ProduceRequest,
    ProduceResponse,
    RefusedRecord,
)
from wire.kafka.session.logs import Log
from wire.kafka.session.storing import Storing, check_transaction

if TYPE_CHECKING:
    from wire.kafka.session.session import KafkaSession
    from wire.kafka.wire import Asked

ZSTD: Final = 4
ZSTD_VERSION: Final = 7
"""Before it, clients could not read what is compressed with it."""
ACKS: Final = (-1, 0, 1)


def on_produce(session: KafkaSession, asked: Asked) -> None:
    """Store what can be stored at once; where a topic has to be loaded first, or a batch to be
    compressed anew, later ones wait.
    """
    session.connection.will_write()
    request = asked.request
    assert isinstance(request, ProduceRequest)
    producing = Producing(session, asked, request)
    if request.acks in ACKS and not producing.look():
        session.hold_for(_load(producing))
    else:
        producing.begin()


async def _load(producing: Producing) -> None:
    await producing.load()
    await producing.compress()
    producing.begin()


class Producing:
    """One request on its way to storage."""

    __slots__ = (
        "_asked",
        "_by_id",
        "_found",
        "_left",
        "_now_ms",
        "_request",
        "_response",
        "_session",
        "_size",
    )

    def __init__(self, session: KafkaSession, asked: Asked, request: ProduceRequest) -> None:
        self._session = session
        self._asked = asked
        self._request = request
        self._by_id = asked.version >= BY_ID_VERSION
        self._found: list[Log | int] = []
        """Partitions in the order of the request, or why they are not to be had."""
        self._response = ProduceResponse(responses=[])
        self._now_ms = 0
        self._left = 1
        """Batches not told of, and one for handing them over."""
        self._size = 0

    # -- where it goes ------------------------------------------------------------------------

    def look(self) -> bool:
        """Find all partitions, if they are loaded and take batches as they come. Plain call."""
        logs, found = self._session.front.logs, self._found
        found.clear()
        for topic in self._request.topic_data:
            for part in topic.partition_data:
                if self._by_id:
                    log = logs.by_id_at_once(topic.topic_id, part.index)
                else:
                    log = logs.at_once(topic.name, part.index)
                if log is None or not log.writable or log.rules().codec is not None:
                    return False
                found.append(log)
        return True

    async def load(self) -> None:
        """Load what is not loaded."""
        logs = self._session.front.logs
        self._found.clear()
        for topic in self._request.topic_data:
            for part in topic.partition_data:
                try:
                    if self._by_id:
                        log = await logs.by_id(topic.topic_id, part.index)
                    else:
                        log = await logs.get(topic.name, part.index)
                    await log.begin_writing()
                    self._found.append(log)
                except (BrokerError, Refused) as error:
                    self._found.append(code_of(error))

    async def compress(self) -> None:
        """Bring what came otherwise into the form that its log is to have."""
        parts = [part for topic in self._request.topic_data for part in topic.partition_data]
        for place, (log, part) in enumerate(zip(self._found, parts, strict=True)):
            codec = None if isinstance(log, int) else log.rules().codec
            if codec is None:
                continue
            try:
                part.records = await trio.to_thread.run_sync(
                    as_compressed, part.records or b"", codec
                )
            except Refused as refused:
                self._found[place] = refused.code

    # -- storing ------------------------------------------------------------------------------

    def begin(self) -> None:
        self._now_ms = self._session.broker.clock.wall_ms()
        found = iter(self._found)
        for topic in self._request.topic_data:
            told = ProducedTopic(name=topic.name, topic_id=topic.topic_id, partition_responses=[])
            self._response.responses.append(told)
            for part in topic.partition_data:
                told.partition_responses.append(self._store(next(found, NOT_LEADER), part))
        self._session.connection.storing(self._size)
        if self._request.acks == 0:
            self._session.answer(self._asked, None)
        self.one_less()

    def _store(self, log: Log | int, part: ProducePartition) -> ProducedPartition:
        told = ProducedPartition(index=part.index, error_code=NONE, base_offset=-1)
        if self._request.acks not in ACKS:
            told.error_code = INVALID_REQUIRED_ACKS
            return told
        if isinstance(log, int):
            told.error_code = log
            return told
        try:
            batch, header = self._checked(log, part.records or b"")
            self._append(log, told, batch, header)
        except (BrokerError, Refused) as refused:
            told.error_code, told.error_message = code_of(refused), str(refused) or None
            if isinstance(refused, BadRecord):
                told.record_errors = [
                    RefusedRecord(batch_index=refused.place, batch_index_error_message=str(refused))
                ]
        return told

    def _checked(
        self, log: Log, batch: bytes | memoryview
    ) -> tuple[bytes | memoryview, BatchHeader]:
        """What may be stored there."""
        if log.topic.fenced:
            raise Refused(NOT_LEADER)  # unloaded a moment ago: it is asked for again
        log.topic.check_producer()
        rules = log.rules()
        if rules.insync > 1 and self._request.acks == -1:
            raise Refused(NOT_ENOUGH_REPLICAS, "there is one replica, and more are wanted")
        batch, header = checked(batch, rules, self._now_ms)
        if header.attributes & CODEC == ZSTD and self._asked.version < ZSTD_VERSION:
            raise Refused(UNSUPPORTED_COMPRESSION, "zstd needs a newer Produce")
        if header.producer_id >= 0:
            check_transaction(self._session, log, header)
        return batch, header

    def _append(
        self, log: Log, told: ProducedPartition, batch: bytes | memoryview, header: BatchHeader
    ) -> None:
        part = Part(self, told, log, header, self._now_ms)
        if header.producer_id >= 0:
            part.remembered, before = log.producers.come(header)
            if before:
                if part.remembered.offset >= 0:
                    told.base_offset, told.log_start_offset = part.remembered.offset, log.start
                else:
                    self._left += 1
                    part.remembered.waiting.append(part.tell)
                return
        if log.rules().append_time:
            told.log_append_time_ms = self._now_ms
        self._left += 1
        self._size += len(batch)
        part.begin(self._session, batch)

    def one_less(self) -> None:
        """One batch fewer is not told of; after the last of them, answer."""
        self._left -= 1
        if self._left:
            return
        self._session.connection.stored(self._size)
        if self._request.acks != 0:
            # it is not read for so long: who knows it does not wonder
            self._response.throttle_time_ms = round(self._session.debts.wait_seconds * 1000)
            self._session.answer(self._asked, self._response)
        elif any(
            part.error_code
            for topic in self._response.responses
            for part in topic.partition_responses
        ):
            self._session.connection.end("a batch that wants no answer was not stored")


class Part(Storing):
    """One batch, and what is said of its partition."""

    __slots__ = ("producing", "told")

    def __init__(
        self,
        producing: Producing,
        told: ProducedPartition,
        log: Log,
        header: BatchHeader,
        now_ms: int,
    ) -> None:
        super().__init__(log, header, now_ms)
        self.producing = producing
        self.told = told

    def tell(self, code: int, offset: int) -> None:
        self.told.error_code, self.told.base_offset = code, offset
        self.told.log_start_offset = self.log.start
        self.producing.one_less()
