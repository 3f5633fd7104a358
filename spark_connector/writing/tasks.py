"""What one task of a query writes. It runs in Spark's workers.

A task may run twice, at the same time even (a lost executor, speculation), and only one of its
attempts counts. What `delivery` says decides under which identity an attempt writes, and so what
becomes of the rows of the others:

    at_least_once   a new one: all rows stay
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from magnetar.spark_connector.writing.brokers import Brokers
from magnetar.spark_connector.writing.columns import rows
from magnetar.spark_connector.writing.options import SinkOptions
from magnetar.spark_connector.writing.producer import BlockingProducer
from magnetar.spark_connector.writing.service import WritingService

if TYPE_CHECKING:
    import pyarrow as pa

ATTEMPT_SECONDS_MAX: Final = 30.0
"""For one answer of a broker, which stores what it is sent before it answers."""


class TaskPlace(Struct, frozen=True):
    """Which part of what an attempt writes."""

    sink: str
    """The id of the query, or of the job."""
    batch: int
    task: int


class WrittenRows(Struct, frozen=True):
    """What an attempt has written, for the driver."""

    rows: int


def write(batches: Iterable[pa.RecordBatch], options: SinkOptions, place: TaskPlace) -> WrittenRows:
    """Write all rows; they are stored when it returns."""
    writer: BlockingProducer | None = None
    brokers = Brokers(WritingService(options).address(), attempt_seconds(options))
    try:
        for batch in batches:
            now_ms = time.time_ns() // 1_000_000
            for row in rows(batch, options.topic):
                if writer is None:
                    who = brokers.new_producer()
                    writer = BlockingProducer(brokers, who, options, place.task)
                writer.send(row, now_ms)
        if writer is None:
            return WrittenRows(0)
        writer.flush()
        return WrittenRows(writer.acknowledged)
    finally:
        brokers.close()


def attempt_seconds(options: SinkOptions) -> float:
    return min(options.timeout_seconds, ATTEMPT_SECONDS_MAX)
