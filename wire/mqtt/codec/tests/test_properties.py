"""Properties (2.2.2): which are known, where they may stand, how often, with which values."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnetar.core.entry.mqtt.properties import properties_of
from magnetar.core.entry.record import Header
from magnetar.wire.mqtt.codec import properties
from magnetar.wire.mqtt.codec.fields import FieldReader, string, varint
from magnetar.wire.mqtt.codec.properties import (
    IN_PUBLISH,
    TYPES,
    USER_PROPERTIES_MAX,
    Property,
    packed,
    read_properties,
)
from magnetar.wire.mqtt.errors import MalformedPacket, PacketError, ProtocolViolation
from magnetar.wire.mqtt.reason_codes import ReasonCode

ALL = frozenset(Property)
EXAMPLES: dict[Property, Any] = {
    Property.PAYLOAD_FORMAT_INDICATOR: 1,
    Property.MESSAGE_EXPIRY_INTERVAL: 3600,
    Property.CONTENT_TYPE: "text/plain",
    Property.RESPONSE_TOPIC: "answers/1",
    Property.CORRELATION_DATA: b"\xff\0",
    Property.SUBSCRIPTION_IDENTIFIER: 268_435_455,
    Property.SESSION_EXPIRY_INTERVAL: 0xFFFFFFFF,
    Property.ASSIGNED_CLIENT_IDENTIFIER: "id",
    Property.SERVER_KEEP_ALIVE: 60,
    Property.AUTHENTICATION_METHOD: "SCRAM-SHA-256",
    Property.AUTHENTICATION_DATA: b"n,,",
    Property.REQUEST_PROBLEM_INFORMATION: 0,
    Property.WILL_DELAY_INTERVAL: 5,
    Property.REQUEST_RESPONSE_INFORMATION: 1,
    Property.RESPONSE_INFORMATION: "answers",
    Property.SERVER_REFERENCE: "other:1883",
    Property.REASON_STRING: "because",
    Property.RECEIVE_MAXIMUM: 20,
    Property.TOPIC_ALIAS_MAXIMUM: 10,
    Property.TOPIC_ALIAS: 7,
    Property.MAXIMUM_QOS: 1,
    Property.RETAIN_AVAILABLE: 1,
    Property.USER_PROPERTY: [("a", "1"), ("a", "2"), ("", "")],
    Property.MAXIMUM_PACKET_SIZE: 1024,
    Property.WILDCARD_SUBSCRIPTION_AVAILABLE: 1,
    Property.SUBSCRIPTION_IDENTIFIER_AVAILABLE: 1,
    Property.SHARED_SUBSCRIPTION_AVAILABLE: 0,
}


def read(data: bytes, allowed: frozenset[Property] = ALL) -> properties.Properties:
    fields = FieldReader(data, 0, len(data))
    found = read_properties(fields, allowed)
    fields.end()
    return found


def body(data: bytes) -> bytes:
    return varint(len(data)) + data


def test_every_property_has_a_type_and_an_example() -> None:
    assert TYPES.keys() == EXAMPLES.keys() == set(Property)


@pytest.mark.parametrize("name", Property, ids=lambda one: one.name)
def test_each_alone(name: Property) -> None:
    found = {name: EXAMPLES[name]}
    assert read(packed(found)) == found
    with pytest.raises(MalformedPacket, match="belong"):
        read(packed(found), frozenset())


@given(st.sets(st.sampled_from(list(Property))))
def test_together(names: set[Property]) -> None:
    found = {name: EXAMPLES[name] for name in names}
    assert read(packed(found)) == found


@pytest.mark.parametrize("name", sorted(ALL - {Property.USER_PROPERTY}), ids=lambda one: one.name)
def test_none_but_user_properties_stands_twice(name: Property) -> None:
    data = packed({name: EXAMPLES[name]})[1:]
    with pytest.raises(ProtocolViolation, match="twice"):
        read(body(data + data))


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"\x01\x02", ReasonCode.PROTOCOL_ERROR),
        (b"\x17\x02", ReasonCode.PROTOCOL_ERROR),
        (b"\x21\0\0", ReasonCode.PROTOCOL_ERROR),
        (b"\x27\0\0\0\0", ReasonCode.PROTOCOL_ERROR),
        (b"\x0b\0", ReasonCode.PROTOCOL_ERROR),
        (b"\x23\0\0", ReasonCode.TOPIC_ALIAS_INVALID),
        (b"\x08" + string("a/+"), ReasonCode.PROTOCOL_ERROR),
        (b"\x04\x00", ReasonCode.MALFORMED_PACKET),
        (b"\x80\x01\x00", ReasonCode.MALFORMED_PACKET),
        (b"\x02\0\0\0", ReasonCode.MALFORMED_PACKET),
        (b"\x26" + string("name"), ReasonCode.MALFORMED_PACKET),
        (b"\x03" + b"\0\x02\xff\xfe", ReasonCode.MALFORMED_PACKET),
    ],
)
def test_bad_values(data: bytes, reason: ReasonCode) -> None:
    with pytest.raises(PacketError) as caught:
        read(body(data))
    assert caught.value.reason is reason


def test_user_properties_have_a_number() -> None:
    """Millions in one packet would hold up the loop."""
    one = b"\x26\0\1a\0\1b"
    most = one * USER_PROPERTIES_MAX
    found = read(body(most), IN_PUBLISH)
    assert found == {Property.USER_PROPERTY: [("a", "b")] * USER_PROPERTIES_MAX}
    with pytest.raises(PacketError) as refused:
        read(body(most + one), IN_PUBLISH)
    assert refused.value.reason is ReasonCode.QUOTA_EXCEEDED


def test_without_properties_the_length_is_zero() -> None:
    """[MQTT-2.2.2-1]"""
    assert packed({}) == b"\0"
    assert read(b"\0") == {}


def test_a_length_beyond_the_packet() -> None:
    with pytest.raises(MalformedPacket):
        read(b"\x05\x01\x01")


@given(st.binary(max_size=40))
def test_arbitrary_bytes(data: bytes) -> None:
    with contextlib.suppress(PacketError):
        read(data)


OWN_NAMES = (
    *(b"mqtt.content-type", b"mqtt.response-topic", b"mqtt.correlation-data"),
    *(b"mqtt.payload-format", b"mqtt.expires-at", b"mqtt.qos", b"mqtt.retain"),
    *(b"mqtt.time", b"mqtt.null"),
)
UNUSUAL = (
    *(b"0", b"1", b"9" * 18, b"9" * 30, b"a/b", b"a/#", b"+", b"\xed\xa0\x80", b"a\0"),
    *(b"x" * 65_535, b"x" * 65_536),
)
VALUES = st.none() | st.binary(max_size=8) | st.sampled_from(UNUSUAL)


@given(st.lists(st.tuples(st.sampled_from(OWN_NAMES) | st.binary(max_size=4), VALUES), max_size=12))
def test_headers_of_other_protocols_make_valid_properties(headers: list[Header]) -> None:
    """Whatever a Pulsar or Kafka client writes, a strict client of MQTT reads."""
    read(body(properties_of(headers, 1_000)), IN_PUBLISH)
