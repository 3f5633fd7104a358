"""Kafka's ACLs as stored: one record for each pattern, as Kafka stored them in ZooKeeper.

    /kafka-acl/{Type}/{name}                    literal patterns
    /kafka-acl-extended/prefixed/{Type}/{name}  prefixes

A record is JSON: `{"version":1,"acls":[{"principal":"User:a","permissionType":"Allow",
"operation":"Read","host":"*"}]}` (`AclEntry.java` and `ZkData.scala` of 3.9). Names are quoted, as
paths separate by slashes.

Invariant: a record is written over the version that it was read with.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec
from msgspec import Struct

from magnetar.core.kernel.errors import AlreadyExists, BadVersion, NotFound
from magnetar.core.metadata.config_records import quoted, unquoted
from magnetar.core.ports.metadata_store import ABSENT, MetadataStore
from magnetar.core.security.acls import Acl, Acls, Pattern
from magnetar.core.security.actions import Action, ResourceType

ROOTS: Final = ("/kafka-acl", "/kafka-acl-extended")
BASES: Final = {Pattern.LITERAL: ROOTS[0], Pattern.PREFIXED: f"{ROOTS[1]}/prefixed"}
TYPES: Final = {
    ResourceType.TOPIC: "Topic",
    ResourceType.GROUP: "Group",
    ResourceType.CLUSTER: "Cluster",
    ResourceType.TRANSACTION: "TransactionalId",
    ResourceType.TOKEN: "DelegationToken",
    ResourceType.USER: "User",
}
"""The kinds that an ACL may be for, by the names of stored records."""
OPERATIONS: Final = {
    action: action.name.title().replace("_", "") for action in Action if action < 100
}
_ACTIONS: Final = {text: action for action, text in OPERATIONS.items()}


class _Entry(Struct, frozen=True, rename="camel"):
    principal: str
    permission_type: str
    operation: str
    host: str


class _Record(Struct, frozen=True):
    version: int = 1
    acls: list[_Entry] = []


async def load_acls(metadata: MetadataStore) -> Acls:
    """All stored rules."""
    rules: list[Acl] = []
    for pattern, base in BASES.items():
        for kind, word in TYPES.items():
            for name in await metadata.children(f"{base}/{word}"):
                found = await metadata.get(f"{base}/{word}/{name}")
                if found is not None:
                    rules += _rules_of(found.value, kind, pattern, unquoted(name))
    return Acls(rules)


def _rules_of(value: bytes, kind: ResourceType, pattern: Pattern, name: str) -> list[Acl]:
    return [
        Acl(
            kind, pattern, name, each.principal, each.host, _ACTIONS[each.operation],
            each.permission_type == "Allow",
        )
        for each in msgspec.json.decode(value, type=_Record).acls
    ]  # fmt: skip


async def change_acls(
    metadata: MetadataStore, add: Iterable[Acl] = (), remove: Iterable[Acl] = ()
) -> None:
    """Store and remove rules. Each record changes at once; other brokers may change it, too."""
    touched: dict[tuple[ResourceType, Pattern, str], None] = {}
    adding, removing = list(add), set(remove)
    for rule in (*adding, *removing):
        touched[rule.kind, rule.pattern, rule.name] = None
    for kind, pattern, name in touched:
        own = [
            rule for rule in adding if (rule.kind, rule.pattern, rule.name) == (kind, pattern, name)
        ]
        path = f"{BASES[pattern]}/{TYPES[kind]}/{quoted(name)}"
        while not await _changed(metadata, path, (kind, pattern, name), own, removing):
            pass  # another broker was faster: read again


async def _changed(
    metadata: MetadataStore,
    path: str,
    resource: tuple[ResourceType, Pattern, str],
    add: list[Acl],
    remove: set[Acl],
) -> bool:
    """Write one record; False if its version is not the one that was read."""
    kind, pattern, name = resource
    found = await metadata.get(path)
    present = _rules_of(found.value, kind, pattern, name) if found is not None else []
    wanted = [rule for rule in dict.fromkeys((*present, *add)) if rule not in remove]
    try:
        if wanted:
            expected = ABSENT if found is None else found.version
            await metadata.put(path, _encoded(wanted), expected)
        elif found is not None:
            await metadata.delete(path, found.version)
    except (AlreadyExists, BadVersion, NotFound):
        return False
    return True


def _encoded(rules: list[Acl]) -> bytes:
    entries = [
        _Entry(
            rule.principal, "Allow" if rule.allow else "Deny", OPERATIONS[rule.action], rule.host
        )
        for rule in rules
    ]
    return msgspec.json.encode(_Record(acls=entries))
