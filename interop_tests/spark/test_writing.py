"""Tasks write rows to a real server, without Spark: what `BlockingProducer` promises."""

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from magnetar import Standalone
from magnetar.spark_connector.errors import RefusedError, ServiceError
from magnetar.spark_connector.writing import options
from magnetar.spark_connector.writing.commits import abort, commit
from magnetar.spark_connector.writing.errors import WriteError
from magnetar.spark_connector.writing.service import TaskPlace
from magnetar.spark_connector.writing.tasks import TaskAttempt, WrittenRows, write

COMMITTED_BEFORE = WrittenRows(was_known=True)

pa = pytest.importorskip("pyarrow")


def chosen(server, topic: str, **more: str) -> options.SinkOptions:
    given = {"service.url": server.http_url, "topic": topic, **more}
    return options.parse(given, stream=True)


def place(task: int = 0, batch: int = 0, sink: str = "s") -> TaskPlace:
    return TaskPlace(sink, "q", batch, task)


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


# -- exactly once -----------------------------------------------------------------------------


def committing(server, topic: str, **more: str) -> options.SinkOptions:
    return chosen(server, topic, delivery="exactly_once", **more)


def test_winners_are_there_and_losers_are_not(lending, topic) -> None:
    how = committing(lending, topic)
    first = write([batch(["a", "b"])], how, place(0, sink=topic))
    loser = write([batch(["b", "c"])], how, place(1, sink=topic))
    second = write([batch(["c"])], how, place(1, sink=topic))
    nothing = write([], how, place(2, sink=topic))
    assert values(lending, topic) == []
    assert loser.attempt not in (None, first.attempt, second.attempt)
    commit(how, place(sink=topic), [first, second, nothing])
    assert values(lending, topic) == ["a", "b", "c"]
    commit(how, place(sink=topic), [first, second, nothing])
    assert write([batch(["a"])], how, place(0, sink=topic)) == COMMITTED_BEFORE
    assert values(lending, topic) == ["a", "b", "c"]


def test_what_is_aborted_is_not_there(lending, topic) -> None:
    how = committing(lending, topic)
    lost = write([batch(["a"])], how, place(sink=topic))
    abort(how, place(sink=topic), [lost])
    with pytest.raises(RefusedError, match="is to be written again"):
        commit(how, place(sink=topic), [lost])
    commit(how, place(sink=topic), [write([batch(["b"])], how, place(sink=topic))])
    assert values(lending, topic) == ["b"]


def test_a_killed_server_keeps_its_word(mortal, topic) -> None:
    """It is killed before the commit, and after it."""
    how = committing(mortal, topic)
    for number in range(3):
        written = write([batch([str(number)])], how, place(batch=number, sink=topic))
        mortal.kill()
        mortal.start()
        commit(how, place(batch=number, sink=topic), [written])
        mortal.kill()
        mortal.start()
        assert write([batch(["no"])], how, place(batch=number, sink=topic)) == COMMITTED_BEFORE
    assert values(mortal, topic) == ["0", "1", "2"]


def test_silent_attempts_are_given_up_and_readers_go_on(lending, topic) -> None:
    how = committing(lending, topic, transactionTimeoutMs="5000")
    lost = write([batch(["lost"])], how, place(sink=topic))
    write([batch(["seen"])], chosen(lending, topic), place())
    until = time.monotonic() + 60
    while values(lending, topic) != ["seen"]:
        assert time.monotonic() < until
    with pytest.raises(RefusedError, match="given up after its time-out"):
        commit(how, place(sink=topic), [lost])


def test_kafka_clients_may_not_end_what_is_of_a_sink(lending, topic) -> None:
    how = committing(lending, topic)
    written = write([batch(["a"])], how, place(sink=topic))
    producer = Producer(
        {
            "bootstrap.servers": lending.bootstrap_servers,
            "transactional.id": f"magnetar.sink.{topic}.0",
        }
    )
    with pytest.raises(KafkaException):
        producer.init_transactions(20)
    commit(how, place(sink=topic), [written])
    assert values(lending, topic) == ["a"]


# -- numbered rows ----------------------------------------------------------------------------


def test_rows_that_are_written_again_are_left_out(lending, topic) -> None:
    create(lending, topic, 3)
    how = chosen(lending, topic, delivery="dedup", maxBatchBytes="500")
    sent = [str(number) for number in range(5_000)]
    keys = pa.array([f"k{number % 50}" for number in range(5_000)])
    part = pa.record_batch({"value": pa.array(sent[:1_700]), "key": keys[:1_700]})
    whole = pa.record_batch({"value": pa.array(sent), "key": keys})
    assert write([part], how, place(sink=topic)).rows == 1_700
    assert write([whole], how, place(sink=topic)).rows == 3_300
    assert write([whole], how, place(sink=topic)).rows == 0
    assert sorted(values(lending, topic, 3)) == sorted(sent)
    commit(how, place(sink=topic), [])
    assert write([whole], how, place(sink=topic)) == COMMITTED_BEFORE
    assert write([batch(["next"])], how, place(batch=1, sink=topic)).rows == 1
    assert len(values(lending, topic, 3)) == 5_001


def test_numbers_of_rows_survive_a_killed_server(mortal, topic) -> None:
    how = chosen(mortal, topic, delivery="dedup", maxBatchBytes="200")
    sent = [str(number) for number in range(300)]
    write([batch(sent[:200])], how, place(sink=topic))
    mortal.kill()
    mortal.start()
    write([batch(sent)], how, place(sink=topic))
    assert values(mortal, topic) == sent


def test_a_task_of_an_earlier_batch_is_fenced(lending, topic) -> None:
    how = chosen(lending, topic, delivery="dedup")
    with closing(TaskAttempt(how, place(batch=0, sink=topic))) as late:
        assert late.take(batch(["a"]))
        write([batch(["b"])], how, place(batch=1, sink=topic))
        with pytest.raises(WriteError, match="a later batch or another attempt has taken over"):
            late.finished()
    assert values(lending, topic) == ["b"]


def test_a_server_that_is_away_is_named(lending, topic) -> None:
    away = options.parse(
        {"service.url": "http://127.0.0.1:9", "topic": topic, "sendTimeoutMs": "300"}, stream=True
    )
    with pytest.raises(ServiceError, match=r"http://127\.0\.0\.1:9 does not answer"):
        write([batch(["a"])], away, place())


def test_nothing_of_it_imports_trio() -> None:
    code = "import sys; from magnetar.spark_connector.writing import tasks; "
    code += "print('trio' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
