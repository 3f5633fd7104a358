"""A Delta table, through the package `deltalake`: no jar.

Spark's workers write Parquet files, the driver adds them to the table with one entry of its log,
which also notes the query and the batch (an application transaction of the Delta protocol): a batch
that is run again finds that it is there. Files of an unfinished batch are in no log; `compact`
removes them when they are a week old.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

import msgspec

from magnetar.spark_connector.errors import OptionError
from magnetar.spark_connector.jobs.tables import staging
from magnetar.spark_connector.jobs.tables.lock import DELTA, FolderLock
from magnetar.spark_connector.jobs.tables.parquet_table import MERGED_BYTES, MergeCount
from magnetar.spark_connector.jobs.tables.staging import PARTITIONS, StagedFile, staged

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

KEPT_HOURS: Final = 7 * 24
"""How long readers may go on with an earlier version of the table."""


class DeltaTableSink:
    """See the module's docstring."""

    def __init__(self, folder: Path) -> None:
        try:
            import deltalake
        except ImportError as error:
            raise OptionError("Delta tables need pip install 'magnetar[lake]'") from error
        self._folder = folder
        self._delta: Any = deltalake
        self._lock = FolderLock(folder, DELTA)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def write(self, frame: DataFrame, query: str, batch: int) -> Sequence[StagedFile]:
        """The rows of a batch, once: if it is in the table, nothing."""
        schema = self._delta.Schema.from_json(frame.schema.json())
        table = self._delta.DeltaTable.create(
            str(self._folder), schema, mode="ignore", partition_by=list(PARTITIONS)
        )
        written = table.transaction_version(query)
        if written is not None and written >= batch:
            return ()
        files = staged(frame, self._folder)
        actions = [
            self._added(one, f"{query}-{batch}-{number}.parquet")
            for number, one in enumerate(files)
        ]
        staging.sync(self._folder)
        table.create_write_transaction(
            actions,
            "append",
            table.schema(),
            list(PARTITIONS),
            commit_properties=self._delta.CommitProperties(
                app_transactions=[self._delta.Transaction(query, batch, int(time.time() * 1000))]
            ),
        )
        staging.clear(self._folder)
        return files

    def _added(self, one: StagedFile, name: str) -> object:
        """The file, in its place. Names that Spark has given folders would have to be encoded in
        the log, and readers differ in how: so there are no folders.
        """
        os.replace(one.path, self._folder / name)
        return self._delta.transaction.AddAction(
            path=name,
            size=one.bytes,
            partition_values={"topic": one.topic, "date": one.date},
            modification_time=int(time.time() * 1000),
            data_change=True,
            stats=msgspec.json.encode({"numRecords": one.rows}).decode(),
        )

    def compact(self, spark: SparkSession, before: str) -> Iterator[MergeCount]:
        """Merge small files of the days before a date, and remove files that nobody reads."""
        if not (self._folder / "_delta_log").exists():
            return
        table = self._delta.DeltaTable(str(self._folder))
        found = table.optimize.compact([("date", "<", before)], target_size=MERGED_BYTES)
        table.vacuum(KEPT_HOURS, dry_run=False, full=True)
        yield MergeCount(found["numFilesRemoved"], found["numFilesAdded"])
