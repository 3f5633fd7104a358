"""Copies messages from topics to a topic: a range of them, those that a condition of SQL chooses.

It is a batch query that writes with the sink, by default `exactly_once`: readers of committed
messages see all of it, or nothing. Under a name it is written once, however often it is run.

Messages of one partition stay in order, which takes a sort: tasks read parts of a partition at the
same time. Without it (`ordered=False`) only each task's own are.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from magnetar.core.kernel.names import TopicName
from magnetar.spark_connector.errors import OptionError
from magnetar.spark_connector.jobs import command
from magnetar.spark_connector.jobs.reports.progress import SILENT, StepProgress
from magnetar.spark_connector.jobs.reports.report import JobReport, ReportTable, Size
from magnetar.spark_connector.jobs.session import TopicSelection
from magnetar.spark_connector.planning.planner import Planner
from magnetar.spark_connector.sink import BATCH_JOBS, DRIVER
from magnetar.spark_connector.writing.commits import is_committed
from magnetar.spark_connector.writing.options import Delivery
from magnetar.spark_connector.writing.options import parse as parse_sink
from magnetar.spark_connector.writing.service import TaskPlace

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

COPIED: Final = ("key", "value", "headers", "event_time")
ORDER: Final = ("topic", "partition", "ledger_id", "entry_id", "batch_index", "offset")


class ReplayOptions(Struct, frozen=True):
    """What is copied, and where to."""

    topics: TopicSelection
    """The range is in its options: `startingTimestamp`, `endingOffsets` and so on."""
    to: str
    to_url: str = ""
    """The other server, if it is one."""
    where: str = ""
    select: tuple[str, ...] = COPIED
    """SQL for the columns that the sink takes."""
    name: str = ""
    """Under which it is written once."""
    ordered: bool = True
    sink: Mapping[str, str] = {}
    """Further options of the sink."""
    dry_run: bool = False


def run(spark: SparkSession, options: ReplayOptions, progress: StepProgress = SILENT) -> JobReport:
    """Copy, or tell what would be copied."""
    from pyspark.sql import Observation
    from pyspark.sql import functions as F  # noqa: N812

    with progress.step("asking the server"):
        _check(options)
    frame = options.topics.frame(spark)
    if options.where:
        frame = frame.where(options.where)
    if options.dry_run:
        with progress.tasks(spark, "counting messages"):
            return _told(frame)
    if options.name and _is_written(options):
        done = f"under the name {options.name}: nothing is copied"
        return JobReport("replay", {"messages": 0, "to": options.to, "written before": done})
    if options.ordered:
        frame = frame.repartition("topic", "partition").sortWithinPartitions(*ORDER)
    counted = Observation()
    rows = frame.selectExpr(*options.select)
    rows = rows.observe(counted, F.count(F.lit(1)).alias("messages"))
    with progress.tasks(spark, "copying messages"):
        rows.write.format("magnetar").options(**_sink(options)).mode("append").save()
    return JobReport("replay", {"messages": counted.get["messages"], "to": options.to})


def _check(options: ReplayOptions) -> None:
    """`OptionError` if it would read what it writes."""
    plans = Planner(options.topics.parsed()).plans()
    target = TopicName.parse(options.to).base.full
    if not options.to_url and target in {TopicName.parse(log).base.full for log in plans}:
        raise OptionError(f"{target} is copied to itself")


def _is_written(options: ReplayOptions) -> bool:
    """Whether a job of this name was there: the sink would leave out all rows without a word."""
    sink = parse_sink(_sink(options), stream=False)
    place = TaskPlace(sink.sink_id, BATCH_JOBS, sink.batch_id, DRIVER)
    return sink.delivery is Delivery.EXACTLY_ONCE and is_committed(sink, place)


def _sink(options: ReplayOptions) -> dict[str, str]:
    chosen = {
        "service.url": options.to_url or options.topics.url,
        "topic": options.to,
        "delivery": "exactly_once",
    }
    if not options.to_url:
        chosen |= options.topics.security_options
    if options.name:
        chosen |= {"sinkId": options.name, "batchId": "0"}
    return chosen | dict(options.sink)


def _told(frame: DataFrame) -> JobReport:
    """How much it would be."""
    from pyspark.sql import functions as F  # noqa: N812

    size = F.coalesce(F.length("value"), F.lit(0)) + F.coalesce(F.length("key"), F.lit(0))
    by_partition = frame.groupBy("topic", "partition").agg(
        F.count(F.lit(1)).alias("messages"),
        F.sum(size.cast("long")).alias("bytes"),
        F.min("offset").alias("first_offset"),
        F.max("offset").alias("last_offset"),
        F.min("publish_time").alias("first_time"),
        F.max("publish_time").alias("last_time"),
    )
    rows = [
        (*row[:3], Size(row["bytes"] or 0), *row[4:])
        for row in by_partition.orderBy("topic", "partition").collect()
    ]
    columns = ("topic", "partition", "messages", "bytes", "first offset", "last offset", "first",
               "last")  # fmt: skip
    facts: dict[str, Any] = {
        "messages": sum(row[2] for row in rows),
        "bytes": Size(sum(row[3] for row in rows)),
        "dry run": "nothing is written",
    }
    return JobReport("replay", facts, (), (ReportTable("Would be copied", columns, rows),))


def milliseconds(text: str) -> str:
    """A time as people write it, in ms: UTC if it does not say."""
    if text.isdecimal():
        return text
    try:
        time = datetime.fromisoformat(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(
            f"{text} is no time such as 2026-01-31T12:00, nor one in ms"
        ) from error
    if time.tzinfo is None:
        time = time.replace(tzinfo=UTC)
    return str(int(time.timestamp() * 1000))


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    command.add_source(parser)
    chosen = parser.add_argument_group("messages")
    chosen.add_argument(
        "--from", dest="begin", type=milliseconds, metavar="TIME",
        help="from that time on: 2026-01-31T12:00 (UTC), or ms; offsets by --option",
    )  # fmt: skip
    chosen.add_argument(
        "--until", type=milliseconds, metavar="TIME", help="before that time"
    )  # fmt: skip
    chosen.add_argument(
        "--where", default="", metavar="SQL",
        help="which ones, such as \"CAST(key AS STRING) LIKE 'eu-%%'\"",
    )  # fmt: skip
    command.add_columns(
        chosen, "a column for the sink, in place of key, value, headers and event_time"
    )
    target = parser.add_argument_group("target")
    target.add_argument("--to", required=True, metavar="TOPIC", help="where they are written")
    target.add_argument("--to-url", default="", metavar="URL", help="another server")
    target.add_argument(
        "--name", default="", help="what is written under a name is written once, if run again too"
    )  # fmt: skip
    target.add_argument(
        "--unordered", action="store_true", help="do not sort: quicker, in any order"
    )
    command.add_pairs(target, "--sink-option", "an option of the sink (docs/spark.md)")
    target.add_argument("--dry-run", action="store_true", help="only tell how much it would be")


def _options(found: argparse.Namespace) -> ReplayOptions:
    topics = command.topics_of(found)
    times = {"startingTimestamp": found.begin, "endingTimestamp": found.until}
    given = {name: time for name, time in times.items() if time is not None}
    return ReplayOptions(
        TopicSelection(topics.url, topics.topics, topics.pattern, {**topics.options, **given}),
        found.to,
        found.to_url,
        found.where,
        tuple(found.select) or COPIED,
        found.name,
        not found.unordered,
        dict(found.sink_option),
        found.dry_run,
    )


COMMAND: Final = command.JobCommand(
    "replay",
    """\
Copy messages from topics to a topic: a range of time or offsets, those that a
condition of SQL chooses, as they are or changed by SQL.

All of it is committed together, once. Messages of one partition stay in order.
""",
    _add_arguments,
    run,
    _options,
    """\
  replay --topic orders --to orders-again --from 2026-01-31T12:00 --dry-run
  replay --topic orders --to eu --where "CAST(key AS STRING) LIKE 'eu-%'" --name eu-1""",
)

if __name__ == "__main__":
    sys.exit(command.main(COMMAND))
