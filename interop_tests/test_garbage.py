"""Who comes and goes leaves nothing for the garbage collector, which a busy server seldom runs.

Connections, producers, consumers and readers are part of no reference cycle once they have left.
What is found is told by the server itself (`hooks/sitecustomize.py`).
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import paho.mqtt.client as paho
import pulsar
import pytest
from confluent_kafka import Producer
from websockets.sync.client import connect as open_websocket

from magnetar import Standalone, standalone

from .waiting import until

HOOKS = Path(__file__).parent / "hooks"
ROUNDS = 40
CLOSURES = {"cell", "function", "tuple"}
"""Of tasks that are due now and then; none of them belongs to a client."""

Come = Callable[[Standalone], None]
Count = Callable[[], dict[str, int]]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the server writes what it has found."""
    return tmp_path_factory.mktemp("garbage") / "found"


@pytest.fixture(scope="module")
def server(found: Path) -> Iterator[Standalone]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("PYTHONPATH", str(HOOKS), prepend=os.pathsep)
        patched.setenv("GARBAGE_FILE", str(found))
        with standalone() as made:
            yield made


@pytest.fixture
def garbage(server: Standalone, found: Path) -> Count:
    """Has the server count its garbage, by type."""

    def count() -> dict[str, int]:
        found.unlink(missing_ok=True)
        server.send_signal(signal.SIGUSR1)
        httpx.get(f"{server.http_url}/admin/v2/clusters")  # wakes it
        until(found.exists, "the server does not say what it has found")
        lines = [line.rpartition(" ") for line in found.read_text().splitlines()]
        return {name: int(count) for name, _, count in lines if name not in CLOSURES}

    return count


def pulsar_client(server: Standalone) -> pulsar.Client:
    return pulsar.Client(server.pulsar_url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))


def come_by_pulsar(server: Standalone) -> None:
    client = pulsar_client(server)
    shared = client.subscribe("t", "shared", pulsar.ConsumerType.Shared)
    keyed = client.subscribe("t", "keyed", pulsar.ConsumerType.KeyShared)
    alone = client.subscribe("t", "alone", pulsar.ConsumerType.Failover)
    producer = client.create_producer("t")
    producer.send(b"x", partition_key="k")
    reader = client.create_reader("t", pulsar.MessageId.earliest)
    reader.read_next(20_000)
    for consumer in (shared, keyed, alone):
        consumer.acknowledge(consumer.receive(20_000))
    for one in (producer, reader, shared, alone):
        one.close()  # the other one leaves with its connection
    client.close()


def come_by_kafka(server: Standalone) -> None:
    producer = Producer({"bootstrap.servers": server.bootstrap_servers})
    producer.produce("k", b"x")
    assert producer.flush(20) == 0


def come_by_mqtt(server: Standalone) -> None:
    client = paho.Client(paho.CallbackAPIVersion.VERSION2)
    host, _, port = server.mqtt_url.rpartition("/")[2].rpartition(":")
    client.connect(host, int(port))
    client.loop_start()
    client.subscribe("a/b", 1)
    client.publish("a/b", b"x", 1).wait_for_publish(20)
    client.disconnect()
    client.loop_stop()


def come_by_http(server: Standalone) -> None:
    assert httpx.get(f"{server.http_url}/admin/v2/clusters").status_code == 200


def come_by_websocket(server: Standalone) -> None:
    url = f"{server.http_url.replace('http', 'ws')}/ws/v2"
    with open_websocket(f"{url}/producer/persistent/public/default/w") as producer:
        producer.send('{"payload": "eA=="}')
        producer.recv(20)
    reader = f"{url}/reader/persistent/public/default/w?messageId=earliest&receiverQueueSize=1"
    with open_websocket(reader) as socket:
        socket.recv(20)


@pytest.mark.parametrize(
    "come", [come_by_pulsar, come_by_kafka, come_by_mqtt, come_by_http, come_by_websocket]
)
def test_who_has_left_is_garbage_of_no_kind(server: Standalone, garbage: Count, come: Come) -> None:
    come(server)
    garbage()
    for _ in range(ROUNDS):
        come(server)
    left = {name: count for name, count in garbage().items() if count >= ROUNDS // 2}
    assert left == {}


def test_a_deleted_topic_leaves_its_log_only(server: Standalone, garbage: Count) -> None:
    """The log is a small cycle, which is looked for when many topics have left."""
    client = pulsar_client(server)

    def come_and_go(number: int) -> None:
        topic = f"persistent://public/default/d{number}"
        consumer = client.subscribe(topic, "s", pulsar.ConsumerType.Shared)
        producer = client.create_producer(topic)
        producer.send(b"x")
        consumer.acknowledge(consumer.receive(20_000))
        url = f"{server.http_url}/admin/v2/{topic.replace('://', '/')}"
        producer.close()
        consumer.close()
        assert httpx.delete(url).status_code == 204

    come_and_go(0)
    garbage()
    for number in range(1, ROUNDS + 1):
        come_and_go(number)
    left = garbage()
    client.close()
    assert not {"PersistentTopic", "PersistentSubscription", "Cursor"} & set(left)
    assert sum(left.values()) <= 70 * ROUNDS
