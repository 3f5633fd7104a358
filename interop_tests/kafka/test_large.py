"""Batches of ten megabytes: taken where the topic says so, read by both protocols, there again."""

import os

import pulsar
import pytest
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic

MIB = 1024 * 1024
SIZE = 10 * MIB
SECONDS = 30


def make(server, topic, **config):
    admin = AdminClient({"bootstrap.servers": server.bootstrap_servers})
    admin.create_topics([NewTopic(topic, 1, 1, config=config)])[topic].result()


def producer(server):
    return Producer(
        {"bootstrap.servers": server.bootstrap_servers, "message.max.bytes": SIZE + MIB}
    )


def read(server, topic, group):
    settings = {
        "bootstrap.servers": server.bootstrap_servers,
        "group.id": group,
        "auto.offset.reset": "earliest",
        "receive.message.max.bytes": 4 * SIZE,
        "fetch.max.bytes": 3 * SIZE,
    }
    consumer = Consumer(settings)
    try:
        consumer.subscribe([topic])
        message = consumer.poll(SECONDS)
        assert message is not None
        assert message.error() is None
        return message.value()
    finally:
        consumer.close()


@pytest.mark.standalone
def test_ten_megabytes(magnetar_function, topic, connect):
    server = magnetar_function
    make(server, topic, **{"max.message.bytes": str(SIZE + MIB)})
    body = os.urandom(SIZE)
    sender, errors = producer(server), []
    sender.produce(topic, body, on_delivery=lambda error, _: errors.append(error))
    assert (sender.flush(SECONDS), errors) == (0, [None])
    assert read(server, topic, "before") == body
    server.kill()
    server.start()
    assert read(server, topic, "after") == body
    client = connect(server.pulsar_url)
    name = f"persistent://public/default/{topic}-partition-0"
    earliest = pulsar.InitialPosition.Earliest
    reader = client.subscribe(name, "pulsar", initial_position=earliest)
    assert reader.receive(SECONDS * 1000).data() == body


def test_what_is_larger_than_its_topic_allows(server, topic):
    make(server, topic)
    sender, errors = producer(server), []
    sender.produce(topic, bytes(2 * MIB), on_delivery=lambda error, _: errors.append(error))
    assert sender.flush(SECONDS) == 0
    assert errors[0].name() == "MSG_SIZE_TOO_LARGE"


def test_what_no_server_takes(server, topic):
    with pytest.raises(KafkaException, match=r"max\.message\.bytes"):
        make(server, topic, **{"max.message.bytes": str(17 * MIB)})
