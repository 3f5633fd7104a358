"""Mapping rules as administrators set them; `clients/tests/test_rule_changes.py` has the effect."""

from __future__ import annotations

import pytest

from magnetar.core.kernel.errors import BadVersion, Invalid, InvalidName
from magnetar.core.ports.client_administration import RuleDetails, RulesDetails
from magnetar.wire.mqtt.administration.rules import RULES_MAX, MqttRuleAdministration
from magnetar.wire.mqtt.conftest import Stage, serving
from magnetar.wire.mqtt.mapping.rules import MappingRule

A, B = RuleDetails("a/#", "a"), RuleDetails("b/#", "{each}")


async def test_rules_are_set_and_reset() -> None:
    async with serving(rules=(MappingRule("a/#", "a"),)) as stage:
        administration = MqttRuleAdministration(stage.services)
        assert await administration.rules() == RulesDetails([A], True, 1)
        await administration.set_rules([B, A], 1)
        assert await administration.rules() == RulesDetails([B, A], False, 2)
        with pytest.raises(BadVersion):
            await administration.set_rules([], 1)
        with pytest.raises(BadVersion):
            await administration.reset_rules(1)
        await administration.reset_rules(None)
        assert await administration.rules() == RulesDetails([A], True, 3)


@pytest.mark.parametrize(
    ("rules", "error"),
    [
        ([RuleDetails("a/#/b", "a")], InvalidName),
        ([RuleDetails("a", "a b/c/d/e")], InvalidName),
        ([RuleDetails("a", "public/none/a")], Invalid),
        ([A, RuleDetails("a/#", "b")], Invalid),
        ([RuleDetails(f"a/{number}", "a") for number in range(RULES_MAX + 1)], Invalid),
    ],
)
async def test_what_could_not_be_followed_is_refused(
    stage: Stage, rules: list[RuleDetails], error: type[Exception]
) -> None:
    administration = MqttRuleAdministration(stage.services)
    with pytest.raises(error):
        await administration.set_rules(rules, None)
    assert await administration.rules() == RulesDetails([], True, 0)
