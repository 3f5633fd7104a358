"""What tests with Kafka's clients share: topics that are there, and records in them."""

from collections.abc import Callable

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic


@pytest.fixture
def admin(server) -> AdminClient:
    return AdminClient({"bootstrap.servers": server.bootstrap_servers})


@pytest.fixture
def made(admin) -> Callable[..., str]:
    """Makes a topic with so many partitions."""

    def make(name: str, partitions: int = 4) -> str:
        for done in admin.create_topics([NewTopic(name, partitions, 1)]).values():
            done.result()
        return name

    return make


def produce(bootstrap_servers: str, topic: str, count: int, first: int = 0) -> None:
    """Records `first`, `first + 1`, ... to all partitions in turn."""
    producer = Producer({"bootstrap.servers": bootstrap_servers, "enable.idempotence": True})
    partitions = len(producer.list_topics(topic).topics[topic].partitions)
    errors = []
    for number in range(first, first + count):
        producer.produce(
            topic,
            b"%d" % number,
            partition=number % partitions,
            on_delivery=lambda error, _: errors.append(error),
        )
    assert producer.flush(30) == 0
    assert errors == [None] * count
