"""Spark reads values by a schema: JSON as its own `from_json` does, Avro, and what does not fit."""

import datetime
import io
import json
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any
from urllib.request import Request, urlopen

import pytest
from fastavro import parse_schema, schemaless_writer
from pulsar.schema import Array as ArrayOf
from pulsar.schema import AvroSchema, JsonSchema, Long, Record, String, StringSchema

pytestmark = pytest.mark.spark

ORDER = "item STRING, price DECIMAL(8, 2), count INT, at TIMESTAMP, tags ARRAY<STRING>"
AVRO = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "item", "type": "string"},
        {"name": "count", "type": ["null", "long"]},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 8,
                                   "scale": 2}},
        {"name": "tags", "type": {"type": "map", "values": "string"}},
    ],
}  # fmt: skip


@pytest.fixture
def reader(spark, lending) -> Callable[..., Any]:
    """Reads topics, by options and a schema of the user's."""

    def made(topic: str, schema: str = "", *, stream: bool = False, **options: str) -> Any:
        found = (spark.readStream if stream else spark.read).format("magnetar")
        found = found.option("service.url", lending.http_url).option("topic", topic)
        return (found.schema(schema) if schema else found).options(**options).load()

    return made


@pytest.fixture
def sent(lending, connect, topic) -> Callable[..., str]:
    """Sends values to a topic, and gives its name."""

    def send(*values: bytes) -> str:
        producer = connect(lending.pulsar_url).create_producer(topic, batching_enabled=True)
        for value in values:
            producer.send_async(value, lambda *_: None)
        producer.flush()
        return topic

    return send


def written(**row: object) -> bytes:
    out = io.BytesIO()
    schemaless_writer(out, parse_schema(AVRO), row)
    return out.getvalue()


def failure(call: Callable[[], Any]) -> str:
    from pyspark.errors import PySparkException

    with pytest.raises(PySparkException) as raised:
        call()
    return str(raised.value)


EVERY_TYPE = (
    "b BOOLEAN, y TINYINT, i INT, l BIGINT, f FLOAT, d DOUBLE, n DECIMAL(20, 3), s STRING, "
    "x BINARY, day DATE, t TIMESTAMP, z TIMESTAMP_NTZ, a ARRAY<INT>, "
    "m MAP<STRING, ARRAY<DOUBLE>>, o STRUCT<p: STRING, q: ARRAY<STRUCT<r: INT>>>"
)
DOCUMENTS = (
    {"b": True, "y": -128, "i": 5, "l": 2**62, "f": 0.5, "d": 1e300, "n": 12345678901234.5675},
    {"s": "é\n\u0000", "x": "AAH/", "day": "2026-01-31", "t": "2026-01-31T12:00:00.25Z"},
    {"t": "2026-01-31T12:00:00+05:30", "z": "2026-01-31T12:00:00.000001"},
    {"t": "2026-01-31 12:00:00", "n": 7, "d": 7, "s": 7},
    {"s": {"k": [1, 2.5, None, "x"]}, "d": "NaN", "f": "-INF", "n": "1.2345"},
    {"s": True, "a": [1, None, 3], "m": {"one": [1.5], "two": None, "three": []}},
    {"o": {"p": "x", "q": [{"r": 1}, None, {}], "unknown": 1}, "unknown": {"deep": [{}]}},
    {"o": None, "a": None, "m": None, "s": None, "b": None},
    {"t": 1_700_000_000, "a": [], "m": {}, "o": {}},
    {},
)


def test_json_is_what_from_json_gives(spark, sent, reader) -> None:
    texts = [json.dumps(one) for one in DOCUMENTS]
    topic = sent(*map(str.encode, texts), b"  ")
    sent(b"null")  # to `from_json` a struct without values
    ours = reader(topic, valueFormat="json", valueSchema=EVERY_TYPE).orderBy("offset")
    raw = reader(topic, columns="value,offset").orderBy("offset")
    theirs = raw.selectExpr(f"from_json(CAST(value AS STRING), '{EVERY_TYPE}') value")
    expected = [repr(row.value) for row in theirs.collect()]  # NaN is not equal to itself
    *found, last = [repr(row.value) for row in ours.collect()]
    assert (found, last) == (expected[:-1], "None")
    assert ours.schema["value"].dataType == theirs.schema["value"].dataType


def test_a_schema_of_the_users(sent, reader) -> None:
    topic = sent(b'{"item": "tea", "price": 2.5, "count": 3}', b'{"item": null, "tags": ["x"]}')
    found = reader(topic, f"offset BIGINT, value STRUCT<{ORDER}>", valueFormat="json")
    assert found.columns == ["offset", "value"]
    rows = found.orderBy("offset").select("offset", "value.item", "value.count", "value.tags")
    assert [tuple(row) for row in rows.collect()] == [(0, "tea", 3, None), (1, None, None, ["x"])]
    rows = found.where("value.price > 2").selectExpr("sum(value.price) total").collect()
    assert float(rows[0].total) == 2.5


@pytest.mark.parametrize("framed", [False, True])
def test_avro_by_its_schema(sent, reader, framed) -> None:
    at = datetime.datetime(2026, 1, 31, 12, tzinfo=datetime.UTC)
    same = {"at": at, "price": Decimal("2.50"), "tags": {"a": "b"}}
    rows = [{"item": f"i{number}", "count": number or None, **same} for number in range(100)]
    options = {"valueFraming": "confluent", "valueSchemaId": "258"} if framed else {}
    head = b"\0\0\0\1\2" if framed else b""
    topic = sent(*(head + written(**row) for row in rows))
    options = {"valueFormat": "avro", "valueSchema": json.dumps(AVRO), **options}
    found = reader(topic, **options).orderBy("offset")
    assert [one.value.asDict() for one in found.collect()] == [
        row | {"at": at.replace(tzinfo=None)} for row in rows
    ]
    assert found.schema["value"].dataType.simpleString() == (
        "struct<item:string,count:bigint,at:timestamp,price:decimal(8,2),tags:map<string,string>>"
    )


class Sale(Record):
    """As applications declare it for Pulsar's client."""

    item = String(required=True)
    count = Long()
    tags = ArrayOf(String())


@pytest.mark.parametrize(
    ("schema", "name", "given"),
    [
        (JsonSchema, "json", "item STRING, count BIGINT, tags ARRAY<STRING>"),
        (AvroSchema, "avro", AvroSchema(Sale).schema_info().schema()),
    ],
)
def test_what_pulsars_client_has_encoded(lending, connect, topic, reader, schema, name, given):
    client = connect(lending.pulsar_url)
    producer = client.create_producer(topic, schema=schema(Sale))
    for number in range(3):
        producer.send(Sale(item=f"i{number}", count=number, tags=["a", "b"]))
    found = reader(topic, valueFormat=name, valueSchema=given).orderBy("offset")
    rows = [tuple(row) for row in found.select("value.item", "value.count", "value.tags").collect()]
    assert rows == [(f"i{number}", number, ["a", "b"]) for number in range(3)]


def test_what_does_not_fit(sent, reader) -> None:
    topic = sent(b'{"count": 1}', b'{"count": "x"}', b'{"count":', b'{"count": 2}')
    given = {"valueFormat": "json", "valueSchema": ORDER, "columns": "value"}
    said = failure(lambda: reader(topic, **given).collect())
    assert f"persistent://public/default/{topic}, partition 0: the value of message " in said
    assert "does not fit: Expected `int | null`, got `str` - at `$.count`" in said
    del given["columns"]
    found = reader(topic, **given, mode="PERMISSIVE").orderBy("offset")
    found = found.selectExpr("offset", "value.count", "_corrupt_record bad").collect()
    assert [(row["offset"], row["count"], row.bad and bytes(row.bad)) for row in found] == [
        (0, 1, None),
        (1, None, b'{"count": "x"}'),
        (2, None, b'{"count":'),
        (3, 2, None),
    ]


class Ticket(Record):
    """A first version of a schema."""

    _avro_name = "Ticket"
    number = Long(required=True)
    seat = String(default=None, required_default=True)


class TicketWithRow(Record):
    """The next: a field more, one less."""

    _avro_name = "Ticket"
    number = Long(required=True)
    row = Long(required=True, default=7, required_default=True)


class TicketWithName(Record):
    _avro_name = "Ticket"
    number = Long(required=True)
    row = Long(required=True, default=7, required_default=True)
    name = String(default=None, required_default=True)


@pytest.mark.parametrize("made", [AvroSchema, JsonSchema])
def test_each_message_by_the_version_that_wrote_it(lending, connect, topic, reader, made) -> None:
    """The type of rows is the topic's latest when the query is made, also if another comes then."""
    client = connect(lending.pulsar_url)

    def send(record: type[Record], *rows: Record) -> None:
        producer = client.create_producer(topic, schema=made(record))
        for row in rows:
            producer.send(row)
        producer.close()

    send(Ticket, Ticket(number=1, seat="a"), Ticket(number=2, seat=None))
    send(TicketWithRow, TicketWithRow(number=3, row=9))
    found = reader(topic, valueFormat="auto").orderBy("offset")
    assert found.schema["value"].dataType.simpleString() == "struct<number:bigint,row:bigint>"
    missing = 7 if made is AvroSchema else None
    rows = [(1, missing), (2, missing), (3, 9)]
    assert [tuple(one.value) for one in found.collect()] == rows
    older = reader(topic, valueFormat="auto").orderBy("offset")
    send(TicketWithName, TicketWithName(number=4, row=1, name="Ada"))
    assert [tuple(one.value) for one in older.collect()] == [*rows, (4, 1)]
    again = reader(topic, valueFormat="auto", columns="value").where("value.name = 'Ada'")
    assert [tuple(one.value) for one in again.collect()] == [(4, 1, "Ada")]


def test_a_topic_says_what_its_values_are(lending, connect, topic, reader, sent) -> None:
    client = connect(lending.pulsar_url)
    assert reader(sent(b"x"), valueFormat="auto").select("value").collect()[0].value == b"x"
    numbers, words = f"{topic}-numbers", f"{topic}-words"
    producer = client.create_producer(words, schema=StringSchema())
    producer.send("tea")
    stored = {"type": "INT32", "schema": "", "properties": {}}
    upload(lending, numbers, stored)
    client.create_producer(numbers).send((258).to_bytes(4, "big"))
    assert reader(words, valueFormat="auto").collect()[0].value == "tea"
    assert reader(numbers, valueFormat="auto").selectExpr("value + 1").collect()[0][0] == 259


def upload(server, topic: str, schema: dict[str, object]) -> None:
    url = f"{server.http_url}/admin/v2/schemas/public/default/{topic}/schema"
    request = Request(url, json.dumps(schema).encode(), {"Content-Type": "application/json"})
    urlopen(request).close()


@pytest.mark.parametrize("apart", [False, True])
def test_a_pair_is_a_struct(lending, connect, topic, reader, apart) -> None:
    """Python's client knows no pairs, so they are written here; `test_schemas.py` has Java's."""
    properties = {
        "key.schema.type": "STRING",
        "value.schema.type": "AVRO",
        "kv.encoding.type": "SEPARATED" if apart else "INLINE",
    }
    definition = json.dumps({"key": "", "value": AVRO})
    upload(lending, topic, {"type": "KEY_VALUE", "schema": definition, "properties": properties})
    at = datetime.datetime(2026, 1, 31, 12, tzinfo=datetime.UTC)
    row = {"item": "tea", "count": 3, "at": at, "price": Decimal("2.50"), "tags": {"a": "b"}}
    producer, data = connect(lending.pulsar_url).create_producer(topic), written(**row)
    inline = b"\0\0\0\1k" + len(data).to_bytes(4, "big") + data
    producer.send(data if apart else inline, partition_key="k" if apart else "other")
    found = reader(topic, valueFormat="auto")
    (one,) = found.select("value.key", "value.value", "key").collect()
    assert (one[0], one[1].asDict()) == ("k", row | {"at": at.replace(tzinfo=None)})
    assert bytes(one[2]) == (b"k" if apart else b"other")
    producer.send(b"\0\0", partition_key="l")
    said = failure(lambda: reader(topic, valueFormat="auto", columns="value").collect())
    which = "the value of the pair: " if apart else ""
    assert f"{topic}, partition 0: the value of message 0 of entry " in said
    assert f"does not fit: {which}it ends" in said


def test_mistakes_are_told(sent, reader) -> None:
    topic = sent(b"x")
    assert "PARSE" in failure(lambda: reader(topic, valueFormat="json", valueSchema="a b c"))
    said = failure(lambda: reader(f"{topic},{topic}-2", valueFormat="auto"))
    assert '"valueFormat" auto takes the schema of one topic' in said
    said = failure(lambda: reader(topic, "value INT", valueFormat="string").collect())
    assert 'column "value" is string, not int32' in said


def test_a_stream_whose_schema_has_grown(spark, sent, reader, tmp_path) -> None:
    """What is read after a restart is read by the new schema, as with Spark's own sources."""

    def run(schema: str) -> list[Any]:
        lines = reader(
            topic,
            stream=True,
            valueFormat="json",
            valueSchema=schema,
            startingOffsets="earliest",
            columns="value,offset",
        )
        seen: list[Any] = []
        query = (
            lines.select("value.*")
            .writeStream.foreachBatch(lambda batch, _: seen.extend(batch.collect()))
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(60)
        return [row.asDict() for row in seen]

    topic = sent(b'{"item": "tea", "count": 1}')
    assert run("item STRING") == [{"item": "tea"}]
    sent(b'{"item": "salt", "count": 2}')
    assert run("item STRING, count INT") == [{"item": "salt", "count": 2}]


def test_a_stream_goes_on_behind_what_did_not_fit(sent, reader, tmp_path) -> None:
    def run(**mode: str) -> list[Any]:
        lines = reader(
            topic,
            stream=True,
            valueFormat="json",
            valueSchema="count INT",
            startingOffsets="earliest",
            **mode,
        )
        seen: list[Any] = []
        query = (
            lines.writeStream.foreachBatch(lambda batch, _: seen.extend(batch.collect()))
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(60)
        return seen

    topic = sent(b'{"count": 1}', b'{"count": "x"}')
    assert "got `str` - at `$.count`" in failure(run)
    fits, not_fits = run(mode="PERMISSIVE")
    assert (fits.value["count"], fits._corrupt_record) == (1, None)
    assert (not_fits.value, bytes(not_fits._corrupt_record)) == (None, b'{"count": "x"}')


def test_a_job_says_which_message_does_not_fit(spark, lending, sent, tmp_path) -> None:
    """A sentence, with exit code 2, and no traceback; the table has what was written before."""
    from magnetar.spark_connector.jobs import command, lake
    from magnetar.spark_connector.jobs.session import TopicSelection

    topic = sent(b'{"count": 1}', b'{"count": "x"}')
    options = {"valueFormat": "json", "valueSchema": "count INT"}
    topics = TopicSelection(lending.http_url, (topic,), options=options)
    with pytest.raises(Exception, match="does not fit") as raised:
        lake.run(spark, lake.LakeOptions(topics, tmp_path / "lake"))
    said = command.sentence_of(raised.value)
    assert said is not None
    place = rf"{topic}, partition 0: the value of message 1 of entry \d+:0 does not fit: "
    assert re.fullmatch(rf"persistent://public/default/{place}Expected .* at `\$\.count`", said)


def test_a_lake_of_fields(spark, lending, sent, tmp_path) -> None:
    from magnetar.spark_connector.jobs import lake
    from magnetar.spark_connector.jobs.session import TopicSelection

    topic = sent(b'{"item": "tea", "count": 1}', b'{"item": "salt"}')
    options = {"valueFormat": "json", "valueSchema": "item STRING, count INT"}
    topics = TopicSelection(lending.http_url, (topic,), options=options)
    lake.run(spark, lake.LakeOptions(topics, tmp_path / "lake", select=("value.*",)))
    rows = spark.read.parquet(str(tmp_path / "lake")).select("item", "count").collect()
    assert sorted(map(tuple, rows), key=str) == [("salt", None), ("tea", 1)]
