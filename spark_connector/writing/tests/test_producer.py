"""Batches on their way, and what is done when brokers refuse them or go away."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator

import pytest

from magnetar.core.entry.kafka.record_batch import header_of, records_of
from magnetar.spark_connector.errors import ServiceError
from magnetar.spark_connector.writing import patience
from magnetar.spark_connector.writing.columns import SinkRow
from magnetar.spark_connector.writing.errors import WriteError
from magnetar.spark_connector.writing.options import SinkOptions
from magnetar.spark_connector.writing.producer import REQUESTS_IN_FLIGHT, BlockingProducer
from magnetar.spark_connector.writing.record_batches import ProducerIdentity
from magnetar.wire.kafka import errors as codes
from magnetar.wire.kafka.messages.records import (
    ProducedPartition,
    ProducedTopic,
    ProduceRequest,
    ProduceResponse,
)

T = "persistent://public/default/t"
OPTIONS = SinkOptions(("http://a",), batch_bytes=100, buffer_bytes=2_000, timeout_seconds=1)
WHO = ProducerIdentity(7, 0)
Judge = Callable[[int, int], int]
"""Takes a partition and a sequence number; returns an error code."""


def accept(_partition: int, _sequence: int) -> int:
    return codes.NONE


class Broker:
    """Stores batches in order, and says what a test wants first."""

    def __init__(self, partitions: int = 1) -> None:
        self.count = partitions
        self.logs: dict[int, list[bytes]] = {number: [] for number in range(partitions)}
        self.judge: Judge = accept
        self.most_waiting = self.opened = 0
        self.added: list[tuple[str, int]] = []
        self.link: Link | None = None

    def partitions(self, topic: str) -> int:
        assert topic == T
        return self.count

    def leader(self, log: tuple[str, int]) -> "Link":
        if self.link is None:
            self.link = Link(self)
            self.opened += 1
        return self.link

    def connections(self) -> Iterable["Link"]:
        return [self.link] if self.link is not None else []

    def close(self) -> None:
        self.link = None

    def last_sequence(self, who: ProducerIdentity, log: tuple[str, int]) -> int:
        return len(self.logs[log[1]]) - 1

    def add_to_transaction(self, who: ProducerIdentity, logs: Iterable[tuple[str, int]]) -> None:
        self.added += logs

    def store(self, partition: int, data: bytes) -> int:
        """As a leader does: a batch that is there succeeds, one that does not follow fails."""
        first, log = header_of(data).first_sequence, self.logs[partition]
        if code := self.judge(partition, first):
            return code
        if first < len(log):
            return codes.NONE
        if first > len(log):
            return codes.OUT_OF_ORDER
        log += [record.value or b"" for record in records_of(data)]
        return codes.NONE


class Link:
    """A connection. Requests are carried out when their responses are read."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.requests: deque[ProduceRequest] = deque()

    @property
    def waiting(self) -> int:
        return len(self.requests)

    def send(self, request: ProduceRequest) -> None:
        self.requests.append(request)
        self.broker.most_waiting = max(self.broker.most_waiting, len(self.requests))

    def receive(self) -> tuple[ProduceRequest, ProduceResponse]:
        request = self.requests.popleft()
        (topic,) = request.topic_data
        parts = [
            ProducedPartition(
                index=part.index,
                error_code=self.broker.store(part.index, bytes(part.records or b"")),
                base_offset=0,
            )
            for part in topic.partition_data
        ]
        done = ProducedTopic(name=topic.name, partition_responses=parts)
        return request, ProduceResponse(responses=[done])


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody sleeps: each look at the clock takes some time instead."""
    ticks = (number / 10 for number in range(1_000_000))

    class Clock:
        @staticmethod
        def monotonic() -> float:
            return next(ticks)

        @staticmethod
        def sleep(_seconds: float) -> None:
            """At once."""

    monkeypatch.setattr(patience, "time", Clock)


def rows(count: int, partition: int | None = None) -> Iterator[SinkRow]:
    for number in range(count):
        yield SinkRow(b"%04d" % number * 5, None, T, partition, [], 1)


def sent(broker: Broker, given: Iterable[SinkRow], **more: bool) -> BlockingProducer:
    made = BlockingProducer(broker, WHO, OPTIONS, **more)  # type: ignore[arg-type]
    for row in given:
        made.send(row, 1)
    made.flush()
    return made


def test_rows_are_stored_in_order_with_few_requests_under_way() -> None:
    broker = Broker()
    made = sent(broker, rows(300))
    assert broker.logs[0] == [row.value for row in rows(300)]
    assert made.acknowledged == 300
    assert broker.most_waiting == REQUESTS_IN_FLIGHT


def test_what_is_refused_for_now_is_sent_again_in_order() -> None:
    broker, failures = Broker(2), iter([codes.NOT_LEADER, codes.STORAGE_ERROR])

    def judge(partition: int, first: int) -> int:
        return next(failures, codes.NONE) if partition == 1 and first > 40 else codes.NONE

    broker.judge = judge
    both = [row for pair in zip(rows(200, 0), rows(200, 1), strict=True) for row in pair]
    made = sent(broker, both)
    assert broker.logs == {number: [row.value for row in rows(200)] for number in range(2)}
    assert (made.acknowledged, broker.opened) == (400, 3)


def test_a_lost_answer_makes_no_second_row() -> None:
    broker, lost = Broker(), [True, True]

    def judge(_partition: int, first: int) -> int:
        if first > 20 and lost and broker.logs[0][first:]:
            return codes.NONE
        if first > 20 and lost:
            lost.pop()
            broker.logs[0] += [row.value or b"" for row in list(rows(300))[first : first + 4]]
            raise ConnectionResetError("lost")
        return codes.NONE

    broker.judge = judge
    sent(broker, rows(300))
    assert broker.logs[0] == [row.value for row in rows(300)]


def test_what_is_refused_for_good_ends_it() -> None:
    broker = Broker()
    broker.judge = lambda _partition, _first: codes.MESSAGE_TOO_LARGE
    with pytest.raises(WriteError, match="t, partition 0: MESSAGE_TOO_LARGE"):
        sent(broker, rows(3))


def test_patience_ends() -> None:
    broker = Broker()
    broker.judge = lambda _partition, _first: codes.NOT_LEADER
    with pytest.raises(ServiceError, match="acknowledged nothing for 1 s"):
        sent(broker, rows(3))


def test_more_than_the_buffer_is_not_held() -> None:
    """Rows of many partitions, none of which has a full batch."""
    broker = Broker(100)
    made = BlockingProducer(broker, WHO, OPTIONS)  # type: ignore[arg-type]
    for number in range(100):
        for row in rows(1, number):
            made.send(row, 1)
    assert 40 < sum(map(len, broker.logs.values())) < 100
    made.flush()
    assert sum(map(len, broker.logs.values())) == 100


def test_rows_that_are_stored_before_are_left_out() -> None:
    broker = Broker(2)
    sent(broker, rows(30, 1))
    both = [*rows(10, 0), *rows(50, 1)]
    made = sent(broker, both, resumes=True)
    assert made.acknowledged == 30
    assert broker.logs == {0: [r.value for r in rows(10)], 1: [r.value for r in rows(50)]}


def test_partitions_are_in_the_transaction_before_rows_are_sent() -> None:
    broker = Broker(2)
    broker.judge = lambda partition, _first: 0 if (T, partition) in broker.added else 48
    who = ProducerIdentity(7, 0, "name")
    made = BlockingProducer(broker, who, OPTIONS)  # type: ignore[arg-type]
    for row in (*rows(20, 0), *rows(20, 1)):
        made.send(row, 1)
    made.flush()
    assert sorted(broker.added) == [(T, 0), (T, 1)]
