"""Spark reads topics in a batch query: what stock clients have sent, row by row."""

import datetime
import gc
from itertools import pairwise

import pulsar
import pytest
from confluent_kafka import Producer

from interop_tests.crossing.device import Device
from magnetar import standalone
from magnetar.spark_connector.options import parse

pytestmark = pytest.mark.spark


def kafka_producer(server, **more) -> Producer:
    return Producer({"bootstrap.servers": server.bootstrap_servers, **more})


def headers_of(row) -> list[tuple[str, bytes | None]]:
    return [
        (one["key"], None if one["value"] is None else bytes(one["value"])) for one in row.headers
    ]


@pytest.mark.parametrize("compression", ["NONE", "LZ4", "ZLib", "ZSTD", "SNAPPY"])
@pytest.mark.parametrize("batched", [False, True])
def test_messages_of_pulsar(lending, connect, read, topic, batched, compression) -> None:
    producer = connect(lending.pulsar_url).create_producer(
        topic,
        producer_name=f"p-{topic}",
        batching_enabled=batched,
        batching_max_publish_delay_ms=50,
        compression_type=getattr(pulsar.CompressionType, compression),
    )
    sent = [
        (b"value %d" % number * 20, f"k{number % 3}", {"n": str(number)}) for number in range(50)
    ]
    before = datetime.datetime.now(datetime.UTC)
    for number, (value, key, properties) in enumerate(sent):
        producer.send_async(
            value,
            lambda *_: None,
            partition_key=key,
            properties=properties,
            event_timestamp=1_700_000_000_000 + number,
        )
    producer.flush()
    rows = read(topic)
    assert [(bytes(r.value), bytes(r.key).decode(), dict(headers_of(r))) for r in rows] == [
        (value, key, {"n": properties["n"].encode()}) for value, key, properties in sent
    ]
    assert [row.offset for row in rows] == list(range(50))
    assert [row.sequence_id for row in rows] == list(range(50))
    assert {row.topic for row in rows} == {f"persistent://public/default/{topic}"}
    assert {(row.partition, row.protocol, row.producer_name) for row in rows} == {
        (0, "pulsar", f"p-{topic}")
    }
    events = [row.event_time for row in rows]
    assert events[0] == datetime.datetime(2023, 11, 14, 22, 13, 20)
    assert all(b - a == datetime.timedelta(milliseconds=1) for a, b in pairwise(events))
    published = rows[0].publish_time.replace(tzinfo=datetime.UTC)
    assert abs(published - before) < datetime.timedelta(seconds=60)
    batches = {(row.ledger_id, row.entry_id) for row in rows}
    assert (len(batches) < 50) is batched
    assert all(row.batch_index == 0 for row in rows) is not batched


def test_records_of_kafka(lending, read, topic) -> None:
    producer = kafka_producer(lending, **{"compression.type": "lz4", "linger.ms": 50})
    headers = [("h", b"1"), ("h", b"2"), ("null", None)]
    for number in range(20):
        producer.produce(topic, f"v{number}", f"k{number}", timestamp=1000 + number)
    producer.produce(topic, None, b"\xff\x00", headers=headers, timestamp=5000)
    producer.flush()
    rows = read(topic)
    assert [bytes(row.value) for row in rows[:20]] == [b"v%d" % n for n in range(20)]
    last = rows[20]
    assert (last.value, bytes(last.key), headers_of(last)) == (None, b"\xff\x00", headers)
    assert (last.offset, last.protocol) == (20, "kafka")
    assert last.event_time == datetime.datetime(1970, 1, 1, 0, 0, 5)


def test_publishes_of_mqtt(lending, read) -> None:
    device = Device(lending)
    for number in range(10):
        device.publish(f"spark/room/{number}", b"%d degrees" % number)
    device.close()
    rows = [row for row in read("mqtt") if bytes(row.key).startswith(b"spark/room/")]
    assert [(bytes(row.key), bytes(row.value)) for row in rows] == [
        (b"spark/room/%d" % number, b"%d degrees" % number) for number in range(10)
    ]
    assert {row.protocol for row in rows} == {"mqtt"}


def test_large_messages_in_chunks(lending, connect, read, topic) -> None:
    client = connect(lending.pulsar_url)
    producer = client.create_producer(topic, chunking_enabled=True, batching_enabled=False)
    large = [bytes([number]) * (17 << 20) for number in range(2)]
    for value in large:
        producer.send(value)
    producer.send(b"small")
    for options in ({}, {"minPartitions": "6", "maxPartitions": "6"}):
        rows = read(topic, **options)
        assert [bytes(row.value) for row in rows] == [*large, b"small"]
        assert rows[0].entry_id < rows[1].entry_id - 1, "it has several entries"


def test_only_what_is_committed(lending, read, topic) -> None:
    producer = kafka_producer(lending, **{"transactional.id": f"x-{topic}"})
    producer.init_transactions(10)
    for number, ends in enumerate(("commit", "abort", "commit")):
        producer.begin_transaction()
        for part in range(3):
            producer.produce(topic, f"{ends} {number}.{part}")
        producer.flush()
        getattr(producer, f"{ends}_transaction")(10)
    producer.begin_transaction()
    producer.produce(topic, "never decided")
    producer.flush()
    committed = [bytes(row.value).decode() for row in read(topic)]
    assert committed == [f"commit {number}.{part}" for number in (0, 2) for part in range(3)]
    future = str(32_503_680_000_000)
    assert len(read(topic, endingTimestamp=future)) == 6, "the open one is not read"
    every = read(topic, isolationLevel="read_uncommitted")
    assert len(every) == 10
    producer.abort_transaction(10)


def test_partitions_and_positions(lending, connect, read, topic) -> None:
    producer = kafka_producer(lending)
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": lending.bootstrap_servers})
    admin.create_topics([NewTopic(topic, 3)])[topic].result(10)
    for number in range(300):
        producer.produce(topic, str(number), partition=number % 3)
    producer.flush()
    rows = read(topic)
    assert [(row.partition, row.offset) for row in rows] == [
        (partition, offset) for partition in range(3) for offset in range(100)
    ]
    name = topic
    found = read(
        topic,
        startingOffsets=f'{{"{name}": {{"0": 10, "1": "latest", "2": -2}}}}',
        endingOffsets=f'{{"{name}": {{"0": 95, "2": 5}}}}',
        columns="topic,partition,offset,value",
    )
    assert [(row.partition, row.offset) for row in found] == [
        *((0, offset) for offset in range(10, 95)),
        *((2, offset) for offset in range(5)),
    ]
    assert found[0].asDict().keys() == {"topic", "partition", "offset", "value"}


def test_a_topic_without_messages(lending, connect, read, topic) -> None:
    connect(lending.pulsar_url).create_producer(topic)
    assert read(topic) == []


def test_a_restart_begins_another_ledger(lending, connect, read, topic) -> None:
    for number in range(2):
        producer = connect(lending.pulsar_url).create_producer(topic)
        producer.send(b"%d" % number)
        lending.restart()
    assert [bytes(row.value) for row in read(topic)] == [b"0", b"1"]
    assert len({row.ledger_id for row in read(topic)}) == 2


def failure(call) -> str:
    from pyspark.errors import PySparkException

    with pytest.raises(PySparkException) as raised:
        call()
    return str(raised.value)


def test_sql(spark, lending, connect, topic) -> None:
    producer = connect(lending.pulsar_url).create_producer(topic)
    for number in range(10):
        producer.send(b"%d" % number, partition_key=str(number % 2))
    view = topic.replace("-", "_")
    spark.sql(
        f"CREATE TEMPORARY VIEW {view} USING magnetar "
        f"OPTIONS (service.url '{lending.http_url}', topic '{topic}')"
    )
    total = spark.sql(
        f"SELECT CAST(key AS STRING) k, SUM(CAST(CAST(value AS STRING) AS INT)) s FROM {view} "
        "GROUP BY key ORDER BY k"
    ).collect()
    assert [(row.k, row.s) for row in total] == [("0", 20), ("1", 25)]


def test_a_table_has_its_options_from_the_query(spark, lending, connect, topic) -> None:
    """Spark drops those of `CREATE TABLE ... USING`: it is an error, and nothing else is read."""
    connect(lending.pulsar_url).create_producer(topic).send(b"x")
    table = topic.replace("-", "_")
    where = f"`service.url` = '{lending.http_url}', topic = '{topic}'"
    spark.sql(f"CREATE TABLE {table} USING magnetar OPTIONS ({where})")
    try:
        dropped = failure(lambda: spark.sql(f"SELECT value FROM {table}").collect())
        assert 'option "service.url" is missing' in dropped
        assert "give them as SELECT ... WITH" in dropped
        given = spark.sql(f"SELECT value FROM {table} WITH ({where})").collect()
    finally:
        spark.sql(f"DROP TABLE {table}")
    assert [bytes(row.value) for row in given] == [b"x"]


def test_workers_do_not_collect_modules_after_each_task(spark, lending, connect, topic) -> None:
    """To look through them takes 25 ms; what is frozen is not looked through."""
    from magnetar.spark_connector.source import MagnetarReader, MagnetarSource

    class Counting(MagnetarReader):
        def read(self, partition):
            rows = [row for batch in MagnetarReader.read(self, partition) for row in batch["value"]]
            yield len(rows), gc.get_freeze_count()

    class CountingSource(MagnetarSource):
        @classmethod
        def name(cls):
            return "magnetar_counting"

        def schema(self):
            return "rows INT, frozen INT"

        def reader(self, schema):
            return Counting(parse(self.options))

    spark.dataSource.register(CountingSource)
    connect(lending.pulsar_url).create_producer(topic).send(b"x")
    reader = spark.read.format("magnetar_counting").option("service.url", lending.http_url)
    (found,) = reader.option("topic", topic).load().collect()
    assert found.rows == 1
    assert found.frozen > 10_000, "objects of the modules that are imported for a task"


def test_mistakes_are_told(spark, lending, read, topic) -> None:
    assert 'did you mean "startingOffsets"?' in failure(lambda: read(topic, startingOffset="x"))
    missing = failure(lambda: read(topic))
    assert f"there is no topic persistent://public/default/{topic}" in missing


@pytest.mark.standalone
def test_a_server_that_lends_nothing_says_how(spark, magnetar, connect, topic) -> None:
    connect(magnetar.pulsar_url).create_producer(topic).send(b"x")
    reader = spark.read.format("magnetar").option("service.url", magnetar.http_url)
    frame = reader.option("topic", topic)
    assert "start the server with --bookie-port" in failure(lambda: frame.load().collect())


def test_a_server_that_is_gone(spark, topic) -> None:
    with standalone(bookie_port=0) as server:
        url = server.http_url
    reader = spark.read.format("magnetar").option("service.url", url).option("pollTimeoutMs", "500")
    assert f"{url} does not answer" in failure(lambda: reader.option("topic", topic).load().count())
