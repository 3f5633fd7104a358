"""Rules by name and by prefix, against a plain look at all of them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as some

from magnetar.core.security.acls import IMPLIED, Acl, Acls, Pattern, users_of
from magnetar.core.security.actions import Action, ResourceType

NAMES = some.sampled_from(["", "a", "ab", "abc", "b", "*", "a/", "a/b/c"])
RULES = some.builds(
    Acl,
    some.sampled_from([ResourceType.TOPIC, ResourceType.GROUP]),
    some.sampled_from(Pattern),
    NAMES,
    some.sampled_from(["User:*", "User:ali", "User:bob"]),
    some.sampled_from(["*", "h"]),
    some.sampled_from([Action.ALL, Action.READ, Action.WRITE, Action.DESCRIBE]),
    some.booleans(),
)


def covers(rule: Acl, kind: ResourceType, name: str) -> bool:
    if rule.kind is not kind:
        return False
    if rule.pattern is Pattern.PREFIXED:
        return name.startswith(rule.name) and ("/" in rule.name or "/" not in name or not rule.name)
    return rule.name in (name, "*")


@given(
    some.lists(RULES, max_size=8),
    some.sampled_from([Action.READ, Action.WRITE, Action.DESCRIBE]),
    NAMES,
    some.sampled_from(["h", "i"]),
)
def test_denials_first_then_permissions_and_what_they_imply(
    rules: list[Acl], action: Action, name: str, host: str
) -> None:
    users = users_of(["ali"])
    matching = [
        rule
        for rule in rules
        if covers(rule, ResourceType.TOPIC, name)
        and rule.principal in users
        and rule.host in ("*", host)
    ]
    same = (action, Action.ALL)
    denied = any(not rule.allow and rule.action in same for rule in matching)
    implying = (*same, *IMPLIED.get(action, ()))
    allowed = any(rule.allow and rule.action in implying for rule in matching)
    found = Acls(rules).decisive(users, action, ResourceType.TOPIC, name, host)
    assert (found is not None and not found.allow) is denied
    if not denied:
        assert (found is not None) is allowed


def test_somewhere() -> None:
    users = users_of(["ali"])
    allow = Acl(ResourceType.TOPIC, Pattern.LITERAL, "a", "User:ali", "*", Action.WRITE, True)
    deny = Acl(ResourceType.TOPIC, Pattern.PREFIXED, "", "User:*", "*", Action.WRITE, False)
    assert Acls([allow]).anywhere(users, Action.WRITE, ResourceType.TOPIC, "h")
    assert not Acls([allow]).anywhere(users, Action.WRITE, ResourceType.GROUP, "h")
    assert not Acls([allow, deny]).anywhere(users, Action.WRITE, ResourceType.TOPIC, "h")
