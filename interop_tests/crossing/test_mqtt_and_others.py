"""Devices' messages for Pulsar and Kafka, and the other way: one topic in three protocols."""

from __future__ import annotations

import json

import pulsar
import pytest
from confluent_kafka import Producer
from paho.mqtt.client import MQTTv5
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from .device import FUNNEL, SECONDS, tail

PULSAR_CODECS = list(pulsar.CompressionType.__members__.values())


def test_from_a_device_to_kafka(server, device, topic):
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


@pytest.mark.parametrize("device", [4, 5], indirect=True)
@pytest.mark.parametrize("batched", [False, True], ids=["single", "batches"])
@pytest.mark.parametrize("codec", PULSAR_CODECS, ids=lambda codec: codec.name)
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
    if device.client.protocol == MQTTv5:
        assert all(one.properties.UserProperty[0][0] == "p" for one in got)
    producer.close()


def test_a_topic_of_its_own(client, device, topic):
    """A topic that no rule mentions, by its whole name."""
    name = f"persistent://public/default/{topic}"
    device.subscribe(name)
    client.create_producer(topic).send(json.dumps({"x": 1}).encode())
    (message,) = device.take(1)
    assert (message.topic, json.loads(message.payload)) == (name, {"x": 1})
