"""Structured streaming: each message once, over restarts, kills and new partitions."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from textwrap import dedent

import httpx
import pytest

from magnetar.spark_connector.progress import CursorListener

from .conftest import DISCOVERY

pytestmark = pytest.mark.spark


def started(spark, lending, topic, folder: Path, **options: str):
    reader = spark.readStream.format("magnetar").option("service.url", lending.http_url)
    frame = reader.option("topic", topic).options(**options).load()
    frame = frame.selectExpr("partition", "offset", "CAST(value AS STRING) value")
    writer = frame.writeStream.format("parquet").option("path", str(folder / "out"))
    return writer.option("checkpointLocation", str(folder / "checkpoint"))


def drained(writer) -> None:
    query = writer.trigger(availableNow=True).start()
    assert query.awaitTermination(120)
    assert query.exception() is None


def rows(spark, folder: Path) -> list[tuple[int, int, str]]:
    found = spark.read.parquet(str(folder / "out")).orderBy("partition", "offset").collect()
    return [(row.partition, row.offset, row.value) for row in found]


def test_a_stream_goes_on_where_it_was(spark, lending, connect, topic, tmp_path) -> None:
    producer = connect(lending.pulsar_url).create_producer(topic)
    for number in range(30):
        producer.send(str(number).encode())
        if number % 10 == 9:
            drained(
                started(
                    spark, lending, topic, tmp_path,
                    startingOffsets="earliest", maxRowsPerTrigger="4",
                )
            )  # fmt: skip
    assert rows(spark, tmp_path) == [(0, number, str(number)) for number in range(30)]


def test_progress_shows_where_it_is(spark, lending, connect, topic, tmp_path) -> None:
    producer = connect(lending.pulsar_url).create_producer(topic)
    for number in range(10):
        producer.send(str(number).encode())
    writer = started(spark, lending, topic, tmp_path, startingOffsets="earliest")
    query = writer.trigger(availableNow=True).start()
    assert query.awaitTermination(120)
    source = query.lastProgress["sources"][0]
    assert source["numInputRows"] == 10
    assert '"pos"' in source["endOffset"] or "pos" in str(source["endOffset"])
    assert "10" in str(source["latestOffset"])


def test_the_cursor_on_the_server_is_where_the_query_is(
    spark, lending, connect, topic, tmp_path
) -> None:
    """Also of a query that has ended: only a listener hears of the last batch."""
    producer = connect(lending.pulsar_url).create_producer(topic)
    for number in range(10):
        producer.send(str(number).encode())
    name = f"{topic}-spark"
    listener = CursorListener(lending.http_url, name, query=name)
    spark.streams.addListener(listener)
    given = {"startingOffsets": "earliest", "maxRowsPerTrigger": "4", "subscription": name}
    writer = started(spark, lending, topic, tmp_path, **given).queryName(name)
    drained(writer)
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
    spark.streams.removeListener(listener)
    stats = httpx.get(f"{lending.http_url}/admin/v2/persistent/public/default/{topic}/stats")
    assert stats.json()["subscriptions"][name]["msgBacklog"] == 0


ROWS_PER_BATCH = 50
BATCHES_AHEAD = 30
"""More than a job does from its third batch to its death."""
JOB = dedent("""\
    import sys
    from pyspark.sql import SparkSession
    url, topic, folder = sys.argv[1:]
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    reader = spark.readStream.format("magnetar").option("service.url", url).option("topic", topic)
    reader = reader.option("startingOffsets", "earliest").option("maxRowsPerTrigger", "ROWS")
    frame = reader.load().selectExpr("partition", "offset", "CAST(value AS STRING) value")
    writer = frame.writeStream.format("parquet").option("path", folder + "/out")
    query = writer.option("checkpointLocation", folder + "/checkpoint").start()
    print("started", flush=True)
    query.awaitTermination()
""").replace("ROWS", str(ROWS_PER_BATCH))


MOMENTS = ("checkpoint/offsets", "out/_spark_metadata", "checkpoint/commits")
"""Where Spark writes a file for each batch: when it is planned, when its rows count, and when it is
done. A job is killed as soon as there is one: before the rows are read, between the sink and the
checkpoint, and between two batches.
"""


def batches_at(moment: Path) -> int:
    """How many batches have come so far."""
    # not the number of files: Spark keeps those of the last hundred batches, and merges some
    names = (one.name.removesuffix(".compact") for one in moment.glob("*"))
    return max((int(name) + 1 for name in names if name.isdecimal()), default=0)


@pytest.mark.parametrize(
    "kills", [1, pytest.param(50, marks=(pytest.mark.heavy, pytest.mark.timeout(3600)))]
)
def test_a_killed_job_loses_nothing_and_doubles_nothing(
    spark, lending, connect, topic, tmp_path, kills
) -> None:
    count = 0
    producer = connect(lending.pulsar_url).create_producer(topic, block_if_queue_full=True)
    script = tmp_path / "job.py"
    script.write_text(JOB)
    words = [sys.executable, str(script), lending.http_url, topic, str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": str(DISCOVERY), "PYSPARK_PYTHON": sys.executable}
    for kill in range(kills):
        moment = tmp_path / MOMENTS[kill % len(MOMENTS)]
        wanted = ROWS_PER_BATCH * (batches_at(tmp_path / MOMENTS[0]) + BATCHES_AHEAD)
        for number in range(count, wanted):
            producer.send_async(str(number).encode(), lambda *_: None)
        producer.flush()
        count = wanted
        job = subprocess.Popen(
            words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            start_new_session=True,
        )  # fmt: skip
        with job:
            assert job.stdout is not None
            assert job.stdout.readline() == b"started\n"
            before = batches_at(moment)
            while batches_at(moment) < before + 3:
                assert job.poll() is None
                time.sleep(0.002)
            os.killpg(job.pid, signal.SIGKILL)
        done = batches_at(tmp_path / MOMENTS[-1]) * ROWS_PER_BATCH
        assert done < count, f"kill {kill} came too late"
    drained(
        started(
            spark, lending, topic, tmp_path, startingOffsets="earliest", maxRowsPerTrigger="500"
        )
    )
    found = rows(spark, tmp_path)
    assert found == [(0, number, str(number)) for number in range(count)]
    print(f"{kills} kills, {len(found)} rows, none lost, none twice")


def test_a_mistake_ends_the_query(spark, lending, topic, tmp_path) -> None:
    query = started(spark, lending, topic, tmp_path).trigger(availableNow=True).start()
    with pytest.raises(Exception, match=f"there is no topic persistent://public/default/{topic}"):
        query.awaitTermination(120)
