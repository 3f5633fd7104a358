"""Small batches of streams come with their plan; large ones, and those that the driver cannot read,
by tasks of Python.
"""

from __future__ import annotations

import socket
from typing import Any

import pytest
from msgspec.structs import replace

from magnetar.spark_connector import options
from magnetar.spark_connector.errors import DataLossError
from magnetar.spark_connector.reading import small_batches
from magnetar.spark_connector.reading.range_reader import Task, batches
from magnetar.spark_connector.reading.small_batches import ROWS_MAX, SmallBatches
from magnetar.spark_connector.stream import FRESH, MicroBatches

from .conftest import kafka_producer

pytestmark = pytest.mark.spark


class Stream:
    """A query that keeps what it reads in a table in memory."""

    def __init__(
        self, spark: Any, lending: Any, topic: str, name: str, schema: str = "", **given: str
    ) -> None:
        self.spark = spark
        self.name = f"{topic}_{name}".replace("-", "_")
        reader = spark.readStream.format("magnetar").option("service.url", lending.http_url)
        reader = reader.options(topic=topic, startingOffsets="earliest", **given)
        frame = (reader.schema(schema) if schema else reader).load()
        self.writer = frame.writeStream.format("memory").queryName(self.name)

    def drained(self, *, tasks: bool) -> list[Any]:
        """All rows; `tasks` says whether any task of Python is to run for them."""
        before = self.sent_to_tasks()
        query = self.writer.trigger(availableNow=True).start()
        assert query.awaitTermination(120)
        assert query.exception() is None
        assert (self.sent_to_tasks() > before) is tasks
        found: list[Any] = self.spark.table(self.name).collect()
        return found

    def sent_to_tasks(self) -> int:
        """How many bytes tasks of Python were sent in this session: Spark counts on and on in each
        executor, which the driver is here.
        """
        python = self.spark._jvm.org.apache.spark.sql.execution.datasources.v2.python
        counters = getattr(getattr(python, "PythonCustomMetric$"), "MODULE$").pythonMetrics()
        sent: int = counters.apply("pythonDataSent").value()
        return sent


def send(connect, server, topic: str, *values: bytes) -> None:
    producer = connect(server.pulsar_url).create_producer(topic, block_if_queue_full=True)
    for value in values:
        producer.send_async(value, lambda *_: None)
    producer.flush()


def test_a_small_batch_takes_no_task_and_a_large_one_does(spark, lending, connect, topic) -> None:
    sent = [b"%d" % number for number in range(ROWS_MAX + 10)]
    send(connect, lending, topic, *sent)
    small = Stream(spark, lending, topic, "small", maxRowsPerTrigger=str(ROWS_MAX // 2))
    assert [row.value for row in small.drained(tasks=False)] == sent
    large = Stream(spark, lending, topic, "large")
    assert [row.value for row in large.drained(tasks=True)] == sent


def test_a_schema_with_comments(spark, lending, connect, topic) -> None:
    """Java compares schemas, and Arrow's has no comments."""
    send(connect, lending, topic, b"a")
    stream = Stream(spark, lending, topic, "commented", "value BINARY COMMENT 'what was sent'")
    assert [row.value for row in stream.drained(tasks=True)] == [b"a"]


def test_all_columns_are_as_by_tasks(spark, lending, connect, topic) -> None:
    client = connect(lending.pulsar_url)
    producer = client.create_producer(topic)
    producer.send(b"1", properties={"a": "b", "c": ""}, partition_key="k", event_timestamp=7)
    producer.send(b"", ordering_key="o")
    kafka = kafka_producer(lending)
    kafka.produce(topic, b"2", b"key", headers=[("h", b"\xff"), ("h", None)])
    kafka.produce(topic, None, b"key")
    assert kafka.flush(30) == 0
    stream = Stream(spark, lending, topic, "all")
    reader = spark.read.format("magnetar").option("service.url", lending.http_url)
    assert stream.drained(tasks=False) == reader.option("topic", topic).load().collect()


@pytest.mark.parametrize(("elements", "tasks"), [("STRING", False), ("DOUBLE", True)])
def test_values_by_a_schema(spark, lending, connect, topic, elements, tasks) -> None:
    """Java copies rows that come with a plan, and cannot if null is among numbers."""
    kind = (
        f"STRUCT<a: INT, b: ARRAY<STRUCT<x: STRING, y: BINARY>>, c: MAP<STRING, STRING>, "
        f"d: DECIMAL(30, 2), e: TIMESTAMP, f: STRUCT<g: DATE, h: ARRAY<{elements}>>>"
    )
    element = "0.5" if tasks else '"i"'
    value = (
        '{"a": 1, "b": [{"x": "y", "y": "AA=="}, null, {}], "c": {"k": "v", "l": null}, '
        '"d": 12345678901234567890.25, "e": "2026-01-31T12:00:00Z", '
        '"f": {"g": "2026-01-31", "h": [null, ' + element + "]}}"
    )
    send(connect, lending, topic, value.encode(), b"{}", value.encode())
    given = {"valueFormat": "json", "valueSchema": kind}
    stream = Stream(spark, lending, topic, "decoded", **given)
    reader = spark.read.format("magnetar").option("service.url", lending.http_url)
    found = stream.drained(tasks=tasks)
    assert found == reader.options(topic=topic, **given).load().collect()
    assert str(found[0].value.f.h[1]) in element


def test_a_batch_of_which_nothing_counts(spark, lending, topic) -> None:
    """All of it is of a transaction that was aborted."""
    kafka = kafka_producer(lending, **{"transactional.id": topic})
    kafka.init_transactions(30)
    kafka.begin_transaction()
    kafka.produce(topic, b"aborted")
    assert kafka.flush(30) == 0
    kafka.abort_transaction(30)
    stream = Stream(spark, lending, topic, "nothing")
    assert stream.drained(tasks=False) == []


@pytest.mark.parametrize("reads", ["bookies", "gateway"])
def test_the_driver_reads_what_the_task_reads(lending, connect, topic, reads) -> None:
    send(connect, lending, topic, b"a", b"b")
    task = only_task(lending, topic, readFrom=reads)
    rows = SmallBatches(allowed=True).rows([task])
    assert rows is not None
    assert rows == list(batches(task))
    assert [value.as_py() for value in rows[0].column("value")] == [b"a", b"b"]


def test_bookies_that_only_workers_reach(lending, connect, topic, monkeypatch, caplog) -> None:
    send(connect, lending, topic, b"a")
    task = only_task(lending, topic)
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    elsewhere = dict.fromkeys(task.bookies, ("127.0.0.1", port))
    hidden = replace(task, bookies=elsewhere, service_urls=(f"http://127.0.0.1:{port}",))
    monkeypatch.setattr(small_batches, "PATIENCE_SECONDS", 0.1)
    small = SmallBatches(allowed=True)
    assert small.rows([hidden]) is None
    assert "small batches are read by tasks for a while: persistent://" in caplog.text
    assert small.rows([task]) is None, "it is not tried with each batch"


def test_what_is_lost_is_told_by_the_task(lending, connect, topic, caplog) -> None:
    send(connect, lending, topic, b"a")
    planned = only_task(lending, topic)
    task = replace(planned, ranges=(replace(planned.ranges[0], last=1),))
    assert SmallBatches(allowed=True).rows([task]) is None
    lost = f"{topic}: entry {task.ranges[0].ledger_id}:1 "
    assert lost in caplog.text
    with pytest.raises(DataLossError, match=lost):
        list(batches(task))
    (rows,) = SmallBatches(allowed=True).rows([replace(task, fail_on_data_loss=False)]) or ()
    assert rows.num_rows == 1


def only_task(lending: Any, topic: str, **given: str) -> Task:
    """The one task of a query's first batch."""
    said = {"service.url": lending.http_url, "topic": topic, "startingOffsets": "earliest"}
    planning = MicroBatches(options.parse(said | given, stream=True))
    (task,) = planning.tasks(FRESH, planning.latest(FRESH, limited=True), 2)
    return task
