"""Which columns can be written, and how rows are read from Arrow batches."""

from datetime import UTC, datetime

import pytest

from magnetar.spark_connector.writing import columns
from magnetar.spark_connector.writing.columns import SchemaError, SinkRow

pa = pytest.importorskip("pyarrow")
U = "persistent://public/default/u"
HEADERS = "array<struct<key:string,value:binary>>"


@pytest.mark.parametrize(
    "schema",
    [
        [("value", "string")],
        [("value", "binary"), ("key", "string"), ("headers", HEADERS), ("event_time", "timestamp")],
        [("value", "string collate UTF8_LCASE"), ("topic", "string"), ("partition", "bigint")],
    ],
)
def test_what_can_be_written(schema: list[tuple[str, str]]) -> None:
    columns.check(schema, "t")


@pytest.mark.parametrize(
    ("schema", "topic", "said"),
    [
        ([("key", "string")], "t", 'column "value" is missing'),
        ([("a", "int"), ("b", "int")], "t", "to_json(struct(a, b)) AS value"),
        ([("value", "int")], "t", 'column "value" is int, not string or binary'),
        ([("value", "string"), ("keys", "string")], "t", 'did you mean "key"?'),
        ([("VALUE", "string")], "t", 'did you mean "value"?'),
        ([("value", "string"), ("offset", "bigint")], "t", 'there is no column "offset" in a sink'),
        ([("value", "string"), ("deliver_at", "timestamp")], "t", "by a Pulsar client"),
        ([("value", "string"), ("headers", "map<string,string>")], "t", '"headers" is map<string'),
        ([("value", "string")], "", 'neither a column nor an option "topic"'),
    ],
)
def test_what_cannot_is_named(schema: list[tuple[str, str]], topic: str, said: str) -> None:
    with pytest.raises(SchemaError) as raised:
        columns.check(schema, topic)
    assert said in str(raised.value)


def test_rows_of_all_columns() -> None:
    header = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    batch = pa.record_batch(
        {
            "topic": pa.array(["u", None]),
            "key": pa.array(["k", None]),
            "value": pa.array([b"\xff", None], pa.binary()),
            "partition": pa.array([3, None], pa.int32()),
            "headers": pa.array([[{"key": "h", "value": b"1"}, {"key": "h", "value": None}], None],
                                header),
            "event_time": pa.array([datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC), None],
                                   pa.timestamp("us", "UTC")),
        }
    )  # fmt: skip
    assert list(columns.rows(batch, "t")) == [
        SinkRow(
            b"\xff", b"k", "persistent://public/default/u", 3, [(b"h", b"1"), (b"h", None)], 1000
        ),
        SinkRow(None, None, "t", None, [], None),
    ]


def test_rows_of_a_value_alone() -> None:
    batch = pa.record_batch({"value": pa.array(["ä"])})
    assert list(columns.rows(batch, "t")) == [SinkRow("ä".encode(), None, "t", None, [], None)]


def test_a_row_without_a_topic_is_an_error() -> None:
    batch = pa.record_batch({"value": pa.array(["a"]), "topic": pa.array([None], pa.string())})
    with pytest.raises(SchemaError, match='"topic" is null'):
        list(columns.rows(batch, ""))


@pytest.mark.parametrize("header", [None, {"key": None, "value": b"1"}])
def test_a_header_without_a_name_is_an_error(header: dict | None) -> None:
    kind = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    batch = pa.record_batch({"value": pa.array(["a"]), "headers": pa.array([[header]], kind)})
    with pytest.raises(SchemaError, match="a header has no key"):
        list(columns.rows(batch, "t"))


def test_a_time_that_records_cannot_have_is_an_error() -> None:
    """They would have no time for who reads them."""
    times = pa.array([datetime(1960, 1, 1, tzinfo=UTC), None], pa.timestamp("us", "UTC"))
    batch = pa.record_batch({"value": pa.array(["a", "b"]), "event_time": times})
    with pytest.raises(SchemaError, match="before 1970"):
        list(columns.rows(batch, "t"))
