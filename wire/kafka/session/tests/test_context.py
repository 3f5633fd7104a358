"""Who sends requests: woken when there is room, and when the connection is gone."""

from __future__ import annotations

from typing import Any

import trio

from magnetar.core.security.identity import ANYBODY
from magnetar.core.testing.line import Line
from magnetar.wire.kafka.addresses import Endpoint
from magnetar.wire.kafka.session.context import Caller


def caller() -> Caller:
    connection: Any = Line("1.2.3.4:5")
    return Caller(connection, Endpoint("mq", 9092), "kafka")


def test_a_caller_is_nobody_until_it_has_proved_otherwise() -> None:
    made = caller()
    assert (made.host, made.listener, made.identity, made.proof) == (
        "1.2.3.4",
        "kafka",
        ANYBODY,
        None,
    )
    assert made.is_here(0.0)


async def test_who_waits_is_woken_by_room_and_by_the_end(autojump_clock: Any) -> None:
    made = caller()
    with made.wakeup() as news, made.wakeup() as others:
        assert not await news.wait(trio.current_time() + 1)
        made.relieved()
        assert await news.wait(trio.current_time() + 1)
        assert await others.wait(trio.current_time() + 1)
        assert not made.gone
        made.closed()
        assert await news.wait(trio.current_time() + 1)
    assert made.gone
    assert not made.is_here(0.0)


def test_nobody_is_kept_who_waits_no_more() -> None:
    made = caller()
    with made.wakeup():
        assert len(made._wakeups) == 1
    assert not made._wakeups
    made.relieved()
