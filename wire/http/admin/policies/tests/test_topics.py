"""What topics decide."""

from typing import Any

import pytest
from trio.testing import wait_all_tasks_blocked

from magnetar.core.policy.declaration import levels_of
from magnetar.core.policy.policies import Effective
from magnetar.wire.http.admin.policies.tests.test_namespaces import VALUES, rate_of
from magnetar.wire.http.tests.visitor import Visitor

HERE = "/admin/v2/persistent/public/default/a"


SCOPES = [(policy, scope) for policy, scope in levels_of(Effective).at("topic") if scope.paths]
KINDS = {path: policy.kind for policy, scope in SCOPES for path in scope.paths}
UNSET = {path: scope.unset for _, scope in SCOPES for path in scope.paths}
APPLIED = [
    scope.paths[0]
    for policy, scope in SCOPES
    if policy.default is not None and policy.default_shown
]


def value_of(policy: str) -> Any:
    kind = KINDS[policy]
    if policy in VALUES:
        return VALUES[policy]
    if policy.endswith("Rate"):
        return rate_of(policy)
    return {bool: True, int: 7, str: "FULL"}.get(kind, {"a": 1})


@pytest.mark.parametrize("policy", KINDS)
async def test_every_policy_is_set_shown_and_removed(guest: Visitor, policy: str) -> None:
    unset = UNSET.get(policy)
    assert await guest.get(f"{HERE}/{policy}") == unset
    await guest.does("POST", f"{HERE}/{policy}", value_of(policy))
    assert await guest.get(f"{HERE}/{policy}") == value_of(policy)
    await guest.does("DELETE", f"{HERE}/{policy}")
    assert await guest.get(f"{HERE}/{policy}") == unset


@pytest.mark.parametrize("policy", APPLIED)
async def test_what_holds_is_known_though_the_topic_has_not_decided(
    guest: Visitor, policy: str
) -> None:
    assert await guest.get(f"{HERE}/{policy}?applied=true") is not None


async def test_the_topic_is_nearer_than_the_namespace(guest: Visitor) -> None:
    await guest.does("POST", "/admin/v2/namespaces/public/default/messageTTL", 10)
    assert await guest.get(f"{HERE}/messageTTL?applied=true") == 10
    await guest.does("POST", f"{HERE}/messageTTL?messageTTL=20")
    assert await guest.get(f"{HERE}/messageTTL?applied=true") == 20
    await wait_all_tasks_blocked()
    assert (await guest.topic("a")).policies.message_ttl_seconds == 20


async def test_policies_are_of_the_whole_topic(guest: Visitor) -> None:
    whole = "/admin/v2/persistent/public/default/p"
    await guest.does("PUT", f"{whole}/partitions", 2)
    await guest.does("POST", f"{whole}/maxProducers", 3)
    await wait_all_tasks_blocked()
    assert (await guest.topic("p-partition-1")).policies.max_producers_per_topic == 3
    one = f"{whole}-partition-1"
    assert "for a partition" in await guest.fails(405, "GET", f"{one}/maxProducers")
    await guest.fails(405, "POST", f"{one}/maxProducers", 4)
    await guest.fails(405, "DELETE", f"{one}/policies")
    await guest.fails(405, "GET", f"{one}/s/dispatchRate")
    assert await guest.get(f"{whole}/maxProducers") == 3


async def test_quotas(guest: Visitor) -> None:
    quota = {"limitSize": 10, "limitTime": -1, "policy": "producer_exception"}
    await guest.does("POST", f"{HERE}/backlogQuota", quota)
    assert await guest.get(f"{HERE}/backlogQuotaMap") == {"destination_storage": quota}
    none = {"limitSize": -1, "limitTime": -1, "policy": "producer_request_hold"}
    assert await guest.get(f"{HERE}/backlogQuotaMap?applied=true") == {
        "destination_storage": quota,
        "message_age": none,
    }
    await guest.does("DELETE", f"{HERE}/backlogQuota")
    assert await guest.get(f"{HERE}/backlogQuotaMap") == {}


async def test_policies_of_missing_topics_are_404(guest: Visitor) -> None:
    missing = "/admin/v2/persistent/public/default/missing"
    await guest.fails(404, "GET", f"{missing}/retention")
    await guest.fails(404, "POST", f"{missing}/maxProducers", 1)
    await guest.fails(404, "GET", f"{missing}/retention?applied=true")


async def test_a_topic_may_decide_nothing_any_more(guest: Visitor) -> None:
    await guest.does("POST", f"{HERE}/messageTTL", 20)
    await guest.does("POST", f"{HERE}/publishRate", {"publishThrottlingRateInMsg": 5})
    await guest.does("DELETE", f"{HERE}/policies")
    assert await guest.get(f"{HERE}/messageTTL") is None
    assert await guest.get(f"{HERE}/publishRate") is None
    await guest.fails(404, "DELETE", f"{HERE}lien/policies")


async def test_what_makes_no_sense_is_not_kept(guest: Visitor) -> None:
    assert "0 or more" in await guest.fails(412, "POST", f"{HERE}/maxProducers", -1)
    assert "types" in await guest.fails(400, "POST", f"{HERE}/subscriptionTypesEnabled", ["Any"])
    await guest.fails(405, "POST", f"{HERE}/replication", ["elsewhere"])
    await guest.fails(400, "POST", f"{HERE}/retention", {"retentionSizeInMB": "much"})
    assert await guest.get(f"{HERE}/maxProducers") is None


async def test_a_switch_is_thrown_without_a_body(guest: Visitor) -> None:
    await guest.does("POST", f"{HERE}/dispatcherPauseOnAckStatePersistent")
    assert await guest.get(f"{HERE}/dispatcherPauseOnAckStatePersistent") is True


async def test_a_quota_stays_below_what_the_topic_retains(guest: Visitor) -> None:
    retention = {"retentionTimeInMinutes": 10, "retentionSizeInMB": 1}
    await guest.does("POST", f"{HERE}/retention", retention)
    quota = {"limitSize": 2 << 20, "policy": "producer_exception"}
    assert "below" in await guest.fails(412, "POST", f"{HERE}/backlogQuota", quota)
    await guest.does("POST", f"{HERE}/backlogQuota", {**quota, "limitSize": 1000})
    half = {"retentionTimeInMinutes": 0, "retentionSizeInMB": 1}
    assert "both limits" in await guest.fails(400, "POST", f"{HERE}/retention", half)


async def test_the_rate_of_one_subscription(guest: Visitor) -> None:
    of_all, own = f"{HERE}/subscriptionDispatchRate", f"{HERE}/s/dispatchRate"
    await guest.does("POST", of_all, {"dispatchThrottlingRateInMsg": 7})
    assert await guest.get(own) is None
    assert (await guest.get(f"{own}?applied=true"))["dispatchThrottlingRateInMsg"] == 7
    await guest.does("POST", own, {"dispatchThrottlingRateInMsg": 5})
    assert (await guest.get(own))["dispatchThrottlingRateInMsg"] == 5
    assert (await guest.get(f"{own}?applied=true"))["dispatchThrottlingRateInMsg"] == 5
    other = await guest.get(f"{HERE}/x/dispatchRate?applied=true")
    assert other["dispatchThrottlingRateInMsg"] == 7
    await guest.fails(400, "POST", own, {"dispatchThrottlingRateInMsg": []})
    await guest.does("DELETE", own)
    assert await guest.get(own) is None
    await guest.fails(404, "GET", f"{HERE}lien/s/dispatchRate")


async def test_so_many_subscriptions_have_their_own(
    guest: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("magnetar.wire.http.admin.policies.topics.RATES_MAX", 1)
    for _ in range(2):
        await guest.does("POST", f"{HERE}/s/dispatchRate", {"dispatchThrottlingRateInMsg": 5})
    await guest.fails(412, "POST", f"{HERE}/x/dispatchRate", {"dispatchThrottlingRateInMsg": 5})


async def test_the_list_of_shadows(visitor: Visitor) -> None:
    here = "/admin/v2/persistent/public/default"
    full = "persistent://public/default/{}".format
    for name in ("source", "other"):
        await visitor.does("PUT", f"{here}/{name}")
    await visitor.does("PUT", f"{here}/shadow", {"PULSAR.SHADOW_SOURCE": full("source")})
    path = f"{here}/source/shadowTopics"
    assert await visitor.get(path) == []
    for status, sent in (
        (412, []),
        (412, None),
        (412, [full("missing")]),
        (412, ["non-persistent://public/default/shadow"]),
        (412, [full("source")]),
        (412, [full("shadow"), full("other")]),
        (403, ["a//b"]),
        (400, {"a": 1}),
        (400, [1]),
    ):
        await visitor.fails(status, "PUT", path, sent)
        assert await visitor.get(path) == []
    await visitor.does("PUT", path, ["shadow", full("shadow")])
    assert await visitor.get(path) == [full("shadow")]
    await visitor.fails(412, "PUT", f"{here}/other/shadowTopics", [full("shadow")])
    await visitor.does("DELETE", path)
    assert await visitor.get(path) == []
    await visitor.fails(404, "GET", f"{here}/missing/shadowTopics")
