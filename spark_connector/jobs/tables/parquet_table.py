"""A table of plain Parquet files, which any reader takes as they are.

    TABLE/topic=orders/date=2026-01-31/QUERY-BATCH-NUMBER.parquet

Spark's own file sink is exactly once too, by a list of files beside them: but only Spark reads that
list, others see the rows of an unfinished batch twice; and files that are listed may not be merged.
Here files appear when their batch is done (`redo.py`), and those of past days are merged.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from msgspec import Struct

from magnetar.spark_connector.jobs.tables import staging
from magnetar.spark_connector.jobs.tables.redo import FileChange, RedoLog
from magnetar.spark_connector.jobs.tables.staging import StagedFile, staged

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MERGED_BYTES: Final = 128 << 20
"""About the size of a merged file; smaller ones than half of it are merged again."""


class MergeCount(Struct, frozen=True):
    """What a compaction did."""

    before: int = 0
    after: int = 0


class ParquetTable:
    """See the module's docstring."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._log = RedoLog(folder)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._log.close()

    def write(self, frame: DataFrame, query: str, batch: int) -> Sequence[StagedFile]:
        """The rows of a batch, once: if it is done, nothing."""
        if self._log.is_done(query, batch):
            return ()
        files = staged(frame, self._folder)
        moves = [
            (self._inside(one.path), f"{_partition(one.path)}/{query}-{batch}-{number}.parquet")
            for number, one in enumerate(files)
        ]
        self._log.commit(FileChange(moves, (), query, batch))
        staging.clear(self._folder)
        return files

    def _inside(self, path: Path) -> str:
        return path.relative_to(self._folder).as_posix()

    def compact(self, spark: SparkSession, before: str) -> Iterator[MergeCount]:
        """Merge small files of the days before a date, one partition after the other."""
        for folder in sorted(self._folder.glob("topic=*/date=*")):
            if staging.values_of(folder / "file")[1] < before:
                yield self._merge(spark, folder)

    def _merge(self, spark: SparkSession, folder: Path) -> MergeCount:
        from pyspark.sql import functions as F  # noqa: N812

        small = [
            path for path in sorted(folder.glob("*.parquet"))
            if path.stat().st_size < MERGED_BYTES // 2
        ]  # fmt: skip
        if len(small) < 2:
            return MergeCount()
        size = sum(path.stat().st_size for path in small)
        topic, date = staging.values_of(small[0])
        frame = spark.read.option("mergeSchema", "true").parquet(*map(staging.uri, small))
        # files that are named are read without the columns in the names of their folders
        rows = frame.withColumn("topic", F.lit(topic)).withColumn("date", F.lit(date))
        files = staged(rows.coalesce(max(size // MERGED_BYTES, 1)), self._folder)
        name = blake2b(" ".join(map(str, small)).encode(), digest_size=8).hexdigest()
        where = self._inside(folder)
        moves = [
            (self._inside(one.path), f"{where}/merged-{name}-{number}.parquet")
            for number, one in enumerate(files)
        ]
        self._log.commit(FileChange(moves, [self._inside(path) for path in small]))
        staging.clear(self._folder)
        return MergeCount(len(small), len(files))


def _partition(path: Path) -> str:
    """The folder of a file in its table; names stay as Spark writes them."""
    return "/".join(path.parts[-3:-1])
