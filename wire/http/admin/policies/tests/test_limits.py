"""Values that are refused, and the words for it: those of Apache's broker, heard from 4.2.4."""

from typing import Any

import pytest

from magnetar.core.policy.declaration import levels_of
from magnetar.core.policy.policies import TOO_LARGE, Effective
from magnetar.wire.http.tests.visitor import Visitor

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
