"""Normative statements about data types and fixed headers (1.5 and 2), by their numbers.

The statements are listed in docs/mqtt-statements.md.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from magnetar.wire.mqtt.codec import encode
from magnetar.wire.mqtt.codec.decode import decode, decode_connect
from magnetar.wire.mqtt.codec.fields import binary, string, u16, varint, varint_at
from magnetar.wire.mqtt.codec.packets import PacketType, Subscribe, Unsubscribe, Version
from magnetar.wire.mqtt.codec.properties import NO_PROPERTIES, Property
from magnetar.wire.mqtt.codec.publishes import Publish, TopicNames, parse_publishes
from magnetar.wire.mqtt.errors import MalformedPacket, PacketError
from magnetar.wire.mqtt.reason_codes import ReasonCode

Read = Callable[[bytes, Version], str]
V3, V5 = Version.V3_1_1, Version.V5
OLD_AND_NEW = pytest.mark.parametrize("version", [V3, V5])
PROPERTIES = {V3: b"", V5: b"\0"}
LEVEL = {V3: b"\0\x04MQTT\x04", V5: b"\0\x04MQTT\x05"}

ILL_FORMED = {
    "first surrogate": b"\xed\xa0\x80",
    "last surrogate": b"\xed\xbf\xbf",
    "surrogate pair": b"\xed\xa0\x80\xed\xb0\x80",
    "above U+10FFFF": b"\xf4\x90\x80\x80",
    "overlong slash": b"\xc0\xaf",
    "overlong null": b"\xc0\x80",
    "lone continuation": b"a\x80",
    "cut character": b"a\xe2\x82",
    "latin-1": b"caf\xe9",
}
WELL_FORMED = ["\ud7ff", "\ue000", "\uffff", "\U0010ffff", "é", "A\U0002a6d4", "\x01", "\x9f"]


def publish(data: bytes, version: Version) -> Publish:
    behind, (found,) = parse_publishes(
        data, 0, TopicNames(), 1_000, has_properties=version == Version.V5
    )
    assert behind == len(data)
    return found


def packet(first: int, body: bytes) -> bytes:
    return bytes((first,)) + varint(len(body)) + body


def client_id(text: bytes, version: Version) -> str:
    body = LEVEL[version] + b"\x02\0\0" + PROPERTIES[version] + binary(text)
    return decode_connect(0x10, body).client_id


def username(text: bytes, version: Version) -> str:
    body = LEVEL[version] + b"\x82\0\0" + PROPERTIES[version] + string("me") + binary(text)
    return decode_connect(0x10, body).username or ""


def will_topic(text: bytes, version: Version) -> str:
    rest = PROPERTIES[version]
    body = LEVEL[version] + b"\x06\0\0" + rest + string("me") + rest + binary(text) + binary(b"")
    will = decode_connect(0x10, body).will
    return will.topic if will else ""


def topic(text: bytes, version: Version) -> str:
    return publish(packet(0x30, binary(text) + PROPERTIES[version]), version).topic


def filter_to_subscribe(text: bytes, version: Version) -> str:
    found = decode(0x82, u16(1) + PROPERTIES[version] + binary(text) + b"\0", version)
    assert isinstance(found, Subscribe)
    return found.filters[0][0]


def filter_to_unsubscribe(text: bytes, version: Version) -> str:
    found = decode(0xA2, u16(1) + PROPERTIES[version] + binary(text), version)
    assert isinstance(found, Unsubscribe)
    return found.filters[0]


PLACES = pytest.mark.parametrize(
    "read",
    [client_id, username, will_topic, topic, filter_to_subscribe, filter_to_unsubscribe],
)
"""Where a client writes strings of its own, in any version."""


# -- strings --------------------------------------------------------------------------------------


@OLD_AND_NEW
@PLACES
@pytest.mark.parametrize("text", ILL_FORMED.values(), ids=ILL_FORMED)
def test_ill_formed_strings_are_malformed(read: Read, text: bytes, version: Version) -> None:
    """[MQTT-1.5.4-1], [MQTT-1.5.3-1 of 3.1.1]: surrogates among them. By place: client identifier
    [MQTT-3.1.3-4 of both]; will topic [MQTT-3.1.3-11], [MQTT-3.1.3-10 of 3.1.1]; user name
    [MQTT-3.1.3-12], [MQTT-3.1.3-11 of 3.1.1]; topic name [MQTT-3.3.2-1 of both]; filters
    [MQTT-3.8.3-1 of both], [MQTT-3.10.3-1 of both].
    """
    with pytest.raises(MalformedPacket):
        read(text, version)


@OLD_AND_NEW
@PLACES
@pytest.mark.parametrize("text", WELL_FORMED, ids=ascii)
def test_all_other_characters_are_read(read: Read, text: str, version: Version) -> None:
    """The other side of [MQTT-1.5.4-1] and [MQTT-1.5.3-1 of 3.1.1]: nothing more is refused."""
    assert read(text.encode(), version) == text


@OLD_AND_NEW
@PLACES
@pytest.mark.parametrize("text", [b"\0", b"a\0", b"\0a", b"a/\0/b"])
def test_no_string_holds_the_null_character(read: Read, text: bytes, version: Version) -> None:
    """[MQTT-1.5.4-2], [MQTT-1.5.3-2 of 3.1.1], and so neither names nor filters
    [MQTT-4.7.3-2 of both].
    """
    with pytest.raises(MalformedPacket):
        read(text, version)


@OLD_AND_NEW
@PLACES
def test_a_byte_order_mark_is_kept(read: Read, version: Version) -> None:
    """[MQTT-1.5.4-3], [MQTT-1.5.3-3 of 3.1.1]: at the begin, and elsewhere."""
    assert read(b"\xef\xbb\xbfa\xef\xbb\xbf", version) == "\ufeffa\ufeff"


@pytest.mark.parametrize("bad", [*ILL_FORMED.values(), b"a\0"])
def test_both_strings_of_a_pair_are_checked(bad: bytes) -> None:
    """[MQTT-1.5.7-1]"""
    for pair in (binary(bad) + string("value"), string("name") + binary(bad)):
        with pytest.raises(MalformedPacket):
            decode(0x82, u16(1) + _user_property(pair) + _FILTER, V5)
    found = decode(0x82, u16(1) + _user_property(string("name") + string("")) + _FILTER, V5)
    assert found.properties == {Property.USER_PROPERTY: [("name", "")]}  # type: ignore[union-attr]


_FILTER = string("a") + b"\0"


def _user_property(pair: bytes) -> bytes:
    return varint(1 + len(pair)) + b"\x26" + pair


# -- numbers and properties -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("number", "shortest"),
    [
        (0, b"\0"),
        (127, b"\x7f"),
        (128, b"\x80\x01"),
        (16_383, b"\xff\x7f"),
        (16_384, b"\x80\x80\x01"),
        (2_097_151, b"\xff\xff\x7f"),
        (2_097_152, b"\x80\x80\x80\x01"),
        (268_435_455, b"\xff\xff\xff\x7f"),
    ],
)
def test_lengths_are_written_and_read_in_their_shortest_form(number: int, shortest: bytes) -> None:
    """[MQTT-1.5.5-1]: at each boundary of the specification's table."""
    assert varint(number) == shortest
    assert varint_at(shortest, 0, len(shortest)) == (number, len(shortest))
    if len(shortest) < 4:
        longer = shortest[:-1] + bytes((shortest[-1] | 128, 0))
        with pytest.raises(MalformedPacket):
            varint_at(longer, 0, len(longer))


@pytest.mark.parametrize(
    "body",
    [
        b"\x80\0" + _FILTER,  # the length of no properties
        b"\x82\0\x0b\x01" + _FILTER,  # the length of properties
        b"\x03\x0b\x81\0" + _FILTER,  # a subscription identifier
        b"\x03\x8b\0\x01" + _FILTER,  # the identifier of a property
    ],
)
def test_longer_forms_are_malformed_wherever_a_packet_has_them(body: bytes) -> None:
    """[MQTT-1.5.5-1]"""
    with pytest.raises(MalformedPacket):
        decode(0x82, u16(1) + body, V5)


def test_absent_properties_have_a_length_of_zero() -> None:
    """[MQTT-2.2.2-1]: the server writes it, and a client may not omit it."""
    done = (ReasonCode.SUCCESS,)
    assert encode.connack(V5, ReasonCode.SUCCESS) == b"\x20\x03\0\0\0"
    assert encode.suback(V5, 1, done) == b"\x90\x04\0\x01\0\0"
    assert encode.unsuback(V5, 1, done) == b"\xb0\x04\0\x01\0\0"
    for first, body in (
        (0x82, u16(1) + _FILTER),
        (0xA2, u16(1) + string("a")),
    ):
        with pytest.raises(PacketError):
            decode(first, body, V5)
    with pytest.raises(PacketError):
        decode_connect(0x10, LEVEL[V5] + b"\x02\0\0" + string("me"))
    found = decode(0xA2, u16(1) + b"\0" + string("a"), V5)
    assert found == Unsubscribe(1, ("a",), NO_PROPERTIES)


# -- the fixed header -----------------------------------------------------------------------------

FLAGS = {
    PacketType.PUBACK: 0,
    PacketType.PUBREC: 0,
    PacketType.PUBREL: 2,
    PacketType.PUBCOMP: 0,
    PacketType.SUBSCRIBE: 2,
    PacketType.UNSUBSCRIBE: 2,
    PacketType.PINGREQ: 0,
    PacketType.DISCONNECT: 0,
    PacketType.AUTH: 0,
}


def body_of(kind: PacketType, version: Version) -> bytes:
    match kind:
        case PacketType.SUBSCRIBE:
            return u16(1) + PROPERTIES[version] + _FILTER
        case PacketType.UNSUBSCRIBE:
            return u16(1) + PROPERTIES[version] + string("a")
        case PacketType.PINGREQ | PacketType.DISCONNECT:
            return b""
        case PacketType.AUTH:
            return b"\x18\x05\x15\0\x02XY"
        case _:
            return u16(1)


@pytest.mark.parametrize(
    ("kind", "version"),
    [
        *((kind, version) for kind in FLAGS for version in (V3, V5) if kind != PacketType.AUTH),
        (PacketType.AUTH, V5),
    ],
)
def test_reserved_flags_have_their_values(kind: PacketType, version: Version) -> None:
    """[MQTT-2.1.3-1], [MQTT-2.2.2-1 of 3.1.1]. By packet: PUBREL [MQTT-3.6.1-1 of both], SUBSCRIBE
    [MQTT-3.8.1-1 of both], UNSUBSCRIBE [MQTT-3.10.1-1 of both], DISCONNECT [MQTT-3.14.1-1 of both]
    and AUTH [MQTT-3.15.1-1].
    """
    body = body_of(kind, version)
    for flags in range(16):
        if flags == FLAGS[kind]:
            decode(kind << 4 | flags, body, version)
        else:
            with pytest.raises(MalformedPacket, match="flags"):
                decode(kind << 4 | flags, body, version)


@OLD_AND_NEW
def test_reserved_flags_of_connect_are_zero(version: Version) -> None:
    """[MQTT-2.1.3-1], [MQTT-2.2.2-1 of 3.1.1]"""
    body = LEVEL[version] + b"\x02\0\0" + PROPERTIES[version] + string("me")
    assert decode_connect(0x10, body).client_id == "me"
    for flags in range(1, 16):
        with pytest.raises(MalformedPacket, match="flags"):
            decode_connect(0x10 | flags, body)


@OLD_AND_NEW
def test_the_server_sends_reserved_flags_as_they_are_fixed(version: Version) -> None:
    """[MQTT-2.1.3-1], [MQTT-2.2.2-1 of 3.1.1], [MQTT-3.6.1-1 of both]"""
    done = (ReasonCode.SUCCESS,)
    sent = [
        encode.connack(version, ReasonCode.SUCCESS),
        *(encode.acknowledgement(version, PacketType(kind), 1) for kind in range(4, 8)),
        encode.suback(version, 1, done),
        encode.unsuback(version, 1, done),
        encode.PINGRESP,
    ]
    assert [each[0] for each in sent] == [0x20, 0x40, 0x50, 0x62, 0x70, 0x90, 0xB0, 0xD0]
    assert encode.disconnect(ReasonCode.SERVER_BUSY)[0] == 0xE0
    assert encode.auth(ReasonCode.CONTINUE_AUTHENTICATION, NO_PROPERTIES)[0] == 0xF0


# -- packet identifiers ---------------------------------------------------------------------------


@OLD_AND_NEW
def test_a_publish_of_qos_0_has_no_packet_identifier(version: Version) -> None:
    """[MQTT-2.2.1-2], [MQTT-2.3.1-5 of 3.1.1]: what follows the topic is the message."""
    rest = PROPERTIES[version]
    data = packet(0x30, string("t") + rest + b"\0\x07")
    found = publish(data, version)
    assert (found.packet_id, data[found.payload_at : found.end]) == (0, b"\0\x07")
    data = packet(0x32, string("t") + b"\0\x07" + rest)
    found = publish(data, version)
    assert (found.packet_id, data[found.payload_at : found.end]) == (7, b"")


@OLD_AND_NEW
@pytest.mark.parametrize("packet_id", [0, 1, 0xFFFF])
def test_packet_identifiers_are_not_zero(packet_id: int, version: Version) -> None:
    """[MQTT-2.2.1-3], [MQTT-2.3.1-1 of 3.1.1]"""
    number, rest = u16(packet_id), PROPERTIES[version]
    requests = [(0x82, number + rest + _FILTER), (0xA2, number + rest + string("a"))]
    messages = [packet(first, string("t") + number + rest) for first in (0x32, 0x34)]
    if packet_id:
        for first, body in requests:
            assert decode(first, body, version).packet_id == packet_id  # type: ignore[union-attr]
        for data in messages:
            assert publish(data, version).packet_id == packet_id
        return
    for first, body in requests:
        with pytest.raises(MalformedPacket, match="identifier"):
            decode(first, body, version)
    for data in messages:
        with pytest.raises(MalformedPacket, match="identifier"):
            publish(data, version)
