"""Any policy over REST: what is declared is served."""

from typing import Annotated, Any

import pytest
from trio.testing import wait_all_tasks_blocked

from magnetar.core.broker.broker import BrokerSettings
from magnetar.core.policy.declaration import Policy, Scope, levels_of
from magnetar.core.policy.policies import Effective
from magnetar.wire.http.admin.policies.tests.test_topics import UNSET, value_of
from magnetar.wire.http.tests.visitor import Visitor, visiting

HERE = "/admin/v2/persistent/public/default/a"
SPACE = "/admin/v2/namespaces/public/default"

APPLIED = {
    "dispatchRate": {
        "dispatchThrottlingRateInMsg": 0,
        "dispatchThrottlingRateInByte": 0,
        "relativeToPublishRate": False,
        "ratePeriodInSecond": 1,
    },
    "subscribeRate": {"subscribeThrottlingRatePerConsumer": 0, "ratePeriodInSecond": 30},
    "persistence": {
        "bookkeeperEnsemble": 1,
        "bookkeeperWriteQuorum": 1,
        "bookkeeperAckQuorum": 1,
        "managedLedgerMaxMarkDeleteRate": 0.0,
    },
    "schemaCompatibilityStrategy": "FULL",
    "replication": ["standalone"],
    "autoSubscriptionCreation": {"allowAutoSubscriptionCreation": True},
    "schemaValidationEnforced": False,
    "dispatcherPauseOnAckStatePersistent": False,
}
APPLIED["subscriptionDispatchRate"] = APPLIED["replicatorDispatchRate"] = APPLIED["dispatchRate"]
"""As Apache's broker (4.2.4) answers where nobody has decided anything, but for the rate: there is
no limit here, and 1.0 there."""


@pytest.mark.parametrize("policy", APPLIED)
async def test_what_holds_where_nobody_has_decided(guest: Visitor, policy: str) -> None:
    assert await guest.get(f"{HERE}/{policy}?applied=true") == APPLIED[policy]


IN_BOTH = [
    scope.paths[0]
    for policy, scope in levels_of(Effective).at("topic")
    if policy.namespace and policy.loose
]


@pytest.mark.parametrize("policy", IN_BOTH)
async def test_the_namespace_is_asked_before_the_broker(guest: Visitor, policy: str) -> None:
    here, value = f"{SPACE}/{policy}", value_of(policy)
    await guest.does("POST", here, value)
    assert await guest.get(f"{HERE}/{policy}?applied=true") == value
    assert await guest.get(f"{HERE}/{policy}") == UNSET.get(policy)
    other = False if value is True else value
    await guest.does("POST", f"{HERE}/{policy}", other)
    assert await guest.get(f"{HERE}/{policy}?applied=true") == other


async def test_the_interval_of_snapshots_reaches_loaded_topics(guest: Visitor) -> None:
    topic: Any = await guest.topic("a")
    name = "deduplicationSnapshotInterval"
    seen = [topic.policies.deduplication_snapshot_interval]
    for method, here, value in (
        ("POST", SPACE, 50), ("POST", HERE, 0), ("DELETE", HERE, None), ("DELETE", SPACE, None)
    ):  # fmt: skip
        await guest.does(method, f"{here}/{name}", value)
        await wait_all_tasks_blocked()
        seen.append(topic.policies.deduplication_snapshot_interval)
    assert seen == [120, 50, 0, 50, 120]


class Extended(Effective, frozen=True, kw_only=True):
    """All policies, and one more: its declaration is all that is written for it."""

    colour: Annotated[
        str,
        Policy(
            "Topics have a colour.",
            Scope("topicColour", "colour"),
            Scope("namespace_colour", "colourOfTopics", unset="none"),
            read=str.upper,
            show=str.lower,
        ),
    ] = "RED"


async def test_a_policy_is_one_declaration() -> None:
    async with visiting(settings=BrokerSettings(defaults=Extended(colour="GREEN"))) as guest:
        topic: Any = await guest.topic("a")
        assert topic.policies.colour == "GREEN"
        assert await guest.get(f"{SPACE}/colourOfTopics") == "none"
        assert await guest.get(f"{HERE}/colour") is None
        assert await guest.get(f"{HERE}/colour?applied=true") == "green"
        await guest.does("POST", f"{SPACE}/colourOfTopics", "blue")
        assert await guest.get(f"{HERE}/colour?applied=true") == "blue"
        assert (await guest.get(SPACE))["namespace_colour"] == "blue"
        await guest.does("POST", f"{HERE}/colour", "pink")
        await guest.does("POST", f"{HERE}/messageTTL", 5)
        assert await guest.get(f"{HERE}/colour") == "pink"
        await wait_all_tasks_blocked()
        assert (topic.policies.colour, topic.policies.message_ttl_seconds) == ("PINK", 5)
        await guest.fails(400, "POST", f"{HERE}/colour", 7)
        await guest.does("DELETE", f"{HERE}/colour")
        await wait_all_tasks_blocked()
        assert topic.policies.colour == "BLUE"
        await guest.does("DELETE", f"{SPACE}/colourOfTopics")
        await wait_all_tasks_blocked()
        assert topic.policies.colour == "GREEN"


async def test_where_it_is_not_declared_it_is_not_there(guest: Visitor) -> None:
    await guest.fails(404, "GET", f"{HERE}/colour")
    body = {"namespace_colour": "blue"}
    await guest.does("PUT", "/admin/v2/namespaces/public/n", body)
    assert "namespace_colour" not in await guest.get("/admin/v2/namespaces/public/n")
