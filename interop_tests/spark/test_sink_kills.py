"""SIGKILL of the job, and of the server, at each step of the sink: what each delivery promises."""

import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import cycle, islice
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from magnetar import Standalone

from .bystander import WHEN, Bystander, standing_by
from .conftest import DISCOVERY

pytestmark = pytest.mark.spark

ROWS_PER_BATCH = 40
SECONDS = 300
STEPS = {
    "exactly_once": [(path, when) for path in ("/begin", "/commit") for when in WHEN],
    "dedup": [(path, when) for path in ("/number", "/commit") for when in WHEN],
}
FIFTY = list(islice(cycle(STEPS["exactly_once"]), 50))
JOB = dedent("""\
    import sys
    from pyspark.sql import SparkSession
    sys.path.insert(0, sys.argv[1])
    from interop_tests.spark import test_sink_kills
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    spark = builder.config("spark.sql.shuffle.partitions", "3").getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    test_sink_kills.stream(spark, *sys.argv[2:]).start().awaitTermination()
""")


def stream(
    spark: Any, reads_at: str, writes_at: str, topics: str, folder: str, delivery: str
) -> Any:
    """A stream from one topic to another. What is exactly once is so behind a shuffle, too."""
    one, other = topics.split(",")
    reader = spark.readStream.format("magnetar").option("service.url", reads_at)
    reader = reader.option("startingOffsets", "earliest").option("topic", one)
    frame = reader.option("maxRowsPerTrigger", str(ROWS_PER_BATCH)).load().select("value")
    if delivery == "exactly_once":
        frame = frame.repartition(3)
    writer = frame.writeStream.format("magnetar").option("service.url", writes_at)
    writer = writer.option("topic", other).option("delivery", delivery)
    return writer.option("maxBatchBytes", "100").option("checkpointLocation", folder)


@pytest.fixture
def bystander(lending) -> Iterator[Bystander]:
    with standing_by(lending.http_url) as made:
        yield made
    if not lending.running:
        lending.start()


class Copy:
    """Messages that are copied from one topic to another."""

    def __init__(self, server: Standalone, topics: str, folder: Path, delivery: str) -> None:
        self.server, self.topics, self.folder, self.delivery = server, topics, folder, delivery

    def killed(self, bystander: Bystander) -> None:
        """Run a job until the bystander has killed it."""
        script = self.folder / "job.py"
        script.write_text(JOB)
        root = str(Path(__file__).parents[2])
        words = [sys.executable, str(script), root, self.server.http_url, bystander.url]
        words += [self.topics, str(self.folder / "checkpoint"), self.delivery]
        environment = {**os.environ, "PYTHONPATH": str(DISCOVERY), "PYSPARK_PYTHON": sys.executable}
        with subprocess.Popen(
            words, env=environment, stderr=subprocess.DEVNULL, start_new_session=True
        ) as job:
            bystander.act = lambda: os.killpg(job.pid, signal.SIGKILL)
            try:
                assert job.wait(SECONDS) == -signal.SIGKILL
            except subprocess.TimeoutExpired:
                os.killpg(job.pid, signal.SIGKILL)  # else its end is waited for
                raise

    def drained(self, spark: Any, url: str) -> None:
        """Run it to its end."""
        folder = str(self.folder / "checkpoint")
        made = stream(spark, self.server.http_url, url, self.topics, folder, self.delivery)
        query = made.trigger(availableNow=True).start()
        assert query.awaitTermination(SECONDS)
        assert query.exception() is None


def send(connect: Any, server: Standalone, topic: str, count: int) -> list[str]:
    producer = connect(server.pulsar_url).create_producer(topic, block_if_queue_full=True)
    sent = [str(number) for number in range(count)]
    for value in sent:
        producer.send_async(value.encode(), lambda *_: None)
    producer.flush()
    return sent


def written(rows: list[Any]) -> Counter[str]:
    return Counter(bytes(row.value).decode() for row in rows)


@pytest.fixture
def copy(lending, topics, tmp_path) -> Any:
    def made(delivery: str) -> Copy:
        return Copy(lending, f"{topics()},{topics()}", tmp_path, delivery)

    return made


@pytest.mark.timeout(3600)
@pytest.mark.parametrize(
    ("delivery", "steps"),
    [
        ("exactly_once", [("/commit", "unheard")]),
        pytest.param("exactly_once", FIFTY, marks=pytest.mark.heavy, id="exactly_once-50"),
        pytest.param("dedup", STEPS["dedup"], marks=pytest.mark.heavy),
    ],
)
def test_a_job_is_killed_at_each_step(
    spark, lending, connect, read, bystander, copy, delivery, steps
) -> None:
    job = copy(delivery)
    one, other = job.topics.split(",")
    sent = send(connect, lending, one, ROWS_PER_BATCH * (3 * len(steps) + 2))
    for path, when in steps:
        # not the first: a batch before it is done, and of several tasks one has begun
        bystander.waits(path, when, 2, lambda: None)
        job.killed(bystander)
    job.drained(spark, lending.http_url)
    assert written(read(other)) == Counter(sent)
    print(f"{len(steps)} kills, {len(sent)} rows, none lost, none twice")


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("delivery", ["exactly_once", "dedup"])
def test_a_server_is_killed_at_each_step(
    spark, lending, connect, read, bystander, copy, delivery
) -> None:
    job = copy(delivery)
    one, other = job.topics.split(",")
    sent = []

    def restart() -> None:
        lending.kill()
        lending.start()

    for path, when in STEPS[delivery]:
        more = send(connect, lending, one, ROWS_PER_BATCH * 2)
        sent += more
        bystander.waits(path, when, 2, restart)
        job.drained(spark, bystander.url)
        assert bystander.acted.is_set(), (path, when)
    assert written(read(other)) == Counter(sent)


def test_a_killed_job_that_writes_at_least_once_loses_nothing(
    spark, lending, connect, read, bystander, copy
) -> None:
    job = copy("at_least_once")
    one, other = job.topics.split(",")
    sent = send(connect, lending, one, ROWS_PER_BATCH * 6)
    bystander.waits("", "heard", 3, lambda: None)
    job.killed(bystander)
    job.drained(spark, lending.http_url)
    found = written(read(other))
    assert set(found) == set(sent)
    assert max(found.values()) <= 2
