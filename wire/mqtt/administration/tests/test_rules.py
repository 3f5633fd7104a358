"""Mapping rules as administrators set them; `clients/tests/test_rule_changes.py` has the effect."""

from __future__ import annotations

import pytest

from magnetar.core.kernel.errors import BadVersion, Invalid, InvalidName
from magnetar.core.ports.client_administration import RuleDetails, RulesDetails
from magnetar.wire.mqtt.administration.rules import MqttRuleAdministration
from magnetar.wire.mqtt.conftest import Stage, serving
from magnetar.wire.mqtt.mapping.rule_check import RULES_MAX
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


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        (RuleDetails("", "a"), "rules[1].filter: '' is no topic filter"),
        (RuleDetails("b/#/c", "a"), "rules[1].filter: 'b/#/c' is no topic filter"),
        (RuleDetails("b\0", "a"), "rules[1].filter: 'b\\x00' has U+0000"),
        (RuleDetails("$share/g/b", "a"), "rules[1].filter: '$share/g/b' is a shared subscription"),
        (RuleDetails("$SYS/#", "a"), "rules[1].filter: topics below $SYS are not stored"),
        (RuleDetails("persistent://a/b/c", "a"), "rules[1].filter: 'persistent://a/b/c' names"),
        (RuleDetails("a/#", "b"), "rules[1].filter: 'a/#' is there twice"),
        (RuleDetails("b", ""), "rules[1].topic: "),
        (RuleDetails("b", "{each}{each}"), "rules[1].topic: {each} stands alone"),
        (RuleDetails("b", "x-{each}"), "rules[1].topic: {each} stands alone"),
        (RuleDetails("b", "b\0"), "rules[1].topic: 'b\\x00' has U+0000"),
        (RuleDetails("b", "b-partition-0"), "rules[1].topic: b-partition-0 is one partition"),
        (RuleDetails("b", "__b"), "rules[1].topic: __b is reserved for the server"),
        (RuleDetails("b", "pulsar/system/b"), "rules[1].topic: pulsar/system is the server's own"),
        (RuleDetails("b", "non-persistent://a/b/c"), "rules[1].topic: non-persistent://a/b/c"),
        (RuleDetails("b", "public/none/a"), "rules[1].topic: namespace public/none does not exist"),
    ],
)  # fmt: skip
async def test_the_refusal_names_the_field_and_the_reason(
    stage: Stage, rule: RuleDetails, text: str
) -> None:
    with pytest.raises(Invalid) as refused:
        await MqttRuleAdministration(stage.services).set_rules([A, rule], None)
    assert str(refused.value).startswith(text)
