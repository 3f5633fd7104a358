"""Devices' messages for Pulsar and Kafka, and the other way: one topic in three protocols."""

from __future__ import annotations

import json
import threading

import paho.mqtt.client as mqtt
import pulsar
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

SECONDS = 20
FUNNEL = "mqtt"


class Device:
    """A connected client of paho's, with what it receives."""

    def __init__(self, server) -> None:
        self.client = mqtt.Client(CallbackAPIVersion.VERSION2, protocol=MQTTProtocolVersion.MQTTv5)
        self.got: list[mqtt.MQTTMessage] = []
        self._changed = threading.Condition()
        self._subscribed = threading.Event()
        self.client.on_message = self._on_message
        self.client.on_subscribe = lambda *_: self._subscribed.set()
        host, _, port = server.mqtt_url.removeprefix("mqtt://").rpartition(":")
        self.client.connect(host, int(port))
        self.client.loop_start()

    def _on_message(self, _client, _data, message) -> None:
        with self._changed:
            self.got.append(message)
            self._changed.notify_all()

    def subscribe(self, filter: str, qos: int = 1) -> None:
        self.client.subscribe(filter, qos)
        assert self._subscribed.wait(SECONDS)

    def publish(self, topic: str, payload: bytes, qos: int = 1, **options) -> None:
        self.client.publish(topic, payload, qos, **options).wait_for_publish(SECONDS)

    def take(self, count: int) -> list[mqtt.MQTTMessage]:
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.got) >= count, SECONDS)
            return self.got[:count]


@pytest.fixture
def device(server):
    made = Device(server)
    yield made
    made.client.disconnect()
    made.client.loop_stop()


def tail(server) -> Consumer:
    """A consumer of Kafka's at the present end of the funnel."""
    consumer = Consumer({"bootstrap.servers": server.bootstrap_servers, "group.id": "none"})
    _, end = consumer.get_watermark_offsets(TopicPartition(FUNNEL, 0), SECONDS)
    consumer.assign([TopicPartition(FUNNEL, 0, end)])
    return consumer


def test_from_a_device_to_kafka(server, device, topic):
    device.publish(topic, b"makes the topic")
    consumer = tail(server)
    properties = Properties(PacketTypes.PUBLISH)
    properties.UserProperty = [("a", "1"), ("b", "2"), ("a", "3")]
    properties.ContentType, properties.CorrelationData = "application/json", b"\0\xff"
    device.publish(f"{topic}/ü", b'{"t": 21.5}', 2, properties=properties)
    device.publish(f"{topic}/empty", b"", 0)
    device.publish(f"{topic}/gone", b"", 1, retain=True)
    first, empty, gone = consumer.consume(3, SECONDS)
    consumer.close()
    assert first.key().decode() == f"{topic}/ü"
    assert first.value() == b'{"t": 21.5}'
    headers = first.headers()
    assert [each for each in headers if "mqtt" not in each[0]] == [
        ("a", b"1"), ("b", b"2"), ("a", b"3")
    ]  # fmt: skip
    assert {name: value for name, value in headers if "mqtt" in name} == {
        "mqtt.content-type": b"application/json",
        "mqtt.correlation-data": b"\0\xff",
        "mqtt.qos": b"2",
    }
    assert (empty.value(), empty.key().decode()) == (b"", f"{topic}/empty")
    assert gone.value() is None, "the removal of a retained message"
    assert dict(gone.headers())["mqtt.retain"] == b"1"


def test_from_a_device_to_pulsar(client, device, topic):
    device.publish(topic, b"makes the topic")
    consumer = client.subscribe(FUNNEL, topic, initial_position=pulsar.InitialPosition.Latest)
    for number in range(20):
        device.client.publish(f"{topic}/{number}", b"%d" % number, 1)
    found = [consumer.receive(SECONDS * 1000) for _ in range(20)]
    assert [(one.partition_key(), one.data()) for one in found] == [
        (f"{topic}/{number}", b"%d" % number) for number in range(20)
    ]
    assert {one.properties()["mqtt.qos"] for one in found} == {"1"}
    for one in found:
        consumer.acknowledge(one)
    consumer.close()


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_from_kafka_to_a_device(server, device, topic, codec):
    device.subscribe(f"{topic}/#")
    producer = Producer({"bootstrap.servers": server.bootstrap_servers, "compression.type": codec})
    for number in range(20):
        producer.produce(FUNNEL, b"%d" % number * 50, f"{topic}/{number}",
                         headers=[("h", b"1"), ("mqtt.content-type", b"text/plain")])  # fmt: skip
    assert producer.flush(SECONDS) == 0
    got = device.take(20)
    assert [(one.topic, one.payload) for one in got] == [
        (f"{topic}/{number}", b"%d" % number * 50) for number in range(20)
    ]
    assert got[0].properties.UserProperty == [("h", "1")]
    assert got[0].properties.ContentType == "text/plain"


@pytest.mark.parametrize("batched", [False, True])
@pytest.mark.parametrize("codec", [pulsar.CompressionType.NONE, pulsar.CompressionType.ZSTD])
def test_from_pulsar_to_a_device(client, device, topic, batched, codec):
    device.subscribe(f"{topic}/#")
    producer = client.create_producer(
        FUNNEL, compression_type=codec, batching_enabled=batched, block_if_queue_full=True
    )
    for number in range(20):
        producer.send_async(b"%d" % number * 50, None, partition_key=f"{topic}/{number}",
                            properties={"p": str(number)})  # fmt: skip
    producer.flush()
    got = device.take(20)
    assert sorted((one.topic, one.payload) for one in got) == sorted(
        (f"{topic}/{number}", b"%d" % number * 50) for number in range(20)
    )
    assert all(one.properties.UserProperty[0][0] == "p" for one in got)
    producer.close()


def test_a_topic_of_its_own(client, device, topic):
    """A topic that no rule mentions, by its whole name."""
    name = f"persistent://public/default/{topic}"
    device.subscribe(name)
    client.create_producer(topic).send(json.dumps({"x": 1}).encode())
    (message,) = device.take(1)
    assert (message.topic, json.loads(message.payload)) == (name, {"x": 1})
