"""Policies that are stored as they are sent."""

import pytest

from magnetar.core.policy.declaration import Policy
from magnetar.core.policy.policies import Effective
from magnetar.core.policy.stored import STORED


@pytest.mark.parametrize("policy", STORED, ids=lambda policy: policy.name)
def test_no_code_can_read_one_by_mistake(policy: Policy) -> None:
    assert bool(policy.reason) is not bool(policy.effect)
    assert not hasattr(Effective(), policy.name)
