"""Packets that clients send, good and bad, byte for byte."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnetar.wire.mqtt.codec.decode import decode, decode_connect
from magnetar.wire.mqtt.codec.fields import binary, string
from magnetar.wire.mqtt.codec.packets import (
    Acknowledgement,
    Auth,
    Connect,
    Disconnect,
    PacketType,
    Pingreq,
    RetainHandling,
    Subscribe,
    SubscriptionOptions,
    Unsubscribe,
    Version,
    Will,
)
from magnetar.wire.mqtt.codec.properties import Property
from magnetar.wire.mqtt.errors import PacketError
from magnetar.wire.mqtt.reason_codes import ReasonCode

V3_1, V3, V5 = Version
MALFORMED, VIOLATION = ReasonCode.MALFORMED_PACKET, ReasonCode.PROTOCOL_ERROR
OLD, NEW = b"\0\x04MQTT\x04", b"\0\x04MQTT\x05"
OLDEST = b"\0\x06MQIsdp\x03"


def refusal(first: int, body: bytes, version: Version) -> ReasonCode:
    with pytest.raises(PacketError) as caught:
        decode(first, body, version)
    return caught.value.reason


# -- CONNECT ------------------------------------------------------------------------------------


def test_the_smallest_connects() -> None:
    assert decode_connect(0x10, OLD + b"\x02\0\x3c\0\0") == Connect(V3, "", True, 60)
    assert decode_connect(0x10, NEW + b"\0\0\0\0" + string("me")) == Connect(V5, "me", False, 0)
    assert decode_connect(0x10, OLDEST + b"\x02\0\x01" + string("x")) == Connect(V3_1, "x", True, 1)


def test_a_connect_with_everything() -> None:
    """Client id, will, user name, password, in that order [MQTT-3.1.3-1]."""
    body = b"".join(
        (
            NEW, b"\xf6\0\x0a", b"\x05\x11\0\0\0\x05", string("me"),
            b"\x05\x18\0\0\0\x07", string("bye"), binary(b"gone"), string("user"), binary(b"pass"),
        )
    )  # fmt: skip
    will = Will("bye", b"gone", 2, True, {Property.WILL_DELAY_INTERVAL: 7})
    expected = Connect(
        V5, "me", True, 10, "user", b"pass", will, {Property.SESSION_EXPIRY_INTERVAL: 5}
    )
    assert decode_connect(0x10, body) == expected


@pytest.mark.parametrize(
    ("first", "body", "reason"),
    [
        (0x11, OLD + b"\x02\0\x3c\0\0", MALFORMED),
        (0x10, b"\0\x04MQTX\x04\x02\0\0\0\0", MALFORMED),
        (0x10, b"\xff\xffMQTT", MALFORMED),
        (0x10, b"\0\x04MQTT\x06\x02\0\0\0\0", ReasonCode.UNSUPPORTED_PROTOCOL_VERSION),
        (0x10, b"\0\x04MQTT\x03\x02\0\0\0\0", ReasonCode.UNSUPPORTED_PROTOCOL_VERSION),
        (0x10, b"\0\x06MQIsdp\x04\x02\0\0\0\0", ReasonCode.UNSUPPORTED_PROTOCOL_VERSION),
        (0x10, OLD + b"\x03\0\0\0\0", MALFORMED),  # [MQTT-3.1.2-3]
        (0x10, NEW + b"\x03\0\0\0\0\0", MALFORMED),
        (0x10, OLD + b"\x1e\0\0\0\0" + string("t") + binary(b""), MALFORMED),  # [MQTT-3.1.2-12]
        (0x10, OLD + b"\x0a\0\0\0\0", MALFORMED),  # [MQTT-3.1.2-11]
        (0x10, OLD + b"\x22\0\0\0\0", MALFORMED),  # [MQTT-3.1.2-13]
        (0x10, OLD + b"\x42\0\0\0\0" + binary(b"p"), MALFORMED),  # [MQTT-3.1.2-22 of 3.1.1]
        (0x10, OLD + b"\x06\0\0\0\0" + string("a/#") + binary(b""), ReasonCode.TOPIC_NAME_INVALID),
        (0x10, OLD + b"\x82\0\0\0\0", MALFORMED),  # the user name is missing [MQTT-3.1.2-17]
        (0x10, OLD + b"\x02\0\0\0\0x", MALFORMED),  # [MQTT-3.1.2-16]
        (0x10, OLD + b"\x02\0\0\0\x02\xff\xff", MALFORMED),  # [MQTT-3.1.3-4]
        (0x10, NEW + b"\x02\0\0\x03\x16\0\0\0\0", VIOLATION),  # data without a method
        (0x10, NEW + b"\x02\0\0\x02\x01\x01\0\0", MALFORMED),  # a property of others
        (0x10, NEW + b"\x02\0\0\x06\x21\0\x01\x21\0\x01\0\0", VIOLATION),  # twice
    ],
)
def test_bad_connects(first: int, body: bytes, reason: ReasonCode) -> None:
    with pytest.raises(PacketError) as caught:
        decode_connect(first, body)
    assert caught.value.reason is reason


def test_a_password_alone_is_allowed_in_5() -> None:
    found = decode_connect(0x10, NEW + b"\x42\0\0\0\0\0" + binary(b"token"))
    assert (found.username, found.password) == (None, b"token")


def test_quirks_of_3_1() -> None:
    """The reserved flag may be set, and a packet may end where a user name was announced."""
    found = decode_connect(0x10, OLDEST + b"\xc3\0\0" + string("x"))
    assert (found.clean_start, found.username, found.password) == (True, None, None)
    assert decode(0x8A, b"\0\x01" + string("a") + b"\0", V3_1) == Subscribe(
        1, (("a", SubscriptionOptions(0)),)
    )
    assert decode(0x6A, b"\0\x01", V3_1) == Acknowledgement(PacketType.PUBREL, 1)


# -- acknowledgements -----------------------------------------------------------------------------


@pytest.mark.parametrize("version", Version)
@pytest.mark.parametrize("first", [0x40, 0x50, 0x62, 0x70])
def test_acknowledgements(first: int, version: Version) -> None:
    expected = Acknowledgement(PacketType(first >> 4), 700)
    assert decode(first, b"\x02\xbc", version) == expected
    for flags in {first & 15 ^ 1, first & 15 ^ 2, first & 15 ^ 4}:
        assert refusal(first & 0xF0 | flags, b"\x02\xbc", version) is MALFORMED
    assert refusal(first, b"\0\0", version) is MALFORMED
    assert refusal(first, b"\0", version) is MALFORMED


def test_acknowledgements_of_5() -> None:
    assert decode(0x40, b"\0\x01\x10", V5).reason is ReasonCode.NO_MATCHING_SUBSCRIBERS  # type: ignore[union-attr]
    assert decode(0x62, b"\0\x01\x92\0", V5) == Acknowledgement(
        PacketType.PUBREL, 1, ReasonCode.PACKET_IDENTIFIER_NOT_FOUND
    )
    found = decode(0x50, b"\0\x01\x80\x06\x1f\0\x03why", V5)
    assert found == Acknowledgement(
        PacketType.PUBREC, 1, ReasonCode.UNSPECIFIED_ERROR, {Property.REASON_STRING: "why"}
    )
    assert refusal(0x40, b"\0\x01\x92", V5) is VIOLATION, "not a reason of PUBACK"
    assert refusal(0x62, b"\0\x01\x10", V5) is VIOLATION
    assert refusal(0x40, b"\0\x01\0\0x", V5) is MALFORMED
    assert refusal(0x40, b"\0\x01\0", V3) is MALFORMED, "3.1.1 has no reasons"


# -- SUBSCRIBE, UNSUBSCRIBE -----------------------------------------------------------------------


def test_subscriptions() -> None:
    body = b"\0\x0a" + string("a/+") + b"\x01" + string("$share/g/b") + b"\x02"
    expected = (("a/+", SubscriptionOptions(1)), ("$share/g/b", SubscriptionOptions(2)))
    assert decode(0x82, body, V3) == Subscribe(10, expected)
    assert decode(0x82, body[:2] + b"\0" + body[2:], V5) == Subscribe(10, expected)
    options = SubscriptionOptions(2, True, True, RetainHandling.NEVER)
    found = decode(0x82, b"\0\x01\x02\x0b\x05" + string("a") + b"\x2e", V5)
    assert found == Subscribe(1, (("a", options),), {Property.SUBSCRIPTION_IDENTIFIER: 5})


@pytest.mark.parametrize(
    ("body", "version", "reason"),
    [
        (b"\0\x01", V3, VIOLATION),  # [MQTT-3.8.3-3 of 3.1.1]
        (b"\0\x01\0", V5, VIOLATION),  # [MQTT-3.8.3-2]
        (b"\0\0" + string("a") + b"\0", V3, MALFORMED),
        (b"\0\x01" + string("a") + b"\x03", V3, MALFORMED),
        (b"\0\x01" + string("a") + b"\x04", V3, MALFORMED),  # [MQTT-3.8.3-4 of 3.1.1]
        (b"\0\x01\0" + string("a") + b"\x03", V5, VIOLATION),  # 3.8.3.1
        (b"\0\x01\0" + string("a") + b"\x40", V5, MALFORMED),  # [MQTT-3.8.3-5]
        (b"\0\x01\0" + string("a") + b"\x30", V5, VIOLATION),  # retain handling 3
        (b"\0\x01\0" + string("$share/g/a") + b"\x04", V5, VIOLATION),  # [MQTT-3.8.3-4]
        (b"\0\x01" + string("a"), V3, MALFORMED),
        (b"\0\x01\0\x02\xff\xff\0"[:2] + b"\0\x02\xff\xff\0", V3, MALFORMED),  # [MQTT-3.8.3-1]
    ],
)
def test_bad_subscriptions(body: bytes, version: Version, reason: ReasonCode) -> None:
    assert refusal(0x82, body, version) is reason


def test_unsubscribing() -> None:
    body = b"\0\x0a" + string("a") + string("b")
    assert decode(0xA2, body, V3) == Unsubscribe(10, ("a", "b"))
    assert decode(0xA2, body[:2] + b"\0" + body[2:], V5) == Unsubscribe(10, ("a", "b"))
    assert refusal(0xA2, b"\0\x0a", V3) is VIOLATION  # [MQTT-3.10.3-2]
    assert refusal(0xA0, body, V3) is MALFORMED  # [MQTT-3.10.1-1]
    assert refusal(0x80, b"\0\x01" + string("a") + b"\0", V3) is MALFORMED  # [MQTT-3.8.1-1]


# -- the rest -------------------------------------------------------------------------------------


def test_pings_and_goodbyes() -> None:
    assert decode(0xC0, b"", V3) == Pingreq()
    assert decode(0xE0, b"", V3) == decode(0xE0, b"", V5) == Disconnect()
    assert decode(0xE0, b"\x04", V5) == Disconnect(ReasonCode.DISCONNECT_WITH_WILL)
    found = decode(0xE0, b"\0\x05\x11\0\0\0\x0a", V5)
    assert found == Disconnect(ReasonCode.SUCCESS, {Property.SESSION_EXPIRY_INTERVAL: 10})
    assert refusal(0xC0, b"x", V3) is MALFORMED
    assert refusal(0xC1, b"", V3) is MALFORMED
    assert refusal(0xE1, b"", V3) is MALFORMED  # [MQTT-3.14.1-1]
    assert refusal(0xE0, b"\0", V3) is MALFORMED
    assert refusal(0xE0, b"\x8e", V5) is VIOLATION, "only servers say that a session is taken over"


def test_authentication() -> None:
    body = b"\x18\x05\x15\0\x02XY"
    expected = Auth(ReasonCode.CONTINUE_AUTHENTICATION, {Property.AUTHENTICATION_METHOD: "XY"})
    assert decode(0xF0, body, V5) == expected
    assert refusal(0xF0, body, V3) is VIOLATION
    assert refusal(0xF0, b"", V5) is VIOLATION
    assert refusal(0xF0, b"\0\0", V5) is VIOLATION
    assert refusal(0xF0, b"\x18\0", V5) is VIOLATION
    assert refusal(0xF2, body, V5) is MALFORMED  # [MQTT-3.15.1-1]


@pytest.mark.parametrize("version", Version)
@pytest.mark.parametrize("first", [0x00, 0x10, 0x20, 0x90, 0xB0, 0xD0])
def test_what_no_client_sends(first: int, version: Version) -> None:
    """A second CONNECT among them [MQTT-3.1.0-2]."""
    assert refusal(first, b"\0\0", version) is VIOLATION


@given(st.integers(0, 255), st.binary(max_size=60), st.sampled_from(Version))
def test_arbitrary_bytes(first: int, body: bytes, version: Version) -> None:
    for parse in (lambda: decode(first, body, version), lambda: decode_connect(first, body)):
        with contextlib.suppress(PacketError):
            parse()
