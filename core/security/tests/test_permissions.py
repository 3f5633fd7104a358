"""Pulsar's permissions, as they are looked up."""

from __future__ import annotations

from magnetar.core.kernel.names import NamespaceName, TopicName
from magnetar.core.policy.values import AuthPolicies
from magnetar.core.security.permissions import NamespaceRights, Permissions

TOPIC = TopicName.parse("persistent://shop/eu/orders-partition-2")


def test_of_a_topic_its_partitions_and_all_roles() -> None:
    made = Permissions()
    auth = AuthPolicies(
        namespace_auth={"reader": ["consume"]},
        topic_auth={TOPIC.base.full: {"writer": ["produce"]}, TOPIC.full: {"one": ["sinks"]}},
    )
    made.namespaces["shop/eu"] = NamespaceRights(auth)
    assert made.of_topic(["reader", "writer", "one"], TOPIC) == {"consume", "produce", "sinks"}
    assert made.of_topic(["one"], TOPIC.base) == frozenset()
    assert made.of_namespace(["reader", "writer"], NamespaceName.parse("shop/eu")) == {"consume"}
    assert made.of_topic(["reader"], TopicName.parse("persistent://shop/us/x")) == frozenset()
    assert made.somewhere(["writer"], "produce")
    assert not made.somewhere(["reader"], "produce")


def test_administrators() -> None:
    made = Permissions()
    made.admins["shop"] = frozenset(["boss"])
    assert made.is_admin(["a", "boss"], "shop")
    assert not made.is_admin(["boss"], "other")
    assert made.administers(["boss"])
    assert not made.administers(["a"])
