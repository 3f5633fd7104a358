"""What the log says at its most talkative: of connections and topics much, of messages nothing."""

import pytest
from pulsar import ConsumerType

from interop_tests.pulsar.python.stock import numbered, publish, receive
from magnetar import standalone


@pytest.fixture(scope="module")
def talkative():
    with standalone(log_level="debug") as server:
        yield server


@pytest.mark.parametrize("kind", list(ConsumerType.__members__))
def test_nothing_per_message(talkative, connect, topic, kind):
    """Neither published, delivered, acknowledged one by one, nor given back."""
    client = connect(talkative.pulsar_url)
    kind = ConsumerType.__members__[kind]
    consumer = client.subscribe(topic, "s", kind, negative_ack_redelivery_delay_ms=100)
    producer = client.create_producer(topic, batching_enabled=False)
    assert "connected to pulsar" in talkative.logs()
    before = len(talkative.logs())
    publish(producer, numbered(500))
    for message in receive(consumer, 500):
        if int(message.data()) % 2 or kind == ConsumerType.Exclusive:
            consumer.acknowledge(message)
        else:
            consumer.negative_acknowledge(message)
    if kind != ConsumerType.Exclusive:
        receive(consumer, 250)
    said = talkative.logs()[before:].splitlines()
    assert len(said) < 20, said[:20]
