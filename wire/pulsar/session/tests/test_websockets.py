"""A WebSocket's session is one of the binary protocol; what it waits for wakes it."""

import ssl
from typing import Any

import pytest
import trio
import trio.testing

from magnetar.core.link.layers.tls import TlsParts, TlsWire
from magnetar.core.testing.line import Line
from magnetar.wire.pulsar.session.conftest import Stage
from magnetar.wire.pulsar.session.front import PulsarFront
from magnetar.wire.pulsar.session.options import PulsarOptions
from magnetar.wire.pulsar.session.websockets import LOOK_SECONDS, Alarm, WebSockets


class Woken:
    def __init__(self) -> None:
        self.times: list[float] = []

    def woken(self) -> None:
        self.times.append(trio.current_time())


async def test_it_is_woken_once_at_the_last_time(
    stage: Stage, autojump_clock: trio.testing.MockClock
) -> None:
    line: Any = Line()
    alarm, layer = Alarm(stage.broker.spawn, line), Woken()
    alarm.layer = layer  # type: ignore[assignment]  # the part that is called
    begun = trio.current_time()
    alarm.wake_in(60_000)
    await trio.sleep(1)
    alarm.wake_in(2_000)
    await trio.sleep(1)
    alarm.wake_in(30_000)
    await trio.sleep(100)
    assert [round(time - begun) for time in layer.times] == [32]


async def test_nobody_is_woken_that_is_gone(
    stage: Stage, autojump_clock: trio.testing.MockClock
) -> None:
    line: Any = Line()
    alarm, layer = Alarm(stage.broker.spawn, line), Woken()
    alarm.layer = layer  # type: ignore[assignment]  # the part that is called
    alarm.wake_in(60_000)
    line.open = False
    await trio.sleep(LOOK_SECONDS + 1)
    assert alarm._scope is None
    await trio.sleep(100)
    assert layer.times == []


async def test_nobody_is_woken_that_is_ending(
    stage: Stage, autojump_clock: trio.testing.MockClock
) -> None:
    line: Any = Line()
    alarm, layer = Alarm(stage.broker.spawn, line), Woken()
    alarm.layer = layer  # type: ignore[assignment]  # the part that is called
    alarm.wake_in(1_000)
    line.ending = "the credentials have expired"
    await trio.sleep(2)
    assert layer.times == []


class Mistaken:
    def woken(self) -> None:
        raise ValueError("a mistake of ours")


class Dropping:
    """A link that notes whom it drops."""

    def __init__(self) -> None:
        self.dropped: list[Any] = []

    def drop(self, connection: Any, _reason: str) -> None:
        self.dropped.append(connection)


async def test_a_mistake_costs_one_connection_only(
    stage: Stage, autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    line: Any = Line()
    line.link = Dropping()
    alarm = Alarm(stage.broker.spawn, line)
    alarm.layer = Mistaken()  # type: ignore[assignment]  # the part that is called
    alarm.wake_in(1_000)
    await trio.sleep(2)
    assert line.link.dropped == [line]
    assert "a mistake of ours" in caplog.text


async def test_over_tls_that_was_begun_elsewhere(stage: Stage) -> None:
    line: Any = Line()
    websockets = WebSockets(PulsarFront(stage.broker, PulsarOptions()), lambda *_: True)
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls = context.wrap_bio(incoming, outgoing, server_side=True)
    wire, _ = websockets.connect(TlsParts(tls, incoming, outgoing, b"GET /ws/"), line)
    assert isinstance(wire, TlsWire)
    assert wire.tls is tls
    assert wire.bytes_held == len(b"GET /ws/")
