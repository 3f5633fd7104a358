"""Pulsar's and Kafka's own tools about MQTT's sessions: they see them, and lose none of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import confluent_kafka as kafka
import httpx
import pulsar
import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient

from interop_tests import maven
from interop_tests.kafka.console import GROUPS, Console
from interop_tests.pulsar.test_admin_cli import ADMIN, Admin

from .conftest import Paho

HELD = "mqtt-sessions"
TOPIC = "public/default/mqtt"
HERE = "/admin/v2/mqtt/public/default"
REASON = "is held for the sessions of MQTT clients"
SECONDS = 20


def address(server: Any) -> str:
    return str(server.mqtt_url).removeprefix("mqtt://")


def leave(*clients: Paho) -> None:
    for client in clients:
        client.disconnect()


@pytest.fixture
def sleeper(magnetar_function: Any) -> Iterator[Any]:
    """A server with a session that has three messages to get, and a client that has got them."""
    server = magnetar_function
    sleeper = Paho(address(server), "sleeper", clean_session=False)
    sleeper.connect()
    sleeper.subscribe("t/#", 1)
    leave(sleeper)
    awake = Paho(address(server), "awake")
    awake.connect()
    awake.subscribe("t/#", 1)
    writer = Paho(address(server), "writer")
    writer.connect()
    for number in range(3):
        writer.publish("t/1", b"%d" % number, 1)
    awake.take(3)
    yield server
    again = Paho(address(server), "sleeper", clean_session=False)
    assert again.connect(), "its session is present"
    assert [message.payload for message in again.take(3)] == [b"0", b"1", b"2"], "nothing is lost"
    leave(again, awake, writer)


def test_clients_of_pulsar_are_refused(sleeper, connect):
    client = connect(sleeper.pulsar_url)
    with pytest.raises(pulsar.NotAllowedError):
        client.subscribe(TOPIC, HELD, pulsar.ConsumerType.Shared)
    with pytest.raises(pulsar.NotAllowedError):
        client.subscribe("another-topic", HELD)


def test_kafkas_clients_see_a_group_and_cannot_move_it(sleeper):
    admin = AdminClient({"bootstrap.servers": sleeper.bootstrap_servers})
    groups = admin.list_consumer_groups().result(SECONDS).valid
    assert HELD in [group.group_id for group in groups]
    requested = [ConsumerGroupTopicPartitions(HELD)]
    found = admin.list_consumer_group_offsets(requested)[HELD].result(SECONDS)
    (offset,) = found.topic_partitions
    assert (offset.topic, offset.partition, offset.offset) == ("mqtt", 0, 0)
    moved = ConsumerGroupTopicPartitions(HELD, [TopicPartition("mqtt", 0, 3)])
    done = admin.alter_consumer_group_offsets([moved])[HELD].result(SECONDS)
    assert done.topic_partitions[0].error.code() == kafka.KafkaError.INVALID_GROUP_ID
    with pytest.raises(kafka.KafkaException) as refused:
        admin.delete_consumer_groups([HELD])[HELD].result(SECONDS)
    assert refused.value.args[0].code() == kafka.KafkaError.POLICY_VIOLATION


def test_a_consumer_of_kafkas_cannot_commit_as_the_group(sleeper):
    consumer = kafka.Consumer(
        {"bootstrap.servers": sleeper.bootstrap_servers, "group.id": HELD,
         "auto.offset.reset": "earliest", "enable.auto.commit": False}
    )  # fmt: skip
    with pytest.raises(kafka.KafkaException) as refused:
        consumer.commit(offsets=[TopicPartition("mqtt", 0, 3)], asynchronous=False)
    assert refused.value.args[0].code() == kafka.KafkaError.INVALID_GROUP_ID
    consumer.close()


def test_a_session_is_ended_at_once(magnetar_function):
    client = Paho(address(magnetar_function), "d", version=5)
    client.connect()
    done = httpx.delete(f"{magnetar_function.http_url}{HERE}/sessions/d")
    assert done.status_code == 204
    assert client.disconnects.get(timeout=SECONDS).value == 0x98
    leave(client)


@pytest.mark.java
@pytest.mark.slow
def test_pulsar_admin(sleeper, tmp_path: Path):
    admin = Admin(maven.build(ADMIN) / "jars", tmp_path / "client.conf", sleeper)
    shown = admin.json(f"topics stats {TOPIC}")["subscriptions"][HELD]
    assert shown["msgBacklog"] == 3
    assert [consumer["consumerName"] for consumer in shown["consumers"]] == ["awake"]
    assert HELD in admin.says(f"topics subscriptions {TOPIC}")
    commands = [
        f"topics skip --count 1 -s {HELD} {TOPIC}",
        f"topics clear-backlog -s {HELD} {TOPIC}",
        f"topics expire-messages -t 0 -s {HELD} {TOPIC}",
        f"topics reset-cursor -s {HELD} -t 0s {TOPIC}",
        f"topics unsubscribe -f -s {HELD} {TOPIC}",
        f"topics create-subscription -s {HELD} {TOPIC}",
        f"topics truncate {TOPIC}",
        f"namespaces clear-backlog --force -s {HELD} public/default",
        f"namespaces unsubscribe -s {HELD} public/default",
    ]
    said = admin.shell(commands, tmp_path / "commands")
    for command, answer in zip(commands, said, strict=True):
        assert REASON in answer or "already exists" in answer, (command, answer)
    (peeked,) = admin.shell([f"topics peek-messages -s {HELD} -n 1 {TOPIC}"], tmp_path / "peek")
    assert "t/1" in peeked or "0" in peeked


@pytest.mark.java
@pytest.mark.slow
def test_kafka_consumer_groups(sleeper):
    console = Console(sleeper.bootstrap_servers)
    assert HELD in console.run(GROUPS, "--list").split()
    shown = console.run(GROUPS, "--describe", "--group", HELD)
    (row,) = [line.split() for line in shown.splitlines() if line.startswith(HELD)]
    assert row[1:6] == ["mqtt", "0", "0", "3", "3"], "offset 0 of 3, lag 3"
    latest = ("--reset-offsets", "--to-latest", "--all-topics", "--execute")
    for words in (("--group", HELD, *latest), ("--delete", "--group", HELD)):
        done = console.tried(GROUPS, *words)
        said = done.stdout + done.stderr
        assert re.search("group.?id|Error|policy", said, re.IGNORECASE), said
    shown = console.run(GROUPS, "--describe", "--group", HELD)
    assert HELD in shown
