"""Kafka Streams counts words exactly once, while its server is killed and stopped."""

import time
from collections import Counter

import pytest
from confluent_kafka import Producer

from interop_tests.kafka.crash.work import PATIENT, make_topic
from magnetar import standalone

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.timeout(300)]

PARTITIONS = 2
LINES = 200
WORDS = ["kafka", "streams", "counts", "these", "words"]
ROUNDS = ["kill", "kill", "stop"]
SECONDS = 45


def test_words_are_counted_exactly_once(kafka_java, topic):
    with standalone() as server:
        url = server.bootstrap_servers
        for name in (topic, f"{topic}-counts"):
            make_topic(server, name, PARTITIONS)
        counting = kafka_java.start("streams.count", url, topic)
        counting.wait_for("started")
        expected: Counter[str] = Counter()
        for at, going in enumerate([*ROUNDS, None]):
            expected += write(url, topic, at * LINES)
            if going is None:
                break
            until(kafka_java, url, topic, lambda last: sum(last.values()) > 0)
            getattr(server, going)()
            server.start()
        until(kafka_java, url, topic, lambda last: last == expected)
        counting.tell("end")
        counting.result()


def write(url, topic, first):
    """Lines whose words are counted; how often each is in them."""
    producer = Producer({"bootstrap.servers": url, "enable.idempotence": True, **PATIENT})
    words: Counter[str] = Counter()
    for number in range(first, first + LINES):
        line = [WORDS[number % 5], WORDS[number * 7 % 3], f"n{number % 20}"]
        words.update(line)
        producer.produce(topic, " ".join(line).encode(), b"%d" % number)
    assert producer.flush(SECONDS) == 0
    return words


def until(kafka_java, url, topic, holds):
    """Looks at the counts again and again; no count ever goes back, or is told twice."""
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        seen = kafka_java.play("streams.counts", url, topic, partitions=PARTITIONS)
        assert seen["backwards"] == 0
        if holds(seen["last"]):
            return
    pytest.fail(f"it has come to {seen['last']}")
