"""A stream reader whose small batches go to Spark with their plan, so that no task of Python runs.

Java asks a stream reader for the partitions of a batch; of Spark's own wrapper of simple stream
readers it takes the rows at once (`partitions_func` in `python_streaming_source_runner.py` of
PySpark 4.3, `PythonMicroBatchStreamBase.planInputPartitions`), and runs a task for the partition
only if it has lost them. Spark looks at the class, each time that it asks for anything. The wrapper
cannot be used for the whole stream: it has no `reportLatestOffset` and no limits. So a reader is of
a class that counts as the wrapper from the end of `partitions` to the question for the rows.

This is no public interface: versions of PySpark that were not looked at get tasks.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Final

import pyspark
from pyspark.sql import datasource_internal
from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    MapType,
    StringType,
    StructType,
)

from magnetar.spark_connector.options import SourceOptions
from magnetar.spark_connector.source import MagnetarStreamReader, TaskPartition

if TYPE_CHECKING:
    import pyarrow as pa

    from magnetar.spark_connector.reading.small_batches import SmallBatches
    from magnetar.spark_connector.stream import Offset

log = logging.getLogger(__name__)

VERSIONS: Final = ("4.2.", "4.3.")
"""Of PySpark, in which rows go with a plan as told above."""


class PlanningReader(MagnetarStreamReader):
    """See the module's docstring. It lives in the driver."""

    def __init__(self, chosen: SourceOptions, schema: StructType) -> None:
        super().__init__(chosen)
        self._schema = schema
        self._small: SmallBatches | None = None
        self._rows: list[pa.RecordBatch] = []

    def partitions(self, start: Offset, end: Offset) -> list[InputPartition]:
        from magnetar.spark_connector.reading.small_batches import SmallBatches

        tasks = self.tasks(start, end)
        if self._small is None:
            allowed = spark_takes_rows() and is_plain(self._schema, self._options)
            self._small = SmallBatches(allowed=allowed)
        if (rows := self._small.rows(tasks)) is not None:
            self._rows = rows
            self.__class__ = ReaderWithRows
        return [TaskPartition(task) for task in tasks]


class ReaderWithRows(PlanningReader):
    """The same reader, from when it has planned a batch until Spark asks for the rows."""

    def getCache(self, start: Offset, end: Offset) -> Iterator[pa.RecordBatch]:  # noqa: N802
        """The rows of the batch that was planned last, which is this one."""
        rows, self._rows = self._rows, []
        self.__class__ = PlanningReader
        return iter(rows)


@cache
def spark_takes_rows() -> bool:
    """Whether this PySpark is one that takes rows with a plan."""
    wrapper = getattr(datasource_internal, "_SimpleStreamReaderWrapper", None)
    if wrapper is None or not pyspark.__version__.startswith(VERSIONS):
        log.warning("small batches are read by tasks with PySpark %s", pyspark.__version__)
        return False
    wrapper.register(ReaderWithRows)
    return True


def is_plain(schema: StructType, chosen: SourceOptions) -> bool:
    """Whether Java takes such rows with a plan. It refuses a schema that it does not find in our
    Arrow batches as it is, as with comments on columns.
    """
    from pyspark.sql.pandas.types import from_arrow_schema

    from magnetar.spark_connector.reading.columns import arrow_schema

    found = from_arrow_schema(arrow_schema(chosen.columns, chosen.values))
    return bool(found == schema) and _is_copied(schema)


def _is_copied(kind: DataType) -> bool:
    """Whether Java copies such values as they are, which it does with rows that come with a plan.
    `ColumnarArray.copy` of Spark 4.3 fails at null in an array of numbers.
    """
    match kind:
        case StructType():
            return all(_is_copied(field.dataType) for field in kind.fields)
        case MapType():
            return _is_copied(ArrayType(kind.keyType)) and _is_copied(ArrayType(kind.valueType))
        case ArrayType():
            inside = kind.elementType
            return isinstance(inside, StringType | BinaryType | StructType) and _is_copied(inside)
    return True
