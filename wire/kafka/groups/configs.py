"""The configs of consumer groups, by Kafka's names (`GroupConfig.java` of 4.2). Pure.

A group has configs of its own, and defaults for all groups (`options.py`). An operator may choose
any default, so a group may have the default even if it is out of bounds.

Invariant: a stored value has passed `check_together`; values are stored as text, as clients send
them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from magnetar.wire.kafka import configs
from magnetar.wire.kafka.configs import INT32_MAX, Config, ConfigType
from magnetar.wire.kafka.errors import INVALID_CONFIG, KafkaRefusal
from magnetar.wire.kafka.groups.consumer.heartbeat import Timing
from magnetar.wire.kafka.groups.options import GroupOptions

SESSION_MS: Final = "consumer.session.timeout.ms"
HEARTBEAT_MS: Final = "consumer.heartbeat.interval.ms"


class Bounds(NamedTuple):
    """The bounds of a group's own value."""

    low: int
    high: int


BOUNDS: Final[Mapping[str, Bounds]] = {
    SESSION_MS: Bounds(45_000, 60_000),
    HEARTBEAT_MS: Bounds(5_000, 15_000),
}

_ROWS: Final[tuple[tuple[str, str, str], ...]] = (
    (SESSION_MS, "45000", "A member that is silent for longer is removed."),
    (HEARTBEAT_MS, "5000", "The interval of heartbeats."),
)
GROUP: Final[Mapping[str, Config]] = {
    name: Config(name, ConfigType.INT, default, configs.within(1, INT32_MAX), documentation)
    for name, default, documentation in _ROWS
}
"""The bounds by name."""


def of_all(options: GroupOptions) -> dict[str, str]:
    """The configs of groups without their own."""
    return {
        SESSION_MS: str(options.consumer_session_ms),
        HEARTBEAT_MS: str(options.consumer_heartbeat_ms),
    }


def check_together(own: Mapping[str, str], options: GroupOptions) -> None:
    """Raise `KafkaRefusal` unless a group may have these configs."""
    common = of_all(options)
    for name, text in own.items():
        value, usual, bounds = int(text), int(common[name]), BOUNDS[name]
        low, high = min(bounds.low, usual), max(bounds.high, usual)
        if not low <= value <= high:
            raise KafkaRefusal(INVALID_CONFIG, f"{name} is from {low} to {high} here, not {value}")
    timing = timing_of(own, options)
    if timing.session_seconds <= timing.heartbeat_seconds:
        raise KafkaRefusal(
            INVALID_CONFIG,
            f"{SESSION_MS} is longer than {HEARTBEAT_MS}, or every member would time out",
        )


def timing_of(own: Mapping[str, str], options: GroupOptions) -> Timing:
    """The timing of members under these configs."""
    found = {**of_all(options), **own}
    return Timing(int(found[HEARTBEAT_MS]) / 1000, int(found[SESSION_MS]) / 1000)
