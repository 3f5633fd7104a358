"""Which batches the driver reads itself, and what it does when it cannot."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pyarrow as pa

from magnetar.spark_connector.errors import DataLossError
from magnetar.spark_connector.planning.ranges import ANY_OFFSET, EntryRange
from magnetar.spark_connector.reading import small_batches
from magnetar.spark_connector.reading.range_reader import Task
from magnetar.spark_connector.reading.small_batches import (
    PATIENCE_SECONDS,
    PAUSE_SECONDS,
    ROW_BYTES_MAX,
    ROWS_MAX,
    STORED_BYTES_MAX,
    SmallBatches,
    is_small,
)


def task(*ranges: EntryRange) -> Task:
    return Task(ranges, {}, {}, {}, {}, ("value",), True, 30.0, ("http://127.0.0.1:1",))


def one(log: str = "a", size: int = 100, start: int = 0, end: int = 10) -> EntryRange:
    return EntryRange(log, 1, 0, 9, size, start, end)


def test_few_rows_and_little_stored() -> None:
    assert is_small(task(one()))
    assert is_small(task(one(size=STORED_BYTES_MAX, start=5, end=5 + ROWS_MAX)))
    assert not is_small(task(one(size=STORED_BYTES_MAX + 1)))
    assert not is_small(task(one(end=ROWS_MAX + 1)))
    assert not is_small(task(one("a", STORED_BYTES_MAX), one("b", 1)))
    assert not is_small(task(one("a", end=ROWS_MAX), one("b", end=1)))


def test_ranges_of_one_log_have_the_same_rows() -> None:
    assert is_small(task(one(end=ROWS_MAX), one(end=ROWS_MAX)))


def test_rows_that_nobody_counts_may_be_many() -> None:
    assert not is_small(task(one(end=ANY_OFFSET)))


class Reads:
    """Stands for `batches`: what it gives, and what it was asked for."""

    def __init__(self, *batches: pa.RecordBatch | Exception) -> None:
        self.batches = batches
        self.asked: list[Task] = []

    def __call__(self, task: Task) -> Iterator[pa.RecordBatch]:
        self.asked.append(task)
        for batch in self.batches:
            if isinstance(batch, Exception):
                raise batch
            yield batch


def batch(size: int = 1) -> pa.RecordBatch:
    return pa.record_batch({"value": pa.array([b"x" * size], pa.binary())})


def test_the_rows_of_the_only_task(monkeypatch) -> None:
    reads = Reads(batch())
    monkeypatch.setattr(small_batches, "batches", reads)
    small = SmallBatches(allowed=True)
    assert small.rows([task(one())]) == [batch()]
    assert reads.asked[0].timeout_seconds == PATIENCE_SECONDS
    assert small.rows([task(one()), task(one())]) is None
    assert small.rows([]) is None
    assert SmallBatches(allowed=False).rows([task(one())]) is None
    assert len(reads.asked) == 1


def test_rows_that_were_compressed_too_well_are_left_to_the_task(monkeypatch) -> None:
    half = batch(ROW_BYTES_MAX // 2 + 1)
    reads = Reads(half, half, AssertionError("it has not stopped"))
    monkeypatch.setattr(small_batches, "batches", reads)
    assert SmallBatches(allowed=True).rows([task(one())]) is None


def test_after_a_failure_it_is_tried_again_later(monkeypatch, caplog) -> None:
    now = [0.0]
    monkeypatch.setattr(small_batches.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(small_batches, "batches", Reads(batch(), DataLossError("entry 1:1")))
    small = SmallBatches(allowed=True)
    with caplog.at_level(logging.WARNING):
        assert small.rows([task(one())]) is None
        assert small.rows([task(one())]) is None
    assert [each.getMessage() for each in caplog.records] == [
        "small batches are read by tasks for a while: entry 1:1"
    ]
    monkeypatch.setattr(small_batches, "batches", Reads(batch()))
    now[0] = PAUSE_SECONDS - 1
    assert small.rows([task(one())]) is None
    now[0] = PAUSE_SECONDS
    assert small.rows([task(one())]) == [batch()]
