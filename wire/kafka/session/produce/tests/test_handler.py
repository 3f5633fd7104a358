"""Batches are stored, and answered, for whoever keeps the line of requests."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

from magnetar.core.testing.bench import settled
from magnetar.core.testing.line import Line
from magnetar.wire.kafka.addresses import Endpoint
from magnetar.wire.kafka.api_keys import PRODUCE
from magnetar.wire.kafka.conftest import Stage, produce_request
from magnetar.wire.kafka.session.context import Caller
from magnetar.wire.kafka.session.handlers import RequestHandlers
from magnetar.wire.kafka.session.produce.produce import on_produce
from magnetar.wire.kafka.tests.batch import batch
from magnetar.wire.kafka.wire import KafkaRequest


class Replies:
    """Keeps what was answered, and the work that others wait for."""

    def __init__(self) -> None:
        self.answers: list[tuple[int, Any]] = []
        self.work: list[Awaitable[None]] = []
        self.weighed: list[KafkaRequest] = []

    def answer(self, requested: KafkaRequest, response: Any) -> None:
        self.answers.append((requested.correlation_id, response))

    def answer_packed(self, requested: KafkaRequest, packed: bytes) -> None:
        self.answers.append((requested.correlation_id, packed))

    def hold_for(self, work: Awaitable[None]) -> None:
        self.work.append(work)

    def go_on(self) -> None: ...

    def weigh(self, requested: KafkaRequest) -> bool:
        self.weighed.append(requested)
        return True


async def test_a_batch_is_stored_without_a_session(stage: Stage) -> None:
    await stage.client("t")
    replies = Replies()
    connection: Any = Line()
    caller = Caller(connection, Endpoint("mq", 9092), "kafka")
    handler = RequestHandlers(stage.front.services).produce(caller, replies)

    def produce(number: int) -> None:
        request = produce_request("t", batch(b"a"))
        on_produce(handler, KafkaRequest(PRODUCE, 9, number, "c", request))

    produce(1)
    assert len(replies.weighed) == 1, "its topic has to be loaded"
    await replies.work.pop()
    await settled()
    produce(2)
    assert not replies.work
    await settled()
    offsets = [
        (number, answer.responses[0].partition_responses[0].base_offset)
        for number, answer in replies.answers
    ]
    assert offsets == [(1, 0), (2, 1)]
    assert connection.storing_bytes == 0
