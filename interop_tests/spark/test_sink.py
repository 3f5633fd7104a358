"""Spark writes topics: DataFrames and streams, and what is said of mistakes before a job runs."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from magnetar.spark_connector.errors import ConnectorError
from magnetar.spark_connector.sink import BATCH_JOBS, BatchJobWriter, WrittenMessage
from magnetar.spark_connector.writing.commits import give_up
from magnetar.spark_connector.writing.options import parse
from magnetar.spark_connector.writing.service import TaskPlace
from magnetar.spark_connector.writing.tasks import write

pytestmark = pytest.mark.spark


@pytest.fixture
def save(lending) -> Callable[..., None]:
    """Appends a DataFrame to a topic."""

    def saved(frame: Any, topic: str = "", **options: str) -> None:
        writer = frame.write.format("magnetar").option("service.url", lending.http_url)
        if topic:
            writer = writer.option("topic", topic)
        writer.options(**options).mode("append").save()

    return saved


def values(rows: list[Any]) -> list[str | None]:
    return [None if row.value is None else bytes(row.value).decode() for row in rows]


def test_what_is_written_is_read(spark, save, read, topic) -> None:
    when = datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)
    made = spark.createDataFrame(
        [
            (bytearray(b"k"), "v", [("h", bytearray(b"1")), ("h", None)], when),
            (None, None, None, None),
        ],
        "key binary, value string, headers array<struct<key: string, value: binary>>, "
        "event_time timestamp",
    ).coalesce(1)
    before = datetime.now(UTC)
    save(made, topic, compression="zstd")
    first, second = read(topic)
    assert (bytes(first.key), bytes(first.value), first.protocol) == (b"k", b"v", "kafka")
    assert [(h["key"], h["value"] and bytes(h["value"])) for h in first.headers] == [
        ("h", b"1"),
        ("h", None),
    ]
    assert first.event_time.replace(tzinfo=UTC) == when
    assert (second.key, second.value, second.headers) == (None, None, [])
    assert abs((second.event_time.replace(tzinfo=UTC) - before).total_seconds()) < 60


def test_many_rows_of_many_tasks(spark, save, read, topic) -> None:
    frame = spark.range(50_000).selectExpr("CAST(id AS STRING) key", "CAST(id AS STRING) value")
    save(frame.repartition(4), topic, maxBatchBytes="16k")
    found = read(topic)
    assert sorted(map(int, values(found))) == list(range(50_000))
    assert all(row.key == row.value for row in found)


def test_each_row_may_have_its_topic(spark, save, read, topics) -> None:
    one, other = topics(), topics()
    frame = spark.createDataFrame([("a", other), ("b", None)], "value string, topic string")
    save(frame, one)
    assert (values(read(one)), values(read(other))) == (["b"], ["a"])


def test_one_topic_is_copied_into_another(spark, lending, save, read, connect, topics) -> None:
    one, other = topics(), topics()
    producer = connect(lending.pulsar_url).create_producer(one)
    for number in range(5):
        producer.send(b"%d" % number, partition_key=f"k{number}", properties={"p": "q"})
    frame = spark.read.format("magnetar").option("service.url", lending.http_url)
    save(frame.option("topic", one).load().select("key", "value", "headers"), other)
    assert [(row.key, row.value, row.headers) for row in read(other)] == [
        (row.key, row.value, row.headers) for row in read(one)
    ]


@pytest.mark.parametrize(
    ("sql", "options", "said"),
    [
        ("'a' value, 1 offset", {"topic": "t"}, 'there is no column "offset" in a sink'),
        ("'a' text", {"topic": "t"}, "to_json(struct(text)) AS value"),
        ("'a' value", {}, 'neither a column nor an option "topic"'),
        ("'a' value", {"topics": "t"}, 'did you mean "topic"?'),
        ("'a' value", {"topic": "non-persistent://a/b/c"}, "nothing is stored there"),
        ("'a' value, CAST(NULL AS STRING) topic", {}, 'column "topic" is null in a row'),
    ],
)
def test_mistakes_are_named(spark, save, sql, options, said) -> None:
    frame = spark.sql(f"SELECT {sql}")
    with pytest.raises(Exception, match="Error") as raised:
        save(frame, **options)
    assert said in str(raised.value)


def test_a_topic_is_only_appended_to(spark, lending, topic) -> None:
    writer = spark.sql("SELECT 'a' value").write.format("magnetar")
    writer = writer.option("service.url", lending.http_url).option("topic", topic)
    with pytest.raises(Exception, match="a topic is only appended to: use mode"):
        writer.mode("overwrite").save()


def test_a_stream_writes_what_it_reads(spark, lending, read, connect, topics, tmp_path) -> None:
    one, other = topics(), topics()
    producer = connect(lending.pulsar_url).create_producer(one)
    for number in range(20):
        producer.send(str(number).encode())
    reader = spark.readStream.format("magnetar").option("service.url", lending.http_url)
    reader = reader.option("startingOffsets", "earliest").option("maxRowsPerTrigger", "6")
    frame = reader.option("topic", one).load().select("value")
    writer = frame.writeStream.format("magnetar").option("service.url", lending.http_url)
    writer = writer.option("topic", other).option("checkpointLocation", str(tmp_path))
    query = writer.queryName("copy").trigger(availableNow=True).start()
    assert query.awaitTermination(120)
    assert query.exception() is None
    assert values(read(other)) == [str(number) for number in range(20)]


# -- exactly once -----------------------------------------------------------------------------


def test_a_job_that_fails_leaves_nothing_to_see(spark, save, read, topic) -> None:
    good = spark.range(2_000).selectExpr("CAST(id AS STRING) value").repartition(3)
    bad = good.selectExpr("IF(value = '1999', raise_error('no'), value) value")
    once = {"delivery": "exactly_once", "maxBatchBytes": "1k"}
    with pytest.raises(Exception, match="no"):
        save(bad, topic, **once)
    assert read(topic) == []
    save(good, topic, **once)
    assert sorted(map(int, values(read(topic)))) == list(range(2_000))


def test_a_task_that_outlives_its_job_holds_nobody_up(spark, lending, save, read, topic) -> None:
    """As one that Spark kills, of which the driver hears nothing."""
    given = {"service.url": lending.http_url, "topic": topic, "delivery": "exactly_once"}
    options, task = (
        parse({**given, "maxBatchBytes": "1k"}, stream=False),
        TaskPlace(topic, "", 0, 0),
    )
    good = spark.createDataFrame([("good",)], "value string")
    found = []

    def rows() -> Iterator[pa.RecordBatch]:
        yield pa.RecordBatch.from_pydict({"value": ["lost"] * 2_000})
        give_up(options, task)
        save(good, topic, delivery="exactly_once")
        found.extend(values(read(topic)))
        late = pa.RecordBatch.from_pydict({"value": ["late"]})
        assert write([late], options, task).attempt is None, "none begins any more"

    with pytest.raises(ConnectorError):
        write(rows(), options, task)
    assert found == ["good"]
    assert values(read(topic)) == ["good"]


@pytest.mark.parametrize("delivery", ["exactly_once", "dedup"])
def test_a_numbered_batch_is_written_once(spark, save, read, topic, delivery) -> None:
    for number in (0, 0, 1, 0, 1):
        frame = spark.createDataFrame([(str(number),)], "value string")
        save(frame, topic, delivery=delivery, sinkId=topic, batchId=str(number))
    assert values(read(topic)) == ["0", "1"]


def test_a_name_that_is_taken_is_told(lending, topics, caplog) -> None:
    """Rows that another job's name keeps out would vanish without a word."""
    given = {"service.url": lending.http_url, "delivery": "exactly_once"}
    name = topics()

    def job(topic: str) -> bool:
        chosen = given | {"topic": topic, "sinkId": name, "batchId": "3"}
        options = parse(chosen, stream=False)
        rows = pa.record_batch({"value": pa.array([b"x"])})
        place = TaskPlace(name, BATCH_JOBS, 3, 0)
        written = write([rows], options, place)
        BatchJobWriter(options).commit([WrittenMessage(place, written)])
        return written.was_known

    assert not job(topics())
    assert not caplog.messages
    assert job(topics())
    (said,) = caplog.messages
    assert said.startswith(f"batch 3 of the sink {name} was written before")


def test_batches_of_a_stream_may_be_written_by_hand(
    spark, lending, save, read, connect, topics, tmp_path
) -> None:
    """`foreachBatch` is called again for a batch that was not complete."""
    one, other = topics(), topics()
    producer = connect(lending.pulsar_url).create_producer(one)
    for number in range(4):
        producer.send(str(number).encode())
    reader = spark.readStream.format("magnetar").option("service.url", lending.http_url)
    frame = reader.options(startingOffsets="earliest", maxRowsPerTrigger="2", topic=one).load()

    def twice(batch: Any, number: int) -> None:
        for _ in range(2):
            save(
                batch.select("value"),
                other,
                delivery="exactly_once",
                sinkId=other,
                batchId=str(number),
            )

    writer = frame.writeStream.foreachBatch(twice).option("checkpointLocation", str(tmp_path))
    query = writer.trigger(availableNow=True).start()
    assert query.awaitTermination(120)
    assert query.exception() is None
    assert values(read(other)) == ["0", "1", "2", "3"]


def test_another_stream_may_not_take_a_sink(
    spark, lending, read, connect, topics, tmp_path
) -> None:
    one, other = topics(), topics()
    connect(lending.pulsar_url).create_producer(one).send(b"a")
    reader = spark.readStream.format("magnetar").option("service.url", lending.http_url)
    frame = reader.options(startingOffsets="earliest", topic=one).load().select("value")

    def copied(checkpoint: str) -> Any:
        writer = frame.writeStream.format("magnetar").option("service.url", lending.http_url)
        writer = writer.options(topic=other, delivery="exactly_once", sinkId=other)
        writer = writer.option("checkpointLocation", str(tmp_path / checkpoint))
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination(120)
        return query

    assert copied("first").exception() is None
    with pytest.raises(Exception, match="choose another sink id"):
        copied("second")
    assert values(read(other)) == ["a"]


def test_a_stream_of_whole_results_is_refused(spark, lending, topic, tmp_path) -> None:
    frame = spark.readStream.format("rate").load().selectExpr("CAST(value AS STRING) value")
    writer = frame.groupBy("value").count().select("value").writeStream.format("magnetar")
    writer = writer.options(**{"service.url": lending.http_url}, topic=topic)
    writer = writer.option("checkpointLocation", str(tmp_path)).outputMode("complete")
    with pytest.raises(Exception, match="a topic is only appended to"):
        writer.trigger(availableNow=True).start().awaitTermination(120)
