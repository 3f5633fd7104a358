"""An Apache Pulsar broker with three bookies of ours as its only storage: what it has acknowledged
outlives bookies that are killed, the broker itself, and a stop of everything; and a gateway of ours
continues its topics.
"""

import json
import threading
import urllib.error
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any, Self

import pulsar
import pytest
from kazoo.client import KazooClient

from interop_tests.bookkeeper.cluster import Bookie
from interop_tests.bookkeeper.gateway import Gateway
from interop_tests.bookkeeper.pulsar_broker import PulsarBroker
from interop_tests.bookkeeper.recovery import command
from interop_tests.bookkeeper.test_cluster_garbage import EAGER
from interop_tests.waiting import until

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.timeout(400)]
KIB = b"x" * 1024
TOPICS = "persistent/public/default"


class Reading(pulsar.schema.Record):
    """What a sensor says."""

    value = pulsar.schema.Integer()


@pytest.fixture(scope="module")
def broker(zookeeper, tmp_path_factory) -> Iterator[PulsarBroker]:
    with PulsarBroker(zookeeper.address, tmp_path_factory.mktemp("broker")) as made:
        made.set_up()
        yield made


@pytest.fixture(scope="module")
def bookies(zookeeper, broker, tmp_path_factory) -> Iterator[list[Bookie]]:
    uri = f"zk+hierarchical://{zookeeper.address}/ledgers"
    with ExitStack() as stack:
        made = []
        for _ in range(3):
            folder = tmp_path_factory.mktemp("bookie")
            bookie = Bookie(folder, "--metadata-uri", uri, "--zk-timeout", "2")
            bookie.environment = EAGER
            made.append(stack.enter_context(bookie))
        broker.start()
        yield made


@pytest.fixture(scope="module")
def other_cluster(zookeeper) -> str:
    """The URI of one that the broker has nothing in."""
    client = KazooClient(zookeeper.address)
    client.start()
    client.create("/other")
    client.stop()
    client.close()
    uri = f"zk+hierarchical://{zookeeper.address}/other/ledgers"
    command(uri, "bookie", "init-cluster")
    return uri


class Publisher:
    """Publishes numbered messages as fast as they are acknowledged, in a thread."""

    def __init__(self, client: pulsar.Client, topic: str) -> None:
        self._producer = client.create_producer(
            topic, max_pending_messages=50, block_if_queue_full=True, batching_enabled=False
        )
        self._thread = threading.Thread(target=self._run)
        self._stop = threading.Event()
        self.acknowledged: list[int] = []
        self.failed: list[pulsar.Result] = []

    def _run(self) -> None:
        number = 0
        while not self._stop.is_set():
            self._producer.send_async(b"%d " % number + KIB, self._told(number))
            number += 1
        self._producer.flush()

    def _told(self, number: int) -> Callable[[pulsar.Result, Any], None]:
        def told(result: pulsar.Result, _: Any) -> None:
            if result == pulsar.Result.Ok:
                self.acknowledged.append(number)
            else:
                self.failed.append(result)

        return told

    def wait(self, more: int) -> None:
        """Until so many more are acknowledged."""
        goal = len(self.acknowledged) + more
        until(lambda: len(self.acknowledged) >= goal)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()


def numbers(consumer: Any, last: int) -> list[int]:
    """Numbers of the messages that a consumer or reader gets, up to the last one."""
    receive = getattr(consumer, "receive", None) or consumer.read_next
    found: list[int] = []
    while not found or found[-1] != last:
        found.append(int(receive(30_000).data().partition(b" ")[0]))
    return found


def read(client: pulsar.Client, topic: str, last: int) -> list[int]:
    reader = client.create_reader(topic, pulsar.MessageId.earliest)
    found = numbers(reader, last)
    assert not reader.has_message_available()
    reader.close()
    return found


def ledgers(broker: PulsarBroker, topic: str) -> list[int]:
    found = broker.admin("GET", f"{TOPICS}/{topic}/internalStats")
    return [one["ledgerId"] for one in found["ledgers"]]


def log_bytes(bookie: Bookie) -> int:
    """Of a bookie's entry logs."""
    found = (bookie.directory / "data/bookie/ledgers/current").glob("*.log")
    return sum(log.stat().st_size for log in found)


@pytest.mark.heavy
def test_the_space_of_a_deleted_topic_comes_back(broker, bookies, connect, topic) -> None:
    """The first test: logs of which half is in use are kept, whoever uses it."""

    def held() -> int:
        return sum(map(log_bytes, bookies))

    client = connect(broker.url)
    client.subscribe(topic, "or its ledgers would be trimmed")
    with Publisher(client, topic) as publisher:
        publisher.wait(4_000)
    assert publisher.failed == []
    until(lambda: held() > 2 * 4_000 * len(KIB))
    client.close()
    broker.admin("DELETE", f"{TOPICS}/{topic}?force=true")
    with pytest.raises(urllib.error.HTTPError, match="404"):
        broker.admin("GET", f"{TOPICS}/{topic}/stats")
    until(lambda: held() < 2_000 * len(KIB))


@pytest.mark.heavy
def test_what_was_acknowledged_outlives_everything(broker, bookies, connect, topic) -> None:
    client = connect(broker.url)
    consumer = client.subscribe(topic, "s")
    load = ("produce", "--rate", "1000", "--size", "1024", "--stats-interval-seconds", "1", "perf")
    with broker.perf(*load) as told:
        until(lambda: told.read_text().count("Throughput produced") > 1)
        with Publisher(client, topic) as publisher:
            publisher.wait(2_000)
            bookies[0].kill()
            publisher.wait(2_000)
            bookies[0].start()
            publisher.wait(500)
            bookies[1].kill()
            publisher.wait(2_000)
            bookies[1].start()
    count = len(publisher.acknowledged)
    assert publisher.failed == []
    assert publisher.acknowledged == list(range(count))
    assert numbers(consumer, count - 1) == publisher.acknowledged
    assert len(ledgers(broker, topic)) > count // 1_000

    broker.kill()
    broker.start()
    assert read(client, topic, count - 1) == publisher.acknowledged

    broker.kill()
    for bookie in bookies:
        bookie.kill()
    for bookie in bookies:
        bookie.start()
    broker.start()
    assert read(client, topic, count - 1) == publisher.acknowledged
    with Publisher(client, topic) as again:
        again.wait(100)
    assert again.failed == []


def test_schemas_compacted_topics_and_cursors_are_kept_too(broker, bookies, connect, topic) -> None:
    """Each is a ledger that the broker writes on its own, beside those of messages."""
    client = connect(broker.url)
    producer = client.create_producer(topic, schema=pulsar.schema.JsonSchema(Reading))
    first = client.subscribe(topic, "first", schema=pulsar.schema.JsonSchema(Reading))
    for value in range(300):
        producer.send(Reading(value=value), partition_key=str(value % 3))
    for value in range(200):
        message = first.receive(30_000)
        assert message.value().value == value
        if value % 2:
            first.acknowledge(message)
    broker.admin("PUT", f"{TOPICS}/{topic}/compaction")
    status = f"{TOPICS}/{topic}/compaction"
    until(lambda: broker.admin("GET", status)["status"] == "SUCCESS")
    client.close()
    broker.stop()
    for bookie in bookies:
        assert bookie.stop() == 0
        bookie.start()
    broker.start()
    client = connect(broker.url)
    assert broker.admin("GET", f"schemas/public/default/{topic}/schema")["type"] == "JSON"
    compacted = client.create_reader(topic, pulsar.MessageId.earliest, is_read_compacted=True)
    found = [int(json.loads(compacted.read_next(30_000).data())["value"]) for _ in range(3)]
    assert found == [297, 298, 299]
    first = client.subscribe(topic, "first", schema=pulsar.schema.JsonSchema(Reading))
    rest = [first.receive(30_000).value().value for _ in range(200)]
    assert rest == [*range(0, 200, 2), *range(200, 300)]


def test_a_gateway_takes_topics_over_and_gives_them_back(
    zookeeper, other_cluster, broker, bookies, connect, topic, tmp_path
) -> None:
    """Both keep topics, subscriptions and their positions in the same places and formats."""
    client = connect(broker.url)
    consumer = client.subscribe(topic, "s")
    with Publisher(client, topic) as publisher:
        publisher.wait(1_500)  # more than one ledger
    count = len(publisher.acknowledged)
    assert publisher.failed == []
    for number in range(700):
        message = consumer.receive(30_000)
        if number % 2:
            consumer.acknowledge(message)
    client.close()
    broker.stop()
    expected = [*range(0, 700, 2), *range(700, count)]
    with Gateway(tmp_path / "wrong", zookeeper, "--bookkeeper", other_cluster) as gateway:
        assert gateway.process.wait(60) == 2, gateway.log()
        assert "has none of the ledgers that topics here name" in gateway.log()
    with Gateway(tmp_path / "gateway", zookeeper) as gateway:
        gateway.serve()
        client = connect(f"pulsar://{gateway.url('pulsar')}")
        assert read(client, topic, count - 1) == publisher.acknowledged
        consumer = client.subscribe(topic, "s")
        assert numbers(consumer, count - 1) == expected
        client.create_producer(topic).send(b"%d by the gateway" % count)
        consumer.acknowledge(consumer.receive(30_000))
        client.close()
        gateway.process.terminate()
        assert gateway.process.wait(60) == 0
    broker.start()
    client = connect(broker.url)
    assert read(client, topic, count) == [*publisher.acknowledged, count]
    assert numbers(client.subscribe(topic, "s"), count - 1) == expected
    with Publisher(client, topic) as again:
        again.wait(100)
    assert again.failed == []
