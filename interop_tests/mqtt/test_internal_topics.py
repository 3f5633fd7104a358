"""Pulsar's and Kafka's tools and clients at the topics in which MQTT's sessions and retained
messages are stored: they read them, and change nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import confluent_kafka as kafka
import httpx
import pulsar
import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
)

from interop_tests import maven
from interop_tests.pulsar.test_admin_cli import ADMIN, Admin

from .conftest import Paho

SESSIONS = "pulsar/system/__mqtt_sessions"
RETAINED = "pulsar/system/__mqtt_retained"
GROUPS = "pulsar/system/__mqtt_groups"
NEVER_MADE = "pulsar/system/__mqtt_other"
REASON = "is internal"
POLICY_VIOLATION = kafka.KafkaError.POLICY_VIOLATION
EXISTING = kafka.KafkaError.TOPIC_ALREADY_EXISTS
UNKNOWN = kafka.KafkaError.UNKNOWN_TOPIC_OR_PART
SECONDS = 20


def address(server: Any) -> str:
    return str(server.mqtt_url).removeprefix("mqtt://")


@pytest.fixture
def state(magnetar_function: Any) -> Iterator[Any]:
    """A server with a session and a retained message, which are both there in the end, also after
    a restart.
    """
    server = magnetar_function
    client = Paho(address(server), "sleeper", clean_session=False)
    client.connect()
    client.subscribe("t/#", 1)
    client.subscribe("$share/g/s/#", 1)
    client.publish("r", b"kept", 1, retain=True)
    client.disconnect()
    yield server
    server.restart()
    client = Paho(address(server), "sleeper", clean_session=False)
    assert client.connect(), "its session is present"
    client.publish("t/1", b"1", 1)
    assert client.take(1)[0].payload == b"1", "with its subscriptions"
    client.subscribe("r", 1)
    assert client.take(1)[0].payload == b"kept"
    client.disconnect()


@pytest.mark.parametrize("topic", [SESSIONS, RETAINED, GROUPS])
def test_pulsars_clients_read_and_do_not_write(state, connect, topic: str):
    client = connect(state.pulsar_url)
    with pytest.raises(pulsar.NotAllowedError):
        client.create_producer(topic)
    with pytest.raises(pulsar.NotAllowedError):
        client.subscribe(topic, "s")
    reader = client.create_reader(topic, pulsar.MessageId.earliest)
    assert reader.read_next(SECONDS * 1000).partition_key()
    with pytest.raises(pulsar.TopicNotFound):
        client.create_reader(NEVER_MADE, pulsar.MessageId.earliest)


def code_of(work: Callable[[], object]) -> int:
    with pytest.raises(kafka.KafkaException) as refused:
        work()
    return int(refused.value.args[0].code())


@pytest.mark.parametrize("topic", [SESSIONS, RETAINED, GROUPS])
def test_kafkas_tools_change_nothing(state, topic: str):
    admin = AdminClient({"bootstrap.servers": state.bootstrap_servers})
    entry = ConfigEntry("retention.ms", "1", incremental_operation=AlterConfigOpType.SET)
    kind = ConfigResource.Type.TOPIC
    resource = ConfigResource(kind, topic, incremental_configs=[entry])
    tried = [
        lambda: admin.delete_topics([topic])[topic].result(SECONDS),
        lambda: admin.create_topics([NewTopic(topic, 2)])[topic].result(SECONDS),
        lambda: admin.create_partitions([NewPartitions(topic, 3)])[topic].result(SECONDS),
        lambda: admin.incremental_alter_configs([resource])[resource].result(SECONDS),
        lambda: next(iter(admin.delete_records([TopicPartition(topic, 0, 1)]).values())).result(
            SECONDS
        ),
    ]
    existing, unknown = (
        kafka.KafkaError.TOPIC_ALREADY_EXISTS,
        kafka.KafkaError.UNKNOWN_TOPIC_OR_PART,
    )
    expected = [POLICY_VIOLATION, existing, unknown, POLICY_VIOLATION, POLICY_VIOLATION]
    assert [code_of(work) for work in tried] == expected, "it has no partitions to be more"
    made = admin.create_topics([NewTopic(NEVER_MADE, 2)])[NEVER_MADE]
    assert code_of(lambda: made.result(SECONDS)) == POLICY_VIOLATION


@pytest.mark.parametrize("topic", [SESSIONS, RETAINED, GROUPS])
def test_kafkas_clients_read_and_do_not_write(state, topic: str):
    servers = {"bootstrap.servers": state.bootstrap_servers}
    reports: list[Any] = []
    producer = kafka.Producer(servers)
    producer.produce(topic, b"v", b"k", on_delivery=lambda error, _message: reports.append(error))
    producer.flush(SECONDS)
    assert [error.code() for error in reports] == [POLICY_VIOLATION]
    consumer = kafka.Consumer({**servers, "group.id": "g", "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, 0, 0)])
    found = consumer.poll(SECONDS)
    assert found is not None
    assert found.error() is None
    assert found.key()
    commits = [TopicPartition(topic, 0, 1)]
    refused = code_of(lambda: consumer.commit(offsets=commits, asynchronous=False))
    assert refused == POLICY_VIOLATION
    consumer.close()


@pytest.mark.parametrize("topic", [SESSIONS, RETAINED, GROUPS])
def test_rest_changes_nothing(state, topic: str):
    here = f"{state.http_url}/admin/v2/persistent/{topic}"
    asked = [
        ("DELETE", ""), ("DELETE", "?force=true"), ("DELETE", "/truncate"), ("POST", "/terminate"),
        ("PUT", "/subscription/s"), ("PUT", "/partitions"), ("POST", "/retention"),
        ("POST", "/messageTTL"), ("DELETE", "/policies"),
    ]  # fmt: skip
    bodies: dict[str, Any] = {
        "/partitions": 2,
        "/retention": {"retentionSizeInMB": 1, "retentionTimeInMinutes": 1},
        "/messageTTL": 1,
        "/subscription/s": {"ledgerId": -1, "entryId": -1},
    }
    for method, path in asked:
        done = httpx.request(method, here + path, json=bodies.get(path, {}))
        assert done.status_code in (409, 412), (method, path, done.text)
        assert REASON in done.text or "exists" in done.text, (method, path, done.text)
    namespaces = f"{state.http_url}/admin/v2/namespaces/pulsar/system"
    for path in (namespaces, f"{namespaces}?force=true"):
        done = httpx.delete(path)
        assert (done.status_code, "stay" in done.text) == (412, True), done.text
    assert httpx.delete(f"{state.http_url}/admin/v2/tenants/pulsar?force=true").status_code == 412
    assert httpx.get(f"{here}/stats").json()["msgInCounter"] >= 0
    assert httpx.put(f"{here}/unload").status_code == 204


def test_clients_go_on_while_the_topics_are_unloaded(state):
    client = Paho(address(state), "other", clean_session=False, version=4)
    client.connect()
    for topic in (SESSIONS, RETAINED, GROUPS):
        unloaded = httpx.put(f"{state.http_url}/admin/v2/persistent/{topic}/unload")
        assert unloaded.status_code == 204
    assert client.subscribe("$share/h/x/#", 2) == [2]
    client.publish("u", b"1", 1, retain=True)
    client.publish("u", b"2", 2, retain=True)
    client.disconnect()


@pytest.mark.java
@pytest.mark.slow
def test_pulsar_admin(state, tmp_path: Path):
    admin = Admin(maven.build(ADMIN) / "jars", tmp_path / "client.conf", state)
    commands = [
        f"topics delete -f {SESSIONS}",
        f"topics truncate {SESSIONS}",
        f"topics terminate {SESSIONS}",
        f"topics create-subscription -s s {SESSIONS}",
        f"topicPolicies set-retention -s 1M -t 1m {SESSIONS}",
        f"topicPolicies set-message-ttl -t 1 {SESSIONS}",
        "namespaces delete -f pulsar/system",
        "tenants delete -f pulsar",
    ]
    said = admin.shell(commands, tmp_path / "commands")
    for command, answer in zip(commands, said, strict=True):
        assert REASON in answer or "which stay" in answer, (command, answer)
    assert admin.json(f"topics stats {SESSIONS}")["subscriptions"] == {}
