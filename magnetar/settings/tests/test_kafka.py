"""Kafka's settings have Kafka's names and defaults, and limits that hold."""

import msgspec
import pytest

from magnetar.operator_error import OperatorError
from magnetar.settings import load
from magnetar.settings.kafka import Kafka

KAFKAS = {
    "num.partitions": 1,
    "message.max.bytes": 1_048_588,
    "transaction.max.timeout.ms": 900_000,
    "transactional.id.expiration.ms": 604_800_000,
    "group.min.session.timeout.ms": 6_000,
    "group.max.session.timeout.ms": 1_800_000,
    "group.consumer.heartbeat.interval.ms": 5_000,
    "group.consumer.session.timeout.ms": 45_000,
    "offsets.retention.minutes": 10_080,
    "offsets.retention.check.interval.ms": 600_000,
}
"""Defaults of Kafka 4.2, https://kafka.apache.org/42/configuration/broker-configs/."""
OWN = {
    # 168 hours, of `log.retention.hours`: that of ms has no value of its own there.
    "log.retention.ms": 604_800_000,
    # 3000 there, to spare groups of many a round each; our first members are not to wait.
    "group.initial.rebalance.delay.ms": 0,
    # Unlimited there.
    "group.max.size": 10_000,
    # Of a node that is numbered by nobody: -1 there.
    "broker.id": 0,
    "advertised.listeners": {},
}
"""Where a default is ours, and why."""


def test_defaults_are_kafkas_but_where_we_say_why() -> None:
    usual = msgspec.to_builtins(Kafka())
    assert {name.replace("_", "."): value for name, value in usual.items()} == {**KAFKAS, **OWN}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("broker_id", -1),
        ("broker_id", 2**31),
        ("num_partitions", 0),
        ("num_partitions", 10_001),
        ("message_max_bytes", 16 * 1024 * 1024 + 1),
        ("log_retention_ms", -2),
        ("group_initial_rebalance_delay_ms", -1),
        ("group_max_size", 0),
        ("group_min_session_timeout_ms", 0),
        ("offsets_retention_minutes", 0),
    ],
)
def test_what_cannot_be_is_refused_by_name(name: str, value: int) -> None:
    with pytest.raises(OperatorError, match=f"kafka.{name}"):
        load(f"[kafka]\n{name} = {value}")


def test_what_is_kept_for_ever() -> None:
    assert load("[kafka]\nlog_retention_ms = -1").settings.kafka.log_retention_ms == -1
