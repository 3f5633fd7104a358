"""The job that keeps the latest message of each key."""

import os
import signal
import subprocess
import sys

import pytest
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from magnetar.spark_connector.jobs import snapshot
from magnetar.spark_connector.jobs.session import TopicSelection

from .conftest import kafka_producer, workers_environment

pytestmark = pytest.mark.spark


@pytest.fixture
def kept(spark, lending, topic, tmp_path):
    """Brings the snapshot up to date: what was read, and the latest value of each key."""

    def kept(*topics: str) -> tuple[int, dict[str, str]]:
        selection = TopicSelection(lending.http_url, topics or (topic,))
        folder = tmp_path / "table"
        report = snapshot.run(spark, snapshot.SnapshotOptions(selection, folder))
        rows = spark.read.parquet(f"file://{folder}/current").collect()
        assert report.facts["keys"] == len(rows)
        values = {bytes(row.key).decode(): bytes(row.value).decode() for row in rows}
        assert len(values) == len(rows)
        return report.facts["messages read"], values

    return kept


def test_the_latest_of_each_key(lending, kept, topic) -> None:
    producer = kafka_producer(lending)

    def send(**values: str | None) -> None:
        for key, value in values.items():
            producer.produce(topic, value, key, partition=0)
        producer.flush()

    send(a="1", b="1", c="1")
    producer.produce(topic, "without key")
    send(a="2", b=None)
    assert kept() == (6, {"a": "2", "c": "1"})
    assert kept() == (0, {"a": "2", "c": "1"})
    send(b="3", c=None, d="3", a="3")
    send(a="4")
    assert kept() == (5, {"a": "4", "b": "3", "d": "3"})
    lending.restart()
    producer = kafka_producer(lending)
    send(a=None, b=None, d=None)
    assert kept() == (3, {})
    send(e="5")
    assert kept() == (1, {"e": "5"})


def test_a_key_in_several_partitions(lending, kept, topic) -> None:
    """When a topic has grown, the later message may be in another partition than the earlier."""
    admin = AdminClient({"bootstrap.servers": lending.bootstrap_servers})
    admin.create_topics([NewTopic(topic, 1)])[topic].result(10)
    producer = kafka_producer(lending)
    for key in "abc":
        producer.produce(topic, "old", key, partition=0)
    producer.flush()
    assert kept() == (3, {"a": "old", "b": "old", "c": "old"})
    admin.create_partitions([NewPartitions(topic, 2)])[topic].result(10)
    producer = kafka_producer(lending)
    producer.produce(topic, "new", "a", partition=1)
    producer.produce(topic, None, "b", partition=1)
    producer.flush()
    assert kept() == (2, {"a": "new", "c": "old"})
    assert kept() == (0, {"a": "new", "c": "old"})


def test_a_killed_job_goes_on(lending, kept, topic, tmp_path) -> None:
    producer = kafka_producer(lending)
    for number in range(5_000):
        producer.produce(topic, str(number), f"k{number % 500}")
    producer.flush()
    folder = tmp_path / "table"
    words = [
        sys.executable, "-m", "magnetar.spark_connector.jobs.snapshot", "--url", lending.http_url,
        "--topic", topic, "--to", str(folder), "--master", "local[2]",
    ]  # fmt: skip
    with subprocess.Popen(
        words, env={**os.environ, **workers_environment()}, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, start_new_session=True,
    ) as job:  # fmt: skip
        while not list(folder.glob("versions/1/_temporary")):
            assert job.poll() is None
        os.killpg(job.pid, signal.SIGKILL)
    assert not (folder / "current").exists(), "it came too late"
    expected = {f"k{number}": str(4_500 + number) for number in range(500)}
    assert kept() == (5_000, expected)
