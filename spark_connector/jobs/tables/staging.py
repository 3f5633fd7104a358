"""Parquet files that Spark has written to the side, before a table takes them.

    TABLE/_jobs/staging/topic=orders/date=2026-01-31/part-....parquet

Files are on disk (`fsync`) before they are taken: a checkpoint will say that their rows are done.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

from msgspec import Struct

from magnetar.spark_connector.jobs.tables.lock import OWN

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PARTITIONS: Final = ("topic", "date")
_NO_VALUE: Final = "__HIVE_DEFAULT_PARTITION__"


class StagedFile(Struct, frozen=True):
    """One file of one partition of the table."""

    path: Path
    topic: str
    date: str
    rows: int
    bytes: int


def staged(frame: DataFrame, table: Path) -> list[StagedFile]:
    """Write a frame, in place of what was staged before."""
    folder = table / OWN / "staging"
    frame.write.mode("overwrite").partitionBy(*PARTITIONS).parquet(uri(folder))
    return list(_files(folder))


def uri(path: Path) -> str:
    """A path as Hadoop takes it: the whole of it, and nothing is encoded."""
    return f"file://{path.resolve()}"


def clear(table: Path) -> None:
    """Forget what was staged."""
    shutil.rmtree(table / OWN / "staging", ignore_errors=True)


def _files(folder: Path) -> Iterator[StagedFile]:
    for path in sorted(folder.glob("topic=*/date=*/*.parquet")):
        topic, date = values_of(path)
        sync(path)
        yield StagedFile(path, topic, date, rows_in(path), path.stat().st_size)


def rows_in(path: Path) -> int:
    """As the file says itself."""
    from pyarrow import parquet

    return int(parquet.read_metadata(path).num_rows)


def values_of(path: Path) -> tuple[str, str]:
    """The topic and the date of a file, by the names of its folders."""
    date, topic = (unquote(each.name.partition("=")[2]) for each in list(path.parents)[:2])
    return topic, date


def sync(path: Path) -> None:
    """Have a file, or the names in a folder, on disk."""
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
