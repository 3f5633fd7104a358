"""Decisions of Pulsar's permissions and Kafka's ACLs together."""

from __future__ import annotations

import pytest

from magnetar.core.policy.values import AuthPolicies
from magnetar.core.security import judge as judges
from magnetar.core.security.acls import Acl, Acls, Pattern
from magnetar.core.security.actions import CLUSTER_NAME, Action, ResourceType, subscription_of
from magnetar.core.security.identity import ANYBODY, Identity
from magnetar.core.security.judge import Judge
from magnetar.core.security.permissions import NamespaceRights

ORDERS = "persistent://public/default/orders"
OTHER = "persistent://shop/eu/orders"
TOPIC, GROUP = ResourceType.TOPIC, ResourceType.GROUP
ALI = Identity("ali")


@pytest.fixture(autouse=True)
def _a_new_judge() -> None:
    """What an identity remembers is of one judge."""
    ALI.granted.clear()


def judge(*acls: Acl, unmentioned: bool = False) -> Judge:
    made = Judge(["root"], unmentioned)
    made.acls = Acls(acls)
    return made


def acl(
    name: str,
    action: Action = Action.READ,
    *,
    allow: bool = True,
    pattern: Pattern = Pattern.LITERAL,
    principal: str = "User:ali",
    host: str = "*",
    kind: ResourceType = TOPIC,
) -> Acl:
    return Acl(kind, pattern, name, principal, host, action, allow)


def permit(made: Judge, namespace: str = "public/default", **auth: object) -> None:
    made.permissions.namespaces[namespace] = NamespaceRights(AuthPolicies(**auth))  # type: ignore[arg-type]
    made.changed()


def test_nobody_may_do_anything_without_a_rule() -> None:
    made = judge()
    assert not made.allows(ALI, Action.READ, TOPIC, ORDERS)
    assert not made.allows(ANYBODY, Action.DESCRIBE, TOPIC, ORDERS)
    assert made.allows(Identity("x", ("x", "root")), Action.ALTER, ResourceType.CLUSTER, "c")


def test_a_permission_of_either_protocol_is_one() -> None:
    made = judge(acl("orders", Action.WRITE))
    permit(made, namespace_auth={"ali": ["consume"]})
    assert made.allows(ALI, Action.WRITE, TOPIC, ORDERS)
    assert made.allows(ALI, Action.READ, TOPIC, ORDERS)
    assert made.allows(ALI, Action.DESCRIBE, TOPIC, ORDERS)
    assert not made.allows(ALI, Action.DELETE, TOPIC, ORDERS)
    assert not made.allows(ALI, Action.WRITE, TOPIC, OTHER), "of another namespace"


def test_a_denial_wins_over_every_permission() -> None:
    made = judge(
        acl("ord", allow=False, pattern=Pattern.PREFIXED, principal="User:*"), acl("orders")
    )
    permit(made, namespace_auth={"ali": ["consume"]})
    made.permissions.admins["public"] = frozenset(["ali"])
    assert not made.allows(ALI, Action.READ, TOPIC, ORDERS)
    assert made.allows(Identity("root"), Action.READ, TOPIC, ORDERS), "but a superuser"
    assert made.allows(ALI, Action.WRITE, TOPIC, ORDERS)


def test_a_denied_operation_denies_no_other() -> None:
    made = judge(acl("orders", Action.READ, allow=False), acl("orders", Action.WRITE))
    assert made.allows(ALI, Action.DESCRIBE, TOPIC, ORDERS), "writing implies it"
    made.acls = Acls([acl("orders", Action.ALL, allow=False), acl("orders", Action.WRITE)])
    made.changed()
    assert not made.allows(ALI, Action.DESCRIBE, TOPIC, ORDERS)


def test_names_in_acls_are_those_of_kafka() -> None:
    made = judge(acl("shop/eu/", pattern=Pattern.PREFIXED), acl("*", Action.WRITE))
    assert made.allows(ALI, Action.READ, TOPIC, f"{OTHER}-partition-3")
    assert made.allows(ALI, Action.WRITE, TOPIC, OTHER)
    assert not made.allows(ALI, Action.READ, TOPIC, ORDERS)


def test_a_prefix_without_a_namespace_stays_in_the_default_one() -> None:
    made = judge(
        acl("or", pattern=Pattern.PREFIXED), acl("", Action.WRITE, pattern=Pattern.PREFIXED)
    )
    assert made.allows(ALI, Action.READ, TOPIC, ORDERS)
    assert not made.allows(ALI, Action.READ, TOPIC, "persistent://or/ns/secret")
    assert made.allows(ALI, Action.WRITE, TOPIC, "persistent://or/ns/secret"), "of everything"


def test_hosts_count_at_each_connection() -> None:
    made = judge(acl("orders", host="10.0.0.1"))
    assert made.allows(ALI, Action.READ, TOPIC, ORDERS, "10.0.0.1")
    assert not made.allows(ALI, Action.READ, TOPIC, ORDERS, "10.0.0.2"), "nothing is remembered"


def test_a_change_reaches_what_was_remembered() -> None:
    made = judge()
    permit(made, namespace_auth={"ali": ["produce"]})
    assert made.allows(ALI, Action.WRITE, TOPIC, ORDERS)
    permit(made, namespace_auth={})
    assert not made.allows(ALI, Action.WRITE, TOPIC, ORDERS)


@pytest.mark.parametrize(("kind", "name"), [(TOPIC, OTHER), (ResourceType.NAMESPACE, "shop/eu"),
                                            (ResourceType.TENANT, "shop")])  # fmt: skip
def test_administrators_of_a_tenant(kind: ResourceType, name: str) -> None:
    made = judge()
    made.permissions.admins["shop"] = frozenset(["boss"])
    assert made.allows(Identity("boss"), Action.DELETE, kind, name)
    assert not made.allows(ALI, Action.DELETE, kind, name)
    assert not made.allows(Identity("boss"), Action.DELETE, TOPIC, ORDERS)


def test_subscriptions() -> None:
    made = judge()
    permit(
        made,
        topic_auth={ORDERS: {"ali": ["consume"], "bob": ["consume"]}},
        subscription_auth={"bills": ["bob"]},
    )
    for role, subscription, allowed in (
        ("ali", "bills", False), ("bob", "bills", True), ("ali", "mine", True),
        ("eve", "mine", False),
    ):  # fmt: skip
        name = subscription_of(ORDERS, subscription)
        found = made.allows(Identity(role), Action.READ, ResourceType.SUBSCRIPTION, name)
        assert found is allowed, (role, subscription)
    made.permissions.namespaces["public/default"] = NamespaceRights(
        AuthPolicies(namespace_auth={"ali": ["consume"]}), prefixed=True
    )
    made.changed()
    for subscription, allowed in (("ali-1", True), ("bills", False)):
        name = subscription_of(ORDERS, subscription)
        assert made.allows(ALI, Action.READ, ResourceType.SUBSCRIPTION, name) is allowed


def test_groups_and_transactions_follow_permissions() -> None:
    made = judge()
    permit(made, namespace_auth={"ali": ["consume"], "bob": ["produce"]})
    assert made.allows(ALI, Action.READ, GROUP, "g")
    assert not made.allows(Identity("bob"), Action.READ, GROUP, "g")
    assert not made.allows(ALI, Action.DELETE, GROUP, "g"), "it may be another's"
    assert made.allows(Identity("bob"), Action.WRITE, ResourceType.TRANSACTION, "t")
    bob, cluster = Identity("bob"), ResourceType.CLUSTER
    assert made.allows(bob, Action.IDEMPOTENT_WRITE, cluster, CLUSTER_NAME)
    assert not made.allows(bob, Action.ALTER, cluster, CLUSTER_NAME)
    assert made.allows_somewhere(bob, Action.WRITE, TOPIC)
    assert not made.allows_somewhere(bob, Action.READ, TOPIC)


def test_what_no_acl_covers() -> None:
    made = judge(acl("orders", principal="User:bob"), unmentioned=True)
    assert made.allows(ALI, Action.READ, TOPIC, OTHER)
    assert not made.allows(ALI, Action.READ, TOPIC, ORDERS)
    for kind in (ResourceType.SERVER, ResourceType.TENANT, ResourceType.NAMESPACE):
        assert not made.allows(ALI, Action.ALTER, kind, "shop/eu"), "no ACL could be for it"


def test_the_rule_that_decides_is_named() -> None:
    made = judge(acl("ord", allow=False, pattern=Pattern.PREFIXED))
    permit(made, namespace="shop/eu", namespace_auth={"ali": ["consume"]})
    assert made.verdict(ALI, Action.READ, TOPIC, ORDERS).rule == (
        "the ACL User:ali DENY READ on PREFIXED TOPIC ord from host *"
    )
    assert made.verdict(ALI, Action.READ, TOPIC, OTHER).rule == (
        "the permission consume of namespace shop/eu"
    )
    permit(made, namespace="shop/eu", topic_auth={OTHER: {"ali": ["consume"]}})
    assert made.verdict(ALI, Action.READ, TOPIC, OTHER).rule == (
        f"the permission consume of topic {OTHER}"
    )


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judges, "REMEMBERED_OF_ALL_MAX", 100)
    made = judge(acl("g", kind=GROUP, pattern=Pattern.PREFIXED, principal="User:*"))
    people = [Identity(f"i{number}") for number in range(30)]
    for number in range(1_000):
        for who in people:
            assert made.allows(who, Action.READ, GROUP, f"g{number}")
        assert sum(len(who.granted) for who in people) <= 100
    assert made.allows(ALI, Action.READ, GROUP, "g" * (judges.NAME_MAX + 1))
    assert not ALI.granted, "a name of 32 KiB would be kept for each of 10,000"


@pytest.mark.parametrize("subscription", ["s", "", "a|b", "|", "3|4"])
def test_a_topic_may_have_any_letters(subscription: str) -> None:
    """One topic is not taken for another one's subscription."""
    made = judge()
    topic = "persistent://public/default/a"
    permit(made, topic_auth={topic: {"ali": ["consume"]}})
    for local, allowed in (("", True), ("|secret", False), ("|secret|9", False)):
        name = subscription_of(topic + local, subscription)
        found = made.allows(ALI, Action.READ, ResourceType.SUBSCRIPTION, name)
        assert found is allowed, local


def test_hostile_names_are_nobodys_topics() -> None:
    made = judge(acl("*", Action.WRITE, principal="User:bob"))
    for name in ("", "persistent://", "a/b", "persistent://public/default/../x/y", "\0"):
        assert not made.allows(ALI, Action.READ, TOPIC, name)
