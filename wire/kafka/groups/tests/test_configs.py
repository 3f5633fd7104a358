"""What groups may be configured to do."""

from __future__ import annotations

import pytest

from magnetar.wire.kafka.configs import check
from magnetar.wire.kafka.errors import INVALID_CONFIG, KafkaRefusal
from magnetar.wire.kafka.groups import configs
from magnetar.wire.kafka.groups.configs import GROUP, HEARTBEAT_MS, SESSION_MS
from magnetar.wire.kafka.groups.consumer.heartbeat import Timing
from magnetar.wire.kafka.groups.options import GroupOptions

OPTIONS = GroupOptions()


def checked(own: dict[str, str], options: GroupOptions = OPTIONS) -> None:
    for name, value in own.items():
        assert check(name, value, GROUP, "group") == value
    configs.check_together(own, options)


def test_every_default_may_be_set() -> None:
    checked({name: config.default for name, config in GROUP.items()})
    assert configs.of_all(OPTIONS) == {name: config.default for name, config in GROUP.items()}


@pytest.mark.parametrize(
    "own",
    [
        {SESSION_MS: "44999"},
        {SESSION_MS: "60001"},
        {SESSION_MS: "-1"},
        {SESSION_MS: str(2**31)},
        {SESSION_MS: "long"},
        {SESSION_MS: ""},
        {HEARTBEAT_MS: "4999"},
        {HEARTBEAT_MS: "15001"},
        {"share.session.timeout.ms": "45000"},
        {"streams.num.standby.replicas": "1"},
    ],
)
def test_what_may_not(own: dict[str, str]) -> None:
    with pytest.raises(KafkaRefusal) as refused:
        checked(own)
    assert refused.value.code == INVALID_CONFIG
    assert next(iter(own)) in str(refused.value)


def test_what_an_operator_likes_is_right_for_each() -> None:
    eager = GroupOptions(consumer_heartbeat_ms=500, consumer_session_ms=6_000)
    checked({HEARTBEAT_MS: "500", SESSION_MS: "6000"}, eager)
    checked({HEARTBEAT_MS: "2000"}, eager)
    with pytest.raises(KafkaRefusal, match="from 6000 to 60000"):
        checked({SESSION_MS: "5999"}, eager)


def test_a_session_is_longer_than_a_heartbeat() -> None:
    eager = GroupOptions(consumer_heartbeat_ms=500, consumer_session_ms=6_000)
    checked({HEARTBEAT_MS: "5999"}, eager)
    with pytest.raises(KafkaRefusal, match="longer"):
        checked({HEARTBEAT_MS: "6000"}, eager)
    checked({HEARTBEAT_MS: "6000", SESSION_MS: "6001"}, eager)


def test_what_is_not_said_is_as_for_all() -> None:
    assert configs.timing_of({}, OPTIONS) == Timing(5.0, 45.0)
    assert configs.timing_of({SESSION_MS: "50000"}, OPTIONS) == Timing(5.0, 50.0)
    assert configs.timing_of({HEARTBEAT_MS: "7500"}, OPTIONS) == Timing(7.5, 45.0)
