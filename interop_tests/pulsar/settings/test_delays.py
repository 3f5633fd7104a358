"""More delayed messages than a subscription keeps the times of."""

import random
import time
from datetime import timedelta

import pulsar
import pytest

from magnetar import standalone

KNOWN_MAX = 100
COUNT = 3_000
RECEIVE_MS = 15_000


@pytest.fixture(scope="module")
def server():
    with standalone(broker={"max_delayed_messages_per_subscription": KNOWN_MAX}) as server:
        yield server


@pytest.mark.parametrize("kind", [pulsar.ConsumerType.Shared, pulsar.ConsumerType.KeyShared])
def test_each_comes_once_and_when_it_is_due(server, client, topic, kind):
    """Those whose times are read again, too; and who has no delay waits for none of them."""
    consumer = client.subscribe(topic, "s", consumer_type=kind)
    producer = client.create_producer(topic, batching_enabled=False, block_if_queue_full=True)
    pick, due = random.Random(7), {}
    for number in range(COUNT):
        delay = pick.uniform(2, 5)
        due[str(number)] = time.time() + delay
        producer.send_async(
            b"later", None, properties={"n": str(number)}, deliver_after=timedelta(seconds=delay)
        )
    producer.flush()
    producer.send(b"at once")
    first = consumer.receive(RECEIVE_MS)
    assert first.data() == b"at once"
    consumer.acknowledge(first)
    late = []
    for _ in range(COUNT):
        message = consumer.receive(RECEIVE_MS)
        late.append(time.time() - due.pop(message.properties()["n"]))
        consumer.acknowledge(message)
    assert due == {}
    assert min(late) > -0.05, "the clients' and the server's clock is one"
    assert sorted(late)[COUNT // 2] < 1
