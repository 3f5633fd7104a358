"""The columns of other connectors: those of Spark's own Kafka source beside that source itself."""

import pulsar
import pytest

from magnetar.spark_connector.views import as_kafka, as_pulsar

from .conftest import kafka_producer

pytestmark = pytest.mark.spark


@pytest.fixture
def rows_of(spark, lending):
    def frame(topic: str, **options: str):
        reader = spark.read.format("magnetar").option("service.url", lending.http_url)
        return reader.option("topic", topic).options(**options).load()

    return frame


def test_kafkas_columns(spark, lending, connect, topic, rows_of) -> None:
    producer = kafka_producer(lending)
    producer.produce(topic, b"v", b"k", timestamp=1_700_000_000_001, headers=[("a", b"1")] * 2)
    producer.produce(topic, None, b"gone")
    assert producer.flush(20) == 0
    connect(lending.pulsar_url).create_producer(topic).send(b"of pulsar", properties={"p": "1"})
    stock = spark.read.format("kafka").option("kafka.bootstrap.servers", lending.bootstrap_servers)
    theirs = stock.option("subscribe", topic).option("includeHeaders", "true").load()
    ours = as_kafka(rows_of(topic))
    assert ours.schema.simpleString() == theirs.schema.simpleString()
    assert ours.orderBy("offset").collect() == theirs.orderBy("offset").collect()


def test_the_fields_of_a_struct_are_columns_of_pulsars(lending, connect, topic, rows_of) -> None:
    connect(lending.pulsar_url).create_producer(topic).send(b'{"a": 1, "b": "x"}')
    frame = as_pulsar(rows_of(topic, valueFormat="json", valueSchema="a int, b string"))
    assert frame.columns[:3] == ["a", "b", "__key"]
    (row,) = frame.collect()
    assert (row.a, row.b) == (1, "x")


def test_pulsars_columns(lending, connect, topic, rows_of) -> None:
    producer = connect(lending.pulsar_url).create_producer(topic)
    sent = producer.send(
        b"v", properties={"a": "1", "ü": "2"}, partition_key="k", event_timestamp=1_700_000_000_001
    )
    producer.send(b"bare")
    kafka = kafka_producer(lending)
    kafka.produce(topic, b"twice", headers=[("a", b"1"), ("b", b"2"), ("a", None)])
    assert kafka.flush(20) == 0
    frame = as_pulsar(rows_of(topic))
    assert frame.columns == [
        "value", "__key", "__topic", "__messageId", "__publishTime", "__eventTime",
        "__messageProperties",
    ]  # fmt: skip
    first, second, third = frame.orderBy("__publishTime").collect()
    assert (bytes(first["value"]), bytes(first["__key"])) == (b"v", b"k")
    assert first["__topic"] == f"persistent://public/default/{topic}"
    assert first["__eventTime"].timestamp() == 1_700_000_000.001
    assert first["__messageProperties"] == {"a": "1", "ü": "2"}
    found = pulsar.MessageId.deserialize(bytes(first["__messageId"]))
    assert (found.ledger_id(), found.entry_id()) == (sent.ledger_id(), sent.entry_id())
    assert (second["__key"], second["__eventTime"], second["__messageProperties"]) == (
        None, None, {},
    )  # fmt: skip
    assert third["__messageProperties"] == {"a": None, "b": "2"}
