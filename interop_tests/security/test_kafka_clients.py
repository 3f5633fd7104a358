"""Kafka's clients and tools with SASL and ACLs."""

from __future__ import annotations

import asyncio
import time
import warnings
from pathlib import Path
from typing import Any

import aiokafka
import jwt
import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)

from interop_tests.kafka.console import TOOLS, Console
from magnetar import Standalone, standalone

from .kafka_people import ALI, ROOT, SECONDS, allow, config, made, rule, sent, taken

with warnings.catch_warnings():  # it reads its files in a way that is going out of use
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka import KafkaProducer

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_librdkafka_writes_and_reads_what_it_may(
    secure: Standalone, root: AdminClient, topic: str, mechanism: str
) -> None:
    made(root, topic)
    refused = Producer(config(secure, ALI, mechanism))  # it remembers that for a while
    assert sent(refused, topic).code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
    allow(
        root,
        rule(ResourceType.TOPIC, topic, AclOperation.WRITE),
        rule(ResourceType.TOPIC, topic, AclOperation.READ),
        rule(ResourceType.GROUP, "g", AclOperation.READ, ResourcePatternType.PREFIXED),
    )
    assert sent(Producer(config(secure, ALI, mechanism)), topic) is None
    for group, readable in ((f"g-{topic}", True), (f"h-{topic}", False)):
        options: dict[str, Any] = {"group.id": group, "auto.offset.reset": "earliest"}
        consumer = Consumer(config(secure, ALI, mechanism, **options))
        consumer.subscribe([topic])
        deadline = time.monotonic() + SECONDS
        while (message := consumer.poll(1.0)) is None:
            assert time.monotonic() < deadline
        if readable:
            assert message.value() == b"x"
        else:
            assert message.error().code() == KafkaError.GROUP_AUTHORIZATION_FAILED
        consumer.close()


def test_a_consumer_that_waits_reads_no_further(
    secure: Standalone, root: AdminClient, topic: str
) -> None:
    """Its Fetch, which asks for more than there is, came while it had the right."""
    made(root, topic)
    group = rule(ResourceType.GROUP, topic, AclOperation.READ)
    allow(root, rule(ResourceType.TOPIC, topic, AclOperation.READ), group)
    waiting = {"fetch.min.bytes": 10_000_000, "fetch.wait.max.ms": 60_000}
    more = {"group.id": topic, "socket.timeout.ms": 90_000, **waiting}
    consumer = Consumer(config(secure, ALI, "SCRAM-SHA-256", **more))
    producer = Producer(config(secure, ROOT, "PLAIN"))
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        assert sent(producer, topic) is None
        assert consumer.poll(3) is None, "it waits for more"
        begun = time.monotonic()
        taken(root, topic)
        while (answer := consumer.poll(1)) is None:
            assert time.monotonic() - begun < SECONDS
        assert answer.error().code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
    finally:
        consumer.close()


def test_a_right_that_is_taken_is_taken_from_an_open_connection(
    secure: Standalone, root: AdminClient, topic: str
) -> None:
    made(root, topic)
    allow(root, rule(ResourceType.TOPIC, topic, AclOperation.WRITE))
    producer = Producer(config(secure, ALI, "SCRAM-SHA-256"))
    assert sent(producer, topic) is None
    assert taken(root, topic) == ["User:ali"]
    assert sent(producer, topic).code() == KafkaError.TOPIC_AUTHORIZATION_FAILED


def test_a_user_that_is_removed_is_gone(secure: Standalone, root: AdminClient, topic: str) -> None:
    made(root, topic)
    mechanism, name = ScramMechanism.SCRAM_SHA_256, "zoe"
    info = ScramCredentialInfo(mechanism, 4096)
    added = UserScramCredentialUpsertion(name, info, b"pw")
    for done in root.alter_user_scram_credentials([added]).values():
        done.result(SECONDS)
    write = AclBinding(
        ResourceType.TOPIC,
        topic,
        ResourcePatternType.LITERAL,
        f"User:{name}",
        "*",
        AclOperation.WRITE,
        AclPermissionType.ALLOW,
    )
    allow(root, write)
    failed: list[KafkaError] = []
    producer = Producer(config(secure, (name, "pw"), "SCRAM-SHA-256", error_cb=failed.append))
    assert sent(producer, topic) is None
    deletion = UserScramCredentialDeletion(name, mechanism)
    for done in root.alter_user_scram_credentials([deletion]).values():
        done.result(SECONDS)
    producer.produce(topic, b"x")
    deadline = time.monotonic() + SECONDS
    while KafkaError._AUTHENTICATION not in [error.code() for error in failed]:
        producer.poll(0.1)
        assert time.monotonic() < deadline, "its connection is still good"


@pytest.mark.parametrize(
    ("user", "mechanism"),
    [
        (("ali", "guess"), "SCRAM-SHA-256"),
        (("eve", "guess"), "SCRAM-SHA-512"),
        (("root", "guess"), "PLAIN"),
        (("ali", ALI[1]), "PLAIN"),
    ],
)
def test_wrong_credentials(
    secure: Standalone, root: AdminClient, user: tuple[str, str], mechanism: str
) -> None:
    failed: list[KafkaError] = []
    client = AdminClient({**config(secure, user, mechanism), "error_cb": failed.append})
    deadline = time.monotonic() + SECONDS
    while not failed:
        client.poll(0.1)
        assert time.monotonic() < deadline
    assert failed[0].code() == KafkaError._AUTHENTICATION
    with pytest.raises(KafkaException):
        client.list_topics(timeout=0.5)


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_kafka_python_and_aiokafka(
    secure: Standalone, root: AdminClient, topic: str, mechanism: str
) -> None:
    made(root, topic)
    allow(
        root,
        rule(ResourceType.TOPIC, topic, AclOperation.WRITE),
        rule(ResourceType.TOPIC, topic, AclOperation.READ),
        rule(ResourceType.GROUP, topic, AclOperation.READ),
    )
    options: dict[str, Any] = {
        "bootstrap_servers": secure.bootstrap_servers,
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": mechanism,
        "sasl_plain_username": ALI[0],
        "sasl_plain_password": ALI[1],
    }
    producer = KafkaProducer(**options)
    producer.send(topic, b"from kafka-python").get(SECONDS)
    producer.close()

    async def read() -> bytes:
        consumer = aiokafka.AIOKafkaConsumer(
            topic, group_id=topic, auto_offset_reset="earliest", **options
        )
        await consumer.start()
        try:
            return (await asyncio.wait_for(consumer.getone(), SECONDS)).value
        finally:
            await consumer.stop()

    assert asyncio.run(read()) == b"from kafka-python"


def test_librdkafka_goes_on_with_another_token(tmp_path: Path, topic: str) -> None:
    """KIP-368: it authenticates again in the middle of its work, and nothing is refused or lost.
    Its timers look once a second, so with tokens this short it may be late, and connect anew.
    """
    secret = b"a secret of at least thirty-two bytes"
    (tmp_path / "key").write_bytes(secret)
    shown: list[float] = []

    def token(_config: str) -> tuple[str, float]:
        shown.append(time.time())
        expires_at = int(shown[-1]) + 3
        return jwt.encode({"sub": "root", "exp": expires_at}, secret, "HS256"), expires_at

    with standalone(
        security={"token_secret_key": str(tmp_path / "key"), "superusers": ["root"]}
    ) as server:
        producer = Producer(
            {
                "bootstrap.servers": server.bootstrap_servers,
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "OAUTHBEARER",
                "oauth_cb": token,
                "log_level": 0,
            }
        )
        begun = time.monotonic()
        while len(shown) < 3 or time.monotonic() - begun < 5:
            assert sent(producer, topic) is None
            assert time.monotonic() - begun < SECONDS


@pytest.mark.java
@pytest.mark.slow
def test_kafkas_own_tools(secure: Standalone, root: AdminClient, tmp_path: Path) -> None:
    properties = tmp_path / "admin.properties"
    login = "org.apache.kafka.common.security.plain.PlainLoginModule"
    properties.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
        f'sasl.jaas.config={login} required username="{ROOT[0]}" password="{ROOT[1]}";\n',
        encoding="utf-8",
    )
    console, admin = Console(secure.bootstrap_servers), ["--command-config", str(properties)]
    user = ["--entity-type", "users", "--entity-name", "bob"]
    added = "SCRAM-SHA-512=[iterations=8192,password=bobs-secret]"
    for configs in (added, "producer_byte_rate=10"):
        console.run("kafka.admin.ConfigCommand", *admin, "--alter", *user, "--add-config", configs)
    described = console.run("kafka.admin.ConfigCommand", *admin, "--describe", *user)
    assert "producer_byte_rate=10.0" in described
    assert "SCRAM-SHA-512=iterations=8192" in described, "both are in one record"
    acl = ["--allow-principal", "User:bob", "--operation", "Write", "--topic", "of-bob-"]
    prefixed = ["--resource-pattern-type", "prefixed"]
    console.run(f"{TOOLS}.AclCommand", *admin, "--add", *acl, *prefixed)
    shown = console.run(f"{TOOLS}.AclCommand", *admin, "--list", "--topic", "of-bob-", *prefixed)
    assert "principal=User:bob, host=*, operation=WRITE, permissionType=ALLOW" in shown
    made(root, "of-bob-1")
    made(root, "of-others")
    told: list[Any] = []
    producer = Producer(
        config(secure, ("bob", "bobs-secret"), "SCRAM-SHA-512", throttle_cb=told.append)
    )
    assert sent(producer, "of-bob-1") is None
    deadline = time.monotonic() + SECONDS
    while not told:
        producer.poll(0.1)
        assert time.monotonic() < deadline
    assert sent(producer, "of-others").code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
