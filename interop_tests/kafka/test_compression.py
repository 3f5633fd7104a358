"""Topics that say how their batches are compressed, whatever producers think."""

import random
import warnings

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import NewTopic

from .console import CONSUMER, Console

with warnings.catch_warnings():  # it reads its files in a way that is going out of use
    warnings.simplefilter("ignore", DeprecationWarning)
    import kafka

CODECS = ["gzip", "snappy", "lz4", "zstd", "uncompressed"]
SECONDS = 30


@pytest.fixture(params=CODECS)
def compressed(request, server, admin, topic) -> tuple[str, list[bytes]]:
    """A topic that has batches compressed in some way; and what is in it, sent in others."""
    expected = NewTopic(topic, 1, 1, config={"compression.type": request.param})
    admin.create_topics([expected])[topic].result()
    some = random.Random(request.param)
    values = [b"the same again %d" % number for number in range(500)]
    values += [some.randbytes(50_000).hex().encode() for _ in range(3)]  # many blocks
    for codec in ("none", "lz4", "gzip"):
        producer = Producer(
            {
                "bootstrap.servers": server.bootstrap_servers,
                "compression.type": codec,
                "enable.idempotence": True,
                "linger.ms": 20,
            }
        )
        for value in values:
            producer.produce(topic, value, key=b"k", headers=[("codec", codec)])
        assert producer.flush(SECONDS) == 0
    return topic, values * 3


def test_clients_read_it(server, compressed) -> None:
    topic, values = compressed
    consumer = Consumer(
        {"bootstrap.servers": server.bootstrap_servers, "group.id": topic, "check.crcs": True}
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    found = []
    while len(found) < len(values):
        message = consumer.poll(SECONDS)
        assert message is not None, f"{len(found)} of {len(values)}"
        assert message.error() is None
        assert (message.offset(), message.key()) == (len(found), b"k")
        found.append(message.value())
    consumer.close()
    assert found == values
    other = kafka.KafkaConsumer(
        bootstrap_servers=server.bootstrap_servers, consumer_timeout_ms=SECONDS * 1000
    )
    part = kafka.TopicPartition(topic, 0)
    other.assign([part])
    other.seek(part, 0)
    assert [next(other).value for _ in values] == values
    other.close()


def test_java_reads_it(server, compressed) -> None:
    topic, values = compressed
    count = ["--max-messages", str(len(values))]
    results = Console(server.bootstrap_servers).run(
        CONSUMER, "--topic", topic, "--from-beginning", *count
    )
    assert results.encode().splitlines() == values
