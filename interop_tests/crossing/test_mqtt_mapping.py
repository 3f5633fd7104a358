"""The table "From one protocol to another" of docs/mqtt.md, row by row, in all directions.

Values are compared byte for byte, and headers with their order.
"""

from __future__ import annotations

import base64
import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pulsar
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.subscribeoptions import SubscribeOptions

from .device import FUNNEL, SECONDS, Device, tail

PAGE = Path(__file__).resolve().parents[2] / "docs" / "mqtt.md"
HEADING = "## From one protocol to another"
EXPIRY_SECONDS = 1_000
BYTES = bytes(range(256))
Header = tuple[str, bytes]


class Row(NamedTuple):
    """What a device publishes, and the headers of other protocols."""

    payload: bytes | None = b"x"
    qos: int = 0
    retain: bool = False
    properties: tuple[tuple[str, Any], ...] = ()
    headers: tuple[Header, ...] = ()


ROWS = {
    "topic": Row(),
    "payload": Row(payload=BYTES),
    "user property": Row(
        properties=(("UserProperty", [("b", "1"), ("a", "2"), ("b", "\u20ac"), ("", "")]),),
        headers=(("b", b"1"), ("a", b"2"), ("b", "\u20ac".encode()), ("", b"")),
    ),
    "content type, response topic": Row(
        properties=(("ContentType", "text/\u00fc"), ("ResponseTopic", "answers/\u00fc")),
        headers=(
            ("mqtt.content-type", "text/\u00fc".encode()),
            ("mqtt.response-topic", "answers/\u00fc".encode()),
        ),
    ),
    "correlation data": Row(
        properties=(("CorrelationData", BYTES),), headers=(("mqtt.correlation-data", BYTES),)
    ),
    "payload format indicator": Row(
        properties=(("PayloadFormatIndicator", 1),), headers=(("mqtt.payload-format", b"1"),)
    ),
    "message expiry interval": Row(
        properties=(("MessageExpiryInterval", EXPIRY_SECONDS),),
        headers=(("mqtt.expires-at", b""),),
    ),
    "QoS 1 or 2; retain": Row(
        qos=2, retain=True, headers=(("mqtt.qos", b"2"), ("mqtt.retain", b"1"))
    ),
}
each_row = pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)


def test_each_row_of_the_table_is_tested() -> None:
    section = PAGE.read_text(encoding="utf-8").partition(HEADING)[2].partition("\n\n")[2]
    rows = section.partition("\n\n")[0].splitlines()[2:]
    assert [re.split(r" *\| *", row)[1] for row in rows] == list(ROWS)


def sent_properties(row: Row) -> Properties:
    made = Properties(PacketTypes.PUBLISH)
    for name, value in row.properties:
        setattr(made, name, value)
    return made


def publish(device: Device, topic: str, row: Row) -> None:
    device.publish(topic, row.payload, row.qos, retain=row.retain, properties=sent_properties(row))


def without_time(headers: list[Header]) -> list[Header]:
    """The headers, with the time of `mqtt.expires-at` checked and left out."""
    found = []
    for name, value in headers:
        if name == "mqtt.expires-at":
            left = int(value) / 1000 - time.time()
            assert EXPIRY_SECONDS - SECONDS < left <= EXPIRY_SECONDS
            value = b""
        found.append((name, value))
    return found


@each_row
def test_from_mqtt_to_kafka(server, device, topic, row) -> None:
    consumer = tail(server)
    publish(device, f"{topic}/\u00fc", row)
    (message,) = consumer.consume(1, SECONDS)
    consumer.close()
    assert (message.key(), message.value()) == (f"{topic}/\u00fc".encode(), row.payload)
    assert without_time(message.headers() or []) == list(row.headers)


@each_row
def test_from_mqtt_to_pulsar(client, device, topic, row) -> None:
    """Properties are text, one of a name; `kafka.headers` has the others with their bytes."""
    reader = client.create_reader(FUNNEL, pulsar.MessageId.latest)
    publish(device, f"{topic}/\u00fc", row)
    message = reader.read_next(SECONDS * 1000)
    assert (message.partition_key(), message.data()) == (f"{topic}/\u00fc", row.payload)
    found = message.properties()
    exact = found.pop("kafka.headers", None)
    if exact is not None:
        pairs = [(name, base64.b64decode(value)) for name, value in json.loads(exact)]
        assert without_time(pairs) == list(row.headers)
    names = {name for name, _ in row.headers}
    assert set(found) == names
    assert exact or without_time([(name, found[name].encode()) for name in names]) == [
        (name, dict(row.headers)[name]) for name in names
    ]
    reader.close()


@pytest.fixture(params=["kafka", "pulsar"])
def write(request, server, client) -> Callable[[str, bytes | None, list[Header]], None]:
    """Writes to the funnel, as a client of another protocol."""

    def by_kafka(key: str, value: bytes | None, headers: list[Header]) -> None:
        producer = Producer({"bootstrap.servers": server.bootstrap_servers})
        producer.produce(FUNNEL, value, key, headers=list(headers))
        assert producer.flush(SECONDS) == 0

    def by_pulsar(key: str, value: bytes | None, headers: list[Header]) -> None:
        pairs = [[name, base64.b64encode(data).decode()] for name, data in headers]
        producer = client.create_producer(FUNNEL)
        properties = {"kafka.headers": json.dumps(pairs)} if headers else {}
        producer.send(value, partition_key=key, properties=properties)
        producer.close()

    return by_kafka if request.param == "kafka" else by_pulsar


@each_row
def test_from_others_to_mqtt(device, topic, write, row) -> None:
    options = SubscribeOptions(2, retainAsPublished=True)
    device.subscribe(f"{topic}/#", options=options)
    deadline = b"%d" % (1000 * (time.time() + EXPIRY_SECONDS))
    headers = [(name, deadline if name == "mqtt.expires-at" else value)
               for name, value in row.headers]  # fmt: skip
    write(f"{topic}/\u00fc", row.payload, headers)
    (message,) = device.take(1)
    assert (message.topic, message.payload) == (f"{topic}/\u00fc", row.payload)
    assert (message.qos, message.retain) == (row.qos or 2, row.retain)
    found = message.properties
    for name, value in row.properties:
        if name == "MessageExpiryInterval":
            assert value - SECONDS < found.MessageExpiryInterval <= value
        else:
            assert getattr(found, name) == value
    assert set(found.json()) == {name for name, _ in row.properties}


def test_a_topic_that_is_called_like_a_partition(server, client, device, topic) -> None:
    """Other protocols make no such topic, and find the one of MQTT."""
    name, rules = f"{topic}-partition-3", f"{server.http_url}/admin/v2/mqtt/public/default/rules"
    with pytest.raises(pulsar.NotAllowedError):
        client.create_producer(name)
    put = {"rules": [{"filter": name, "topic": "{each}"}]}
    assert httpx.put(rules, json=put).status_code == 204
    device.subscribe(name)
    device.publish(name, b"1")
    reader = client.create_reader(name, pulsar.MessageId.earliest)
    assert reader.read_next(SECONDS * 1000).data() == b"1"
    client.create_producer(name).send(b"2", partition_key=name)
    consumer = Consumer({"bootstrap.servers": server.bootstrap_servers, "group.id": "none"})
    consumer.assign([TopicPartition(name, 0, 0)])
    assert [one.value() for one in consumer.consume(2, SECONDS)] == [b"1", b"2"]
    listed = consumer.list_topics(timeout=SECONDS).topics
    assert topic not in listed
    assert [(one.error, list(one.partitions)) for one in [listed[name]]] == [(None, [0])]
    consumer.close()
    assert [one.payload for one in device.take(1)] == [b"1"]
    assert httpx.delete(rules).status_code == 204


@pytest.mark.parametrize("device", [4, 5], indirect=True)
def test_nothing_from_others(device, server, topic) -> None:
    """A null value is an empty payload, and removes no retained message."""
    device.publish(topic, b"kept", retain=True)
    device.subscribe(topic)
    device.take(1)
    producer = Producer({"bootstrap.servers": server.bootstrap_servers})
    producer.produce(FUNNEL, None, topic, headers=[("mqtt.retain", b"1")])
    assert producer.flush(SECONDS) == 0
    assert [one.payload for one in device.take(2)] == [b"kept", b""]
    late = Device(server)
    late.subscribe(topic)
    assert [(one.payload, one.retain) for one in late.take(1)] == [(b"kept", True)]
    late.close()


def test_the_removal_of_a_retained_message(server, client, device, topic) -> None:
    """A null value for Kafka; Pulsar's client shows one as empty."""
    device.publish(topic, b"kept", retain=True)
    consumer = tail(server)
    reader = client.create_reader(FUNNEL, pulsar.MessageId.latest)
    device.publish(topic, b"", retain=True)
    (message,) = consumer.consume(1, SECONDS)
    consumer.close()
    assert (message.key(), message.value()) == (topic.encode(), None)
    found = reader.read_next(SECONDS * 1000)
    assert (found.partition_key(), found.data()) == (topic, b"")
    reader.close()


def test_the_servers_own_user_properties(server, device, topic) -> None:
    """The time, and values that are null although nothing is retained; neither is a header."""
    consumer = tail(server)
    for payload, own in ((b"x", ("mqtt.time", "1600000000000")), (b"", ("mqtt.null", "value"))):
        row = Row(payload, properties=(("UserProperty", [own, ("other", "1")]),))
        publish(device, topic, row)
    timed, null = consumer.consume(2, SECONDS)
    consumer.close()
    assert (timed.timestamp()[1], timed.value()) == (1_600_000_000_000, b"x")
    assert null.value() is None
    assert timed.headers() == null.headers() == [("other", b"1")]
