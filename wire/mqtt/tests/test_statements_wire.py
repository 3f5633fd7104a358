"""Normative statements that the bytes of one connection decide, by their numbers.

The statements are listed in docs/mqtt-statements.md. Closing is the task of the link; here it means
that the wire is closed, and raises the error upon which the link closes.
"""

from __future__ import annotations

import pytest

from magnetar.wire.mqtt.codec.fields import string
from magnetar.wire.mqtt.codec.packets import Connect
from magnetar.wire.mqtt.errors import PacketError
from magnetar.wire.mqtt.reason_codes import ReasonCode
from magnetar.wire.mqtt.wire import MqttWire, WireState

CONNECT = b"\x10\x0c\0\x04MQTT\x04\x02\0\x3c\0\0"
CONNECT_5 = b"\x10\x0d\0\x04MQTT\x05\x02\0\x3c\0\0\0"
CONNACK = b"\x20\x03\0\0\0"
FIRST = {
    "CONNACK": b"\x20\x02\0\0",
    "PUBLISH": b"\x30\x03\0\x01t",
    "PUBACK": b"\x40\x02\0\x01",
    "PUBREL": b"\x62\x02\0\x01",
    "SUBSCRIBE": b"\x82\x06\0\x01" + string("a") + b"\0",
    "PINGREQ": b"\xc0\0",
    "DISCONNECT": b"\xe0\0",
    "AUTH": b"\xf0\x07\x18\x05\x15\0\x02XY",
    "type 0": b"\0\0",
}


def ended(*pieces: bytes, packet_bytes_max: int = 1_000) -> tuple[ReasonCode, bytes]:
    """The reason for which the last piece ends the connection, and what is sent then; the first of
    several is CONNECT, and answered.
    """
    wire = MqttWire(packet_bytes_max)
    for piece in pieces[:-1]:
        assert wire.feed(piece) == len(piece)
        wire.pack([CONNACK])
        assert wire.take_outgoing() == [CONNACK]
    with pytest.raises(PacketError) as caught:
        wire.feed(pieces[-1])
    assert wire.state is WireState.CLOSED
    sent = b"".join(wire.take_outgoing())
    with pytest.raises(PacketError):
        wire.feed(b"\xc0\0")
    assert wire.take_outgoing() == [], "nothing is sent after the end"
    return caught.value.reason, sent


@pytest.mark.parametrize("data", FIRST.values(), ids=FIRST)
def test_the_first_packet_is_connect(data: bytes) -> None:
    """[MQTT-3.1.0-1 of both]: another one is not answered, as its version is not known; not with
    DISCONNECT either [MQTT-3.14.0-1].
    """
    assert ended(data) == (ReasonCode.PROTOCOL_ERROR, b"")


@pytest.mark.parametrize(
    ("connect", "answer"), [(CONNECT, b""), (CONNECT_5, b"\xe0\x01\x82")], ids=["3.1.1", "5.0"]
)
def test_a_second_connect_ends_the_connection(connect: bytes, answer: bytes) -> None:
    """[MQTT-3.1.0-2 of both]: also before the first one is answered, but then without DISCONNECT
    [MQTT-3.14.0-1].
    """
    assert ended(connect, connect) == (ReasonCode.PROTOCOL_ERROR, answer)
    assert ended(connect + connect) == (ReasonCode.PROTOCOL_ERROR, b"")


@pytest.mark.parametrize("level", [4, 5])
def test_another_protocol_name_ends_the_connection(level: int) -> None:
    """[MQTT-3.1.2-1 of both]: it is not answered, as a peer of another protocol does not know."""
    body = b"\0\x04MQTX" + bytes((level,)) + b"\x02\0\0\0\0\0"
    reason, sent = ended(b"\x10" + bytes((len(body),)) + body)
    assert (reason, sent) == (ReasonCode.MALFORMED_PACKET, b"")


def test_another_protocol_level_is_answered_with_its_return_code() -> None:
    """[MQTT-3.1.2-2 of 3.1.1], [MQTT-3.1.2-2]: 1 in the form of 3.1.1, which clients of every
    version can read.
    """
    for level in (0, 3, 6, 0x84):
        connect = b"\x10\x0c\0\x04MQTT" + bytes((level,)) + b"\x02\0\0\0\0"
        expected = (ReasonCode.UNSUPPORTED_PROTOCOL_VERSION, b"\x20\x02\0\x01")
        assert ended(connect) == expected


@pytest.mark.parametrize(
    "body",
    [
        b"\x03\0\0\0\0",  # the reserved flag [MQTT-3.1.2-3 of 3.1.1]
        b"\x1e\0\0\0\0\0\x01t\0\0",  # a will with QoS 3 [MQTT-3.1.2-14 of 3.1.1]
        b"\x42\0\0\0\0\0\0",  # a password without a user name [MQTT-3.1.2-22 of 3.1.1]
        b"\x02\0\0",  # no client identifier [MQTT-3.1.3-3 of 3.1.1]
        b"\x02\0\0\0\x01\xff",  # which is not UTF-8 [MQTT-3.1.3-4 of 3.1.1]
        b"\x02\0\0\0\0\0",  # too long
    ],
)
def test_a_malformed_connect_of_3_1_1_gets_no_connack(body: bytes) -> None:
    """[MQTT-3.1.4-1 of 3.1.1]: no return code says that a packet is malformed
    [MQTT-3.2.2-6 of 3.1.1].
    """
    body = b"\0\x04MQTT\x04" + body
    reason, sent = ended(b"\x10" + bytes((len(body),)) + body)
    assert (reason, sent) == (ReasonCode.MALFORMED_PACKET, b"")


@pytest.mark.parametrize(
    "body",
    [
        b"\x03\0\0\0\0\0",  # the reserved flag [MQTT-3.1.2-3]
        b"\x1e\0\0\0\0\0\0\0\x01t\0\0",  # a will with QoS 3 [MQTT-3.1.2-12]
        b"\x02\0\0\0",  # no client identifier [MQTT-3.1.3-3]
        b"\x02\0\0\0\0\x01\xff",  # which is not UTF-8 [MQTT-3.1.3-4]
        b"\x02\0\0\0\0\0\0",  # too long
    ],
)
def test_a_malformed_connect_of_5_ends_the_connection(body: bytes) -> None:
    """[MQTT-3.1.4-1]: with CONNACK, and not with DISCONNECT [MQTT-3.14.0-1]."""
    body = b"\0\x04MQTT\x05" + body
    reason, sent = ended(b"\x10" + bytes((len(body),)) + body)
    assert (reason, sent) == (ReasonCode.MALFORMED_PACKET, b"\x20\x03\0\x81\0")


MALFORMED = {
    "flags of PUBREL": b"\x60\x02\0\x01",
    "flags of SUBSCRIBE": b"\x80\x06\0\x01\0\x01a\0",
    "flags of PINGREQ": b"\xc1\0",
    "flags of DISCONNECT": b"\xe1\0",
    "QoS 3": b"\x36\x05\0\x01t\0\x01",
    "no UTF-8": b"\x30\x04\0\x01\xff\0",
    "null character": b"\x30\x04\0\x01\0\0",
    "packet identifier 0": b"\x32\x06\0\x01t\0\0\0",
    "cut PUBACK": b"\x40\x01\0",
    "long length": b"\xc0\x80\x80\x80\x80",
}
VIOLATIONS = {
    "type 0": b"\0\0",
    "a server's packet": b"\xd0\0",
    "no filter": b"\x82\x02\0\x01",
}


@pytest.mark.parametrize("data", MALFORMED.values(), ids=MALFORMED)
def test_a_malformed_packet_ends_the_connection(data: bytes) -> None:
    """Flags [MQTT-2.2.2-2 of 3.1.1], among them those of DISCONNECT [MQTT-3.14.1-1 of both]; QoS 3
    [MQTT-3.3.1-4 of 3.1.1]; strings [MQTT-1.5.3-1 of 3.1.1], [MQTT-1.5.3-2 of 3.1.1]; and all
    others [MQTT-4.13.1-1]. 5.0 is told why.
    """
    assert ended(CONNECT, data) == (ReasonCode.MALFORMED_PACKET, b"")
    assert ended(CONNECT_5, data) == (ReasonCode.MALFORMED_PACKET, b"\xe0\x01\x81")


@pytest.mark.parametrize("data", VIOLATIONS.values(), ids=VIOLATIONS)
def test_a_protocol_error_ends_the_connection(data: bytes) -> None:
    """[MQTT-4.8.0-1 of 3.1.1], [MQTT-4.13.1-1]"""
    assert ended(CONNECT, data) == (ReasonCode.PROTOCOL_ERROR, b"")
    data = data[:1] + b"\x03\0\x01\0" if data[0] == 0x82 else data
    assert ended(CONNECT_5, data) == (ReasonCode.PROTOCOL_ERROR, b"\xe0\x01\x82")


def test_packets_up_to_the_announced_size_are_read() -> None:
    """[MQTT-3.2.2-15]: one byte more is too large, and named so, before its body is there."""
    fits = b"\x30\x62\0\x01t\0" + bytes(94)
    wire = MqttWire(100)
    wire.feed(CONNECT_5)
    assert wire.feed(fits) == len(fits) == 100
    for large in (b"\x30\x63\0\x01t\0" + bytes(95), b"\x30\x63\0", b"\x82\x63\0"):
        expected = (ReasonCode.PACKET_TOO_LARGE, b"\xe0\x01\x95")
        assert ended(CONNECT_5, large, packet_bytes_max=100) == expected


@pytest.mark.parametrize("connect", [CONNECT, CONNECT_5], ids=["3.1.1", "5.0"])
def test_nothing_after_a_rejected_connect_is_processed(connect: bytes) -> None:
    """[MQTT-3.1.4-6], [MQTT-3.1.4-5 of 3.1.1]: not what came with it in one piece, and not what
    comes when it is closed.
    """
    wire = MqttWire()
    with pytest.raises(PacketError):
        wire.feed(connect[:9] + b"\x03" + connect[10:] + b"\x30\x03\0\x01t" + b"\xc0\0")
    assert wire.take_events() == []
    wire = MqttWire()
    wire.feed(connect)
    assert [type(event) for event in wire.take_events()] == [Connect]
    wire.close()
    with pytest.raises(PacketError):
        wire.feed(b"\xc0\0")
    assert wire.take_events() == []
