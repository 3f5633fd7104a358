from typing import Any

import msgspec
import pytest

from magnetar.core.kernel.errors import Invalid
from magnetar.core.policy import policies
from magnetar.core.policy.declaration import Policy, levels_of, same
from magnetar.core.policy.policies import Effective, NamespacePolicies, TopicPolicies, effective
from magnetar.core.policy.values import (
    SUBSCRIPTION_TYPES,
    AutoSubscriptionCreation,
    AutoTopicCreation,
    BacklogQuota,
    InactiveTopics,
    Retention,
)

NOTHING = effective(Effective(), NamespacePolicies(), TopicPolicies())


@pytest.mark.parametrize("body", [b"", b" \n", b"null", b" null ", b"{}", b'{"unheard_of": [1]}'])
def test_bodies_that_decide_nothing(body: bytes) -> None:
    assert policies.decode(body, NamespacePolicies) == NamespacePolicies()
    assert policies.decode(body, TopicPolicies) == TopicPolicies()


def test_what_client_suites_put() -> None:
    found = policies.decode(
        b'{"auth_policies": {"namespace_auth": {"anonymous": ["produce", "consume"]},'
        b' "destination_auth": {}, "subscription_auth_roles": {"s": ["r"]}},'
        b' "replication_clusters": ["standalone"], "encryption_required": true}',
        NamespacePolicies,
    )
    assert found.auth_policies.namespace_auth == {"anonymous": ["produce", "consume"]}
    assert found.auth_policies.subscription_auth == {"s": ["r"]}
    assert found.replication == ["standalone"]
    assert found.encryption_required


def test_what_the_java_admin_client_puts() -> None:
    """Every field it knows, most of them null."""
    body = msgspec.json.encode(
        dict.fromkeys(levels_of(Effective).namespace.__struct_encode_fields__)
        | {"bundles": None, "clusterDispatchRate": {}, "deleted": False, "properties": {}}
    )
    assert policies.decode(body, NamespacePolicies) == NamespacePolicies()


def test_quotas_old_and_new() -> None:
    old = policies.decode(b'{"limit":"10240","policy":"producer_request_hold"}', BacklogQuota)
    assert old == BacklogQuota(10240, -1, "producer_request_hold")
    new = policies.decode(
        b'{"limitSize":5,"limitTime":7,"policy":"consumer_backlog_eviction"}', BacklogQuota
    )
    assert new == BacklogQuota(5, 7, "consumer_backlog_eviction")
    both = policies.decode(b'{"limit":1,"limitSize":2,"policy":"producer_exception"}', BacklogQuota)
    assert both.limit_size == 2
    nested = policies.decode(
        b'{"backlog_quota_map":{"destination_storage":{"limit":9,"policy":"producer_exception"}}}',
        NamespacePolicies,
    )
    assert nested.backlog_quotas["destination_storage"].limit_size == 9


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"[]",
        b"5",
        b'"text"',
        b'{"message_ttl_in_seconds": "soon"}',
        b'{"bundles": 5}',
        b'{"backlog_quota_map": {"moon_phase": {}}}',
        b'{"backlog_quota_map": {"message_age": {"policy": "shrug"}}}',
        b"\xff",
    ],
)
def test_what_is_no_policy_is_refused_with_a_sentence(body: bytes) -> None:
    with pytest.raises(Invalid, match="not a policy"):
        policies.decode(body, NamespacePolicies)


def test_names_are_those_of_pulsar_styles_and_all() -> None:
    shown = msgspec.to_builtins(NamespacePolicies(retention=Retention(1, 2)))
    stored = policies.encode(NamespacePolicies(retention=Retention(1, 2)))
    assert msgspec.json.decode(stored) == {
        name: value for name, value in shown.items() if value is not None
    }, "null need not be stored"
    assert policies.decode(stored, NamespacePolicies) == NamespacePolicies(
        retention=Retention(1, 2)
    )
    assert shown["retention_policies"] == {"retentionTimeInMinutes": 1, "retentionSizeInMB": 2}
    for name in (
        "auth_policies",
        "replication_clusters",
        "backlog_quota_map",
        "message_ttl_in_seconds",
        "encryption_required",
        "deduplicationEnabled",
        "autoTopicCreationOverride",
        "max_producers_per_topic",
    ):
        assert name in shown
    assert set(shown["auth_policies"]) == {
        "namespace_auth",
        "destination_auth",
        "subscription_auth_roles",
    }
    assert set(shown["bundles"]) == {"boundaries", "numBundles"}


def test_what_is_stored_is_read_again() -> None:
    namespace = NamespacePolicies(
        retention=Retention(10, -1),
        backlog_quotas={"message_age": BacklogQuota(limit_time=60)},
        deduplication=False,
        inactive_topics=InactiveTopics(max_inactive_duration_seconds=5),
        auto_topic_creation=AutoTopicCreation(False, "partitioned", 3),
        properties={"a": "b"},
        publish_rate={"standalone": {"publishThrottlingRateInMsg": 5}},
    )
    assert policies.decode(policies.encode(namespace), NamespacePolicies) == namespace
    topic = TopicPolicies(
        message_ttl_seconds=0, retention=Retention(0, 0), subscription_types=["Shared"]
    )
    assert policies.decode(policies.encode(topic), TopicPolicies) == topic
    assert policies.encode(TopicPolicies()) == b"{}"


def test_without_decisions_the_broker_decides() -> None:
    assert NOTHING.message_ttl_seconds == 0
    assert NOTHING.retention == Retention(0, 0)
    assert NOTHING.max_unacked_per_consumer == 50_000
    assert NOTHING.auto_topic_creation.allowed
    assert NOTHING.auto_topic_creation.partitions == 0
    assert NOTHING.auto_subscription_creation
    assert NOTHING.subscription_types == SUBSCRIPTION_TYPES
    assert not NOTHING.encryption_required


def test_the_nearest_decision_counts() -> None:
    broker = Effective(message_ttl_seconds=1, max_producers_per_topic=10)
    namespace = NamespacePolicies(
        message_ttl_seconds=2,
        max_producers_per_topic=20,
        retention=Retention(5, 5),
        auto_subscription_creation=AutoSubscriptionCreation(False),
        subscription_types=["Shared", "Failover"],
    )
    topic = TopicPolicies(message_ttl_seconds=3)
    found = effective(broker, namespace, topic)
    assert found.message_ttl_seconds == 3
    assert found.max_producers_per_topic == 20
    assert found.retention == Retention(5, 5)
    assert not found.auto_subscription_creation
    assert found.subscription_types == ("Shared", "Failover")
    assert effective(broker, NamespacePolicies(), TopicPolicies()).message_ttl_seconds == 1


DECIDED = [policy for policy in levels_of(Effective).effective if policy.read is same]


@pytest.mark.parametrize("policy", DECIDED, ids=lambda policy: policy.name)
def test_each_policy_is_that_of_the_nearest_level(policy: Policy) -> None:
    assert getattr(NOTHING, policy.name) == getattr(Effective(), policy.name)
    # any value that can be told from the default will do: nothing here looks into it
    near: Any = {"near": 1} if policy.merged else object()
    far: Any = {"far": 1} if policy.merged else object()
    namespace, topic = NamespacePolicies(), TopicPolicies()
    if policy.namespace is not None:
        namespace = NamespacePolicies(**{policy.name: far})
        assert getattr(effective(Effective(), namespace, topic), policy.name) == far
    if policy.topic is not None:
        topic = TopicPolicies(**{policy.name: near})
        both = {**far, **near} if policy.merged else near
        assert getattr(effective(Effective(), namespace, topic), policy.name) == both


def test_topics_that_decide_nothing_share_the_brokers_values() -> None:
    broker = Effective()
    assert effective(broker, NamespacePolicies(), TopicPolicies()) is broker


def test_records_of_old_are_read() -> None:
    """Before each policy had a field, some were kept apart as `extra`."""
    rate = {"publishThrottlingRateInMsg": 5}
    topic = policies.decode(msgspec.json.encode({"extra": {"publishRate": rate}}), TopicPolicies)
    assert topic.publish_rate == rate
    extra = {"publishMaxMessageRate": {"standalone": rate}, "persistence": {"x": 1}}
    body = msgspec.json.encode({"message_ttl_in_seconds": 5, "extra": extra})
    namespace = policies.decode(body, NamespacePolicies)
    assert (namespace.message_ttl_seconds, namespace.persistence) == (5, {"x": 1})
    assert effective(Effective(), namespace, TopicPolicies()).publish_rate.messages == 5


def test_nought_is_a_decision() -> None:
    broker = Effective(message_ttl_seconds=60, deduplication=True)
    namespace = NamespacePolicies(message_ttl_seconds=0, deduplication=False)
    found = effective(broker, namespace, TopicPolicies())
    assert (found.message_ttl_seconds, found.deduplication) == (0, False)


def test_quotas_are_decided_one_type_at_a_time() -> None:
    small, old, large = BacklogQuota(10), BacklogQuota(limit_time=5), BacklogQuota(1000)
    found = effective(
        Effective(backlog_quotas={"destination_storage": large}),
        NamespacePolicies(backlog_quotas={"message_age": old}),
        TopicPolicies(backlog_quotas={"destination_storage": small}),
    )
    assert found.backlog_quotas == {"destination_storage": small, "message_age": old}
