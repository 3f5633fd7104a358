"""What holds of policies that are only kept."""

import pytest

from magnetar.wire.http.admin.policies.tests.test_topics import value_of
from magnetar.wire.http.admin.policies.topics import STORED, UNSET
from magnetar.wire.http.tests.visitor import Visitor

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
        "managedLedgerMaxMarkDeleteRate": 1.0,
    },
    "schemaCompatibilityStrategy": "FULL",
    "replication": ["standalone"],
    "autoSubscriptionCreation": {"allowAutoSubscriptionCreation": True},
    "schemaValidationEnforced": False,
    "dispatcherPauseOnAckStatePersistent": False,
}
APPLIED["subscriptionDispatchRate"] = APPLIED["replicatorDispatchRate"] = APPLIED["dispatchRate"]
"""As Apache's broker (4.2.4) answers where nobody has decided anything."""


@pytest.mark.parametrize("policy", APPLIED)
async def test_what_holds_where_nobody_has_decided(guest: Visitor, policy: str) -> None:
    assert await guest.get(f"{HERE}/{policy}?applied=true") == APPLIED[policy]


@pytest.mark.parametrize("policy", sorted(STORED.keys() - {"replication"}))
async def test_the_namespace_is_asked_before_the_broker(guest: Visitor, policy: str) -> None:
    here, value = f"{SPACE}/{policy}", value_of(policy)
    await guest.does("POST", here, value)
    assert await guest.get(f"{HERE}/{policy}?applied=true") == value
    assert await guest.get(f"{HERE}/{policy}") == UNSET.get(policy)
    other = False if value is True else value
    await guest.does("POST", f"{HERE}/{policy}", other)
    assert await guest.get(f"{HERE}/{policy}?applied=true") == other
