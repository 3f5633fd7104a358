"""Tasks write rows to a real server, without Spark: what `BlockingProducer` promises."""

import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from magnetar import Standalone
from magnetar.spark_connector.errors import ServiceError
from magnetar.spark_connector.writing import options
from magnetar.spark_connector.writing.errors import WriteError
from magnetar.spark_connector.writing.tasks import TaskPlace, WrittenRows, write

pa = pytest.importorskip("pyarrow")


def chosen(server, topic: str, **more: str) -> options.SinkOptions:
    given = {"service.url": server.http_url, "topic": topic, **more}
    return options.parse(given)


def place(task: int = 0, batch: int = 0, sink: str = "s") -> TaskPlace:
    return TaskPlace(sink, batch, task)


def batch(values: list[str], **columns: list) -> "pa.RecordBatch":
    return pa.record_batch({"value": pa.array(values), **columns})


def messages(server, topic: str, partitions: int = 1, isolation: str = "read_committed") -> list:
    """All messages, partition by partition."""
    consumer = Consumer(
        {
            "bootstrap.servers": server.bootstrap_servers,
            "group.id": "g",
            "isolation.level": isolation,
            "enable.partition.eof": True,
        }
    )
    found = []
    try:
        for number in range(partitions):
            consumer.assign([TopicPartition(topic, number, 0)])
            while True:
                one = consumer.poll(30)
                assert one is not None
                if one.error():
                    break
                found.append(one)
    finally:
        consumer.close()
    return found


def create(server, topic: str, partitions: int) -> None:
    admin = AdminClient({"bootstrap.servers": server.bootstrap_servers})
    admin.create_topics([NewTopic(topic, partitions)])[topic].result()


def values(server, topic: str, partitions: int = 1) -> list[str]:
    return [one.value().decode() for one in messages(server, topic, partitions)]


@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_rows_arrive_in_order(lending, topic, compression) -> None:
    sent = [f"value {number}" for number in range(5_000)]
    batches = [batch(sent[at : at + 700]) for at in range(0, len(sent), 700)]
    found = write(
        batches, chosen(lending, topic, compression=compression, maxBatchBytes="4k"), place()
    )
    assert found == WrittenRows(5_000)
    assert values(lending, topic) == sent


def test_no_rows_are_no_messages(lending, topic) -> None:
    assert write([], chosen(lending, topic), place()) == WrittenRows(0)


def test_keys_decide_unless_a_partition_is_given(lending, topic) -> None:
    create(lending, topic, 4)
    keys = [f"k{number % 10}" for number in range(100)]
    write([batch(["v"] * 100, key=pa.array(keys))], chosen(lending, topic), place())
    found = messages(lending, topic, 4)
    homes = {one.key().decode(): set() for one in found}
    for one in found:
        homes[one.key().decode()].add(one.partition())
    assert len(found) == 100
    assert all(len(home) == 1 for home in homes.values())
    given = pa.array([2, 3], pa.int32())
    write([batch(["a", "b"], partition=given)], chosen(lending, topic), place())
    assert [one.partition() for one in messages(lending, topic, 4) if one.key() is None] == [2, 3]
    wrong = batch(["a"], partition=pa.array([9], pa.int32()))
    with pytest.raises(WriteError, match="has 4 partitions, and none numbered 9"):
        write([wrong], chosen(lending, topic), place())


def test_a_full_buffer_is_sent(lending, topic) -> None:
    """More is written than is held, to more partitions than have full batches."""
    create(lending, topic, 8)
    sent = ["x" * 100 + str(number) for number in range(4_000)]
    given = pa.array([number % 8 for number in range(4_000)], pa.int32())
    few = chosen(lending, topic, maxBatchBytes="20k", maxBufferBytes="40k")
    assert write([batch(sent, partition=given)], few, place()).rows == 4_000
    assert sorted(values(lending, topic, 8)) == sorted(sent)


def test_a_message_that_is_too_large_is_named(lending, topic) -> None:
    with pytest.raises(WriteError, match=topic):
        write([batch(["x" * 6_000_000])], chosen(lending, topic), place())


@pytest.fixture
def mortal(lending) -> Iterator[Standalone]:
    """A server that a test may kill."""
    yield lending
    if not lending.running:
        lending.start()


def test_rows_survive_a_killed_server_once_each(mortal, topic) -> None:
    """The server is killed while batches are under way, and starts again."""
    server, ready = mortal, threading.Event()
    sent = [f"{number}" for number in range(60_000)]

    def batches():
        for at in range(0, len(sent), 1_000):
            if at == 20_000:
                ready.set()
            yield batch(sent[at : at + 1_000])

    def kill() -> None:
        ready.wait()
        server.kill()
        server.start()

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        write(batches(), chosen(server, topic, maxBatchBytes="2k"), place())
    finally:
        ready.set()
        killer.join()
    assert values(server, topic) == sent


def test_a_server_that_is_away_is_named(lending, topic) -> None:
    away = options.parse(
        {"service.url": "http://127.0.0.1:9", "topic": topic, "sendTimeoutMs": "300"}
    )
    with pytest.raises(ServiceError, match=r"http://127\.0\.0\.1:9 does not answer"):
        write([batch(["a"])], away, place())


def test_nothing_of_it_imports_trio() -> None:
    code = "import sys; from magnetar.spark_connector.writing import tasks; "
    code += "print('trio' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
