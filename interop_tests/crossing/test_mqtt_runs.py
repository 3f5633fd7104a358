"""Runs of MQTT as clients of Pulsar and Kafka read them; chunks and secrets of Pulsar."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import time

import pulsar
import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka import TopicPartition as AioPartition
from confluent_kafka import Consumer, TopicPartition

from interop_tests.keys import rsa_files

from .device import FUNNEL, SECONDS, tail

COUNT = 20
WAIT_MS = SECONDS * 1000
each_version = pytest.mark.parametrize("device", [4, 5], indirect=True)


def publish_run(device, topic) -> None:
    """Messages that the server reads at once, as far as possible, so that they are one entry."""
    with device.client._out_message_mutex:  # paho's thread sends them when it is free
        posted = [
            device.client.publish(f"{topic}/{number}", b"%d" % number, 1) for number in range(COUNT)
        ]
    for each in posted:
        each.wait_for_publish(SECONDS)


@each_version
def test_a_reader_of_pulsar_begins_within_a_run(client, device, topic) -> None:
    reader = client.create_reader(FUNNEL, pulsar.MessageId.latest)
    publish_run(device, topic)
    found = [reader.read_next(WAIT_MS) for _ in range(COUNT)]
    assert [(one.partition_key(), one.data()) for one in found] == [
        (f"{topic}/{number}", b"%d" % number) for number in range(COUNT)
    ]
    assert {one.properties()["mqtt.qos"] for one in found} == {"1"}
    middle = found[COUNT // 2].message_id()
    for inclusive in (False, True):
        again = client.create_reader(FUNNEL, middle, start_message_id_inclusive=inclusive)
        first = again.read_next(WAIT_MS)
        assert first.data() == b"%d" % (COUNT // 2 + (0 if inclusive else 1))
        again.close()
    reader.close()


def test_pulsar_acknowledges_parts_of_a_run(client, device, topic) -> None:
    """With batch index acknowledgement, only the others come again."""

    def subscribed() -> pulsar.Consumer:
        return client.subscribe(FUNNEL, topic, pulsar.ConsumerType.Shared,
                                batch_index_ack_enabled=True)  # fmt: skip

    consumer = subscribed()
    publish_run(device, topic)
    found = [consumer.receive(WAIT_MS) for _ in range(COUNT)]
    assert any(one.message_id().batch_index() > 0 for one in found), "a run of several"
    for one in found[::2]:
        consumer.acknowledge(one)
    consumer.close()
    consumer = subscribed()
    again = [consumer.receive(WAIT_MS) for _ in range(COUNT // 2)]
    assert sorted(int(one.data()) for one in again) == list(range(1, COUNT, 2))
    with pytest.raises(pulsar.Timeout):
        consumer.receive(300)
    consumer.close()


@each_version
def test_kafka_finds_messages_of_a_run_by_time(server, device, topic) -> None:
    consumer = tail(server)
    before = int(time.time() * 1000)
    publish_run(device, topic)
    after = int(time.time() * 1000)
    found = consumer.consume(COUNT, SECONDS)
    consumer.close()
    assert [(one.key().decode(), one.value()) for one in found] == [
        (f"{topic}/{number}", b"%d" % number) for number in range(COUNT)
    ]
    offsets = [one.offset() for one in found]
    assert offsets == list(range(offsets[0], offsets[0] + COUNT))
    assert all(before <= one.timestamp()[1] <= after for one in found)
    finder = Consumer({"bootstrap.servers": server.bootstrap_servers, "group.id": "none"})
    (at,) = finder.offsets_for_times([TopicPartition(FUNNEL, 0, found[0].timestamp()[1])], SECONDS)
    assert at.offset <= offsets[0]
    (beyond,) = finder.offsets_for_times([TopicPartition(FUNNEL, 0, after + 60_000)], SECONDS)
    assert beyond.offset == -1
    finder.assign([TopicPartition(FUNNEL, 0, offsets[COUNT // 2])])
    (within,) = finder.consume(1, SECONDS)
    assert within.value() == b"%d" % (COUNT // 2)
    finder.close()


def test_kcat_and_aiokafka_read_a_run(server, device, topic) -> None:
    consumer = tail(server)
    publish_run(device, topic)
    offset = consumer.consume(1, SECONDS)[0].offset()
    consumer.close()
    kcat = shutil.which("kcat")
    assert kcat is not None, "this test needs kcat, a package of Debian"
    command = [kcat, "-b", server.bootstrap_servers, "-t", FUNNEL, "-C", "-o", str(offset),
               "-c", str(COUNT), "-f", "%k %s %h\n"]  # fmt: skip
    said = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=True)
    expected = [f"{topic}/{number} {number} mqtt.qos=1" for number in range(COUNT)]
    assert said.stdout.splitlines() == expected

    async def read() -> list[str]:
        reader = AIOKafkaConsumer(bootstrap_servers=server.bootstrap_servers)
        await reader.start()
        try:
            partition = AioPartition(FUNNEL, 0)
            reader.assign([partition])
            reader.seek(partition, offset)
            found = [await asyncio.wait_for(reader.getone(), SECONDS) for _ in range(COUNT)]
        finally:
            await reader.stop()
        return [
            f"{one.key.decode()} {one.value.decode()} "
            + ",".join(f"{name}={value.decode()}" for name, value in one.headers)
            for one in found
        ]

    assert asyncio.run(read()) == expected


@each_version
def test_chunks_of_pulsar_come_one_by_one(client, device, topic) -> None:
    device.subscribe(topic)
    producer = client.create_producer(FUNNEL, chunking_enabled=True, batching_enabled=False)
    large = bytes(range(256)) * 100_000
    producer.send(large, partition_key=topic)
    producer.send(b"after", partition_key=topic)
    producer.close()
    while not device.got or device.got[-1].payload != b"after":
        device.take(len(device.got) + 1)
    chunks = [one.payload for one in device.got[:-1]]
    assert len(chunks) > 1
    assert b"".join(chunks) == large


@each_version
def test_encrypted_messages_of_pulsar_come_as_they_are(
    server, client, device, topic, tmp_path
) -> None:
    """A device gets the same bytes as a client of Kafka's, and not the text."""
    consumer = tail(server)
    device.subscribe(topic)
    keys = pulsar.CryptoKeyReader(*rsa_files(tmp_path))
    producer = client.create_producer(
        FUNNEL, batching_enabled=False, encryption_key="k", crypto_key_reader=keys
    )
    producer.send(b"secret", partition_key=topic)
    producer.close()
    (message,) = device.take(1)
    (stored,) = consumer.consume(1, SECONDS)
    consumer.close()
    assert message.payload == stored.value()
    assert b"secret" not in message.payload
