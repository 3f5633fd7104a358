"""Lines of the audit trail about requests that change something."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from magnetar.core.kernel.clock import SystemClock
from magnetar.core.security.audit import AuditTrail
from magnetar.core.security.identity import Identity
from magnetar.core.security.tests.people import guarded
from magnetar.core.testing.broker import Stores, running
from magnetar.wire.kafka.api_keys import ApiKey
from magnetar.wire.kafka.conftest import Client, Stage, fetch_request
from magnetar.wire.kafka.messages.acls import AclCreation, CreateAclsRequest
from magnetar.wire.kafka.messages.configs import (
    AlterConfigsRequest,
    AlterResource,
    ConfigValue,
)
from magnetar.wire.kafka.messages.quotas import (
    AlterClientQuotasRequest,
    ChangeQuotas,
    QuotaChange,
    QuotaEntityPart,
)
from magnetar.wire.kafka.messages.scram import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from magnetar.wire.kafka.messages.topics import (
    CreateTopic,
    CreateTopicsRequest,
    DeleteTopic,
    DeleteTopicsRequest,
)
from magnetar.wire.kafka.session.audited import CHANGES
from magnetar.wire.kafka.session.rights import OWN, RIGHTS

Lines = list[bytes]


@pytest.fixture
def lines() -> Lines:
    return []


@pytest.fixture
async def client(lines: Lines) -> AsyncIterator[Client]:
    """`root` of a server with an audit trail."""
    stores = Stores()
    access = guarded(["root"])
    access.audit = AuditTrail(SystemClock(), lines.append)
    async with running(stores, access=access) as broker:
        made = await Stage(stores, broker).client()
        made.session.caller.identity = Identity("root")
        made.session.caller.admitted = True
        yield made


def told(lines: Lines) -> list[Any]:
    """Operation, resources and outcome of each change."""
    found = [json.loads(line) for line in lines]
    assert all((one["event"], one["who"]) == ("changed", "root") for one in found)
    return [(one["operation"], one.get("resources"), one["outcome"]) for one in found]


def create(*names: str, **more: Any) -> CreateTopicsRequest:
    topics = [
        CreateTopic(name=name, num_partitions=1, replication_factor=1, assignments=[], configs=[])
        for name in names
    ]
    return CreateTopicsRequest(topics=topics, timeout_ms=1_000, **more)


async def test_topics(client: Client, lines: Lines) -> None:
    await client.exchange(create("a", "b", validate_only=True))
    created = await client.exchange(create("a", "b"))
    await client.exchange(create("a"))
    gone = [
        DeleteTopic(name="a", topic_id=bytes(16)),
        DeleteTopic(name=None, topic_id=created.topics[1].topic_id),
    ]
    await client.exchange(DeleteTopicsRequest(topics=gone, timeout_ms=1_000))
    assert told(lines) == [
        ("CreateTopics", ["topic a", "topic b"], "done"),
        ("CreateTopics", ["topic a"], "error 36"),
        ("DeleteTopics", ["topic a", f"topic {created.topics[1].topic_id.hex()}"], "done"),
    ]


async def test_secrets_stay_out(client: Client, lines: Lines) -> None:
    await client.exchange(
        AlterUserScramCredentialsRequest(
            deletions=[ScramCredentialDeletion(name="eve", mechanism=1)],
            upsertions=[
                ScramCredentialUpsertion(
                    name="ali", mechanism=1, iterations=4096, salt=b"s1lt", salted_password=b"pw"
                )
            ],
        )
    )
    value = ConfigValue(name="retention.ms", value="123456")
    resource = AlterResource(resource_type=2, resource_name="none", configs=[value])
    await client.exchange(AlterConfigsRequest(resources=[resource], validate_only=False))
    assert told(lines) == [
        (
            "AlterUserScramCredentials",
            ["user eve: deleted", "user ali: set"],
            "error 91",
        ),
        ("AlterConfigs", ["topic none: retention.ms"], "error 3"),
    ]
    assert b"123456" not in b"".join(lines)
    assert b"s1lt" not in b"".join(lines)


async def test_acls(client: Client, lines: Lines) -> None:
    one = AclCreation(
        resource_type=2,
        resource_name="t",
        principal="User:ali",
        host="*",
        operation=3,
        permission_type=2,
    )
    await client.exchange(CreateAclsRequest(creations=[one]))
    (line,) = told(lines)
    assert line == ("CreateAcls", ["User:ali DENY read on topic t from host *"], "done")


async def test_quotas(client: Client, lines: Lines) -> None:
    await client.exchange(
        AlterClientQuotasRequest(
            entries=[
                ChangeQuotas(
                    entity=[
                        QuotaEntityPart(entity_type="user", entity_name="ali"),
                        QuotaEntityPart(entity_type="client-id", entity_name=None),
                    ],
                    ops=[
                        QuotaChange(key="producer_byte_rate", value=1000.0, remove=False),
                        QuotaChange(key="consumer_byte_rate", value=0.0, remove=True),
                    ],
                )
            ],
            validate_only=False,
        )
    )
    (line,) = told(lines)
    changes = "producer_byte_rate=1000, consumer_byte_rate removed"
    assert line == ("AlterClientQuotas", [f"user ali, client-id default: {changes}"], "done")


async def test_denials_are_of_what_was_named(client: Client, lines: Lines) -> None:
    client.session.caller.identity = Identity("eve")
    await client.exchange(create("x"))
    await client.exchange(fetch_request("y", 0), 12)
    found = [json.loads(line) for line in lines]
    assert {(one["event"], one["who"], one["action"], one["resource"]) for one in found} == {
        ("denied", "eve", "create", "topic x"),
        ("denied", "eve", "read", "topic y"),
    }


def test_every_request_that_changes_something_is_known() -> None:
    words = ("CREATE_", "DELETE_", "ALTER_", "INCREMENTAL_", "ELECT_", "OFFSET_DELETE")
    named = {key for key in (*RIGHTS, *OWN) if ApiKey(key).name.startswith(words)}
    assert named | {ApiKey.WRITE_TXN_MARKERS} == set(CHANGES)
