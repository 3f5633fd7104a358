"""More delayed messages than a subscription keeps the times of."""

import random
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import httpx
import pulsar
import pytest

from interop_tests.waiting import until
from magnetar import standalone
from magnetar.core.ledger.buckets.bucket import BUCKETS

KNOWN_MAX = 100
COUNT = 3_000
RECEIVE_MS = 15_000
MANY = 40_000
"""A bucket of the index, and some more."""
BYTES = 1_000


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


def bytes_read(server) -> int:
    page = httpx.get(f"{server.http_url}/metrics").text
    return int(re.search(r"^bookie_READ_BYTES (\d+)$", page, re.MULTILINE)[1])


def asked(server, which: str) -> dict:
    path = f"/admin/v2/persistent/public/default/many/{which}"
    return httpx.get(f"{server.http_url}{path}").json()


@contextmanager
def attached(server, name) -> Iterator[tuple[pulsar.Client, pulsar.Consumer]]:
    client = pulsar.Client(server.pulsar_url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
    shared, earliest = pulsar.ConsumerType.Shared, pulsar.InitialPosition.Earliest
    consumer = client.subscribe("many", name, consumer_type=shared, initial_position=earliest)
    yield client, consumer
    client.close()


def seen(server, name, consumer) -> None:
    """It has got what is behind all that is delayed, and keeps it."""
    assert consumer.receive(RECEIVE_MS).data() == b"at once"
    assert asked(server, "stats")["subscriptions"][name]["msgDelayed"] == MANY


def test_what_is_delayed_is_not_read_again_after_a_kill():
    """For no subscription, nor for a new one."""
    with standalone() as server:
        with attached(server, "s") as (client, consumer):
            producer = client.create_producer("many", batching_enabled=False,
                                              block_if_queue_full=True)  # fmt: skip
            for _ in range(MANY):
                producer.send_async(bytes(BYTES), None, deliver_after=timedelta(hours=1))
            producer.flush()
            producer.send(b"at once")
            seen(server, "s", consumer)
            until(lambda: BUCKETS in asked(server, "internalStats")["properties"])
            server.kill()
        server.restart()
        for name in ("s", "new"):
            with attached(server, name) as (_, consumer):
                seen(server, name, consumer)
        assert bytes_read(server) < MANY * BYTES, "two have it all"
