"""A stock client that is given an `http://` service URL: lookups go over HTTP, messages do not."""

from __future__ import annotations

import re
import urllib.request
from collections.abc import Iterator

import pulsar
import pytest

import magnetar

RECEIVE_MS = 10_000


@pytest.fixture
def server() -> Iterator[magnetar.Standalone]:
    with magnetar.standalone() as made:
        yield made


@pytest.fixture
def client(server: magnetar.Standalone) -> Iterator[pulsar.Client]:
    quiet = pulsar.ConsoleLogger(pulsar.LoggerLevel.Error)
    made = pulsar.Client(server.http_url, logger=quiet)
    yield made
    made.close()


def put(server: magnetar.Standalone, path: str, body: bytes) -> int:
    request = urllib.request.Request(f"{server.http_url}{path}", data=body, method="PUT")
    with urllib.request.urlopen(request) as answer:
        return answer.status


def test_publish_and_consume(client: pulsar.Client) -> None:
    topic = "persistent://public/default/looked-up"
    consumer = client.subscribe(topic, "s")
    client.create_producer(topic).send(b"hello")
    assert consumer.receive(RECEIVE_MS).data() == b"hello"


def test_partitions_and_patterns(server: magnetar.Standalone, client: pulsar.Client) -> None:
    base = "persistent://public/default/parted"
    assert put(server, "/admin/v2/persistent/public/default/parted/partitions", b"3") == 204
    assert client.get_topic_partitions(base) == [f"{base}-partition-{i}" for i in range(3)]
    producer = client.create_producer(base)
    for number in range(6):
        producer.send(b"%d" % number)
    consumer = client.subscribe(
        re.compile("public/default/part.*"), "s", initial_position=pulsar.InitialPosition.Earliest
    )
    received = {consumer.receive(RECEIVE_MS).data() for _ in range(6)}
    assert received == {b"%d" % number for number in range(6)}


def test_missing_namespaces_are_refused(client: pulsar.Client) -> None:
    with pytest.raises(pulsar.PulsarException):
        client.create_producer("persistent://public/missing/any")
