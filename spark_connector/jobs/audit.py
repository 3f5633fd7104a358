"""Checks what topics have: every entry there, every offset once, no message twice.

It reads all messages, as a batch query with `failOnDataLoss=false`, up to where the topics end
when it begins; what is sent or trimmed meanwhile is not looked at.
"""

from __future__ import annotations

import argparse
import sys
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from magnetar.spark_connector.jobs import command, comparison, gaps
from magnetar.spark_connector.jobs.inspection import LOST, EntryFinding
from magnetar.spark_connector.jobs.reports.progress import SILENT, StepProgress
from magnetar.spark_connector.jobs.reports.report import (
    BarChart,
    JobReport,
    LineChart,
    ReportTable,
    Size,
)
from magnetar.spark_connector.jobs.session import TopicSelection, positions
from magnetar.spark_connector.planning.planner import Planner, Plans

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

COLUMNS: Final = (
    "topic,partition,offset,ledger_id,entry_id,publish_time,event_time,key,value,producer_name,"
    "sequence_id,protocol"
)
POINTS: Final = 60
"""Of the chart of messages over time."""
LISTED_MAX: Final = 1_000
"""Of losses, and of messages that are there twice: the most that the report has."""


class AuditOptions(Struct, frozen=True):
    """What is audited."""

    topics: TopicSelection
    other: TopicSelection | None = None
    """A topic that should have the same messages."""
    duplicates: bool = True
    """Whether messages that are there twice are looked for, and are a problem."""


def run(spark: SparkSession, options: AuditOptions, progress: StepProgress = SILENT) -> JobReport:
    """Audit topics; each thing that is wrong is a problem of the report."""
    with progress.step("asking the server"):
        planner = Planner(options.topics.parsed())
        plans = planner.plans()
    frame = options.topics.frame(
        spark, columns=COLUMNS, failOnDataLoss="false", endingOffsets=positions(plans)
    )
    entries = gaps.by_entry(frame).persist()
    try:
        with progress.tasks(spark, "reading all messages"):
            totals = _totals(entries)
        with progress.tasks(spark, "looking at gaps"):
            losses, harmless = _looked_at(gaps.found(spark, entries, planner, plans))
            losses = gaps.still_there(losses, planner.plans(plans))
        timeline = _timeline(entries, totals)
    finally:
        entries.unpersist()
    problems = [gaps.sentence(one) for one in losses]
    if options.duplicates:
        with progress.tasks(spark, "looking for duplicates"):
            problems += _duplicates(frame)
    if options.other is not None:
        with progress.tasks(spark, "comparing"):
            problems += comparison.differences(spark, options.topics, options.other)
    return _report(plans, totals, harmless, problems, timeline)


def _totals(entries: DataFrame) -> list[Any]:
    from pyspark.sql import functions as F  # noqa: N812

    by_partition = entries.groupBy("topic", "partition").agg(
        F.sum("messages").alias("messages"),
        F.sum("bytes").alias("bytes"),
        F.count("*").alias("entries"),
        F.min("first_offset").alias("first_offset"),
        (F.max("next_offset") - 1).alias("last_offset"),
        F.min("first_time").alias("first_time"),
        F.max("last_time").alias("last_time"),
    )
    rows: list[Any] = by_partition.orderBy("topic", "partition").collect()
    return rows


def _looked_at(found: DataFrame) -> tuple[list[EntryFinding], list[tuple[str, str, int]]]:
    """Losses, one by one; of what else takes a place, the number of entries by log and kind."""
    from pyspark.sql import functions as F  # noqa: N812

    is_lost = F.col("kind").isin(*LOST)
    found = found.persist()
    try:
        lost = found.where(is_lost).orderBy("log", "ledger_id", "first").limit(LISTED_MAX)
        number = F.sum(F.col("last") - F.col("first") + 1).alias("entries")
        harmless = found.where(~is_lost).groupBy("log", "kind").agg(number)
        losses = [EntryFinding(*row) for row in lost.collect()]
        return losses, [tuple(row) for row in harmless.orderBy("log", "kind").collect()]
    finally:
        found.unpersist()


def _timeline(entries: DataFrame, totals: list[Any]) -> LineChart:
    """Messages over time, of each topic."""
    from pyspark.sql import functions as F  # noqa: N812

    times = [time for row in totals for time in (row.first_time, row.last_time)]
    lines: dict[str, list[tuple[datetime, float]]] = {}
    if times:
        span = (max(times) - min(times)).total_seconds()
        width = max(span / POINTS, 1.0)
        bucket = F.floor(F.unix_micros("last_time") / F.lit(width * 1e6)) * width
        counts = entries.groupBy("topic", F.timestamp_seconds(bucket).alias("at"))
        summed = counts.agg(F.sum("messages").alias("messages")).orderBy("topic", "at")
        for row in summed.collect():
            lines.setdefault(row.topic, []).append((row.at, row.messages))
    return LineChart("Messages over time", dict(lines))


def _duplicates(frame: DataFrame) -> list[str]:
    """Messages that a producer has stored twice: the same sequence id, times and content.

    A sequence id alone may come back: Pulsar's producers begin anew with each process, Kafka's with
    each epoch. A message that is sent again has all else in common too, but for the time at which
    Kafka's and MQTT's are stored.
    """
    from pyspark.sql import functions as F  # noqa: N812

    sent = F.when(F.col("protocol") == "pulsar", F.col("publish_time"))
    content = F.xxhash64(
        F.col("key").isNull(), "key", F.col("value").isNull(), "value", "event_time", sent
    )
    known = frame.where("producer_name IS NOT NULL AND sequence_id IS NOT NULL")
    keys = ["topic", "partition", "producer_name", "sequence_id", "content"]
    by_id = known.withColumn("content", content).groupBy(*keys)
    twice = by_id.agg(
        F.count("*").alias("times"),
        F.sort_array(F.collect_list("offset")).alias("offsets"),
    ).where("times > 1")
    rows = twice.orderBy("topic", "partition", "offsets").limit(LISTED_MAX).collect()
    return [
        f"{row.topic}, partition {row.partition}: message {row.sequence_id} of producer "
        f"{row.producer_name} is there {row.times} times, at offsets "
        f"{', '.join(map(str, row.offsets[:10]))}"
        for row in rows
    ]


def _report(
    plans: Plans,
    totals: list[Any],
    harmless: list[tuple[str, str, int]],
    problems: list[str],
    timeline: LineChart,
) -> JobReport:
    columns = ("topic", "partition", "messages", "bytes", "entries", "first offset", "last offset",
               "first", "last")  # fmt: skip
    rows = [
        (
            row.topic, row.partition, row.messages, Size(row.bytes or 0), row.entries,
            row.first_offset, row.last_offset, row.first_time, row.last_time,
        )
        for row in totals
    ]  # fmt: skip
    facts = {
        "logs": len(plans),
        "messages": sum(row.messages for row in totals),
        "bytes": Size(sum(row.bytes or 0 for row in totals)),
        "entries": sum(row.entries for row in totals),
        "entries without messages": sum(number for *_, number in harmless),
        "problems": len(problems),
    }
    bars = [(f"{row.topic} {row.partition}", row.messages) for row in totals]
    return JobReport(
        "audit",
        facts,
        problems,
        (
            ReportTable("Partitions", columns, rows),
            ReportTable("Entries without messages", ("log", "kind", "entries"), harmless),
        ),
        (timeline, BarChart("Messages", bars)),
    )


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    command.add_source(parser)
    checks = parser.add_argument_group("checks")
    checks.add_argument(
        "--with", dest="other", metavar="OTHER",
        help="a topic that has to have the same messages in the same order",
    )  # fmt: skip
    checks.add_argument(
        "--with-url", metavar="URL", help="the server of OTHER, if it is another one"
    )
    checks.add_argument(
        "--allow-duplicates", action="store_true", help="do not look for messages sent twice"
    )


def _options(found: argparse.Namespace) -> AuditOptions:
    topics = command.topics_of(found)
    other = None
    if found.other is not None:
        url = found.with_url or found.url
        other = TopicSelection(url, (found.other,), options=topics.options)
        comparison.check(topics)
    return AuditOptions(topics, other, not found.allow_duplicates)


COMMAND: Final = command.JobCommand(
    "audit",
    """\
Check topics: count their messages, and look for what is wrong.

Wrong are entries that are missing or damaged, offsets that are missing or there
twice, and messages that a producer has stored twice. With --with, two topics
have to have the same messages (key, value, headers), in order, by partition.
""",
    _add_arguments,
    run,
    _options,
    """\
  audit --topic orders
  audit --pattern '.*' --json
  audit --topic orders --with orders-copy --report audit.html""",
)

if __name__ == "__main__":
    sys.exit(command.main(COMMAND))
