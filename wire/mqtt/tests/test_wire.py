"""One connection's bytes: any split gives the same packets, and what no rule allows ends it."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnetar.core.entry.mqtt.run import packet
from magnetar.core.link.large_frame import LargeFrame
from magnetar.wire.mqtt.codec.fields import string
from magnetar.wire.mqtt.codec.packets import Connect, Disconnect, Pingreq, Subscribe, Version
from magnetar.wire.mqtt.codec.publishes import Publishes
from magnetar.wire.mqtt.errors import PacketError
from magnetar.wire.mqtt.reason_codes import ReasonCode
from magnetar.wire.mqtt.wire import MqttWire, WireState

CONNECT = b"\x10\x0c\0\x04MQTT\x04\x02\0\x3c\0\0"
CONNECT_5 = b"\x10\x0d\0\x04MQTT\x05\x02\0\x3c\0\0\0"
CONNACK = b"\x20\x03\0\0\0"
STREAM = b"".join(
    (
        CONNECT,
        packet(0x30, b"a", None, b"1"),
        packet(0x32, b"b", None, bytes(300)),
        b"\x82\x06\0\x07" + string("a") + b"\x01",
        packet(0x31, b"c", None, b""),
        b"\xc0\0\xe0\0",
    )
)


def fed(*pieces: bytes) -> tuple[MqttWire, list[Any]]:
    """The events, runs of PUBLISH one by one."""
    wire, rest = MqttWire(), b""
    events: list[Any] = []
    for piece in pieces:
        rest += piece
        rest = rest[wire.feed(rest) :]
        for event in wire.take_events():
            events += _each(event)
    assert not rest
    return wire, events


def _each(event: Any) -> Sequence[Any]:
    if not isinstance(event, Publishes):
        return [event]
    return [(one.topic, one.qos, event.data[one.begin : one.end]) for one in event.packets]


def test_a_conversation() -> None:
    wire, events = fed(STREAM)
    assert [type(event) for event in events] == [
        Connect, tuple, tuple, Subscribe, tuple, Pingreq, Disconnect,
    ]  # fmt: skip
    assert [event[:2] for event in events if isinstance(event, tuple)] == [
        ("a", 0),
        ("b", 1),
        ("c", 0),
    ]
    assert wire.take_outgoing() == []


@given(st.lists(st.integers(0, len(STREAM)), max_size=12))
def test_any_split_gives_the_same_packets(cuts: list[int]) -> None:
    places = [0, *sorted(cuts), len(STREAM)]
    pieces = [STREAM[a:b] for a, b in itertools.pairwise(places)]
    assert fed(*pieces)[1] == fed(STREAM)[1]


def test_byte_by_byte() -> None:
    assert fed(*[STREAM[at : at + 1] for at in range(len(STREAM))])[1] == fed(STREAM)[1]


def test_a_large_packet_says_how_large_it_is() -> None:
    wire = MqttWire()
    wire.feed(CONNECT)
    large = packet(0x30, b"t", None, bytes(100_000))
    assert wire.feed(large[:5_000]) == 0
    assert wire.frame_bytes_wanted == len(large)
    frame = LargeFrame(large[:5_000], len(large))
    wire.take_events()
    assert wire.body_in(large[:5_000]) == (0, 0)
    wire.feed(large)
    (run,) = wire.take_events()
    assert isinstance(run, Publishes)
    assert isinstance(frame, LargeFrame)


@pytest.mark.parametrize(
    ("data", "answer"),
    [
        (b"GET / HTTP/1.1", []),  # [MQTT-3.1.0-1]
        (b"\x30\x03\0\x01t", []),
        (b"\xc0\0", []),
        (b"\x10\x0c\0\x04MQTT\x09\x02\0\0\0\0", [b"\x20\x02\0\x01"]),
        (b"\x10\x0c\0\x04MQTX\x04\x02\0\0\0\0", []),
        (b"\x10\x0c\0\x04MQTT\x04\x03\0\0\0\0", []),
        (b"\x10\x0d\0\x04MQTT\x05\x03\0\0\0\0\0", [b"\x20\x03\0\x81\0"]),
        (b"\x10\xff\xff\xff\x7f", []),
        (CONNECT + CONNECT, []),  # [MQTT-3.1.0-2]
        (CONNECT_5 + CONNECT_5, [b"\xe0\x01\x82"]),
        (CONNECT_5 + b"\x36\x05\0\x01t\0\x01", [b"\xe0\x01\x81"]),
        (CONNECT + b"\x36\x05\0\x01t\0\x01", []),
        (CONNECT_5 + b"\x30\xff\xff\xff\x7f", [b"\xe0\x01\x95"]),
        (CONNECT_5 + b"\x82\xff\xff\xff\x7f", [b"\xe0\x01\x95"]),
    ],
)
def test_what_no_rule_allows(data: bytes, answer: list[bytes]) -> None:
    """Only 5.0 has words for it, but for the return codes of CONNACK; and for what follows an
    accepted CONNECT.
    """
    wire = MqttWire(packet_bytes_max=1_000_000)
    if data.startswith(CONNECT_5):
        wire.feed(CONNECT_5)
        wire.pack([CONNACK])
        assert wire.take_outgoing() == [CONNACK]
        data = data[len(CONNECT_5) :]
    with pytest.raises(PacketError):
        wire.feed(data)
    assert wire.take_outgoing() == answer
    assert wire.state is WireState.CLOSED
    with pytest.raises(PacketError):
        wire.feed(b"\xc0\0")
    assert wire.take_outgoing() == []


def test_what_came_before_it_still_counts() -> None:
    wire = MqttWire()
    with pytest.raises(PacketError) as caught:
        wire.feed(CONNECT + packet(0x30, b"t", None, b"x") + b"\x00\0")
    assert caught.value.reason is ReasonCode.PROTOCOL_ERROR
    assert [type(event) for event in wire.take_events()] == [Connect, Publishes]


def test_the_version_is_what_connect_says() -> None:
    for data, version in ((CONNECT, Version.V3_1_1), (CONNECT_5, Version.V5)):
        wire, (connect,) = fed(data)
        assert wire.version is connect.version is version


def test_a_closed_wire_hears_nothing() -> None:
    wire, _ = fed(CONNECT)
    wire.close()
    with pytest.raises(PacketError):
        wire.feed(b"\xc0\0")


@given(st.binary(max_size=80), st.booleans())
def test_arbitrary_bytes(data: bytes, new: bool) -> None:
    wire = MqttWire()
    wire.feed(CONNECT_5 if new else CONNECT)
    try:
        taken = wire.feed(data)
        assert 0 <= taken <= len(data)
    except PacketError:
        assert wire.state is WireState.CLOSED
