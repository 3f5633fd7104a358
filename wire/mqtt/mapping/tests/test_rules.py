"""Rules: where a message is stored, and where a subscription finds it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnetar.core.kernel.errors import InvalidName
from magnetar.core.kernel.names import NamespaceName
from magnetar.wire.mqtt.mapping.rules import EACH, MappingRule, Rules, covers, overlap
from magnetar.wire.mqtt.matching.tests.test_filter_tree import FILTERS, NAMES
from magnetar.wire.mqtt.topics import matches

HOME = NamespaceName.parse("public/default")
RULES = Rules(
    HOME,
    [
        MappingRule("orders/#", "orders"),
        MappingRule("legacy/+", EACH),
        MappingRule("+/alarm", "t/n/alarms"),
    ],
)


@pytest.mark.parametrize(
    ("topic", "name"),
    [
        ("orders", "public/default/orders"),
        ("orders/alarm", "public/default/orders"),
        ("legacy/a", "public/default/legacy%2Fa"),
        ("legacy/alarm", "public/default/legacy%2Falarm"),
        ("x/alarm", "t/n/alarms"),
        ("x/y", "public/default/mqtt"),
        ("$x", "public/default/mqtt"),
        ("persistent://a/b/orders/1", "a/b/orders%2F1"),
    ],
)
def test_the_first_rule_that_fits_decides(topic: str, name: str) -> None:
    assert RULES.topic_for(topic).full == f"persistent://{name}"
    assert RULES.topic_for(topic).full == f"persistent://{name}"


def test_without_rules_all_goes_to_one_topic() -> None:
    rules = Rules(HOME)
    names = {rules.topic_for(f"device/{number}/temp").full for number in range(20_000)}
    assert names == {"persistent://public/default/mqtt"}


@pytest.mark.parametrize(
    ("filter", "funnels", "each"),
    [
        ("orders/1", ["orders"], False),
        ("orders/#", ["orders"], False),
        ("+/1", ["orders", "mqtt"], True),
        ("legacy/+", [], True),
        ("legacy/a/b", ["mqtt"], False),
        ("x/alarm", ["alarms"], False),
        ("#", ["orders", "alarms", "mqtt"], True),
        ("persistent://a/b/#", [], True),
    ],
)
def test_where_a_subscription_reads(filter: str, funnels: list[str], each: bool) -> None:
    found = RULES.sources(filter)
    assert [name.local for name in found.funnels] == funnels
    assert found.each is each


@given(st.lists(st.tuples(FILTERS, st.sampled_from(["x", "y", EACH])), max_size=4), FILTERS, NAMES)
def test_a_subscription_finds_all_that_is_stored_for_it(
    table: list[tuple[str, str]], filter: str, topic: str
) -> None:
    rules = Rules(HOME, [MappingRule(*line) for line in table])
    if matches(filter, topic):
        where, sources = rules.topic_for(topic), rules.sources(filter)
        assert where in sources.funnels or sources.each


@given(one=FILTERS, other=FILTERS, name=NAMES)
def test_overlap_and_cover(one: str, other: str, name: str) -> None:
    if matches(one, name) and matches(other, name):
        assert overlap(one, other)
    if covers(one, other) and matches(other, name) and not name.startswith("$"):
        assert matches(one, name)
    assert overlap(one, one)
    assert covers(one, one)


@pytest.mark.parametrize("rule", [MappingRule("a/#/b", "x"), MappingRule("a", "non-persistent://a/b/c"),
                                  MappingRule("a", "a/b"), MappingRule("a", "")])  # fmt: skip
def test_rules_that_make_no_sense(rule: MappingRule) -> None:
    with pytest.raises(InvalidName):
        Rules(HOME, [rule])


def test_large_topics_are_not_remembered() -> None:
    rules = Rules(NamespaceName.parse("public/default"), ())
    assert rules.topic_for("x" * 10_000) == rules.topic_for("x")
    assert list(rules._cached) == ["x"]
