"""Spark's own Kafka source, on the Kafka port: the same rows as ours, one by one."""

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

pytestmark = pytest.mark.spark
PARTITIONS = 3


@pytest.fixture
def filled(lending, connect, topic) -> str:
    """A topic with what Kafka's and Pulsar's clients send, an aborted transaction among it."""
    where = {"bootstrap.servers": lending.bootstrap_servers}
    admin = AdminClient(where)
    for made in admin.create_topics([NewTopic(topic, PARTITIONS, 1)]).values():
        made.result(60)
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        producer = Producer({**where, "linger.ms": 20, "compression.type": codec})
        for number in range(200):
            producer.produce(
                topic,
                None if number % 7 == 0 else b"%s %d" % (codec.encode(), number) * (number % 5),
                None if number % 3 == 0 else b"key %d" % number,
                partition=number % PARTITIONS,
                timestamp=1_700_000_000_000 + number,
                headers=[("a", b"1"), ("a", None), ("ü", b"\xff")] if number % 4 == 0 else None,
            )
        assert producer.flush(60) == 0
    for name, commits in (("one", True), ("other", False), ("third", True)):
        writer = Producer({**where, "transactional.id": f"{topic}-{name}"})
        writer.init_transactions(60)
        writer.begin_transaction()
        for number in range(10):
            writer.produce(topic, b"%s %d" % (name.encode(), number), partition=number % PARTITIONS)
        assert writer.flush(60) == 0
        if commits:
            writer.commit_transaction(60)
        else:
            writer.abort_transaction(60)
    pulsars = connect(lending.pulsar_url).create_producer(
        topic, batching_enabled=True, batching_max_publish_delay_ms=50
    )
    for number in range(60):
        pulsars.send_async(
            b"from pulsar %d" % number,
            lambda *_: None,
            partition_key=f"k{number}",
            properties={"p": str(number)},
            event_timestamp=1_700_000_000_000 + number,
        )
    pulsars.flush()
    return topic


def compared(row, *, time, name) -> tuple:
    headers = [(each["key"], each["value"]) for each in row.headers or ()]
    return name, row.partition, row.offset, row.key, row.value, time, headers


@pytest.mark.parametrize("level", ["read_committed", "read_uncommitted"])
def test_the_same_rows(spark, lending, filled, level) -> None:
    stock = spark.read.format("kafka").option("kafka.bootstrap.servers", lending.bootstrap_servers)
    stock = stock.option("subscribe", filled).option("includeHeaders", "true")
    theirs = [
        compared(row, time=row.timestamp, name=row.topic)
        for row in stock.option("kafka.isolation.level", level)
        .load()
        .orderBy("partition", "offset")
        .collect()
    ]
    own = spark.read.format("magnetar").option("service.url", lending.http_url)
    ours = [
        compared(
            row, time=row.event_time, name=row.topic.removeprefix("persistent://public/default/")
        )
        for row in own.option("subscribe", filled)
        .option("kafka.isolation.level", level)
        .load()
        .orderBy("partition", "offset")
        .collect()
    ]
    assert len(ours) == 5 * 200 + 60 + (20 if level == "read_committed" else 30)
    assert ours == theirs


def test_the_same_rows_of_a_stream(spark, lending, filled, tmp_path) -> None:
    """By `availableNow`, in batches that end where their own limits are."""

    def rows(name: str, **options: str) -> list[tuple]:
        reader = spark.readStream.format(name).options(**options).option("subscribe", filled)
        reader = reader.option("startingOffsets", "earliest").option("maxOffsetsPerTrigger", "100")
        frame = reader.load().select("partition", "offset", "value")
        writer = frame.writeStream.format("parquet").option("path", str(tmp_path / name))
        writer = writer.option("checkpointLocation", str(tmp_path / f"{name}-checkpoint"))
        query = writer.trigger(availableNow=True).start()
        assert query.awaitTermination(120)
        stored = spark.read.parquet(str(tmp_path / name)).orderBy("partition", "offset")
        return [tuple(row) for row in stored.collect()]

    where = {"kafka.bootstrap.servers": lending.bootstrap_servers}
    theirs = rows("kafka", **where, **{"kafka.isolation.level": "read_committed"})
    assert rows("magnetar", **{"service.url": lending.http_url}) == theirs
    assert len(theirs) == 5 * 200 + 60 + 20
