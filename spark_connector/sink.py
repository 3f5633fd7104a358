"""Spark's side of writing: what it calls in the driver and in the workers.

Spark makes a writer in the driver, for a stream with every batch anew, and once more to commit it;
it pickles the first one into the workers. What one of them learns, another one does not know, so
messages carry it.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)

from magnetar.spark_connector.errors import ConnectorError, OptionError
from magnetar.spark_connector.writing import columns
from magnetar.spark_connector.writing.options import SinkOptions
from magnetar.spark_connector.writing.tasks import TaskPlace, WrittenRows, write

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

QUERY_ID: Final = "sql.streaming.queryId"
BATCH_ID: Final = "streaming.sql.batchId"
"""What Spark tells tasks of a stream; equal when a batch is run again (seen with 4.3)."""
ONLY_BATCH: Final = 0


@dataclass
class WrittenMessage(WriterCommitMessage):
    """From a task to the driver."""

    place: TaskPlace
    written: WrittenRows


def check(schema: StructType, options: SinkOptions, *, overwrite: bool) -> None:
    """Refuse what cannot be written, before any task runs."""
    if overwrite:
        raise OptionError(
            'a topic is only appended to: use mode("append"), or outputMode("append") or "update"'
        )
    columns.check([(one.name, one.dataType.simpleString()) for one in schema.fields], options.topic)


class BatchJobWriter(DataSourceArrowWriter):
    """Writes a DataFrame."""

    def __init__(self, options: SinkOptions) -> None:
        self._options = options
        self._sink = str(uuid.uuid4())

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return _written(iterator, self._options, self._sink, ONLY_BATCH)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """All rows are stored."""

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """What is stored stays."""


class StreamWriter(DataSourceStreamArrowWriter):
    """Writes the batches of a stream."""

    def __init__(self, options: SinkOptions) -> None:
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        sink = _told(QUERY_ID)
        return _written(iterator, self._options, sink, int(_told(BATCH_ID)))

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """All rows are stored."""

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """What is stored stays."""


def _written(
    batches: Iterator[pa.RecordBatch], options: SinkOptions, sink: str, batch: int
) -> WrittenMessage:
    context = TaskContext.get()
    assert context is not None, "Spark calls it in a task"
    place = TaskPlace(sink, batch, context.partitionId())
    return WrittenMessage(place, write(batches, options, place))


def _told(name: str) -> str:
    """A property that Spark sets for tasks of streams."""
    context = TaskContext.get()
    found = context.getLocalProperty(name) if context is not None else None
    if not found:
        raise ConnectorError(f"Spark does not tell its tasks {name}: this is no stream of Spark 4")
    return str(found)
