"""Spark's side: the format `magnetar`, its schema, and its readers. Its writers are in `sink.py`,
and how a batch goes to Spark without a task is in `reading/rows_with_plan.py`.

Spark pickles the reader and its partitions into the workers that read. Nothing is imported here
that a session without this format would pay for.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
    Filter,
    InputPartition,
)
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)

from magnetar.spark_connector import options

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from magnetar.spark_connector.reading.range_reader import Task
    from magnetar.spark_connector.stream import MicroBatches, Offset


class MagnetarSource(DataSource):
    """Topics of a Magnetar server, or of a gateway, as a table."""

    @classmethod
    def name(cls) -> str:
        return "magnetar"

    def schema(self) -> str | StructType:
        from magnetar.spark_connector.schema import schema_of

        # The options of a stream are checked by its reader: Spark does not say which this is.
        return schema_of(options.table_of(self.options))

    def reader(self, schema: StructType) -> DataSourceReader:
        chosen = self._options(schema, stream=False)
        return FilteredReader(chosen) if chosen.pushdown else MagnetarReader(chosen)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        from magnetar.spark_connector.reading.rows_with_plan import PlanningReader

        return PlanningReader(self._options(schema, stream=True), schema)

    def _options(self, schema: StructType, *, stream: bool) -> options.SourceOptions:
        from magnetar.spark_connector.schema import with_schema

        chosen = options.parse(self.options, stream=stream)
        table = options.table_of(self.options)
        return with_schema(chosen, schema, table, named="columns" in self.options)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        from magnetar.spark_connector import sink
        from magnetar.spark_connector.writing.options import parse

        chosen = parse(self.options, stream=False)
        sink.check(schema, chosen, overwrite=overwrite)
        return sink.BatchJobWriter(chosen)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802
        from magnetar.spark_connector import sink
        from magnetar.spark_connector.writing.options import parse

        chosen = parse(self.options, stream=True)
        sink.check(schema, chosen, overwrite=overwrite)
        return sink.StreamWriter(chosen)


class TaskPartition(InputPartition):
    """What one task reads."""

    def __init__(self, task: Task) -> None:
        super().__init__(None)
        self.task = task


class Tasks:
    """Carries out tasks in the workers."""

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        from magnetar.spark_connector.reading.range_reader import batches

        # where there is no task, Spark 4.3 makes a partition (`plan_data_source_read.py`)
        if not isinstance(partition, TaskPartition):
            return iter(())
        return batches(partition.task)


class MagnetarReader(Tasks, DataSourceReader):
    """Plans a query in the driver."""

    def __init__(self, chosen: options.SourceOptions) -> None:
        self._options = chosen
        self._filters: list[Filter] = []

    def partitions(self) -> list[InputPartition]:
        from magnetar.spark_connector.planning import planner

        tasks = planner.batch(self._options, _parallelism(), self._filters)
        return [TaskPartition(task) for task in tasks]


class FilteredReader(MagnetarReader):
    """Leaves out what the query's filters do not want. A reader that takes filters is an error
    where Spark does not offer them (`spark.sql.python.filterPushdown.enabled`), as by default.
    """

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802
        self._filters = filters
        return filters


class MagnetarStreamReader(Tasks, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """A stream of micro-batches. It is pickled into the workers too, without what it knows."""

    def __init__(self, chosen: options.SourceOptions) -> None:
        self._options = chosen
        self._made: MicroBatches | None = None

    def __reduce__(self) -> tuple[type, tuple[options.SourceOptions]]:
        return MagnetarStreamReader, (self._options,)

    @property
    def _batches(self) -> MicroBatches:
        if self._made is None:
            from magnetar.spark_connector.stream import MicroBatches

            self._made = MicroBatches(self._options)
        return self._made

    def initialOffset(self) -> Offset:  # noqa: N802
        from magnetar.spark_connector.stream import FRESH

        return dict(FRESH)

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        chosen = self._options
        if chosen.max_rows_per_trigger:
            return ReadMaxRows(chosen.max_rows_per_trigger)
        if chosen.max_bytes_per_trigger:
            return ReadMaxBytes(chosen.max_bytes_per_trigger)
        if chosen.min_rows_per_trigger:
            return ReadMinRows(chosen.min_rows_per_trigger)
        return ReadAllAvailable()

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802
        return self._batches.latest(start, limited=not isinstance(limit, ReadAllAvailable))

    def reportLatestOffset(self) -> Offset | None:  # noqa: N802
        return self._batches.newest()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._batches.stop_where_it_ends_now()

    def partitions(self, start: Offset, end: Offset) -> list[InputPartition]:
        return [TaskPartition(task) for task in self.tasks(start, end)]

    def tasks(self, start: Offset, end: Offset) -> list[Task]:
        """What the partitions of a batch read."""
        return self._batches.tasks(start, end, _parallelism())

    def commit(self, end: Offset) -> None:
        self._batches.done(end)

    def stop(self) -> None:
        """Spark ends a query by closing its connection, and PySpark's runner then prints forty
        lines of traces (`python_streaming_source_runner.py` of 4.3): nobody is left to be told.
        """
        if isinstance(sys.exception(), EOFError | BrokenPipeError):
            os._exit(0)


def _parallelism() -> int:
    """How many tasks run at once; the planning worker is not told, so as many as this machine has
    cores.
    """
    return os.cpu_count() or 1
