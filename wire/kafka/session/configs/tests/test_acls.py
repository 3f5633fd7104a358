"""Rules of who may do what; without authorisation none, and said so."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from magnetar.core.security.actions import Action, ResourceType
from magnetar.core.security.identity import Identity
from magnetar.core.security.tests.people import guarded
from magnetar.core.testing.broker import Stores, running
from magnetar.wire.kafka.conftest import Client, Stage
from magnetar.wire.kafka.errors import SECURITY_DISABLED
from magnetar.wire.kafka.messages.acls import (
    AclCreation,
    CreateAclsRequest,
    DeleteAclsFilter,
    DeleteAclsRequest,
    DescribeAclsRequest,
)

ANY = {"principal_filter": None, "host_filter": None, "operation": 1, "permission_type": 1}


@pytest.mark.parametrize("version", [1, 2, 3])
async def test_security_is_off(stage: Stage, version: int) -> None:
    client = await stage.client()
    requested = DescribeAclsRequest(resource_type_filter=1, resource_name_filter=None, **ANY)
    outcomes = await client.exchange(requested, version)
    assert (outcomes.error_code, outcomes.resources) == (SECURITY_DISABLED, [])
    assert outcomes.error_message == "No Authorizer is configured."
    rule = AclCreation(
        resource_type=2,
        resource_name="t",
        principal="User:a",
        host="*",
        operation=3,
        permission_type=3,
    )
    outcomes = await client.exchange(CreateAclsRequest(creations=[rule, rule]), version)
    assert [one.error_code for one in outcomes.results] == [SECURITY_DISABLED] * 2
    whatever = DeleteAclsFilter(resource_type_filter=1, resource_name_filter=None, **ANY)
    outcomes = await client.exchange(DeleteAclsRequest(filters=[whatever]), version)
    assert [one.error_code for one in outcomes.filter_results] == [SECURITY_DISABLED]


@pytest.fixture
async def guarded_client() -> AsyncIterator[Client]:
    """An administrator of a server with authorisation."""
    stores = Stores()
    async with running(stores, access=guarded(["root"])) as broker:
        client = await Stage(stores, broker).client()
        client.session.caller.identity = Identity("root")
        client.session.caller.admitted = True
        yield client


def rule(name: str = "t", pattern: int = 3, **other: Any) -> AclCreation:
    fields = {
        "resource_type": 2,
        "principal": "User:a",
        "host": "*",
        "operation": 3,
        "permission_type": 3,
    }
    return AclCreation(resource_name=name, resource_pattern_type=pattern, **{**fields, **other})


async def named(client: Client, name: str | None, pattern: int, **other: Any) -> list[str]:
    """The names of the rules that a filter finds."""
    fields = {**ANY, "resource_type_filter": 1, **other}
    request = DescribeAclsRequest(resource_name_filter=name, pattern_type_filter=pattern, **fields)
    response = await client.exchange(request)
    assert response.error_code == 0
    return [one.resource_name for one in response.resources for _ in one.acls]


async def test_filters_find_rules(guarded_client: Client) -> None:
    client = guarded_client
    rules = [
        rule("t1"),
        rule("t", 4, operation=4, host="1.2.3.4"),
        rule("*", permission_type=2, principal="User:b"),
        rule("g", resource_type=3),
        rule("kafka-cluster", resource_type=4, operation=7),
    ]
    response = await client.exchange(CreateAclsRequest(creations=rules))
    assert {one.error_code for one in response.results} == {0}
    assert sorted(await named(client, None, 1)) == ["*", "g", "kafka-cluster", "t", "t1"]
    assert sorted(await named(client, "t1", 2)) == ["*", "t", "t1"]
    assert await named(client, "t1", 3) == ["t1"]
    assert await named(client, "t", 4) == ["t"]
    assert await named(client, None, 1, resource_type_filter=3) == ["g"]
    assert await named(client, None, 1, permission_type=2) == ["*"]
    assert await named(client, None, 1, host_filter="1.2.3.4") == ["t"]
    assert await named(client, None, 1, operation=7) == ["kafka-cluster"]
    assert await named(client, None, 1, principal_filter="User:b") == ["*"]


async def test_rules_are_in_force_when_they_are_answered(guarded_client: Client) -> None:
    client = guarded_client
    judge = client.front.services.broker.access.judge
    assert judge is not None
    ali = Identity("a")
    read = (Action.READ, ResourceType.TOPIC, "persistent://public/default/t")
    await client.exchange(CreateAclsRequest(creations=[rule()]))
    assert judge.allows(ali, *read)
    everything = DeleteAclsFilter(
        resource_type_filter=2, resource_name_filter="t", pattern_type_filter=2, **ANY
    )
    response = await client.exchange(DeleteAclsRequest(filters=[everything]))
    (result,) = response.filter_results
    assert [(one.resource_name, one.principal) for one in result.matching_acls] == [("t", "User:a")]
    assert not judge.allows(ali, *read)
    assert await named(client, None, 1) == []


async def test_what_is_no_rule_is_refused_beside_one_that_is(guarded_client: Client) -> None:
    client = guarded_client
    wrong = [
        rule(resource_type=1),
        rule(pattern=2),
        rule(operation=1),
        rule(permission_type=1),
        rule(""),
        rule("c", resource_type=4),
        rule(principal="ali"),
        rule(host=""),
    ]
    response = await client.exchange(CreateAclsRequest(creations=[*wrong, rule("fine")]))
    assert [one.error_code for one in response.results] == [42] * len(wrong) + [0]
    assert await named(client, None, 1) == ["fine"]
    unknown = DescribeAclsRequest(
        resource_type_filter=0, resource_name_filter=None, pattern_type_filter=1, **ANY
    )
    assert (await client.exchange(unknown)).error_code == 42


async def test_only_who_may_alter_the_cluster_changes_rules(guarded_client: Client) -> None:
    client = guarded_client
    client.session.caller.identity = Identity("ali")
    response = await client.exchange(CreateAclsRequest(creations=[rule()]))
    assert [one.error_code for one in response.results] == [31]
    unfiltered = DescribeAclsRequest(resource_type_filter=1, resource_name_filter=None, **ANY)
    assert (await client.exchange(unfiltered)).error_code == 31


@pytest.mark.parametrize(
    "name", ["t", "public/default/t", "persistent://public/default/t", "persistent://t"]
)
async def test_long_spellings_are_of_the_same_topic(guarded_client: Client, name: str) -> None:
    """A denial that names a topic in full must not be one of nothing."""
    client = guarded_client
    judge = client.front.services.broker.access.judge
    assert judge is not None
    everybody = rule("*", 3)
    await client.exchange(CreateAclsRequest(creations=[everybody, rule(name, permission_type=2)]))
    for read in ("t", "u"):
        full = f"persistent://public/default/{read}"
        allowed = judge.allows(Identity("a"), Action.READ, ResourceType.TOPIC, full)
        assert allowed is (read == "u")
    assert await named(client, "t", 3) == ["t"]


async def test_long_spellings_of_prefixes(guarded_client: Client) -> None:
    client = guarded_client
    judge = client.front.services.broker.access.judge
    assert judge is not None
    names = ["persistent://public/default/ab", "persistent://acme/x/", "acme/y/c"]
    await client.exchange(CreateAclsRequest(creations=[rule(name, 4) for name in names]))
    for full, allowed in (
        ("persistent://public/default/abc", True),
        ("persistent://public/default/b", False),
        ("persistent://acme/x/t", True),
        ("persistent://acme/y/cd", True),
        ("persistent://acme/y/d", False),
    ):
        found = judge.allows(Identity("a"), Action.READ, ResourceType.TOPIC, full)
        assert found is allowed, full
