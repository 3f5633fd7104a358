"""How far subscriptions, consumer groups and MQTT sessions are behind.

It asks the server for their places, and reads one entry for each place that has something left.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from magnetar.spark_connector.admin_client import AdminClient
from magnetar.spark_connector.jobs import backlog, command
from magnetar.spark_connector.jobs.backlog import Lag
from magnetar.spark_connector.jobs.inspection import FINDINGS, EntryFinding, inspection
from magnetar.spark_connector.jobs.reports.progress import SILENT, StepProgress
from magnetar.spark_connector.jobs.reports.report import (
    BarChart,
    JobReport,
    LineChart,
    ReportTable,
    counted,
)
from magnetar.spark_connector.jobs.session import TopicSelection
from magnetar.spark_connector.jobs.statistics import Reader, ServerStatistics
from magnetar.spark_connector.jobs.tables import staging
from magnetar.spark_connector.planning.planner import Planner, Plans

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TIMEOUT_SECONDS: Final = 30.0
EVERYTHING: Final = ".*"
TOP: Final = 20
COLUMNS: Final = ("kind", "name", "topic", "messages", "seconds", "unacknowledged", "consumers")
HISTORY: Final = (
    "at timestamp, kind string, name string, topic string, messages bigint, seconds double, "
    "unacknowledged bigint, consumers int"
)


class LagOptions(Struct, frozen=True):
    """Whose lag is told, and how much is too much."""

    topics: TopicSelection
    """Without topics and pattern: those of all namespaces."""
    max_messages: int | None = None
    max_seconds: float | None = None
    top: int = TOP
    history: Path | None = None
    """Where each run appends what it has found, as Parquet."""


def run(spark: SparkSession, options: LagOptions, progress: StepProgress = SILENT) -> JobReport:
    """Tell the lag of all readers; more than the limits is a problem of the report."""
    client = AdminClient(options.topics.urls, TIMEOUT_SECONDS, options.topics.security)
    server = ServerStatistics(client)
    try:
        with progress.step("asking for topics"):
            selections = _selections(server, options.topics)
            planners = [Planner(one.parsed()) for one in selections]
            plans = {log: plan for one in planners for log, plan in one.plans().items()}
        readers = _readers(server, plans, progress)
    finally:
        client.close()
    with progress.tasks(spark, "reading what is first in each backlog"):
        found = _unread(spark, planners[0], readers, plans) if planners else []
    every = backlog.lags(readers, plans, found, time.time())
    history = {}
    if options.history is not None:
        with progress.tasks(spark, "keeping history"):
            _append(spark, options.history, every)
            history = _history(spark, options.history, every[: options.top])
    return _report(options, plans, every, history)


def _selections(server: ServerStatistics, topics: TopicSelection) -> list[TopicSelection]:
    """One, or one for each namespace."""
    if topics.topics or topics.pattern:
        return [topics]
    return [
        TopicSelection(topics.url, (), f"{one}/{EVERYTHING}", topics.options)
        for one in server.namespaces()
    ]


def _readers(server: ServerStatistics, plans: Plans, progress: StepProgress) -> list[Reader]:
    found: list[Reader] = []
    with progress.step("asking for subscriptions") as at:
        for number, log in enumerate(sorted(plans), 1):
            found += server.subscriptions(log)
            at(number, len(plans))
    with progress.step("asking for MQTT sessions") as at:
        names = list(server.session_names())
        for number, (namespace, client) in enumerate(names, 1):
            found += [one for one in server.session(namespace, client) if one.log in plans]
            at(number, len(names))
    return found


def _unread(
    spark: SparkSession, planner: Planner, readers: Sequence[Reader], plans: Plans
) -> list[EntryFinding]:
    """What the first entries of backlogs are, read by Spark's workers."""
    from pyspark.sql import functions as F  # noqa: N812

    wanted = {
        (one.log, one.ledger_id, one.first)
        for reader in readers
        if reader.log in plans
        and (one := backlog.first_unread(reader, plans[reader.log])) is not None
    }
    if not wanted:
        return []
    ledgers: dict[str, set[int]] = {}
    for log, ledger_id, _ in wanted:
        ledgers.setdefault(log, set()).add(ledger_id)
    looks = inspection(planner, ledgers, {})
    frame = spark.createDataFrame(sorted(wanted), "log string, ledger_id bigint, entry_id bigint")
    inspect = F.udf(looks.entry, f"array<struct<{FINDINGS}>>", useArrow=False)
    each = frame.select(F.explode(inspect("log", "ledger_id", "entry_id")).alias("finding"))
    return [EntryFinding(*row) for row in each.select("finding.*").collect()]


def _row(lag: Lag) -> tuple[str, str, str, int, float, int | None, int]:
    reader = lag.reader
    return (
        reader.kind, reader.name, reader.log, lag.messages, round(lag.seconds, 3),
        reader.unacknowledged, reader.consumers,
    )  # fmt: skip


def _append(spark: SparkSession, folder: Path, every: Sequence[Lag]) -> None:
    now = datetime.now(UTC)
    rows = [(now, *_row(one)) for one in every]
    frame = spark.createDataFrame(rows, HISTORY).coalesce(1)
    frame.write.mode("append").parquet(staging.uri(folder))


def _history(
    spark: SparkSession, folder: Path, top: Sequence[Lag]
) -> dict[str, list[tuple[datetime, float]]]:
    """The messages of those that are furthest behind now, run by run."""
    keys = [(one.reader.kind, one.reader.name, one.reader.log) for one in top]
    if not keys:
        return {}
    wanted = spark.createDataFrame(keys, "kind string, name string, topic string")
    kept = spark.read.schema(HISTORY).parquet(staging.uri(folder))
    rows = kept.join(wanted, ["kind", "name", "topic"]).orderBy("at").collect()
    lines: dict[str, list[tuple[datetime, float]]] = {f"{name} {log}": [] for _, name, log in keys}
    for row in rows:
        lines[f"{row.name} {row.topic}"].append((row.at, row.messages))
    return lines


def _report(
    options: LagOptions,
    plans: Plans,
    every: Sequence[Lag],
    history: dict[str, list[tuple[datetime, float]]],
) -> JobReport:
    top = [one for one in every[: options.top] if one.messages]
    facts = {
        "logs": len(plans),
        "subscriptions, groups and sessions": len(every),
        "behind": sum(one.messages > 0 for one in every),
        "messages": sum(one.messages for one in every),
        "oldest, in seconds": max((one.seconds for one in every), default=0.0),
    }
    bars = [(f"{one.reader.name} {one.reader.log}", one.messages) for one in top]
    ages = [(f"{one.reader.name} {one.reader.log}", one.seconds) for one in top]
    charts: list[BarChart | LineChart] = [
        BarChart("Messages behind", bars),
        BarChart("Age of the first message left, in seconds", ages),
        *([LineChart("Messages behind, over time", dict(history))] if history else []),
    ]
    table = ReportTable("Furthest behind first", COLUMNS, [_row(one) for one in every])
    return JobReport("lag", facts, _problems(options, every), (table,), charts)


def _problems(options: LagOptions, every: Sequence[Lag]) -> list[str]:
    problems = []
    for one in every:
        who = f"{one.reader.kind} {one.reader.name} of {one.reader.log}"
        if options.max_messages is not None and one.messages > options.max_messages:
            problems.append(f"{who} is {counted(one.messages, 'message')} behind")
        if options.max_seconds is not None and one.seconds > options.max_seconds:
            problems.append(f"{who} is {one.seconds:,.0f} s behind")
    return problems


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    command.add_source(parser, needed=False)
    limits = parser.add_argument_group("limits, for the exit code")
    limits.add_argument("--max-messages", type=int, metavar="N", help="more is a problem")
    limits.add_argument("--max-seconds", type=float, metavar="S", help="more is a problem")
    parser.add_argument(
        "--top", type=int, default=TOP, metavar="N", help="how many are in the charts (%(default)s)"
    )
    parser.add_argument(
        "--history", type=Path, metavar="DIR",
        help="append what is found to Parquet files, and show how it came about",
    )  # fmt: skip


def _options(found: argparse.Namespace) -> LagOptions:
    return LagOptions(
        command.topics_of(found), found.max_messages, found.max_seconds, found.top, found.history
    )


COMMAND: Final = command.JobCommand(
    "lag",
    """\
Tell how far subscriptions, consumer groups and MQTT sessions are behind: in
messages, as Kafka counts its lag, and by the age of the first message left.

Without --topic and --pattern it looks at all topics of all namespaces.
""",
    _add_arguments,
    run,
    _options,
    """\
  lag --max-seconds 300 || notify
  lag --pattern 'shop/orders/.*' --history /var/lib/lag --report lag.html""",
)

if __name__ == "__main__":
    sys.exit(command.main(COMMAND))
