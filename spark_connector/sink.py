"""Spark's side of writing: what it calls in the driver and in the workers.

Spark makes a writer in the driver, for a stream with every batch anew, and once more to commit it;
it pickles the first one into the workers. What one of them learns, another one does not know, so
messages carry it.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace
from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)

from magnetar.spark_connector.errors import ConnectorError, OptionError
from magnetar.spark_connector.writing import columns
from magnetar.spark_connector.writing.commits import abort, commit, give_up
from magnetar.spark_connector.writing.options import SinkOptions
from magnetar.spark_connector.writing.service import TaskPlace
from magnetar.spark_connector.writing.tasks import WrittenRows, write

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

log = logging.getLogger(__name__)
QUERY_ID: Final = "sql.streaming.queryId"
BATCH_ID: Final = "streaming.sql.batchId"
"""What Spark tells tasks of a stream; equal when a batch is run again (seen with 4.3)."""
ONLY_BATCH: Final = 0
BATCH_JOBS: Final = ""
"""Batches of batch jobs are numbered by users, not by a query."""
DRIVER: Final = -1
"""A place that is no task's."""


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
    """Writes a DataFrame, as the only batch of a sink or as one that users number."""

    def __init__(self, options: SinkOptions) -> None:
        self._options = options
        sink = options.sink_id or str(uuid.uuid4())
        self._place = TaskPlace(sink, BATCH_JOBS, max(options.batch_id, ONLY_BATCH), DRIVER)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return _written(iterator, self._options, self._place)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        results = _results(messages)
        commit(self._options, self._place, results)
        if any(one.was_known for one in results):
            said = (
                "batch %s of the sink %s was written before, to whatever topic: nothing is written"
            )
            log.warning(said, self._place.batch, self._place.sink)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        if self._options.sink_id:
            abort(self._options, self._place, _results(messages))
        else:
            give_up(self._options, self._place)


class StreamWriter(DataSourceStreamArrowWriter):
    """Writes the batches of a stream."""

    def __init__(self, options: SinkOptions) -> None:
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        query = _told(QUERY_ID)
        sink = self._options.sink_id or query
        return _written(iterator, self._options, TaskPlace(sink, query, int(_told(BATCH_ID)), 0))

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        if place := _place(messages, batchId):
            commit(self._options, place, _results(messages))

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        if place := _place(messages, batchId):
            abort(self._options, place, _results(messages))


def _written(
    batches: Iterator[pa.RecordBatch], options: SinkOptions, place: TaskPlace
) -> WrittenMessage:
    context = TaskContext.get()
    assert context is not None, "Spark calls it in a task"
    place = replace(place, task=context.partitionId())
    return WrittenMessage(place, write(batches, options, place))


def _results(messages: list[WriterCommitMessage | None]) -> list[WrittenRows]:
    """What tasks have written; those that failed have no message."""
    return [one.written for one in messages if isinstance(one, WrittenMessage)]


def _place(messages: list[WriterCommitMessage | None], batch: int) -> TaskPlace | None:
    """Which sink it is: tasks know, and the driver is not told. None if no task says so."""
    for one in messages:
        if isinstance(one, WrittenMessage):
            assert one.place.batch == batch, "messages are of the batch that is committed"
            return one.place
    return None


def _told(name: str) -> str:
    """A property that Spark sets for tasks of streams."""
    context = TaskContext.get()
    found = context.getLocalProperty(name) if context is not None else None
    if not found:
        raise ConnectorError(f"Spark does not tell its tasks {name}: this is no stream of Spark 4")
    return str(found)
