"""Who there is in the matrix, and what each of them may do: a model in words, which knows nothing
of the server's judge.

A right is an action and what it is for, `read topic`, as `docs/kafka.md` writes it.
"""

from __future__ import annotations

from fnmatch import fnmatch
from typing import Any, Final

from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from interop_tests.security.pulsar_people import Administrator, token

TOPIC: Final = "of-the-matrix"
GROUP: Final = "group-of-the-matrix"
TRANSACTION: Final = "transaction-of-the-matrix"
NOBODY: Final = "nobody"
PERMITTED: Final = ("describe namespace",)
MAY: Final[dict[str, tuple[str, ...]]] = {
    "stranger": (),
    "producer": (
        *("write topic", "describe topic", "idempotent write cluster", *PERMITTED),
        *("write transactional id", "describe transactional id"),
    ),
    "consumer": ("read topic", "describe topic", "read group", "describe group", *PERMITTED),
    "tenant": ("* topic", "* namespace", "* tenant"),
    "allowed": ("* topic", "* group", "* cluster", "* transactional id"),
    "describer": (
        *("describe topic", "describe group", "describe cluster", "describe transactional id"),
        *("describe configs topic", "describe configs group", "describe configs cluster"),
    ),
    "denied": PERMITTED,
    "root": ("*",),
}
"""`tenant` administers it. `allowed` has an ACL for all operations.
`describer` sees what it may not touch. `denied` has one against them,
besides both permissions of the namespace: which count where ACLs say nothing, of namespaces.
"""


def may(role: str, right: str) -> bool:
    """Whether a role has a right; of several with "or" between them one is enough, of several with
    semicolons all are needed.
    """
    return all(
        any(fnmatch(one.strip(), had) for one in part.split(" or ") for had in MAY[role])
        for part in right.split(";")
        if part.strip()
    )


def proof(role: str) -> str:
    """The token of a role."""
    return token(role)


def settle(administrator: Administrator, root: AdminClient) -> None:
    """Give everybody what `MAY` says."""
    administrator.http.put(f"/admin/v2/persistent/public/default/{TOPIC}").raise_for_status()
    tenant: dict[str, Any] = {"adminRoles": ["tenant"], "allowedClusters": ["standalone"]}
    administrator.http.post("/admin/v2/tenants/public", json=tenant).raise_for_status()
    administrator.grant("producer", "produce")
    administrator.grant("consumer", "consume")
    administrator.grant("denied", "produce", "consume")
    rules = [
        AclBinding(
            *(kind, name, ResourcePatternType.LITERAL, f"User:{role}", "*"),
            *(AclOperation.ALL, permission),
        )
        for role, permission in (
            ("allowed", AclPermissionType.ALLOW),
            ("denied", AclPermissionType.DENY),
        )
        for kind, name in (
            (ResourceType.TOPIC, "*"),
            (ResourceType.GROUP, "*"),
            (ResourceType.BROKER, "kafka-cluster"),
            (ResourceType.TRANSACTIONAL_ID, "*"),
        )
    ]
    rules += [
        AclBinding(
            *(kind, name, ResourcePatternType.LITERAL, "User:describer", "*"),
            *(operation, AclPermissionType.ALLOW),
        )
        for operation in (AclOperation.DESCRIBE, AclOperation.DESCRIBE_CONFIGS)
        for kind, name in (
            (ResourceType.TOPIC, "*"),
            (ResourceType.GROUP, "*"),
            (ResourceType.BROKER, "kafka-cluster"),
            (ResourceType.TRANSACTIONAL_ID, "*"),
        )
        if operation is AclOperation.DESCRIBE or kind is not ResourceType.TRANSACTIONAL_ID
    ]
    for done in root.create_acls(rules).values():
        done.result(20)
