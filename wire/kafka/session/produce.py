"""Produce: batches are checked by their headers and stored as they came.

Invariant: batches of one partition go to storage in the order they came on a connection; a response
says of each partition where its batch is stored, or why it is not, when that is certain.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

from core.entry import kafka_form
from core.errors import BrokerError
from core.ledger.chain import Position
from wire.kafka import batches
from wire.kafka.errors import (
    CORRUPT_MESSAGE,
    MESSAGE_TOO_LARGE,
    NONE,
    UNSUPPORTED_COMPRESSION,
    UNSUPPORTED_VERSION,
    code_of,
)
from wire.kafka.messages.records import (
    ProducedPartition,
    ProducedTopic,
    ProducePartition,
    ProduceRequest,
    ProduceResponse,
)
from wire.kafka.producers import Refused, Remembered, Told
from wire.kafka.session.logs import Log

if TYPE_CHECKING:
    from wire.kafka.session.session import KafkaSession
    from wire.kafka.wire import Asked

KEY: Final = 0
FIRST_VERSION: Final = 3
ZSTD_VERSION: Final = 7
"""Before it, clients could not read what is compressed with it."""


def on_produce(session: KafkaSession, asked: Asked) -> None:
    """Store what can be stored at once; where a topic has to be loaded first, later ones wait."""
    session.connection.will_write()
    request = asked.request
    assert isinstance(request, ProduceRequest)
    if asked.version < FIRST_VERSION:
        session.connection.end("Produce of a version that is not served any more")
        return
    logs = session.front.logs
    for topic in request.topic_data:
        for part in topic.partition_data:
            if logs.at_once(topic.name, part.index) is None:
                session.hold()
                session.broker.spawn(_load, session, asked, request)
                return
    Storing(session, asked, request, {}).begin()


async def _load(session: KafkaSession, asked: Asked, request: ProduceRequest) -> None:
    missing: dict[tuple[str, int], int] = {}
    for topic in request.topic_data:
        for part in topic.partition_data:
            try:
                await session.front.logs.get(topic.name, part.index)
            except BrokerError as error:
                missing[topic.name, part.index] = code_of(error)
    Storing(session, asked, request, missing).begin()
    session.go_on()


class Storing:
    """One request on its way to storage."""

    __slots__ = ("_asked", "_left", "_missing", "_request", "_response", "_session", "_size")

    def __init__(
        self,
        session: KafkaSession,
        asked: Asked,
        request: ProduceRequest,
        missing: dict[tuple[str, int], int],
    ) -> None:
        self._session = session
        self._asked = asked
        self._request = request
        self._missing = missing
        """Partitions that are not to be had, and why."""
        self._response = ProduceResponse(responses=[])
        self._left = 1
        """Batches not told of, and one for handing them over."""
        self._size = 0

    def begin(self) -> None:
        for topic in self._request.topic_data:
            told = ProducedTopic(name=topic.name, partition_responses=[])
            self._response.responses.append(told)
            for part in topic.partition_data:
                told.partition_responses.append(self._store(topic.name, part))
        self._session.storing(self._size)
        if self._request.acks == 0:
            self._say_nothing()
        self._one_less()

    def _store(self, name: str, part: ProducePartition) -> ProducedPartition:
        told = ProducedPartition(index=part.index, error_code=NONE, base_offset=-1)
        code = self._missing.get((name, part.index), NONE)
        log = self._session.front.logs.at_once(name, part.index)
        if log is None or code:
            told.error_code = code or UNSUPPORTED_VERSION
            return told
        try:
            header = self._checked(part.records or b"")
        except batches.BadBatch as bad:
            told.error_code, told.error_message = bad.code, str(bad)
            return told
        assert part.records is not None
        self._append(log, told, part.records, header)
        return told

    def _append(
        self, log: Log, told: ProducedPartition, batch: bytes, header: batches.Header
    ) -> None:
        def tell(code: int, offset: int) -> None:
            told.error_code, told.base_offset = code, offset
            told.log_start_offset = log.start
            self._one_less()

        remembered = None
        if header.producer_id >= 0:
            try:
                remembered, before = log.producers.come(header)
            except Refused as refused:
                told.error_code = refused.code
                return
            if before:
                if remembered.offset >= 0:
                    told.base_offset, told.log_start_offset = remembered.offset, log.start
                else:
                    self._left += 1
                    remembered.waiting.append(tell)
                return
        self._left += 1
        self._size += len(batch)
        self._publish(log, batch, header, remembered, tell)

    def _publish(
        self,
        log: Log,
        batch: bytes,
        header: batches.Header,
        remembered: Remembered | None,
        tell: Told,
    ) -> None:
        ledger = log.topic.ledger

        def stored(result: Position | BrokerError) -> None:
            if isinstance(result, BrokerError):
                code = code_of(result)
                if remembered is not None:
                    log.producers.failed(header.producer_id, remembered, code)
                tell(code, -1)
                return
            offset = ledger.index_told(result)
            if remembered is not None:
                log.producers.stored(remembered, offset)
            tell(NONE, offset)

        offsets = header.last_delta + 1
        now_ms = self._session.broker.clock.wall_ms()
        log.topic.publish([kafka_form.wrapped(batch, offsets, now_ms)], [offsets], stored)

    def _checked(self, batch: bytes) -> batches.Header:
        """The header of a batch that may be stored."""
        limit = self._session.front.options.batch_bytes_max
        if len(batch) > limit:
            raise batches.BadBatch(MESSAGE_TOO_LARGE, f"a batch of more than {limit} bytes")
        try:
            header = batches.header_of(batch)
        except struct.error as error:
            raise batches.BadBatch(CORRUPT_MESSAGE, "a batch is cut short") from error
        batches.check(batch, header)
        if header.attributes & batches.CODEC == batches.ZSTD and self._asked.version < ZSTD_VERSION:
            raise batches.BadBatch(UNSUPPORTED_COMPRESSION, "zstd needs a newer Produce")
        return header

    def _one_less(self) -> None:
        self._left -= 1
        if self._left:
            return
        self._session.stored(self._size)
        if self._request.acks != 0:
            self._session.answer(self._asked, self._response)
        elif any(
            part.error_code
            for topic in self._response.responses
            for part in topic.partition_responses
        ):
            self._session.connection.end("a batch that wants no answer was not stored")

    def _say_nothing(self) -> None:
        self._session.answer(self._asked, None)
