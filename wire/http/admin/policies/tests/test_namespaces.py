"""What namespaces decide."""

from typing import Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from magnetar.core.policy.declaration import levels_of
from magnetar.core.policy.policies import Effective
from magnetar.wire.http.admin.policies.namespaces import UNDECIDED
from magnetar.wire.http.tests.visitor import Visitor

HERE = "/admin/v2/namespaces/public/default"
RATE = {
    "dispatchThrottlingRateInMsg": 10,
    "dispatchThrottlingRateInByte": 0,
    "relativeToPublishRate": False,
    "ratePeriodInSecond": 1,
}
PUBLISH_RATE = {"publishThrottlingRateInMsg": 10, "publishThrottlingRateInByte": -1}
HOLD = {"policy": "producer_request_hold"}
SUBSCRIBE_RATE = {"subscribeThrottlingRatePerConsumer": 10, "ratePeriodInSecond": 30}
PERSISTENCE = {
    "bookkeeperEnsemble": 1,
    "bookkeeperWriteQuorum": 1,
    "bookkeeperAckQuorum": 1,
    "managedLedgerMaxMarkDeleteRate": -1.0,
}
VALUES: dict[str, Any] = {
    "retention": {"retentionTimeInMinutes": 10, "retentionSizeInMB": 20},
    "autoTopicCreation": {
        "allowAutoTopicCreation": True,
        "topicType": "partitioned",
        "defaultNumPartitions": 3,
    },
    "autoSubscriptionCreation": {"allowAutoSubscriptionCreation": False},
    "inactiveTopicPolicies": {
        "inactiveTopicDeleteMode": "delete_when_no_subscriptions",
        "maxInactiveDurationSeconds": 10,
        "deleteWhileInactive": True,
    },
    "delayedDelivery": {"tickTime": 100, "active": True, "maxDeliveryDelayInMillis": 0},
    "subscriptionTypesEnabled": ["Shared"],
    "replication": ["standalone"],
    "allowedClusters": ["standalone"],
    "persistence": PERSISTENCE,
    "offloadPolicies": {"x": 1},
    "schemaCompatibilityStrategy": "FORWARD",
    "schemaAutoUpdateCompatibilityStrategy": "Backward",
    "subscriptionAuthMode": "Prefix",
}
BOOLEANS = {
    "deduplication",
    "encryptionRequired",
    "schemaValidationEnforced",
    "isAllowAutoUpdateSchema",
    "dispatcherPauseOnAckStatePersistent",
}
TEXTS = {"subscriptionAuthMode"}


POLICIES = [
    path
    for policy, scope in levels_of(Effective).at("namespace")
    for path in scope.paths
    if not policy.plain
]


def rate_of(policy: str) -> dict[str, Any]:
    """One with all fields."""
    if policy.startswith("publish"):
        return PUBLISH_RATE
    return SUBSCRIBE_RATE if policy.endswith("ubscribeRate") else RATE


def value_of(policy: str) -> Any:
    if policy in VALUES:
        return VALUES[policy]
    if policy.endswith("Rate"):
        return rate_of(policy)
    if policy in TEXTS:
        return "FULL"
    return True if policy in BOOLEANS else 7


@pytest.mark.parametrize("policy", POLICIES)
async def test_every_policy_is_set_shown_and_removed(visitor: Visitor, policy: str) -> None:
    before = await visitor.get(f"{HERE}/{policy}")
    await visitor.does("POST", f"{HERE}/{policy}", value_of(policy))
    assert await visitor.get(f"{HERE}/{policy}") == value_of(policy)
    await visitor.does("DELETE", f"{HERE}/{policy}")
    if policy != "replication":
        assert await visitor.get(f"{HERE}/{policy}") == before


async def test_what_is_not_decided_is_204(visitor: Visitor) -> None:
    assert (await visitor.ask("GET", f"{HERE}/retention")).status_code == 204
    assert (await visitor.ask("GET", f"{HERE}/messageTTL")).status_code == 204


async def test_policies_of_missing_namespaces_are_404(visitor: Visitor) -> None:
    missing = "/admin/v2/namespaces/public/missing"
    await visitor.fails(404, "GET", f"{missing}/retention")
    await visitor.fails(404, "POST", f"{missing}/messageTTL", 10)
    await visitor.fails(404, "DELETE", f"{missing}/dispatchRate")


async def test_all_of_a_namespace_that_decides_nothing(visitor: Visitor) -> None:
    """As Apache's broker 4.2.4 has shown it, but for the bundles."""
    await visitor.does("PUT", "/admin/v2/namespaces/public/undecided", {})
    shown = await visitor.get("/admin/v2/namespaces/public/undecided")
    assert shown == UNDECIDED | {
        "auth_policies": {
            "destination_auth": {}, "namespace_auth": {}, "subscription_auth_roles": {},
        },
        "backlog_quota_map": {},
        "bundles": {"boundaries": ["0x00000000", "0xffffffff"], "numBundles": 1},
        "encryption_required": False,
        "properties": {},
        "replication_clusters": ["standalone"],
        "subscription_types_enabled": [],
    }  # fmt: skip
    await visitor.does("POST", "/admin/v2/namespaces/public/undecided/offloadThreshold", 5)
    shown = await visitor.get("/admin/v2/namespaces/public/undecided")
    assert shown["offload_threshold"] == 5


async def test_rates_are_shown_by_cluster_among_the_policies(visitor: Visitor) -> None:
    await visitor.does("POST", f"{HERE}/dispatchRate", RATE)
    assert (await visitor.get(HERE))["topicDispatchRate"] == {"standalone": RATE}


async def test_topics_that_are_loaded_learn_of_it(visitor: Visitor) -> None:
    topic = await visitor.topic("a")
    await visitor.does("POST", f"{HERE}/messageTTL", 30)
    await wait_all_tasks_blocked()
    assert topic.policies.message_ttl_seconds == 30


async def test_quotas_by_size_and_by_age(visitor: Visitor) -> None:
    by_size = {"limitSize": 1000, "limitTime": -1, "policy": "producer_exception"}
    by_age = {"limitSize": -1, "limitTime": 60, "policy": "consumer_backlog_eviction"}
    await visitor.does(
        "POST", f"{HERE}/backlogQuota", {"limit": "1000", "policy": "producer_exception"}
    )
    await visitor.does("POST", f"{HERE}/backlogQuota?backlogQuotaType=message_age", by_age)
    assert await visitor.get(f"{HERE}/backlogQuotaMap") == {
        "destination_storage": by_size,
        "message_age": by_age,
    }
    await visitor.does("DELETE", f"{HERE}/backlogQuota")
    assert await visitor.get(f"{HERE}/backlogQuotaMap") == {"message_age": by_age}
    await visitor.fails(400, "DELETE", f"{HERE}/backlogQuota?backlogQuotaType=other")
    await visitor.fails(400, "POST", f"{HERE}/backlogQuota", {"policy": "other"})


async def test_a_quota_must_be_below_what_is_retained(visitor: Visitor) -> None:
    retention = {"retentionTimeInMinutes": 10, "retentionSizeInMB": 1}
    await visitor.does("POST", f"{HERE}/retention", retention)
    await visitor.fails(412, "POST", f"{HERE}/backlogQuota", {"limitSize": 2 << 20, **HOLD})
    await visitor.does("POST", f"{HERE}/backlogQuota", {"limitSize": 1 << 19, **HOLD})
    await visitor.fails(400, "POST", f"{HERE}/retention", {"retentionTimeInMinutes": 5})


async def test_removing_retention_frees_the_quota(visitor: Visitor) -> None:
    retention = {"retentionTimeInMinutes": -1, "retentionSizeInMB": -1}
    await visitor.does("POST", f"{HERE}/retention", retention)
    await visitor.does("POST", f"{HERE}/backlogQuota", {"limitSize": 2 << 20, **HOLD})
    await visitor.does("POST", f"{HERE}/retention", b"null")
    assert await visitor.get(f"{HERE}/retention") is None


async def test_a_group_is_plain_text(visitor: Visitor) -> None:
    assert await visitor.get(f"{HERE}/antiAffinity") is None
    await visitor.does("POST", f"{HERE}/antiAffinity", b"a group")
    assert (await visitor.ask("GET", f"{HERE}/antiAffinity")).text == "a group"
    await visitor.fails(400, "POST", f"{HERE}/antiAffinity", b"\xff")
    await visitor.does("DELETE", f"{HERE}/antiAffinity")
    assert await visitor.get(f"{HERE}/antiAffinity") is None


async def test_what_makes_no_sense_is_not_kept(visitor: Visitor) -> None:
    assert "must >= 0" in await visitor.fails(412, "POST", f"{HERE}/messageTTL", -1)
    await visitor.fails(400, "POST", f"{HERE}/subscriptionTypesEnabled", ["Any"])
    assert "replicated" in await visitor.fails(405, "POST", f"{HERE}/replication", ["elsewhere"])
    assert await visitor.get(f"{HERE}/replication") == ["standalone"]


async def test_a_rate_that_is_none_is_not_kept(visitor: Visitor) -> None:
    topic = "/admin/v2/persistent/public/default/a"
    await visitor.topic("a")
    for path in (f"{HERE}/publishRate", f"{topic}/publishRate"):
        assert await visitor.fails(400, "POST", path, {"publishThrottlingRateInMsg": "many"})
        assert await visitor.get(path) is None


async def test_offloading_is_removed_under_two_names(visitor: Visitor) -> None:
    await visitor.does("POST", f"{HERE}/offloadPolicies", {"x": 1})
    await visitor.does("DELETE", f"{HERE}/removeOffloadPolicies")
    assert await visitor.get(f"{HERE}/offloadPolicies") is None


async def test_who_changes_two_things_at_once_changes_both(visitor: Visitor) -> None:
    """Policies are one value in the store: written at the same time, one was lost."""
    metadata = visitor.broker.metadata
    put = metadata.put

    async def slow(path: str, value: bytes, expected: int | None = None) -> int:
        await wait_all_tasks_blocked()
        return await put(path, value, expected)

    metadata.put = slow  # type: ignore[method-assign]
    await visitor.does("PUT", "/admin/v2/persistent/public/default/a")
    topic = "/admin/v2/persistent/public/default/a"
    expected_value = {
        f"{HERE}/messageTTL": 60,
        f"{HERE}/maxProducersPerTopic": 3,
        f"{HERE}/deduplication": True,
        f"{HERE}/property/k/v": None,
        f"{HERE}/permissions/someone": ["produce"],
        f"{HERE}/backlogQuota": {"limitSize": 10, "policy": "producer_exception"},
        f"{HERE}/publishRate": {"publishThrottlingRateInMsg": 7},
        f"{topic}/messageTTL": 5,
        f"{topic}/maxProducers": 6,
    }
    async with trio.open_nursery() as nursery:
        for path, value in expected_value.items():
            method = "PUT" if "/property/" in path else "POST"
            nursery.start_soon(visitor.does, method, path, value)
    found = await visitor.get(HERE)
    assert found["message_ttl_in_seconds"] == 60
    assert found["max_producers_per_topic"] == 3
    assert found["deduplicationEnabled"] is True
    assert found["properties"] == {"k": "v"}
    assert found["auth_policies"]["namespace_auth"] == {"someone": ["produce"]}
    assert found["backlog_quota_map"]["destination_storage"]["limitSize"] == 10
    assert found["publishMaxMessageRate"]["standalone"]["publishThrottlingRateInMsg"] == 7
    assert await visitor.get(f"{topic}/messageTTL") == 5
    assert await visitor.get(f"{topic}/maxProducers") == 6


async def test_a_namespace_that_goes_is_not_brought_back_by_a_policy(visitor: Visitor) -> None:
    here = "/admin/v2/namespaces/public/gone"
    await visitor.does("PUT", here)
    metadata = visitor.broker.metadata
    put, delete = metadata.put, metadata.delete
    begun, may_go, gone = trio.Event(), trio.Event(), trio.Event()

    async def slow(path: str, expected: int | None = None) -> None:
        begun.set()
        await may_go.wait()
        await delete(path, expected)
        gone.set()

    async def slower(path: str, value: bytes, expected: int | None = None) -> int:
        await gone.wait()
        return await put(path, value, expected)

    metadata.delete = slow  # type: ignore[method-assign]
    metadata.put = slower  # type: ignore[method-assign]
    async with trio.open_nursery() as nursery:
        nursery.start_soon(visitor.does, "DELETE", here)
        await begun.wait()
        nursery.start_soon(visitor.fails, 404, "POST", f"{here}/messageTTL", 60)
        await wait_all_tasks_blocked()
        may_go.set()
    await visitor.fails(404, "GET", here)
