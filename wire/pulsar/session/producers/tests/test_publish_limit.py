"""Publishes of one connection: at the limit it is not read, at half the limit it is again."""

from __future__ import annotations

from typing import Any

from magnetar.core.broker.connection_throttle import ConnectionThrottle
from magnetar.core.kernel.throttle import RateLimit, Throttle
from magnetar.core.link.memory.pauses import PAUSE_PUBLISHES, PAUSE_RATE
from magnetar.core.testing import FixedClock
from magnetar.core.testing.line import Line
from magnetar.wire.pulsar.session.producers.publish_limit import PublishLimit


def limit_of(line: Line, messages_max: int = 10) -> PublishLimit:
    connection: Any = line
    throttle = ConnectionThrottle(FixedClock(), lambda *_: None, connection, lambda _now: True)
    return PublishLimit(connection, throttle, messages_max)


def test_a_connection_at_its_limit_is_not_read_until_half_is_stored() -> None:
    line = Line()
    limit = limit_of(line)
    limit.begin(9, 100)
    assert not line.paused
    limit.begin(1, 1)
    assert line.paused == PAUSE_PUBLISHES
    limit.end(4, 50)
    assert line.paused == PAUSE_PUBLISHES
    limit.end(1, 50)
    assert not line.paused
    limit.end(5, 1)
    assert limit.pending_messages == 0


def test_a_rate_that_is_exceeded_pauses_and_none_does_not() -> None:
    line = Line()
    limit = limit_of(line)
    limit.spend((), 1_000, 1_000_000)
    assert not line.paused
    limit.spend((Throttle(RateLimit(messages=1.0), 0.0),), 100, 1)
    assert line.paused == PAUSE_RATE
