"""Normative statements about PUBLISH and later packets (3.3 to 3.15), by their numbers.

The statements are listed in docs/mqtt-statements.md; flags are in `test_statements_fields.py`.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet

import pytest

from magnetar.wire.mqtt.codec import encode
from magnetar.wire.mqtt.codec.decode import decode
from magnetar.wire.mqtt.codec.fields import binary, string, u16, varint
from magnetar.wire.mqtt.codec.packets import Subscribe, Unsubscribe, Version
from magnetar.wire.mqtt.codec.publishes import Publish, TopicNames, parse_publishes
from magnetar.wire.mqtt.errors import MalformedPacket, PacketError, ProtocolViolation
from magnetar.wire.mqtt.reason_codes import ReasonCode

V3, V5 = Version.V3_1_1, Version.V5
OLD_AND_NEW = pytest.mark.parametrize("version", [V3, V5])
PROPERTIES = {V3: b"", V5: b"\0"}


def parse(first: int, body: bytes, version: Version) -> Publish:
    data = bytes((first,)) + varint(len(body)) + body
    behind, (found,) = parse_publishes(
        data, 0, TopicNames(), 100_000, has_properties=version == Version.V5
    )
    assert behind == len(data)
    return found


def with_property(data: bytes) -> bytes:
    """A message of 5.0 to the topic `t`, with one property."""
    return string("t") + varint(len(data)) + data + b"payload"


# -- PUBLISH --------------------------------------------------------------------------------------


@OLD_AND_NEW
@pytest.mark.parametrize("flags", range(16))
def test_flags_of_publish(flags: int, version: Version) -> None:
    """QoS is not 3 [MQTT-3.3.1-4 of both]; DUP is 0 with QoS 0 [MQTT-3.3.1-2 of both]; all else
    is allowed.
    """
    dup, qos, retain = flags >> 3, flags >> 1 & 3, flags & 1
    body = string("t") + (b"\0\x07" if qos else b"") + PROPERTIES[version]
    if qos == 3 or (dup and not qos):
        with pytest.raises(MalformedPacket, match=r"of 3|DUP"):
            parse(0x30 | flags, body, version)
        return
    found = parse(0x30 | flags, body, version)
    assert (found.dup, found.qos, found.retain) == (dup, qos, retain)


@OLD_AND_NEW
def test_the_topic_name_is_the_first_field(version: Version) -> None:
    """[MQTT-3.3.2-1 of both]: before the packet identifier, and not omitted."""
    rest = PROPERTIES[version]
    assert parse(0x32, string("\x07") + b"\0\x01" + rest, version).topic == "\x07"
    for body in (b"", b"\0", b"\0\x05t", string("t")[:2]):
        with pytest.raises(MalformedPacket):
            parse(0x30, body, version)
    with pytest.raises(ProtocolViolation, match="topic"):
        parse(0x30, string("") + rest, version)


@OLD_AND_NEW
@pytest.mark.parametrize("name", ["#", "+", "a/#", "a/+/b", "a#b", "+a", "a/b+"])
def test_topic_names_have_no_wildcards(name: str, version: Version) -> None:
    """[MQTT-3.3.2-2 of both], and so [MQTT-4.7.0-1], [MQTT-4.7.1-1 of 3.1.1]"""
    with pytest.raises(PacketError) as caught:
        parse(0x30, string(name) + PROPERTIES[version], version)
    assert caught.value.reason is ReasonCode.TOPIC_NAME_INVALID


def test_no_topic_alias_is_zero() -> None:
    """[MQTT-3.3.2-8]: with or without a topic name."""
    assert parse(0x30, with_property(b"\x23\0\x01"), V5).topic == "t"
    for body in (with_property(b"\x23\0\0"), string("") + b"\x03\x23\0\0"):
        with pytest.raises(PacketError) as caught:
            parse(0x30, body, V5)
        assert caught.value.reason is ReasonCode.TOPIC_ALIAS_INVALID


@pytest.mark.parametrize(
    "number",
    [
        0x08,  # response topic [MQTT-3.3.2-13]
        0x03,  # content type [MQTT-3.3.2-19]
    ],
)
@pytest.mark.parametrize("text", [b"\xff", b"\xed\xa0\x80", b"a\0"])
def test_strings_of_properties_are_well_formed(number: int, text: bytes) -> None:
    good = bytes((number,)) + string("text/plain é")
    assert list(parse(0x30, with_property(good), V5).properties.values()) == ["text/plain é"]
    with pytest.raises(MalformedPacket):
        parse(0x30, with_property(bytes((number,)) + binary(text)), V5)


@pytest.mark.parametrize("topic", ["#", "+", "answers/+", "answers/#", "a+b"])
def test_a_response_topic_has_no_wildcards(topic: str) -> None:
    """[MQTT-3.3.2-14]"""
    with pytest.raises(ProtocolViolation, match="response topic"):
        parse(0x30, with_property(b"\x08" + string(topic)), V5)


def test_a_client_sends_no_subscription_identifier_with_a_message() -> None:
    """[MQTT-3.3.4-6]"""
    with pytest.raises(PacketError):
        parse(0x30, with_property(b"\x0b\x01"), V5)


# -- reason codes ---------------------------------------------------------------------------------

_OF_PUBLISH = {0x00, 0x10, 0x80, 0x83, 0x87, 0x90, 0x91, 0x97, 0x99}
_OF_RELEASE = {0x00, 0x92}
_OF_DISCONNECT = {0x00, 0x04, 0x93, 0x94, 0x95, 0x96, 0x97, 0x98, 0x99, *range(0x80, 0x84), 0x90}


@pytest.mark.parametrize(
    ("first", "before", "behind", "allowed"),
    [
        (0x40, u16(1), b"", _OF_PUBLISH),  # PUBACK [MQTT-3.4.2-1]
        (0x50, u16(1), b"", _OF_PUBLISH),  # PUBREC [MQTT-3.5.2-1]
        (0x62, u16(1), b"", _OF_RELEASE),  # PUBREL [MQTT-3.6.2-1]
        (0x70, u16(1), b"", _OF_RELEASE),  # PUBCOMP [MQTT-3.7.2-1]
        (0xE0, b"", b"", _OF_DISCONNECT),  # DISCONNECT [MQTT-3.14.2-1]
        (0xF0, b"", b"\x04\x15\0\x01X", {0x18, 0x19}),  # AUTH [MQTT-3.15.2-1]
    ],
    ids=["PUBACK", "PUBREC", "PUBREL", "PUBCOMP", "DISCONNECT", "AUTH"],
)
def test_packets_have_only_their_own_reason_codes(
    first: int, before: bytes, behind: bytes, allowed: AbstractSet[int]
) -> None:
    """All 256 codes, with those that the specification permits to clients."""
    accepted = set()
    for code in range(256):
        body = before + bytes((code,)) + behind
        try:
            packet = decode(first, body, V5)
        except ProtocolViolation:
            continue
        assert packet.reason == code  # type: ignore[union-attr]
        accepted.add(code)
    assert accepted == allowed


# -- SUBSCRIBE, SUBACK ----------------------------------------------------------------------------


@OLD_AND_NEW
def test_requests_have_a_filter_at_least(version: Version) -> None:
    """SUBSCRIBE [MQTT-3.8.3-2], [MQTT-3.8.3-3 of 3.1.1]; UNSUBSCRIBE [MQTT-3.10.3-2 of both]"""
    head = u16(1) + PROPERTIES[version]
    for first in (0x82, 0xA2):
        with pytest.raises(ProtocolViolation, match="without a topic filter"):
            decode(first, head, version)
    found = decode(0x82, head + string("a") + b"\0", version)
    assert isinstance(found, Subscribe)
    assert len(found.filters) == 1
    assert decode(0xA2, head + string("a"), version) == Unsubscribe(1, ("a",))


@OLD_AND_NEW
def test_a_filter_without_options_is_malformed(version: Version) -> None:
    """[MQTT-3.8.3-2], [MQTT-3.8.3-3 of 3.1.1]: they are pairs."""
    head = u16(1) + PROPERTIES[version]
    for pairs in (string("a"), string("a") + b"\0" + string("b")):
        with pytest.raises(MalformedPacket):
            decode(0x82, head + pairs, version)


def test_filters_to_unsubscribe_follow_each_other() -> None:
    """[MQTT-3.10.3-1 of 3.1.1]: a byte between them, such as an option, is malformed."""
    found = decode(0xA2, u16(1) + string("a") + string("b/#"), V3)
    assert found == Unsubscribe(1, ("a", "b/#"))
    with pytest.raises(MalformedPacket):
        decode(0xA2, u16(1) + string("a") + b"\0" + string("b"), V3)


@pytest.mark.parametrize("options", range(256))
def test_subscription_options(options: int) -> None:
    """Reserved bits of 3.1.1, and a QoS of 3, are malformed [MQTT-3.8.3-4 of 3.1.1]. In 5.0 the
    bits are too [MQTT-3.8.3-5], and a QoS of 3 is a protocol error (3.8.3.1).
    """
    pair = string("a") + bytes((options,))
    qos, handling = options & 3, options >> 4 & 3
    if options in (0, 1, 2):
        found = decode(0x82, u16(1) + pair, V3)
        assert isinstance(found, Subscribe)
        assert found.filters[0][1].qos == options
    else:
        with pytest.raises(MalformedPacket):
            decode(0x82, u16(1) + pair, V3)
    if options & 0xC0:
        with pytest.raises(MalformedPacket):
            decode(0x82, u16(1) + b"\0" + pair, V5)
    elif qos == 3 or handling == 3:
        with pytest.raises(ProtocolViolation):
            decode(0x82, u16(1) + b"\0" + pair, V5)
    else:
        found = decode(0x82, u16(1) + b"\0" + pair, V5)
        assert isinstance(found, Subscribe)
        ((_, read),) = found.filters
        assert (read.qos, read.retain_handling) == (qos, handling)
        assert (read.no_local, read.retain_as_published) == (options >> 2 & 1, options >> 3 & 1)


def test_no_local_is_a_protocol_error_on_shared_subscriptions() -> None:
    """[MQTT-3.8.3-4]"""
    shared, own = string("$share/group/a"), string("$shared/group/a")
    for good in (shared + b"\x01", own + b"\x05"):
        found = decode(0x82, u16(1) + b"\0" + good, V5)
        assert isinstance(found, Subscribe)
        assert found.filters[0][1].no_local is (good == own + b"\x05")
    for bad in (shared + b"\x05", own + b"\x05" + shared + b"\x04"):
        with pytest.raises(ProtocolViolation, match="No Local"):
            decode(0x82, u16(1) + b"\0" + bad, V5)


def test_return_codes_of_suback() -> None:
    """[MQTT-3.9.3-2 of 3.1.1]: the granted QoS, or 0x80 for any failure."""
    granted = [ReasonCode.SUCCESS, ReasonCode.GRANTED_QOS_1, ReasonCode.GRANTED_QOS_2]
    failures = [reason for reason in ReasonCode if reason.fails]
    data = encode.suback(V3, 1, [*granted, *failures])
    assert data[4:] == bytes((0, 1, 2)) + b"\x80" * len(failures)


@OLD_AND_NEW
def test_reason_codes_are_written_in_their_order(version: Version) -> None:
    """[MQTT-3.9.3-1 of both], [MQTT-3.11.3-1]: that of the filters, one code for each."""
    codes = [ReasonCode(code) for code in (2, 0, 1, 0x80, 1, 0)]
    assert encode.suback(version, 258, codes)[2:] == (
        b"\x01\x02" + PROPERTIES[version] + bytes(codes)
    )
    done = [ReasonCode(code) for code in (0x11, 0, 0x87, 0x11)]
    behind = b"\0" + bytes(done) if version is V5 else b""
    assert encode.unsuback(version, 258, done)[2:] == b"\x01\x02" + behind
