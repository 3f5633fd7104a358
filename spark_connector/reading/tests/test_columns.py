"""Columns: exactly the types that Spark asks for, and values as they were sent."""

import datetime

import pytest

from magnetar.core.entry.columns.columns import ListedColumns, columns_of
from magnetar.core.entry.record import DetailedRecord
from magnetar.spark_connector.reading import columns
from magnetar.spark_connector.reading.columns import COLUMNS, BatchBuilder

FULL = DetailedRecord(
    3, 1_500, 2_500, b"k", b"o", b"v", [(b"h", b"1"), (b"h", None)], b"p", 9, bytes(7) + b"\x05"
)
BARE = DetailedRecord(4, -1, -1, None, None, None, (), None, None, b"not a number")


@pytest.fixture(params=[ListedColumns, columns_of], autouse=True)
def made(request, monkeypatch) -> None:
    """In Python, and compiled if that is here."""
    monkeypatch.setattr(columns, "columns_of", request.param)


def built(*messages: DetailedRecord, names: tuple[str, ...] = COLUMNS) -> list[dict]:
    builder = BatchBuilder(names)
    builder.begin("t", 2, 5)
    builder.messages.add(7, 100, "pulsar", messages)
    return builder.build().to_pylist()


def test_a_message_with_everything() -> None:
    (row,) = built(FULL)
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
    (row,) = built(BARE)
    absent = {name for name, value in row.items() if value is None}
    assert absent == {
        *("publish_time", "event_time", "key", "ordering_key", "value"),
        *("producer_name", "sequence_id", "schema_version"),
    }
    assert row["headers"] == []


def test_only_what_is_asked_for_in_that_order() -> None:
    assert built(FULL, BARE, names=("value", "topic", "offset")) == [
        {"value": b"v", "topic": "t", "offset": 103},
        {"value": None, "topic": "t", "offset": 104},
    ]
    assert columns.ddl(("value", "offset")) == "value binary, offset bigint"


def test_batches_go_on_over_ranges_and_ranges_over_batches() -> None:
    builder = BatchBuilder(("topic", "partition", "ledger_id", "offset"))
    assert builder.build().num_rows == 0
    builder.begin("a", 0, 5)
    builder.messages.add(1, 10, "kafka", [FULL])
    builder.begin("nothing in it", 0, 6)
    builder.begin("b", 1, 7)
    builder.messages.add(1, 20, "kafka", [FULL, BARE])
    assert builder.rows == 3
    first = [tuple(row.values()) for row in builder.build().to_pylist()]
    assert first == [("a", 0, 5, 13), ("b", 1, 7, 23), ("b", 1, 7, 24)]
    builder.messages.add(2, 30, "kafka", [FULL])
    builder.begin("c", 0, 8)
    builder.messages.add(1, 40, "kafka", [FULL])
    second = [tuple(row.values()) for row in builder.build().to_pylist()]
    assert second == [("b", 1, 7, 33), ("c", 0, 8, 43)]


def test_record_batches_are_valid_arrow() -> None:
    builder = BatchBuilder(COLUMNS)
    builder.begin("t", 2, 5)
    builder.messages.add(7, 100, "pulsar", [FULL, BARE] * 50)
    batch = builder.build()
    batch.validate(full=True)
    assert (batch.num_rows, batch.schema) == (100, columns.arrow_schema(COLUMNS))
