"""Packets that the server sends, byte for byte."""

from __future__ import annotations

from magnetar.wire.mqtt.codec import encode
from magnetar.wire.mqtt.codec.packets import PacketType, Version
from magnetar.wire.mqtt.codec.properties import Property
from magnetar.wire.mqtt.reason_codes import ReasonCode

V3_1, V3, V5 = Version
WHY = {Property.REASON_STRING: "why"}
GRANTED = (ReasonCode.SUCCESS, ReasonCode.GRANTED_QOS_2, ReasonCode.NOT_AUTHORIZED)


def test_connack() -> None:
    """Session present is 0 with a failure [MQTT-3.2.2-6], and reserved in 3.1."""
    accepted = {version: encode.connack(version, ReasonCode.SUCCESS, session_present=True)
                for version in Version}  # fmt: skip
    assert accepted == {
        V3_1: b"\x20\x02\0\0",
        V3: b"\x20\x02\x01\0",
        V5: b"\x20\x03\x01\0\0",
    }
    refused = ReasonCode.NOT_AUTHORIZED
    assert encode.connack(V3, refused, session_present=True) == b"\x20\x02\0\x05"
    assert encode.connack(V5, refused, properties=WHY) == b"\x20\x09\0\x87\x06\x1f\0\x03why"


def test_return_codes_of_3_1_1() -> None:
    codes = {reason: encode.connack(V3, reason)[-1] for reason in ReasonCode if reason.fails}
    assert codes[ReasonCode.UNSUPPORTED_PROTOCOL_VERSION] == 1
    assert codes[ReasonCode.CLIENT_IDENTIFIER_NOT_VALID] == 2
    assert codes[ReasonCode.SERVER_BUSY] == 3
    assert codes[ReasonCode.BAD_USER_NAME_OR_PASSWORD] == 4
    assert set(codes.values()) == {1, 2, 3, 4, 5}


def test_acknowledgements() -> None:
    assert encode.acknowledgement(V3, PacketType.PUBACK, 1) == b"\x40\x02\0\x01"
    assert encode.acknowledgement(V5, PacketType.PUBREC, 258) == b"\x50\x02\x01\x02"
    assert encode.acknowledgement(V3, PacketType.PUBREL, 1) == b"\x62\x02\0\x01"
    unknown = ReasonCode.PACKET_IDENTIFIER_NOT_FOUND
    assert encode.acknowledgement(V5, PacketType.PUBCOMP, 1, unknown) == b"\x70\x03\0\x01\x92"
    assert encode.acknowledgement(V3, PacketType.PUBCOMP, 1, unknown, WHY) == b"\x70\x02\0\x01"
    assert (
        encode.acknowledgement(V5, PacketType.PUBCOMP, 1, unknown, WHY)
        == b"\x70\x0a\0\x01\x92\x06\x1f\0\x03why"
    )


def test_suback_has_a_code_for_each_filter() -> None:
    """[MQTT-3.8.4-6]"""
    assert encode.suback(V3, 7, GRANTED) == b"\x90\x05\0\x07\0\x02\x80"
    assert encode.suback(V5, 7, GRANTED) == b"\x90\x06\0\x07\0\0\x02\x87"


def test_unsuback() -> None:
    codes = (ReasonCode.SUCCESS, ReasonCode.NO_SUBSCRIPTION_EXISTED)
    assert encode.unsuback(V3, 7, codes) == b"\xb0\x02\0\x07"
    assert encode.unsuback(V5, 7, codes) == b"\xb0\x05\0\x07\0\0\x11"


def test_the_rest() -> None:
    assert encode.PINGRESP == b"\xd0\0"
    assert encode.disconnect(ReasonCode.SUCCESS) == b"\xe0\0"
    assert encode.disconnect(ReasonCode.SESSION_TAKEN_OVER) == b"\xe0\x01\x8e"
    assert encode.disconnect(ReasonCode.SERVER_MOVED, WHY) == b"\xe0\x08\x9d\x06\x1f\0\x03why"
    method = {Property.AUTHENTICATION_METHOD: "XY"}
    assert (
        encode.auth(ReasonCode.CONTINUE_AUTHENTICATION, method) == b"\xf0\x07\x18\x05\x15\0\x02XY"
    )
