"""Whether two topics have the same messages, by key, value and headers, in the same order.

Offsets and times may differ: a copy has its own. Contents are compared by their hashes of 64 bits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from magnetar.spark_connector.errors import OptionError
from magnetar.spark_connector.jobs.reports.report import counted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from magnetar.spark_connector.jobs.session import TopicSelection

COLUMNS: Final = "partition,offset,ledger_id,entry_id,batch_index,key,value,headers"


def check(topics: TopicSelection) -> None:
    """`OptionError` unless it is one topic."""
    if len(topics.topics) != 1:
        raise OptionError("two topics are compared: --with needs exactly one --topic")


def differences(spark: SparkSession, one: TopicSelection, other: TopicSelection) -> list[str]:
    """How they differ, in sentences."""
    check(one)
    here, there = _messages(one, spark).persist(), _messages(other, spark).persist()
    names = one.topics[0], other.topics[0]
    try:
        return _only_one_has(here, there, names) or _order(here, there, names)
    finally:
        here.unpersist()
        there.unpersist()


def _messages(topics: TopicSelection, spark: SparkSession) -> DataFrame:
    """Each message's number in its partition, its offset, and the hash of what it says."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F  # noqa: N812

    # a hash passes over what is null: so whether it is null is hashed too
    headers = F.transform(
        "headers", lambda each: F.struct(each["key"], each["value"].isNull(), each["value"])
    )
    content = F.xxhash64(
        F.col("key").isNull(), "key", F.col("value").isNull(), "value", F.size(headers), headers
    )
    frame = topics.frame(spark, columns=COLUMNS, failOnDataLoss="false", valueFormat="raw")
    place = ("ledger_id", "entry_id", "batch_index")
    hashed = frame.select("partition", "offset", *place, content.alias("content"))
    order = Window.partitionBy("partition").orderBy(*place, "offset")
    number = F.row_number().over(order).alias("number")
    return hashed.select("partition", "offset", "content", number)


def _only_one_has(here: DataFrame, there: DataFrame, names: tuple[str, str]) -> list[str]:
    """Messages that one of them has more of."""
    from pyspark.sql import functions as F  # noqa: N812

    both = here.select("partition", "content", F.lit(1).alias("more")).unionByName(
        there.select("partition", "content", F.lit(-1).alias("more"))
    )
    surplus = both.groupBy("partition", "content").agg(F.sum("more").alias("more"))
    by_partition = surplus.where("more != 0").groupBy("partition")
    rows = by_partition.agg(
        F.sum(F.greatest("more", F.lit(0))).alias("here"),
        F.sum(F.greatest(-F.col("more"), F.lit(0))).alias("there"),
    ).collect()
    found = []
    for row in sorted(rows):
        for name, count in zip(names, (row.here, row.there), strict=True):
            if count:
                what = counted(count, "message")
                found.append(f"partition {row.partition}: only {name} has {what}")
    return found + _order(here, there, names) if found else []


def _order(here: DataFrame, there: DataFrame, names: tuple[str, str]) -> list[str]:
    """Where they part."""
    from pyspark.sql import functions as F  # noqa: N812

    left, right = here.alias("a"), there.alias("b")
    pairs = left.join(right, ["partition", "number"], "full_outer")
    differ = pairs.where(~F.col("a.content").eqNullSafe(F.col("b.content")))
    first = differ.groupBy("partition").agg(
        F.min(F.struct("number", "a.offset", "b.offset")).alias("at")
    )
    found = []
    for row in sorted(first.collect(), key=lambda each: each.partition):
        number, *offsets = row.at
        places = [
            f"offset {offset} of {name}" if offset is not None else f"nothing in {name}"
            for offset, name in zip(offsets, names, strict=True)
        ]
        what = f"they differ from message {number} on: {places[0]}, {places[1]}"
        found.append(f"partition {row.partition}: {what}")
    return found
