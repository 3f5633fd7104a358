"""Kafka's ACLs (KIP-11, KIP-290): rules for resources by name or by prefix. Pure.

Names of topics are those of Kafka's clients. `User:*` is everybody, also nobody; the host `*` any
address. A literal pattern named `*` covers every resource of its kind.

An allowed operation implies others, a denied one does not (`StandardAuthorizerData.java` of 4.3):

    READ, WRITE, DELETE, ALTER      DESCRIBE
    ALTER_CONFIGS                   DESCRIBE_CONFIGS
    ALL                             everything, allowed or denied
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator
from typing import Final

from msgspec import Struct

from magnetar.core.security.actions import Action, ResourceType

EVERYTHING: Final = "*"
EVERYBODY: Final = "User:*"
IMPLIED: Final = {
    Action.DESCRIBE: (Action.READ, Action.WRITE, Action.DELETE, Action.ALTER),
    Action.DESCRIBE_CONFIGS: (Action.ALTER_CONFIGS,),
}
"""The operations whose permission is also a permission of the key."""


class Pattern(enum.IntEnum):
    """How a rule names its resources (`PatternType.java`)."""

    LITERAL = 3
    PREFIXED = 4


class Acl(Struct, frozen=True, array_like=True):
    """One rule."""

    kind: ResourceType
    pattern: Pattern
    name: str
    principal: str
    host: str
    action: Action
    allow: bool


class Acls:
    """The rules, by the resources that they cover."""

    def __init__(self, rules: Iterable[Acl] = ()) -> None:
        self._literal: dict[tuple[ResourceType, str], list[Acl]] = {}
        self._prefixed: dict[tuple[ResourceType, str], list[Acl]] = {}
        self._lengths: dict[ResourceType, list[int]] = {}
        """The lengths of all prefixes, by kind."""
        self.rules: Final = tuple(dict.fromkeys(rules))
        for rule in self.rules:
            place = self._literal if rule.pattern is Pattern.LITERAL else self._prefixed
            place.setdefault((rule.kind, rule.name), []).append(rule)
        for kind, prefix in self._prefixed:
            lengths = self._lengths.setdefault(kind, [])
            if len(prefix) not in lengths:
                lengths.append(len(prefix))

    def covering(self, kind: ResourceType, name: str) -> Iterator[Acl]:
        """The rules for one resource."""
        yield from self._literal.get((kind, name), ())
        yield from self._literal.get((kind, EVERYTHING), ())
        elsewhere = kind is ResourceType.TOPIC and "/" in name
        for length in self._lengths.get(kind, ()):
            prefix = name[:length]
            if length > len(name) or (elsewhere and prefix and "/" not in prefix):
                continue  # `acme` begins names of the default namespace, not those of a tenant
            yield from self._prefixed.get((kind, prefix), ())

    def decisive(
        self, users: frozenset[str], action: Action, kind: ResourceType, name: str, host: str
    ) -> Acl | None:
        """The rule that denies or allows, denials first; None if no rule does either."""
        allowing = None
        for rule in self.covering(kind, name):
            if rule.principal not in users or rule.host not in (EVERYTHING, host):
                continue
            if rule.action in (action, Action.ALL):
                if not rule.allow:
                    return rule
                allowing = allowing or rule
            elif rule.allow and rule.action in IMPLIED.get(action, ()):
                allowing = allowing or rule
        return allowing

    def anywhere(
        self, users: frozenset[str], action: Action, kind: ResourceType, host: str
    ) -> bool:
        """Whether some resource of a kind is allowed that no rule denies
        (`Authorizer.authorizeByResourceType`): a producer needs any topic to write to.
        """
        for rule in self.rules:
            if rule.kind is kind and rule.allow and rule.principal in users:
                found = self.decisive(users, action, kind, rule.name, host)
                if found is not None and found.allow:
                    return True
        return False


def users_of(roles: Iterable[str]) -> frozenset[str]:
    """The principals of ACLs that roles stand for."""
    return frozenset((EVERYBODY, *(f"User:{role}" for role in roles)))
