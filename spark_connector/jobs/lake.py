"""Keeps tables of topics: Parquet or Delta, each message once.

A stream of Spark's writes its batches to the table, and says in its checkpoint how far it is; the
table knows which batches it has. So a batch that was written and not checkpointed is not written
again, and a job that is killed at any moment goes on where it was.
"""

from __future__ import annotations

import argparse
import json
import sys
import threading
from collections.abc import Sequence
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from magnetar.spark_connector.errors import OptionError
from magnetar.spark_connector.jobs import command
from magnetar.spark_connector.jobs.interruption import signals_to
from magnetar.spark_connector.jobs.reports.progress import SILENT, StepProgress
from magnetar.spark_connector.jobs.reports.report import BarChart, JobReport, ReportTable, Size
from magnetar.spark_connector.jobs.session import TopicSelection
from magnetar.spark_connector.jobs.tables import staging
from magnetar.spark_connector.jobs.tables.delta_table import DeltaTableSink
from magnetar.spark_connector.jobs.tables.lock import OWN
from magnetar.spark_connector.jobs.tables.parquet_table import ParquetTable
from magnetar.spark_connector.jobs.tables.staging import StagedFile
from magnetar.spark_connector.session import ON_A_LOCAL_DISK

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

Table = ParquetTable | DeltaTableSink
FORMATS: Final[dict[str, type[ParquetTable] | type[DeltaTableSink]]] = {
    "parquet": ParquetTable,
    "delta": DeltaTableSink,
}
ROWS_PER_BATCH: Final = 2_000_000
OPEN_FILES: Final = 64
"""Of a task, one for each topic and day; with more of these, it sorts."""
POLL_SECONDS: Final = 0.5


class LakeOptions(Struct, frozen=True):
    """Which topics, to which table, and how."""

    topics: TopicSelection
    table: Path
    format: str = "parquet"
    checkpoint: Path | None = None
    """In the table's own folder if it is not given."""
    select: tuple[str, ...] = ()
    """SQL expressions in place of the source's columns."""
    rows_per_batch: int = ROWS_PER_BATCH
    continuous_seconds: float = 0.0
    """How often a job that goes on looks for messages; 0 for one that ends."""
    compact: bool = False
    """Whether small files of past days are merged, when the messages are written."""


def run(spark: SparkSession, options: LakeOptions, progress: StepProgress = SILENT) -> JobReport:
    """Bring the table up to date; with `continuous_seconds`, until the job is stopped."""
    if options.format not in FORMATS:
        raise OptionError(f"a table is {' or '.join(FORMATS)}, not {options.format}")
    spark.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
    # else each task sorts its rows by partition first, which takes longer than writing them
    spark.conf.set("spark.sql.maxConcurrentOutputFileWriters", str(OPEN_FILES))
    for name, value in ON_A_LOCAL_DISK.items():
        spark.conf.set(name, value)
    files: list[StagedFile] = []
    ended = threading.Event()
    before = after = 0
    folder = options.table.resolve()
    with FORMATS[options.format](folder) as table:
        with progress.step("writing messages") as at:
            query = _started(spark, options, folder, table, files)
            # to be stopped is the end of a job that goes on, and no failure
            goes_on = options.continuous_seconds > 0
            with signals_to(lambda _: ended.set()) if goes_on else nullcontext():
                while not query.awaitTermination(POLL_SECONDS):
                    if ended.is_set():
                        query.stop()
                        break
                    at(*_done(query))
        if options.compact:
            today = datetime.now(UTC).date().isoformat()
            with progress.tasks(spark, "merging files of past days"):
                for count in table.compact(spark, today):
                    before, after = before + count.before, after + count.after
    return _report(files, before, after)


def _started(
    spark: SparkSession, options: LakeOptions, folder: Path, table: Table, files: list[StagedFile]
) -> StreamingQuery:
    source = {"startingOffsets": "earliest", "maxRowsPerTrigger": str(options.rows_per_batch)}
    given = {name.lower() for name in options.topics.options}
    more = {name: value for name, value in source.items() if name.lower() not in given}
    frame = rows_of(options.topics.stream(spark, **more), options.select)

    def write(batch: DataFrame, number: int) -> None:
        files.extend(table.write(batch, _query_of(batch), number))

    checkpoint = options.checkpoint or folder / OWN / "checkpoint"
    writer = frame.writeStream.foreachBatch(write)
    writer = writer.option("checkpointLocation", staging.uri(checkpoint))
    if options.continuous_seconds:
        return writer.trigger(processingTime=f"{options.continuous_seconds} seconds").start()
    return writer.trigger(availableNow=True).start()


def rows_of(frame: DataFrame, select: Sequence[str]) -> DataFrame:
    """What the table has: the columns, with the topic's short name, and the date in UTC."""
    from pyspark.sql import functions as F  # noqa: N812

    short = F.regexp_replace("topic", "^persistent://(public/default/)?", "")
    day = F.floor(F.unix_micros("publish_time") / F.lit(86_400_000_000)).cast("int")
    partitions = [short.alias("topic"), F.date_from_unix_date(day).alias("date")]
    chosen = [F.expr(each) for each in select] or [
        F.col(name) for name in frame.columns if name != "topic"
    ]
    return frame.select(*chosen, *partitions)


def _query_of(batch: DataFrame) -> str:
    """The id of the query, which its checkpoint keeps."""
    found = batch.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
    assert found, "Spark sets it for each batch"
    return str(found)


def _done(query: StreamingQuery) -> tuple[int, int]:
    """Messages that are read, of those that there are."""
    last = query.lastProgress
    if last is None:
        return 0, 0
    source = last["sources"][0]
    done, total = _offsets(source["endOffset"]), _offsets(source["latestOffset"])
    return sum(done.values()), sum(max(total.get(log, 0), at) for log, at in done.items())


def _offsets(said: Any) -> dict[str, int]:
    """The offset in each log, of an offset as the stream stores it (`stream.py`)."""
    found = json.loads(said) if isinstance(said, str) else said
    return {log: place[2] for log, place in ((found or {}).get("pos") or {}).items()}


def _report(files: Sequence[StagedFile], before: int, after: int) -> JobReport:
    by_day: dict[tuple[str, str], list[int]] = {}
    for one in files:
        sums = by_day.setdefault((one.topic, one.date), [0, 0, 0])
        sums[0], sums[1], sums[2] = sums[0] + one.rows, sums[1] + one.bytes, sums[2] + 1
    rows = [
        (topic, date, rows, Size(size), count)
        for (topic, date), (rows, size, count) in sorted(by_day.items())
    ]
    facts = {
        "messages": sum(one.rows for one in files),
        "bytes": Size(sum(one.bytes for one in files)),
        "files": len(files),
        "merged": f"{before:,} files to {after:,}",
    }
    table = ReportTable("Written", ("topic", "date", "messages", "bytes", "files"), rows)
    bars = [(f"{topic} {date}", count) for topic, date, count, *_ in rows]
    return JobReport("lake", facts, (), (table,), (BarChart("Messages", bars),))


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    command.add_source(parser)
    table = parser.add_argument_group("table")
    table.add_argument(
        "--to", type=Path, required=True, metavar="DIR",
        help="the table: a folder that driver and workers have",
    )  # fmt: skip
    table.add_argument(
        "--format", choices=tuple(FORMATS), default="parquet",
        help="delta needs magnetar[lake] (%(default)s)",
    )  # fmt: skip
    command.add_columns(table, "a column in place of all, such as 'CAST(key AS STRING) customer'")
    table.add_argument("--compact", action="store_true", help="merge small files of past days")
    stream = parser.add_argument_group("stream")
    stream.add_argument(
        "--continuous", type=float, default=0.0, metavar="SECONDS",
        help="look for messages so often, until it is stopped; else it ends when it has all",
    )  # fmt: skip
    stream.add_argument(
        "--rows-per-batch", type=int, default=ROWS_PER_BATCH, metavar="N",
        help="about the most that is written at once (%(default)s)",
    )  # fmt: skip
    stream.add_argument(
        "--checkpoint", type=Path, metavar="DIR",
        help="how far the job is; in the table's folder if not given",
    )  # fmt: skip


def _options(found: argparse.Namespace) -> LakeOptions:
    return LakeOptions(
        command.topics_of(found),
        found.to,
        found.format,
        found.checkpoint,
        tuple(found.select),
        found.rows_per_batch,
        found.continuous,
        found.compact,
    )


COMMAND: Final = command.JobCommand(
    "lake",
    """\
Keep a table of topics, as Parquet files or as a Delta table, with partitions by
topic and by date (of publishing, in UTC). Each message is written once, over a
kill at any moment: run it again, and it goes on where it was.
""",
    _add_arguments,
    run,
    _options,
    """\
  lake --pattern 'shop/orders/.*' --to /data/orders --compact
  lake --topic orders --to /data/orders --format delta --continuous 30""",
    "; run it again, and it goes on where it was",
)

if __name__ == "__main__":
    sys.exit(command.main(COMMAND))
