"""Which entries of topics a query has no rows of, and why.

Rows are counted by entry. What the server's plan has besides is looked at, entry by entry, in
Spark's workers: most of it takes a place and has no messages (`inspection.py`), the rest is lost.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from magnetar.core.kernel.names import TopicName
from magnetar.core.ledger.read.reading_plan import PlannedLedger, ReadingPlan
from magnetar.core.ledger.read.transaction_index import Aborted
from magnetar.spark_connector.jobs.inspection import (
    DAMAGED,
    FINDINGS,
    INCOMPLETE,
    MESSAGES,
    MISSING,
    UNREAD,
    EntryFinding,
    LedgerInspection,
    Stretch,
    inspection,
    merged,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

    from magnetar.spark_connector.planning.planner import Planner, Plans

EDGES: Final = (
    "topic string, partition int, ledger_id bigint, entry_id bigint, first_offset bigint, "
    "next_offset bigint"
)


class Edge(Struct, frozen=True, array_like=True):
    """What is just before the first entry that is read of a ledger, or just behind the last."""

    topic: str
    partition: int
    ledger_id: int
    entry_id: int
    first_offset: int | None
    next_offset: int | None


def by_entry(frame: DataFrame) -> DataFrame:
    """One row for each entry that has messages."""
    from pyspark.sql import functions as F  # noqa: N812  # as everybody calls it

    size = F.coalesce(F.length("value"), F.lit(0)) + F.coalesce(F.length("key"), F.lit(0))
    return frame.groupBy("topic", "partition", "ledger_id", "entry_id").agg(
        F.count("*").alias("messages"),
        F.sum(size.cast("long")).alias("bytes"),
        F.min("offset").alias("first_offset"),
        (F.max("offset") + 1).alias("next_offset"),
        F.min("publish_time").alias("first_time"),
        F.max("publish_time").alias("last_time"),
    )


def edges(plans: Plans) -> Iterator[Edge]:
    """Of all ledgers but those of which compaction has left some entries."""
    for log, plan in plans.items():
        name = TopicName.parse(log)
        place = (name.base.full, max(name.partition_index, 0))
        for ledger, first, last, index, following in _read(plan):
            if not ledger.kept and first <= last:
                yield Edge(*place, ledger.id, first - 1, None, index)
                yield Edge(*place, ledger.id, last + 1, following, None)


def _read(
    plan: ReadingPlan,
) -> Iterator[tuple[PlannedLedger, int, int, int | None, int | None]]:
    """Each ledger with its first and last entry that is read, the index of the first message, and
    the index behind the last one.
    """
    start, end = plan.first, plan.stable
    ledgers = [one for one in plan.ledgers if start.ledger_id <= one.id <= end.ledger_id]
    for ledger, later in zip_longest(ledgers, ledgers[1:]):
        first, index = 0, ledger.first_index
        if ledger.id == start.ledger_id:
            first, index = start.entry_id, start.index
        if ledger.id == end.ledger_id:
            last, following = end.entry_id - 1, end.index
        else:
            last = ledger.entries - 1
            following = end.index if later is None else later.first_index
        yield ledger, first, last, _known(index), _known(following)


def _known(index: int) -> int | None:
    return index if index >= 0 else None


def found(spark: SparkSession, entries: DataFrame, planner: Planner, plans: Plans) -> DataFrame:
    """`EntryFinding`s of what has no rows, and of indexes that do not meet."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F  # noqa: N812

    ends = spark.createDataFrame([_row(one) for one in edges(plans)], EDGES)
    columns = ["topic", "partition", "ledger_id", "entry_id", "first_offset", "next_offset"]
    known = entries.select(*columns, F.lit(False).alias("edge"))
    known = known.unionByName(ends.withColumn("edge", F.lit(True)))
    order = Window.partitionBy("topic", "partition", "ledger_id").orderBy("entry_id")
    pairs = known.select(
        "*",
        F.lag("entry_id").over(order).alias("before"),
        F.lag("next_offset").over(order).alias("expected"),
        F.lag("edge").over(order).alias("begins"),
    )
    kept = {ledger.id for plan in plans.values() for ledger in plan.ledgers if ledger.kept}
    if kept:
        pairs = pairs.where(~F.col("ledger_id").isin(kept))
    gap = (F.col("entry_id") > F.col("before") + 1) | F.coalesce(
        F.col("first_offset") != F.col("expected"), F.lit(False)
    )
    inspector = F.udf(
        _inspector(planner, plans).__call__, f"array<struct<{FINDINGS}>>", useArrow=False
    )
    inspected = pairs.where(gap).select(F.explode(inspector(F.struct("*"))).alias("finding"))
    return inspected.select("finding.*")


def _row(edge: Edge) -> tuple[str, int, int, int, int | None, int | None]:
    return (
        edge.topic, edge.partition, edge.ledger_id, edge.entry_id, edge.first_offset,
        edge.next_offset,
    )  # fmt: skip


class GapInspector:
    """Looks at gaps in a worker. As a plain function of Spark's, it needs no pandas."""

    def __init__(self, inspection: LedgerInspection, logs: dict[tuple[str, int], str]) -> None:
        self._inspection = inspection
        self._logs = logs

    def __call__(self, pair: Row) -> list[EntryFinding]:
        return list(self._findings(pair))

    def _findings(self, pair: Row) -> Iterator[EntryFinding]:
        """What is between two entries that are known; those are looked at too, if they are read:
        messages at the end of one, or at the beginning of the other, may be missing.
        """
        log = self._logs[pair["topic"], pair["partition"]]
        before, entry = pair["before"], pair["entry_id"]
        stretch = Stretch(
            log,
            pair["ledger_id"],
            before + 1 if pair["begins"] else before,
            entry - 1 if pair["edge"] else entry,
            pair["expected"] if pair["begins"] else None,
            pair["first_offset"] if pair["edge"] else None,
        )
        with_rows = (before, entry)
        without_rows = (
            one._replace(kind=UNREAD, detail="it has messages, but no rows")
            if one.kind == MESSAGES
            else one
            for one in self._inspection.of(stretch)
            if one.kind not in (MESSAGES, INCOMPLETE) or one.first not in with_rows
        )
        return merged(without_rows)


def _inspector(planner: Planner, plans: Plans) -> GapInspector:
    ledgers = {log: {ledger.id for ledger in plan.ledgers} for log, plan in plans.items()}
    aborted = {log: list(map(Aborted._make, plan.aborted)) for log, plan in plans.items()}
    logs = {}
    for log in plans:
        name = TopicName.parse(log)
        logs[name.base.full, max(name.partition_index, 0)] = log
    looks = inspection(planner, ledgers, {log: each for log, each in aborted.items() if each})
    return GapInspector(looks, logs)


def sentence(one: EntryFinding) -> str:
    """A loss, for people."""
    number = one.last - one.first + 1
    where = f"entry {one.ledger_id}:{one.first}"
    if number > 1:
        where = f"{number:,} entries from {one.ledger_id}:{one.first} to {one.ledger_id}:{one.last}"
    offsets = ""
    if one.from_index is not None and one.to_index is not None and one.to_index > one.from_index:
        offsets = f" (offsets {one.from_index} to {one.to_index - 1})"
    what = {
        MISSING: f"{where} {'is' if number == 1 else 'are'} missing",
        DAMAGED: f"{where} {'is' if number == 1 else 'are'} damaged",
        INCOMPLETE: f"{where} ends a message in chunks that has no row: chunks are "
        "missing, or it was sent twice",
    }.get(one.kind, where)
    detail = f": {one.detail}" if one.detail else ""
    return f"{one.log}: {what}{offsets}{detail}"


def still_there(findings: Sequence[EntryFinding], plans: Plans) -> list[EntryFinding]:
    """Without those of ledgers that have been deleted since the first plan, as retention does."""
    ledgers = {(log, ledger.id) for log, plan in plans.items() for ledger in plan.ledgers}
    return [one for one in findings if (one.log, one.ledger_id) in ledgers]
