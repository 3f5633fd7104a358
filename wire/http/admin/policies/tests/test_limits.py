"""Values that are refused, and the words for it: those of Apache's broker, heard from 4.2.4."""

from typing import Any

import pytest

from magnetar.core.policy.declaration import levels_of
from magnetar.core.policy.policies import TOO_LARGE, Effective
from magnetar.wire.http.tests.visitor import Visitor

HOLD = {"policy": "producer_request_hold"}
HERE = "/admin/v2/namespaces/public/default"
TOPIC = "/admin/v2/persistent/public/default/a"

OF_TOPICS = [
    ("maxProducers", -1, "maxProducers must be 0 or more"),
    ("maxSubscriptionsPerTopic", -1, "maxSubscriptionsPerTopic must be 0 or more"),
    ("maxUnackedMessagesOnConsumer", -1, "maxUnackedNum must be 0 or more"),
    ("maxMessageSize", 1 << 30, TOO_LARGE),
    ("messageTTL?messageTTL=-1", None, "Invalid value for message TTL"),
    ("deduplicationSnapshotInterval", -1, "interval must be 0 or more"),
]


@pytest.mark.parametrize(("policy", "value", "why"), OF_TOPICS)
async def test_refusals_of_topics_are_pulsars(
    guest: Visitor, policy: str, value: Any, why: str
) -> None:
    assert await guest.fails(412, "POST", f"{TOPIC}/{policy}", value) == why


CREATION = "Invalid configuration for autoTopicCreationOverride. the detail is "


@pytest.mark.parametrize("kind", ["", None, "partitioned", "non-partitioned", "any"])
async def test_what_is_not_created_may_be_of_any_kind(visitor: Visitor, kind: str | None) -> None:
    """pulsar-admin sends an empty type, or null, where it turns creation off."""
    body = {"allowAutoTopicCreation": False, "topicType": kind}
    await visitor.does("POST", f"{HERE}/autoTopicCreation", body)
    assert (await visitor.get(f"{HERE}/autoTopicCreation"))["allowAutoTopicCreation"] is False
    await visitor.fails(404, "GET", "/admin/v2/persistent/public/default/nobody/stats")


@pytest.mark.parametrize(
    ("sent", "why"),
    [
        ({"topicType": None}, "Unknown topic type [null]"),
        ({"topicType": ""}, "Unknown topic type []"),
        ({"topicType": "x"}, "Unknown topic type [x]"),
        (
            {"topicType": "partitioned"},
            "[defaultNumPartitions] cannot be null when the type is partitioned.",
        ),
        (
            {"topicType": "partitioned", "defaultNumPartitions": 0},
            "[defaultNumPartitions] cannot be less than 1 for partition type.",
        ),
    ],
)
async def test_what_is_created_is_of_a_kind(visitor: Visitor, sent: Any, why: str) -> None:
    body = {"allowAutoTopicCreation": True, **sent}
    assert await visitor.fails(412, "POST", f"{HERE}/autoTopicCreation", body) == CREATION + why


REFUSED = [
    (412, "maxTopicsPerNamespace", -1, "maxTopicsPerNamespace must be 0 or more"),
    (412, "compactionThreshold", -1, "compactionThreshold must be 0 or more"),
    (412, "subscriptionExpirationTime", -1, "Invalid value for subscription expiration time"),
    (
        400,
        "persistence",
        {"bookkeeperEnsemble": 1, "bookkeeperWriteQuorum": 2, "bookkeeperAckQuorum": 1},
        "Bookkeeper Ensemble (1) >= WriteQuorum (2) >= AckQuorum (1)",
    ),
    (
        400,
        "persistence",
        {"bookkeeperEnsemble": 2, "bookkeeperWriteQuorum": 1, "bookkeeperAckQuorum": 2},
        "Bookkeeper Ensemble (2) >= WriteQuorum (1) >= AckQuorum (2)",
    ),
    (
        400,
        "persistence",
        {"bookkeeperEnsemble": 6},
        "Bookkeeper-Ensemble must be <= 5 and > 0.",
    ),
    (
        400,
        "persistence",
        {"bookkeeperWriteQuorum": -1},
        "Bookkeeper-WriteQuorum must be <= 5 and > 0.",
    ),
    (
        400,
        "persistence",
        {"bookkeeperAckQuorum": 0},
        "Bookkeeper-AckQuorum must be <= 5 and > 0.",
    ),
    (
        400,
        "retention",
        {"retentionTimeInMinutes": -2, "retentionSizeInMB": 0},
        "Invalid retention policy: time limit must be >= -1",
    ),
]


@pytest.mark.parametrize(("status", "policy", "value", "why"), REFUSED)
async def test_refusals_are_pulsars(
    visitor: Visitor, status: int, policy: str, value: Any, why: str
) -> None:
    assert await visitor.fails(status, "POST", f"{HERE}/{policy}", value) == why


NUMBERS = [
    scope.paths[0]
    for policy, scope in levels_of(Effective).at("namespace")
    if policy.kind is int and not policy.signed
]


@pytest.mark.parametrize("policy", NUMBERS)
async def test_no_refusal_names_a_field_of_ours(visitor: Visitor, policy: str) -> None:
    assert "_" not in await visitor.fails(412, "POST", f"{HERE}/{policy}", -1)


LARGE = 1 << 40
"""More than an int of Java's: its tools do not end when they read one."""


@pytest.mark.parametrize(
    ("policy", "value"),
    [
        ("dispatchRate", {"dispatchThrottlingRateInMsg": LARGE}),
        ("dispatchRate", {"ratePeriodInSecond": LARGE}),
        ("publishRate", {"publishThrottlingRateInMsg": -LARGE}),
        ("publishRate", {"publishThrottlingRateInByte": 1 << 63}),
        ("subscribeRate", {"subscribeThrottlingRatePerConsumer": LARGE}),
        ("retention", {"retentionTimeInMinutes": LARGE, "retentionSizeInMB": 1}),
        ("inactiveTopicPolicies", {"maxInactiveDurationSeconds": LARGE}),
        ("delayedDelivery", {"tickTime": 1 << 63}),
        ("persistence", {"bookkeeperEnsemble": LARGE}),
        ("persistence", {"managedLedgerMaxMarkDeleteRate": "NaN"}),
        ("backlogQuota", {"limitTime": LARGE, **HOLD}),
        ("offloadPolicies", {"managedLedgerOffloadThresholdInBytes": "x"}),
        ("offloadPolicies", {"managedLedgerOffloadThresholdInBytes": 1 << 63}),
        ("offloadPolicies", {"managedLedgerOffloadMaxThreads": "x"}),
        ("offloadPolicies", {"managedLedgerOffloadMaxThreads": LARGE}),
        ("offloadPolicies", {"s3ManagedLedgerOffloadReadBufferSizeInBytes": [1]}),
        ("offloadPolicies", {"managedLedgerOffloadBucket": {"a": 1}}),
        ("offloadPolicies", {"managedLedgerOffloadedReadPriority": "x"}),
        ("offloadPolicies", {"managedLedgerExtraConfigurations": "x"}),
        ("subscriptionAuthMode", "nope"),
    ],
)
async def test_what_tools_cannot_read_is_not_stored(
    visitor: Visitor, policy: str, value: Any
) -> None:
    before = await visitor.get(HERE)
    await visitor.fails(400, "POST", f"{HERE}/{policy}", value)
    assert await visitor.get(HERE) == before
    if policy != "subscriptionAuthMode":
        await visitor.topic("a")
        await visitor.fails(400, "POST", f"{TOPIC}/{policy}", value)


LISTS = [
    ("replication", ["standalone"] * 2, ["standalone"]),
    ("subscriptionTypesEnabled", ["Shared", "Exclusive", "Shared"], ["Shared", "Exclusive"]),
]


@pytest.mark.parametrize(("policy", "sent", "kept"), LISTS)
async def test_lists_are_sets(visitor: Visitor, policy: str, sent: Any, kept: Any) -> None:
    await visitor.topic("a")
    for level in (HERE, TOPIC):
        await visitor.does("POST", f"{level}/{policy}", sent)
        assert await visitor.get(f"{level}/{policy}") == kept


async def test_lists_of_a_new_namespace_are_sets(visitor: Visitor) -> None:
    here = "/admin/v2/namespaces/public/other"
    twice = {
        "replication_clusters": ["standalone"] * 2,
        "subscription_types_enabled": ["Shared"] * 2,
    }
    await visitor.does("PUT", here, twice)
    found = await visitor.get(here)
    assert found["replication_clusters"] == ["standalone"]
    assert found["subscription_types_enabled"] == ["Shared"]


@pytest.mark.parametrize("sent", [[], b"null", b""])
async def test_no_clusters_are_refused(visitor: Visitor, sent: Any) -> None:
    await visitor.topic("a")
    for level in (HERE, TOPIC):
        await visitor.does("POST", f"{level}/replication", ["standalone"])
        why = await visitor.fails(412, "POST", f"{level}/replication", sent)
        assert why == "ClusterIds should not be null or empty"
        assert await visitor.get(f"{level}/replication") == ["standalone"]
    await visitor.does("DELETE", f"{TOPIC}/replication")
    assert await visitor.get(f"{TOPIC}/replication") is None
    await visitor.does("PUT", "/admin/v2/namespaces/public/b", {"replication_clusters": []})


async def test_numbers_that_are_long_in_java(visitor: Visitor) -> None:
    await visitor.does("POST", f"{HERE}/offloadDeletionLagMs", 30 * 86_400_000)
    await visitor.does("POST", f"{HERE}/publishRate", {"publishThrottlingRateInByte": LARGE})
    await visitor.does("POST", f"{HERE}/backlogQuota", {"limitSize": LARGE, **HOLD})


@pytest.mark.parametrize(
    ("status", "policies"),
    [
        (412, {"max_producers_per_topic": -4}),
        (412, {"max_unacked_messages_per_consumer": -5}),
        (412, {"message_ttl_in_seconds": -5}),
        (412, {"compaction_threshold": -5}),
        (400, {"subscription_types_enabled": ["Nope"]}),
        (400, {"schema_compatibility_strategy": "NOPE"}),
        (400, {"publishMaxMessageRate": {"standalone": {"publishThrottlingRateInMsg": "x"}}}),
        (400, {"topicDispatchRate": 5}),
        (400, {"persistence": {"bookkeeperEnsemble": "x"}}),
        (400, {"backlog_quota_map": {"message_age": {"limitTime": LARGE}}}),
        (405, {"allowed_clusters": ["elsewhere"]}),
    ],
)
async def test_a_namespace_is_not_made_with_what_it_may_not_have(
    visitor: Visitor, status: int, policies: Any
) -> None:
    path = "/admin/v2/namespaces/public/made"
    await visitor.fails(status, "PUT", path, policies)
    await visitor.fails(404, "GET", path)


@pytest.mark.parametrize(
    ("policy", "undecided"),
    [
        ("max_unacked_messages_per_consumer", -1),
        ("schema_compatibility_strategy", ""),
        ("subscription_auth_mode", ""),
        ("antiAffinityGroup", ""),
    ],
)
async def test_tools_say_in_their_ways_that_nothing_is_decided(
    visitor: Visitor, policy: str, undecided: Any
) -> None:
    path = "/admin/v2/namespaces/public/made"
    await visitor.does("PUT", path, {policy: undecided})
    assert (await visitor.get(path)).get(policy) in (None, "UNDEFINED", "None")


async def test_no_more_partitions_than_may_be(visitor: Visitor) -> None:
    body = {"topicType": "partitioned", "defaultNumPartitions": 10_001}
    why = await visitor.fails(406, "POST", f"{HERE}/autoTopicCreation", body)
    assert why == "Number of partitions should be less than or equal to 10000"


async def test_null_removes_a_quota(visitor: Visitor) -> None:
    await visitor.does("POST", f"{HERE}/backlogQuota", {"limitSize": 10, **HOLD})
    await visitor.does("POST", f"{HERE}/backlogQuota", b"null")
    assert await visitor.get(f"{HERE}/backlogQuotaMap") == {}


async def test_a_group_has_a_name(visitor: Visitor) -> None:
    why = await visitor.fails(412, "POST", f"{HERE}/antiAffinity", b" ")
    assert why == "Anti-affinity group can't be empty"


async def test_other_clusters_are_not_allowed(visitor: Visitor) -> None:
    await visitor.fails(405, "POST", f"{HERE}/allowedClusters", ["elsewhere"])


DISPATCH = {
    "dispatchThrottlingRateInMsg": 0,
    "dispatchThrottlingRateInByte": 0,
    "relativeToPublishRate": False,
    "ratePeriodInSecond": 0,
}
PUBLISH = {"publishThrottlingRateInMsg": -1, "publishThrottlingRateInByte": -1}
SUBSCRIBE = {"subscribeThrottlingRatePerConsumer": -1, "ratePeriodInSecond": 30}
PERSISTENCE = {
    "bookkeeperEnsemble": 2,
    "bookkeeperWriteQuorum": 2,
    "bookkeeperAckQuorum": 2,
    "managedLedgerMaxMarkDeleteRate": -1.0,
}
MESSAGES, BYTES = "dispatchThrottlingRateInMsg", "dispatchThrottlingRateInByte"
RELATIVE = "relativeToPublishRate"


@pytest.mark.parametrize("here", [HERE, "/admin/v2/persistent/public/default/t"])
@pytest.mark.parametrize(
    ("policy", "sent", "shown"),
    [
        ("dispatchRate", {}, DISPATCH),
        ("subscriptionDispatchRate", {"x": {"y": [1]}}, DISPATCH),
        ("replicatorDispatchRate", {MESSAGES: " 9 ", "x": 1}, {**DISPATCH, MESSAGES: 9}),
        ("dispatchRate", {MESSAGES: -1.5, BYTES: "+5"}, {**DISPATCH, MESSAGES: -1, BYTES: 5}),
        ("dispatchRate", {MESSAGES: None, BYTES: "null", RELATIVE: ""}, DISPATCH),
        ("dispatchRate", {RELATIVE: " TRUE "}, {**DISPATCH, RELATIVE: True}),
        ("dispatchRate", {RELATIVE: 2}, {**DISPATCH, RELATIVE: True}),
        ("dispatchRate", {RELATIVE: None}, DISPATCH),
        ("publishRate", {"ratePeriodInSecond": 1}, PUBLISH),
        ("subscribeRate", {"ratePeriodInSecond": 3.9}, {**SUBSCRIBE, "ratePeriodInSecond": 3}),
        ("persistence", {"x": 1}, PERSISTENCE),
    ],
)
async def test_values_are_stored_as_java_reads_them(
    visitor: Visitor, here: str, policy: str, sent: Any, shown: Any
) -> None:
    """As Apache's broker (4.2.4) was seen to answer."""
    await visitor.topic("t")
    await visitor.does("POST", f"{here}/{policy}", sent)
    assert await visitor.get(f"{here}/{policy}") == shown


async def test_a_namespace_is_created_with_them(visitor: Visitor) -> None:
    here = "/admin/v2/namespaces/public/n"
    rates = {"standalone": {MESSAGES: "5", "x": 1}}
    body = {"topicDispatchRate": rates, "persistence": {"bookkeeperEnsemble": 2.5}}
    await visitor.does("PUT", here, body)
    assert await visitor.get(f"{here}/dispatchRate") == {**DISPATCH, MESSAGES: 5}
    assert await visitor.get(f"{here}/persistence") == PERSISTENCE


@pytest.mark.parametrize(
    "sent",
    [{MESSAGES: "1.5"}, {MESSAGES: True}, {MESSAGES: []}, {RELATIVE: "1"}, {RELATIVE: 1.0}, [], 5],
)
async def test_what_java_does_not_read_is_refused(visitor: Visitor, sent: Any) -> None:
    await visitor.fails(400, "POST", f"{HERE}/dispatchRate", sent)
    assert await visitor.get(f"{HERE}/dispatchRate") is None


OF_TOPIC = "/admin/v2/persistent/public/default/t"


@pytest.mark.parametrize("body", [b"", b" ", None])
@pytest.mark.parametrize(
    ("here", "policy", "is_wanted"),
    [
        (HERE, "messageTTL", True),
        (HERE, "deduplication", True),
        (HERE, "compactionThreshold", True),
        (HERE, "deduplicationSnapshotInterval", False),
        (OF_TOPIC, "maxProducers", True),
        (OF_TOPIC, "schemaValidationEnforced", True),
        (OF_TOPIC, "messageTTL", False),
        (OF_TOPIC, "deduplicationEnabled", False),
        (OF_TOPIC, "maxUnackedMessagesOnConsumer", False),
        (OF_TOPIC, "retention", False),
    ],
)
async def test_bodies_that_are_left_out(
    visitor: Visitor, here: str, policy: str, is_wanted: bool, body: bytes | None
) -> None:
    """As Apache's broker (4.2.4) was seen to answer."""
    await visitor.topic("t")
    if is_wanted:
        await visitor.fails(400, "POST", f"{here}/{policy}", body)
    else:
        await visitor.does("POST", f"{here}/{policy}", body)
    await visitor.does("POST", f"{here}/{policy}", b"null")


@pytest.mark.parametrize(
    ("policy", "sent", "shown"),
    [
        ("messageTTL", b"1.5", 1),
        ("messageTTL", b'" 5 "', 5),
        ("messageTTL", b'""', 0),
        ("deduplication", b"2", True),
        ("deduplication", b'" TRUE "', True),
        ("deduplication", b'"null"', False),
    ],
)
async def test_numbers_and_booleans_as_java_reads_them(
    visitor: Visitor, policy: str, sent: bytes, shown: Any
) -> None:
    await visitor.does("POST", f"{HERE}/{policy}", sent)
    assert await visitor.get(f"{HERE}/{policy}") == shown
    for wrong in (b'"x"', b"[]", b"{}", b'"1.5"'):
        await visitor.fails(400, "POST", f"{HERE}/{policy}", wrong)


async def test_a_quota_says_what_is_done(visitor: Visitor) -> None:
    assert "policy cannot be null" in await visitor.fails(
        400, "POST", f"{HERE}/backlogQuota", {"limitSize": 1}
    )
    assert await visitor.get(f"{HERE}/backlogQuotaMap") == {}
