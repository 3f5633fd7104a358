"""Fetch: whole batches from an offset on, or news of them within some time.

At least one batch is given, whatever its size; it may begin before the offset, where that lies
inside of it. Sessions (0 stands for none) are not kept: clients then ask for all they want each
time.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Final

import trio

from core.entry import header, kafka_form
from core.errors import BrokerError
from core.ledger.tail_cache import Slice
from wire.kafka import batches
from wire.kafka.errors import NONE, OFFSET_OUT_OF_RANGE, code_of
from wire.kafka.messages.records import (
    FetchedPartition,
    FetchedTopic,
    FetchPartition,
    FetchRequest,
    FetchResponse,
)
from wire.kafka.session.logs import Log

if TYPE_CHECKING:
    from wire.kafka.session.session import KafkaSession
    from wire.kafka.wire import Asked

BYTES_MAX: Final = 55 * 1024 * 1024
"""Of one response."""
READ_ENTRIES_MAX: Final = 5_000


class Wanted:
    """One partition of a request, and what is found in it."""

    __slots__ = ("answer", "error", "log", "part", "size")

    def __init__(self, part: FetchPartition, log: Log | None, error: int) -> None:
        self.part = part
        self.log = log
        self.error = error
        self.size = 0
        self.answer: list[bytes | memoryview] = []

    def check(self) -> None:
        """Whether the offset is one that there is, or will be next."""
        if self.log is not None and not self.log.start <= self.part.fetch_offset <= self.log.end:
            self.error = OFFSET_OUT_OF_RANGE

    async def read(self, bytes_max: int, *, one_at_least: bool) -> None:
        """Gather batches up to a size."""
        self.answer, self.size = [], 0
        self.check()
        log = self.log
        if log is None or self.error or self.part.fetch_offset >= log.end:
            return
        bytes_max = min(bytes_max, self.part.partition_max_bytes)
        try:
            await self._gather(log, bytes_max, one_at_least)
        except BrokerError as error:
            self.error = code_of(error)

    async def _gather(self, log: Log, bytes_max: int, one_at_least: bool) -> None:
        ledger = log.topic.ledger
        position = await log.places.find(self.part.fetch_offset)
        offset = -1
        while ledger.chain.has(position):
            found = ledger.cached(position)
            if found is None:
                part = await ledger.read(position, READ_ENTRIES_MAX, max(bytes_max - self.size, 1))
            else:
                part = found[0].part(found[1], len(found[0].payloads))
            if offset < 0:
                offset = first_index(part)
            for place, payload in enumerate(part.payloads):
                count = 1 if part.counts is None else part.counts[place]
                batch = kafka_form.batch_in(_tail(part, payload))
                size = len(batch) if batch is not None else 0
                if self.size + size > bytes_max and not (one_at_least and not self.size):
                    log.places.note(offset, (part.ledger_id, part.first_entry + place))
                    return
                if batch is not None:
                    self.answer += batches.with_offset(batch, offset)
                    self.size += size
                offset += count
            position = ledger.chain.normal((part.ledger_id, part.first_entry + len(part.payloads)))
        log.places.note(offset, position)


def first_index(part: Slice) -> int:
    """The index of the first message of a slice."""
    head = part.headers[0] if part.headers is not None else part.payloads[0]
    found = header.read(head)
    return found.index - found.count + 1


def _tail(part: Slice, payload: bytes) -> bytes:
    return payload if part.headers is not None else payload[header.read(payload).size :]


async def on_fetch(session: KafkaSession, asked: Asked) -> FetchResponse:
    """Answer as soon as there is enough, or when the time is over."""
    request = asked.request
    assert isinstance(request, FetchRequest)
    wanted = {
        topic.topic: [await _wanted(session, topic.topic, part) for part in topic.partitions]
        for topic in request.topics
    }
    everything = [one for parts in wanted.values() for one in parts]
    deadline = trio.current_time() + request.max_wait_ms / 1000
    while True:
        news = trio.Event()
        with ExitStack() as watching:
            for one in everything:
                if one.log is not None:
                    watching.enter_context(one.log.watched(news.set))
            await _read_all(everything, request)
            enough = sum(one.size for one in everything) >= request.min_bytes
            if enough or any(one.error for one in everything) or session.gone:
                break
            with trio.move_on_at(deadline) as waiting:
                await news.wait()
            if waiting.cancelled_caught:
                break
    return FetchResponse(
        responses=[
            FetchedTopic(topic=name, partitions=[_answer(one) for one in parts])
            for name, parts in wanted.items()
        ]
    )


async def _wanted(session: KafkaSession, name: str, part: FetchPartition) -> Wanted:
    try:
        return Wanted(part, await session.front.logs.get(name, part.partition), NONE)
    except BrokerError as error:
        return Wanted(part, None, code_of(error))


async def _read_all(everything: list[Wanted], request: FetchRequest) -> None:
    left, first = min(request.max_bytes, BYTES_MAX), True
    for one in everything:
        if left <= 0 and not first:
            one.answer, one.size = [], 0
            continue
        await one.read(left, one_at_least=first)
        left -= one.size
        first = first and not one.size


def _answer(one: Wanted) -> FetchedPartition:
    log = one.log
    end, start = (log.end, log.start) if log is not None else (-1, -1)
    return FetchedPartition(
        partition_index=one.part.partition,
        error_code=one.error,
        high_watermark=end,
        last_stable_offset=end,
        log_start_offset=start,
        aborted_transactions=None,
        records=b"".join(one.answer),
    )


HANDLERS: Final[Mapping[int, Any]] = {1: on_fetch}
