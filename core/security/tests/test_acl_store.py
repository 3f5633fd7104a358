"""ACLs in the metadata store, in Kafka's form."""

from __future__ import annotations

import json

import pytest

from magnetar.core.metadata.memory import MemoryMetadata
from magnetar.core.security.acl_store import OPERATIONS, TYPES, change_acls, load_acls
from magnetar.core.security.acls import Acl, Pattern
from magnetar.core.security.actions import Action, ResourceType


def rule(name: str = "a/b", action: Action = Action.IDEMPOTENT_WRITE, *, allow: bool = True) -> Acl:
    return Acl(ResourceType.TOPIC, Pattern.LITERAL, name, "User:ali", "*", action, allow)


async def test_a_record_is_kafkas() -> None:
    metadata = MemoryMetadata()
    await change_acls(metadata, [rule()])
    found = await metadata.get("/kafka-acl/Topic/a%2Fb")
    assert found is not None
    assert json.loads(found.value) == {
        "version": 1,
        "acls": [
            {
                "principal": "User:ali",
                "permissionType": "Allow",
                "operation": "IdempotentWrite",
                "host": "*",
            }
        ],
    }


@pytest.mark.parametrize("pattern", Pattern)
@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("name", ["t", "*", ".", "..", "a/b c%", "ü"])
async def test_what_is_stored_is_loaded(kind: ResourceType, pattern: Pattern, name: str) -> None:
    metadata = MemoryMetadata()
    rules = {
        Acl(kind, pattern, name, "User:ali", "1.2.3.4", action, allow)
        for action in OPERATIONS
        for allow in (True, False)
    }
    await change_acls(metadata, rules)
    assert set((await load_acls(metadata)).rules) == rules
    await change_acls(metadata, remove=rules)
    assert (await load_acls(metadata)).rules == ()


async def test_a_rule_is_stored_once_and_others_stay() -> None:
    metadata = MemoryMetadata()
    await change_acls(metadata, [rule(), rule("c")])
    await change_acls(metadata, [rule(), rule(allow=False)], [rule("c")])
    assert set((await load_acls(metadata)).rules) == {rule(), rule(allow=False)}
