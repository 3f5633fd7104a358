"""What topics may be configured to do, and what that means in policies."""

from __future__ import annotations

import pytest

from magnetar.core.policy.policies import Effective, NamespacePolicies, TopicPolicies, effective
from magnetar.core.policy.values import Compaction, LedgerLimits, LogLimits, Retention
from magnetar.wire.kafka import configs
from magnetar.wire.kafka.errors import INVALID_CONFIG, KafkaRefusal

DEFAULTS = {"retention.ms": "5000", "max.message.bytes": "777"}


@pytest.mark.parametrize("name", configs.TOPIC)
def test_every_default_may_be_set(name: str) -> None:
    config = configs.TOPIC[name]
    assert configs.check(name, config.default) == config.default
    assert config.documentation.endswith(".")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("no.such", "1"),
        ("retention.ms", None),
        ("retention.ms", "-2"),
        ("retention.ms", "soon"),
        ("cleanup.policy", "forget"),
        ("cleanup.policy", "delete,delete"),
        ("cleanup.policy", "delete,"),
        ("compression.type", "zip"),
        ("message.timestamp.type", "mine"),
        ("min.cleanable.dirty.ratio", "1.5"),
        ("max.message.bytes", str(16 * 1024 * 1024 + 1)),
        ("min.insync.replicas", "0"),
    ],
)
def test_what_may_not(name: str, value: str | None) -> None:
    with pytest.raises(KafkaRefusal) as refused:
        configs.check(name, value)
    assert refused.value.code == INVALID_CONFIG
    assert name in str(refused.value)


def shown(topic: TopicPolicies) -> dict[str, str]:
    return configs.shown(effective(Effective(), NamespacePolicies(), topic), DEFAULTS)


@pytest.mark.parametrize(
    ("expected", "limits"),
    [
        ({}, LogLimits(5000, -1)),
        ({"retention.ms": "-1"}, LogLimits(-1, -1)),
        ({"retention.ms": "1", "retention.bytes": "2"}, LogLimits(1, 2)),
        ({"retention.ms": "1", "cleanup.policy": "compact"}, LogLimits()),
        ({"retention.ms": "1", "cleanup.policy": "compact,delete"}, LogLimits(1, -1)),
        ({"retention.ms": "1", "cleanup.policy": ""}, LogLimits()),
    ],
)
def test_limits_of_the_log(expected: dict[str, str], limits: LogLimits) -> None:
    applied = configs.applied(TopicPolicies(), expected, DEFAULTS)
    assert applied.log_limits == limits
    assert applied.retention == configs.KEPT
    found = shown(applied)
    assert {name: found[name] for name in expected} == expected


def test_what_pulsars_tools_have_decided_is_shown() -> None:
    found = shown(TopicPolicies(retention=Retention(2, 3), max_message_size=99))
    assert found["retention.ms"] == "120000"
    assert found["retention.bytes"] == str(3 * 1024 * 1024)
    assert found["max.message.bytes"] == "99"
    assert shown(TopicPolicies(retention=Retention(-1, -1)))["retention.ms"] == "-1"


def test_the_size_of_messages_is_one_policy() -> None:
    applied = configs.applied(TopicPolicies(), {"max.message.bytes": "1234"}, DEFAULTS)
    assert applied.max_message_size == 1234
    again = configs.applied(applied, {}, DEFAULTS)
    assert again.max_message_size is None
    assert shown(again)["max.message.bytes"] == "777"


def test_what_is_asked_for_each_batch() -> None:
    expected = {"message.timestamp.type": "LogAppendTime", "cleanup.policy": "compact"}
    applied = configs.applied(TopicPolicies(), expected, DEFAULTS)
    rules = configs.rules(effective(Effective(), NamespacePolicies(), applied), DEFAULTS)
    assert (rules.bytes_max, rules.append_time, rules.keyed, rules.insync) == (777, True, True, 1)


def test_what_is_young_is_not_too_old() -> None:
    low, high = "min.compaction.lag.ms", "max.compaction.lag.ms"
    configs.check_together({})
    configs.check_together({low: "5", high: "5", "retention.ms": "1"})
    configs.check_together({low: str(configs.INT64_MAX)})
    for own in ({low: "6", high: "5"}, {low: "6", high: "5", "cleanup.policy": "delete"}):
        with pytest.raises(KafkaRefusal, match=high) as refused:
            configs.check_together(own)
        assert refused.value.code == INVALID_CONFIG


def test_how_logs_are_compacted() -> None:
    expected = {
        "cleanup.policy": "compact",
        "min.cleanable.dirty.ratio": "0.25",
        "min.compaction.lag.ms": "5",
        "max.compaction.lag.ms": "8",
        "delete.retention.ms": "6",
        "segment.ms": "7",
    }
    applied = configs.applied(TopicPolicies(), expected, DEFAULTS)
    assert applied.compaction == Compaction(0.25, 5, 6, 8)
    assert applied.ledger_limits == LedgerLimits(-1, 7)
    assert applied.log_limits == LogLimits()
    both = configs.applied(applied, {"cleanup.policy": "compact,delete"}, DEFAULTS)
    assert both.compaction == Compaction()
    assert both.log_limits == LogLimits(5000)
    assert both.ledger_limits is None
    neither = configs.applied(both, {}, DEFAULTS)
    assert neither.compaction is None
    held = effective(Effective(), NamespacePolicies(), applied)
    assert (held.compaction, held.ledger_limits) == (applied.compaction, applied.ledger_limits)
    for found, limited in ((applied, False), (both, True), (neither, True)):
        held = effective(Effective(), NamespacePolicies(), found)
        assert configs.rules(held, DEFAULTS).limited is limited
