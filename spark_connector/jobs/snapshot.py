"""Keeps the latest message of each key of topics, as Pulsar's TableView and compaction have it.

A snapshot knows up to where each log is in it: a run reads what has come since, and writes the next
version from both. A message without value removes its key; one without key is passed over.

In one partition the later message is the one behind. A key that is in several partitions, because
their number has grown, has the one that was published last.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Struct

from magnetar.core.kernel.names import TopicName
from magnetar.spark_connector.errors import lose
from magnetar.spark_connector.jobs import command
from magnetar.spark_connector.jobs.reports.progress import SILENT, StepProgress
from magnetar.spark_connector.jobs.reports.report import BarChart, JobReport, ReportTable
from magnetar.spark_connector.jobs.session import TopicSelection, positions
from magnetar.spark_connector.jobs.tables import staging
from magnetar.spark_connector.jobs.tables.versions import TableVersion, VersionedTable
from magnetar.spark_connector.planning.planner import Planner, Plans
from magnetar.spark_connector.planning.ranges import is_another
from magnetar.spark_connector.reading.columns import ddl

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

COLUMNS: Final = (
    "topic", "partition", "offset", "publish_time", "event_time", "key", "value", "headers",
)  # fmt: skip
"""Of the snapshot."""
ORDER: Final = ("ledger_id", "entry_id", "batch_index", "offset")
"""Of messages in a partition."""
READ: Final = ",".join(dict.fromkeys((*COLUMNS, *ORDER)))


class SnapshotOptions(Struct, frozen=True):
    """Of which topics, and where."""

    topics: TopicSelection
    folder: Path


def run(
    spark: SparkSession, options: SnapshotOptions, progress: StepProgress = SILENT
) -> JobReport:
    """Bring the snapshot up to date."""
    folder = options.folder.resolve()
    with VersionedTable(folder) as table:
        before = table.current()
        with progress.step("asking the server"):
            plans = Planner(options.topics.parsed()).plans()
        ends = {log: _place(plan) for log, plan in plans.items()}
        read = 0
        if before is None or any(before.positions.get(log) != end for log, end in ends.items()):
            number = 1 if before is None else before.number + 1
            with progress.tasks(spark, "merging what is new"):
                read = _write(spark, options.topics, plans, table, before, number)
            path = table.path(number)
            rows = sum(map(staging.rows_in, path.glob("*.parquet")))
            before = TableVersion(number, _with_gone(before, ends), rows)
            table.publish(before)
        with progress.tasks(spark, "counting keys"):
            counts = _counts(spark, table.path(before.number))
    return _report(before, read, counts)


def _place(plan: Any) -> tuple[int, int, int]:
    return plan.stable.ledger_id, plan.stable.entry_id, plan.stable.index


def _with_gone(before: TableVersion | None, ends: dict[str, Any]) -> dict[str, Any]:
    """The places of the next version. Of a log that is gone its keys are still there, so that one
    of the same name that comes later is another one.
    """
    return ends if before is None else {**before.positions, **ends}


def known(before: TableVersion, plans: Plans, *, fails: bool) -> dict[str, tuple[int, int, int]]:
    """Up to where logs are in a version, as far as they are there and still the same. One that was
    deleted and made again is a loss of data: unless that `fails`, it is read from its beginning.
    """
    found = {}
    for log, place in before.positions.items():
        plan = plans.get(log)
        if plan is None:
            continue
        if is_another(place[0], place[2], plan):
            lose(
                f"{log} has been deleted and made again: it ends at offset {plan.end.index}, and "
                f"the snapshot has the keys of another one up to {place[2]}",
                fails=fails,
            )
        else:
            found[log] = place
    return found


def starts(before: TableVersion | None) -> str:
    """Where a run begins in each log, as the option `startingOffsets`; other logs from their
    beginning.

    Offsets, where there are any: a position at the end of a ledger that has been deleted since
    would look like a loss.
    """
    topics: dict[str, Any] = {}
    for log, (ledger_id, entry_id, index) in (before.positions if before else {}).items():
        name, place = TopicName.parse(log), index if index >= 0 else f"{ledger_id}:{entry_id}"
        if name.partitioned:
            topics.setdefault(name.base.full, {})[name.partition_index] = place
        else:
            topics[log] = place
    return msgspec.json.encode(topics).decode()


def _write(
    spark: SparkSession,
    topics: TopicSelection,
    plans: Plans,
    table: VersionedTable,
    before: TableVersion | None,
    number: int,
) -> int:
    """Write the next version; how many messages it has read."""
    from pyspark.sql import Observation
    from pyspark.sql import functions as F  # noqa: N812

    still = None
    if before is not None:
        fails = topics.parsed().fail_on_data_loss
        still = TableVersion(before.number, known(before, plans, fails=fails), before.rows)
    new = topics.frame(
        spark,
        columns=READ,
        startingOffsets=starts(still),
        endingOffsets=positions(plans),
        valueFormat="raw",  # a table has one type for all its runs
    )
    counted = Observation()
    new = new.observe(counted, F.count(F.lit(1)).alias("messages")).where("key IS NOT NULL")
    old = None
    if before is not None:
        old = _rows(spark, table.path(before.number))
    merged = latest(new, old)
    merged.write.mode("overwrite").parquet(staging.uri(table.path(number)))
    return int(counted.get["messages"])


def latest(new: DataFrame, old: DataFrame | None) -> DataFrame:
    """The latest message of each key, of new ones and of those that were the latest before."""
    from pyspark.sql import functions as F  # noqa: N812

    fresh = new.select(*COLUMNS, F.struct(F.lit(1).alias("fresh"), *ORDER).alias("order"))
    if old is not None:
        none = [F.lit(None).cast(new.schema[name].dataType).alias(name) for name in ORDER]
        kept = old.select(*COLUMNS, F.struct(F.lit(0).alias("fresh"), *none).alias("order"))
        fresh = fresh.unionByName(kept)
    message = F.struct(*COLUMNS).alias("message")
    in_partition = fresh.groupBy("topic", "key", "partition").agg(
        F.max_by(message, "order").alias("message"), F.max("order.fresh").alias("fresh")
    )
    by_time = F.struct("message.publish_time", "fresh", "partition")
    by_key = in_partition.groupBy("topic", "key").agg(F.max_by("message", by_time).alias("message"))
    return by_key.select("message.*").where("value IS NOT NULL")


def _rows(spark: SparkSession, path: Path) -> DataFrame:
    """Of a version, which may have none, and no file that tells its columns."""
    return spark.read.schema(ddl(COLUMNS)).parquet(staging.uri(path))


def _counts(spark: SparkSession, path: Path) -> list[tuple[str, int]]:
    rows = _rows(spark, path).groupBy("topic").count().orderBy("topic").collect()
    return [(row["topic"], row["count"]) for row in rows]


def _report(version: TableVersion, read: int, counts: list[tuple[str, int]]) -> JobReport:
    facts = {"messages read": read, "keys": version.rows, "version": version.number}
    table = ReportTable("Topics", ("topic", "keys"), counts)
    bars = [(topic, keys) for topic, keys in counts]
    return JobReport("snapshot", facts, (), (table,), (BarChart("Keys", bars),))


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    command.add_source(parser)
    parser.add_argument(
        "--to", type=Path, required=True, metavar="DIR",
        help="the snapshot: a folder that driver and workers have; read DIR/current",
    )  # fmt: skip


def _options(found: argparse.Namespace) -> SnapshotOptions:
    return SnapshotOptions(command.topics_of(found), found.to)


COMMAND: Final = command.JobCommand(
    "snapshot",
    """\
Keep the latest message of each key of topics, as Parquet files: DIR/current is
a table. A message without value removes its key. A run reads only what has come
since the last one, and replaces the table as a whole.
""",
    _add_arguments,
    run,
    _options,
    """\
  snapshot --topic customers --to /data/customers""",
    "; the snapshot is as it was, run it again",
)

if __name__ == "__main__":
    sys.exit(command.main(COMMAND))
