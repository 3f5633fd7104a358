"""Users of Kafka's clients, a server that knows them, and who gives them rights."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaError, Producer
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from magnetar import Standalone, standalone

from .pulsar_people import SECRET

ROOT, ALI = ("root", "root-secret"), ("ali", "ali-secret")
SECONDS = 20


@contextmanager
def knowing(folder: Path) -> Iterator[Standalone]:
    """A server that knows a superuser by its password, others by SCRAM, and anybody by a token."""
    file, key = folder / "htpasswd", folder / "secret.key"
    digest = base64.b64encode(hashlib.sha1(ROOT[1].encode()).digest()).decode()
    file.write_text(f"{ROOT[0]}:{{SHA}}{digest}\n", encoding="utf-8")
    key.write_bytes(SECRET)
    for each in (file, key):
        each.chmod(0o600)
    security = {
        "htpasswd": str(file), "token_secret_key": str(key), "scram": True, "superusers": ["root"]
    }  # fmt: skip
    with standalone(security=security) as server:
        yield server


def administrator_of(server: Standalone) -> AdminClient:
    """An administrator, who has made a user `ali` of SCRAM."""
    admin = AdminClient(config(server, ROOT, "PLAIN"))
    credentials = [
        UserScramCredentialUpsertion(ALI[0], ScramCredentialInfo(each, 4096), ALI[1].encode())
        for each in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512)
    ]
    for done in admin.alter_user_scram_credentials(credentials).values():
        done.result(SECONDS)
    return admin


def config(
    server: Standalone, user: tuple[str, str], mechanism: str, **more: Any
) -> dict[str, Any]:
    return {
        "bootstrap.servers": server.bootstrap_servers,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.username": user[0],
        "sasl.password": user[1],
        "log_level": 0,
        **more,
    }


def rule(
    kind: ResourceType,
    name: str,
    operation: AclOperation,
    pattern: ResourcePatternType = ResourcePatternType.LITERAL,
) -> AclBinding:
    return AclBinding(
        kind, name, pattern, f"User:{ALI[0]}", "*", operation, AclPermissionType.ALLOW
    )


def allow(root: AdminClient, *rules: AclBinding) -> None:
    for done in root.create_acls(list(rules)).values():
        done.result(SECONDS)


def made(root: AdminClient, topic: str) -> None:
    for done in root.create_topics([NewTopic(topic, 1, 1)]).values():
        done.result(SECONDS)


def sent(producer: Producer, topic: str) -> KafkaError | None:
    """Send one record; return its error."""
    outcome: list[KafkaError | None] = []
    producer.produce(topic, b"x", on_delivery=lambda error, _: outcome.append(error))
    assert producer.flush(SECONDS) == 0
    return outcome[0]


def taken(root: AdminClient, topic: str) -> list[str]:
    """Take all rights to a topic; return whose they were."""
    everything = AclBindingFilter(
        ResourceType.TOPIC,
        topic,
        ResourcePatternType.MATCH,
        None,
        None,
        AclOperation.ANY,
        AclPermissionType.ANY,
    )
    (deleted,) = (done.result(SECONDS) for done in root.delete_acls([everything]).values())
    assert {rule.name for rule in deleted} == {topic}
    return [rule.principal for rule in deleted]
