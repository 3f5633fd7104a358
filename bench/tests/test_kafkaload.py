"""The generator over librdkafka against our own server, and topics that others have spoiled."""

import subprocess
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

import magnetar
from bench.drive import generator
from bench.tests.payloads import head_of, payload


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    generator.build([generator.KAFKALOAD])
    with magnetar.standalone(sync=False) as started:
        yield started.bootstrap_servers


@pytest.fixture
def topic() -> str:
    return f"t-{uuid.uuid4().hex[:8]}"


def run(server: str, topic: str, *arguments: str) -> generator.Line:
    port = int(server.rpartition(":")[2])
    results = ["--topic", topic, "--stall", "1", *arguments]
    return generator.run(generator.KAFKALOAD, port, results)


def stored(server: str, topic: str) -> list[bytes]:
    """All that a stock client finds in the topic's only partition."""
    consumer = Consumer({"bootstrap.servers": server, "group.id": "none"})
    _, end = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=20)
    consumer.assign([TopicPartition(topic, 0, 0)])
    found = consumer.consume(end, timeout=20)
    consumer.close()
    return [message.value() for message in found]


def write(server: str, topic: str, sequences: Sequence[int]) -> None:
    producer = Producer({"bootstrap.servers": server, "linger.ms": 0})
    for sequence in sequences:
        producer.produce(topic, payload(sequence), partition=0)
    assert producer.flush(20) == 0


def read(server: str, topic: str, messages: int) -> generator.Line:
    return run(server, topic, "--mode", "consume", "--messages", str(messages))


def test_every_message_is_produced_once_and_in_order(server: str, topic: str) -> None:
    line = run(server, topic, "--mode", "publish", "--messages", "5000", "--bytes", "200")
    assert (line.ok, line.published) == (True, 5000)
    values = stored(server, topic)
    assert [head_of(value).sequence for value in values] == list(range(5000))
    assert {len(value) for value in values} == {200}


def test_what_is_produced_is_read(server: str, topic: str) -> None:
    line = run(server, topic, "--mode", "both", "--messages", "5000")
    assert (line.ok, line.published, line.consumed) == (True, 5000, 5000)
    assert line.end_to_end is not None
    assert line.end_to_end.count == 5000


def test_handles_share_the_partitions_of_a_topic(server: str, topic: str) -> None:
    shape = ["--connections", "3", "--partitions", "2"]
    line = run(server, topic, "--mode", "both", "--messages", "3000", "--depth", "100", *shape)
    assert (line.ok, line.published, line.consumed) == (True, 3000, 3000)


def test_a_backlog_is_read_as_often_as_asked(server: str, topic: str) -> None:
    write(server, topic, range(50))
    line = run(server, topic, "--mode", "consume", "--messages", "50", "--passes", "4")
    assert (line.ok, line.consumed) == (True, 200)


def test_at_a_rate_latency_counts_from_when_a_message_was_due(server: str, topic: str) -> None:
    results = ["--mode", "both", "--messages", "20", "--rate", "1000", "--linger", "0"]
    line = run(server, topic, *results)
    assert line.ok
    assert line.seconds >= 0.019
    assert line.publish_latency is not None
    assert line.publish_latency.count == 20


def test_a_lost_message_is_noticed(server: str, topic: str) -> None:
    write(server, topic, [0, 1, 3, 4])
    line = read(server, topic, 4)
    assert (line.ok, line.missing) == (False, 1)


def test_a_doubled_message_is_noticed(server: str, topic: str) -> None:
    write(server, topic, [0, 1, 1, 2])
    line = read(server, topic, 3)
    assert (line.ok, line.duplicates, line.missing) == (False, 1, 0)


def test_swapped_messages_are_noticed(server: str, topic: str) -> None:
    write(server, topic, [0, 2, 1, 3])
    line = read(server, topic, 4)
    assert (line.ok, line.reordered, line.missing) == (False, 1, 0)


def test_what_is_not_there_is_waited_for_in_vain(server: str, topic: str) -> None:
    write(server, topic, [0, 1])
    line = read(server, topic, 3)
    assert (line.ok, line.consumed) == (False, 2)


def test_a_foreign_message_is_corrupt(server: str, topic: str) -> None:
    producer = Producer({"bootstrap.servers": server})
    producer.produce(topic, b"short", partition=0)
    assert producer.flush(20) == 0
    write(server, topic, [0])
    assert not read(server, topic, 1).ok


def test_the_topic_is_removed_in_the_end(server: str, topic: str) -> None:
    line = run(server, topic, "--mode", "publish", "--messages", "10", "--remove")
    assert line.ok
    assert (
        topic not in Consumer({"bootstrap.servers": server, "group.id": "x"}).list_topics().topics
    )


def test_without_librdkafka_make_names_the_package(tmp_path: Path) -> None:
    """A compiler that finds no header of that name stands for a machine without it."""
    lacking = tmp_path / "cc"
    lacking.write_text("#!/bin/sh\nexit 1\n")
    lacking.chmod(0o755)
    results = ["make", "-s", "-B", "-C", str(generator.HERE), f"CC={lacking}", "out/kafkaload"]
    ended = subprocess.run(
        [*results, f"OUT={tmp_path}", f"{tmp_path}/kafkaload"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode
    assert "apt-get install librdkafka-dev" in ended.stderr
