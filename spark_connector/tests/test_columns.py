"""Columns: exactly the types that Spark asks for, and values as they were sent."""

import datetime

from magnetar.core.entry.record import DetailedRecord
from magnetar.spark_connector import columns
from magnetar.spark_connector.columns import COLUMNS, BatchBuilder, EntryRows

FULL = DetailedRecord(
    3, 1_500, 2_500, b"k", b"o", b"v", [(b"h", b"1"), (b"h", None)], b"p", 9, bytes(7) + b"\x05"
)
BARE = DetailedRecord(4, -1, -1, None, None, None, (), None, None, b"not a number")


def built(*rows: EntryRows, names: tuple[str, ...] = COLUMNS) -> list[dict]:
    builder = BatchBuilder(names)
    for one in rows:
        builder.add(one)
    return builder.build().to_pylist()


def rows(*messages: DetailedRecord, first: int | None = 100) -> EntryRows:
    return EntryRows("t", 2, (5, 7), first, "pulsar", messages)


def test_a_message_with_everything() -> None:
    (row,) = built(rows(FULL))
    utc = datetime.UTC
    assert row == {
        "topic": "t",
        "partition": 2,
        "offset": 103,
        "ledger_id": 5,
        "entry_id": 7,
        "batch_index": 3,
        "publish_time": datetime.datetime(1970, 1, 1, 0, 0, 1, 500_000, tzinfo=utc),
        "event_time": datetime.datetime(1970, 1, 1, 0, 0, 2, 500_000, tzinfo=utc),
        "key": b"k",
        "ordering_key": b"o",
        "value": b"v",
        "headers": [{"key": "h", "value": b"1"}, {"key": "h", "value": None}],
        "producer_name": "p",
        "sequence_id": 9,
        "schema_version": 5,
        "protocol": "pulsar",
    }


def test_a_message_with_nothing() -> None:
    (row,) = built(rows(BARE, first=None))
    absent = {name for name, value in row.items() if value is None}
    assert absent == {
        *("offset", "publish_time", "event_time", "key", "ordering_key", "value"),
        *("producer_name", "sequence_id", "schema_version"),
    }
    assert row["headers"] == []


def test_only_what_is_asked_for_in_that_order() -> None:
    assert built(rows(FULL, BARE), names=("value", "offset")) == [
        {"value": b"v", "offset": 103},
        {"value": None, "offset": 104},
    ]
    assert columns.ddl(("value", "offset")) == "value binary, offset bigint"


def test_times_that_were_never_milliseconds_are_null() -> None:
    (row,) = built(rows(FULL._replace(publish_ms=1 << 62, event_ms=-(1 << 62))))
    assert (row["publish_time"], row["event_time"]) == (None, None)


def test_batches_are_bounded() -> None:
    builder = BatchBuilder(("value",))
    while not builder.full:
        builder.add(rows(*[FULL] * 1000))
    assert builder.rows == columns.ROWS_PER_BATCH
    assert builder.build().num_rows == columns.ROWS_PER_BATCH
    assert (builder.rows, builder.build().num_rows) == (0, 0)
    builder.add(rows(FULL._replace(value=bytes(columns.BYTES_PER_BATCH))))
    assert builder.full
