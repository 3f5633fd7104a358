"""What was read, with the columns of other connectors, for jobs that come from them:

    rows = as_kafka(spark.read.format("magnetar").options(...).load())

They are expressions of Spark's, of batches and of streams. A column that nobody asks for costs
nothing but that it is read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as f
from pyspark.sql.types import StructType

from magnetar.core.kernel.varints import varint

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_MESSAGE_ID: Final = (b"\x08", b"\x10", b"\x18", b"\x20")
"""Tags of ledgerId, entryId, partition and batch_index in Pulsar's MessageIdData."""


def as_kafka(rows: DataFrame) -> DataFrame:
    """The columns of Spark's own Kafka source, `headers` as with `includeHeaders`.

    A topic has the name that Kafka's clients know it by. The time is that of the record, else of
    its publication; `timestampType` is always 0 (CreateTime), for rows do not tell.
    """
    return rows.select(
        "key",
        "value",
        f.regexp_replace("topic", "^persistent://(public/default/)?", "").alias("topic"),
        "partition",
        "offset",
        f.coalesce("event_time", "publish_time").alias("timestamp"),
        f.lit(0).alias("timestampType"),
        f.when(f.size("headers") > 0, f.col("headers")).alias("headers"),  # its null means none
    )


def as_pulsar(rows: DataFrame) -> DataFrame:
    """The columns of StreamNative's pulsar-spark; the fields of a struct are columns, as there.

    `__topic` is the name without the partition, which is in `__messageId`. Of properties that are
    given twice the last one counts; their values are read as UTF-8.
    """
    is_struct = isinstance(rows.schema["value"].dataType, StructType)
    return rows.select(
        "value.*" if is_struct else "value",
        f.col("key").alias("__key"),
        f.col("topic").alias("__topic"),
        _message_id().alias("__messageId"),
        f.col("publish_time").alias("__publishTime"),
        f.col("event_time").alias("__eventTime"),
        _properties().alias("__messageProperties"),
    )


def _message_id() -> Column:
    made = f.udf(message_id, "binary")
    return made("ledger_id", "entry_id", "partition", "batch_index")


def message_id(*numbers: int | None) -> bytes:
    """A message's id as Pulsar's clients write it."""
    pairs = zip(_MESSAGE_ID, numbers, strict=True)
    return b"".join(tag + varint(number) for tag, number in pairs if number is not None)


def _properties() -> Column:
    """A map keeps one value of each name, so those before the last one are left out."""

    def is_last(pair: Column, place: Column) -> Column:
        later = f.slice(f.col("headers"), place + 2, f.size("headers"))
        return ~f.exists(later, lambda other: other["key"] == pair["key"])

    last = f.filter("headers", is_last)
    return f.map_from_arrays(
        f.transform(last, lambda pair: pair["key"]),
        f.transform(last, lambda pair: pair["value"].cast("string")),
    )
