"""Normative statements about transports and WebSocket, by their numbers.

The statements are listed in docs/mqtt-statements.md. `interop_tests/mqtt` has stock clients on TCP,
TLS and WebSocket.
"""

from __future__ import annotations

from typing import Any

import pytest
from wsproto import ConnectionType, WSConnection
from wsproto.events import (
    AcceptConnection,
    BytesMessage,
    CloseConnection,
    Event,
    Request,
    TextMessage,
)

from magnetar.core.kernel.errors import WireError
from magnetar.core.testing.bench import settled
from magnetar.core.testing.line import Line
from magnetar.wire.mqtt.conftest import Stage
from magnetar.wire.mqtt.tests import peer
from magnetar.wire.mqtt.tests.peer import V3, V5, publish, subscribe

OLD_AND_NEW = pytest.mark.parametrize("version", [V3, V5])


class Page:
    """A client over WebSocket."""

    def __init__(self, stage: Stage, *subprotocols: str) -> None:
        self.line = Line()
        connection: Any = self.line
        self.wire, self.session = stage.front.connect_by_websocket(stage.services, connection)
        self.frames = WSConnection(ConnectionType.CLIENT)
        request = Request(host="h", target="/mqtt", subprotocols=list(subprotocols))
        self.feed(self.frames.send(request))
        (self.answer,) = self.received()

    def feed(self, data: bytes) -> None:
        self.wire.feed(data)
        for event in self.wire.take_events():
            self.session.handle(event)

    def received(self) -> list[Event]:
        self.frames.receive_data(b"".join(self.wire.take_outgoing()))
        return list(self.frames.events())

    async def says(self, *messages: Event) -> list[Event]:
        for message in messages:
            self.feed(self.frames.send(message))
        await settled()
        return self.received()


@pytest.fixture
async def page(stage: Stage) -> Page:
    return Page(stage, "mqtt")


def packets(events: list[Event], version: int) -> list[peer.Received]:
    """The packets in frames, which are all binary."""
    data = []
    for event in events:
        assert isinstance(event, BytesMessage)
        data.append(bytes(event.data))
    return peer.parse(data, version)


@pytest.mark.parametrize("offered", [["mqtt"], ["other", "mqtt"], ["mqtt", "mqttv3.1"]])
async def test_the_subprotocol(stage: Stage, offered: list[str]) -> None:
    """[MQTT-6.0.0-4 of both]: the server selects `mqtt`."""
    page = Page(stage, *offered)
    assert isinstance(page.answer, AcceptConnection)
    assert page.answer.subprotocol == "mqtt"


@OLD_AND_NEW
async def test_packets_are_sent_in_binary_frames(page: Page, version: int) -> None:
    """[MQTT-6.0.0-1 of both]: all that the server sends."""
    stream = b"".join(
        (peer.connect(version=version), subscribe(("t", 2), version=version),
         publish("t", "é".encode(), qos=2, number=1, version=version), peer.PINGREQ)
    )  # fmt: skip
    answers = packets(await page.says(BytesMessage(stream)), version)
    assert {one.kind for one in answers} == {"CONNACK", "SUBACK", "PUBREC", "PUBLISH", "PINGRESP"}


@OLD_AND_NEW
async def test_a_text_frame_ends_the_connection(page: Page, version: int) -> None:
    """[MQTT-6.0.0-1 of both]: even with the bytes of a packet, of which nothing is handled."""
    await page.says(BytesMessage(peer.connect(version=version)))
    with pytest.raises(WireError, match="text"):
        page.feed(page.frames.send(TextMessage(peer.PINGREQ[:1].decode("latin-1"))))
    (event,) = page.received()
    assert isinstance(event, CloseConnection)
    assert event.code == 1003, "unsupported data"


@OLD_AND_NEW
@pytest.mark.parametrize("size", [1, 2, 3, 7, 20, 10_000])
async def test_packets_and_frames_are_independent(page: Page, version: int, size: int) -> None:
    """[MQTT-6.0.0-2 of both]: a frame has parts of packets, or several."""
    numbers = range(1, 6)
    stream = peer.connect(version=version) + b"".join(
        publish("t", b"x" * number, qos=1, number=number, version=version) for number in numbers
    )
    frames = [BytesMessage(stream[at : at + size]) for at in range(0, len(stream), size)]
    answers = packets(await page.says(*frames), version)
    assert [(one.kind, one.number) for one in answers] == [
        ("CONNACK", 0), *(("PUBACK", number) for number in numbers)
    ]  # fmt: skip


@OLD_AND_NEW
async def test_fragments_of_a_message(page: Page, version: int) -> None:
    """[MQTT-6.0.0-2 of both]: WebSocket's own fragments, too."""
    stream = peer.connect(version=version) + peer.PINGREQ
    parts = [stream[:5], stream[5:6], stream[6:]]
    events = [BytesMessage(part, message_finished=part is parts[-1]) for part in parts]
    answers = packets(await page.says(*events), version)
    assert [one.kind for one in answers] == ["CONNACK", "PINGRESP"]
