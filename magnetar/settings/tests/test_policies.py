"""What users read about policies is what is declared."""

from pathlib import Path

import msgspec
import pytest

from magnetar.core.policy.declaration import Policy, levels_of
from magnetar.core.policy.policies import Effective
from magnetar.settings.policies import check_settings, policy_table
from magnetar.settings.reference import with_part
from magnetar.settings.registry import SETTINGS

POLICIES = levels_of(Effective).policies


def test_the_page_is_up_to_date() -> None:
    page = Path(__file__).parents[3].joinpath("docs/admin.md").read_text(encoding="utf-8")
    assert with_part(page, policy_table()) == page, "run `make docs`"


def test_every_policy_has_a_row() -> None:
    assert len(policy_table().splitlines()) == 2 + len(POLICIES) + 1
    for policy in POLICIES:
        assert policy.effect in policy_table()
        assert policy.reason in policy_table()


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.name)
def test_its_settings_exist(policy: Policy) -> None:
    assert {f"broker.{name}" for name in policy.settings} <= SETTINGS.keys()


def test_a_setting_that_is_not_declared_is_named() -> None:
    policy = msgspec.structs.replace(levels_of(Effective).effective[0], settings=("max_greetings",))
    with pytest.raises(LookupError, match=r"setting broker\.max_greetings: declare it in"):
        check_settings([policy])
