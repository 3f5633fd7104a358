"""Rules that can be followed. What is said of others: `administration/tests/test_rules.py`."""

import pytest

from magnetar.core.kernel.errors import Invalid
from magnetar.core.kernel.names import NamespaceName, TopicName
from magnetar.wire.mqtt.mapping.rule_check import check, check_filter, target_of
from magnetar.wire.mqtt.mapping.rules import MappingRule, Rules

RULES = Rules(NamespaceName("public", "default"))


def test_the_topics_of_rules_are_returned_in_their_order() -> None:
    mapping = [
        MappingRule("a/#", "a"),
        MappingRule("b/+", "{each}"),
        MappingRule("c", "other/one/c"),
    ]
    assert check(mapping, RULES) == [
        TopicName.parse("public/default/a"), None, TopicName.parse("other/one/c")
    ]  # fmt: skip


@pytest.mark.parametrize("filter", ["$SYS/#", "$share/g/a", "persistent://a/b/c", "a/#/b", ""])
def test_filters_that_match_nothing_that_a_rule_decides(filter: str) -> None:
    with pytest.raises(Invalid):
        check_filter(filter)


@pytest.mark.parametrize("topic", ["x{each}", "a-partition-1", "__change_events", "a\0b"])
def test_topics_that_a_rule_may_not_name(topic: str) -> None:
    with pytest.raises(Invalid):
        target_of(MappingRule("a", topic), RULES)
