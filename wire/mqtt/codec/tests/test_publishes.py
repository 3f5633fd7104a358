"""Runs of PUBLISH: what comes together is read together, and each is checked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnetar.core.entry.mqtt.run import packet
from magnetar.wire.mqtt.codec.properties import Property
from magnetar.wire.mqtt.codec.publishes import (
    NAMES_MAX,
    Publish,
    TopicNames,
    one_by_one,
    parse_publishes,
    py_parse_publishes,
)
from magnetar.wire.mqtt.errors import PacketError
from magnetar.wire.mqtt.reason_codes import ReasonCode

MALFORMED, VIOLATION = ReasonCode.MALFORMED_PACKET, ReasonCode.PROTOCOL_ERROR
PUBLISHES = st.tuples(
    st.sampled_from([0x30, 0x31, 0x32, 0x3B, 0x34, 0x3D]),
    st.text("ab/", min_size=1, max_size=9),
    st.binary(max_size=200),
)


def parse(data: bytes, at: int = 0, *, new: bool = False) -> tuple[int, list[Publish]]:
    """The packets one by one, which are what the packets together are."""
    end, found = parse_publishes(data, at, TopicNames(), 1_000, new)
    assert [one.begin for one in found[1:]] == [one.end for one in found[:-1]]
    singles = [single for one in found for single in one_by_one(data, one)]
    assert len(singles) == sum(one.packets for one in found)
    return end, singles


@given(publishes=st.lists(PUBLISHES, max_size=6), new=st.booleans(), cut=st.integers(0, 30))
def test_whole_packets_up_to_another_type(
    publishes: list[tuple[int, str, bytes]], new: bool, cut: int
) -> None:
    pieces = [packet(first, topic.encode(), b"" if new else None, body)
              for first, topic, body in publishes]  # fmt: skip
    data = b"".join(pieces)
    for behind in (b"", b"\xc0\0", b"\x30\x7f\0", packet(0x30, b"t", None, bytes(99))[:-1]):
        end, found = parse(data + behind, new=new)
        assert end == len(data)
        assert [(0x30 | one.flags, one.topic, (data + behind)[one.payload_at : one.end])
                for one in found] == publishes  # fmt: skip
        assert [data[one.begin : one.end] for one in found] == pieces
        assert all(one.packet_id == (1 if one.qos else 0) for one in found)
    end, found = parse(b"x" * cut + data, cut, new=new)
    assert (end, len(found)) == (cut + len(data), len(publishes))


@pytest.mark.parametrize(
    ("data", "new", "reason"),
    [
        (b"\x36\x06\0\x01t\0\x01x", False, MALFORMED),  # QoS 3 [MQTT-3.3.1-4]
        (b"\x38\x03\0\x01t", False, MALFORMED),  # DUP with QoS 0 [MQTT-3.3.1-2]
        (b"\x30\x02\0\0", False, VIOLATION),  # no topic [MQTT-3.3.2-1]
        (b"\x30\x05\0\x03a/+", False, ReasonCode.TOPIC_NAME_INVALID),  # [MQTT-3.3.2-2]
        (b"\x30\x04\0\x02\xff\xff", False, MALFORMED),
        (b"\x30\x04\0\x02a\0", False, MALFORMED),
        (b"\x30\x03\0\x02t", False, MALFORMED),
        (b"\x30\x01\0", False, MALFORMED),
        (b"\x32\x04\0\x01t\0", False, MALFORMED),
        (b"\x32\x05\0\x01t\0\0", False, MALFORMED),  # [MQTT-2.2.1-3]
        (b"\x30\x03\0\x01t", True, MALFORMED),  # without the length of its properties
        (b"\x30\x03\0\0\0", True, VIOLATION),  # neither topic nor alias
        (b"\x30\x07\0\x01t\x03\x23\0\0", True, ReasonCode.TOPIC_ALIAS_INVALID),
        (b"\x30\x06\0\x01t\x02\x0b\x01", True, MALFORMED),  # [MQTT-3.3.4-6]
        (packet(0x30, b"t", None, bytes(1_000)), False, ReasonCode.PACKET_TOO_LARGE),
        (b"\x30\0", False, MALFORMED),
        (b"\x30\0\xc0\0", False, MALFORMED),
        (b"\x30\x80\x00", False, MALFORMED),  # a length longer than it need be
        (b"\x30\xff\xff\xff\xff", False, MALFORMED),
    ],
)
def test_bad_packets(data: bytes, new: bool, reason: ReasonCode) -> None:
    good = packet(0x30, b"t", b"" if new else None, b"")
    with pytest.raises(PacketError) as caught:
        parse(good + data, new=new)
    assert caught.value.reason is reason


def test_an_alias_may_stand_for_the_topic() -> None:
    _, (found,) = parse(b"\x30\x06\0\0\x03\x23\0\x07", new=True)
    assert (found.topic, found.properties) == ("", {Property.TOPIC_ALIAS: 7})


def test_names_are_remembered_up_to_a_limit() -> None:
    names = TopicNames()
    first = names[b"0"]
    assert names[b"0"] is first
    for number in range(2 * NAMES_MAX):
        assert names[b"%d" % number] == str(number)
    assert len(names) <= NAMES_MAX


def test_large_names_are_not_remembered() -> None:
    names = TopicNames()
    assert names[bytes(b"x" * 10_000)] == "x" * 10_000
    assert not names


@given(st.binary(max_size=60), st.booleans())
def test_arbitrary_bytes(data: bytes, new: bool) -> None:
    try:
        end, found = parse(b"\x30" + data, new=new)
        assert end <= 1 + len(data)
        assert [one.end for one in found][-1:] == [end] * bool(found)
    except PacketError:
        pass


WITH_PROPERTIES = st.tuples(
    st.sampled_from([0x30, 0x31, 0x32, 0x3A, 0x34, 0x36, 0x38]),
    st.sampled_from(["a", "a", "b", "a/b", "", "#"]),
    st.sampled_from([b"", b"", b"\x01\x01", b"\x23\0\x07", b"\x0b\x01"]),
    st.binary(max_size=200),
)


@given(
    st.lists(WITH_PROPERTIES, max_size=8), st.integers(0, 70_000), st.binary(max_size=5), st.data()
)
def test_the_compiled_function_does_the_same(
    publishes: list[tuple[int, str, bytes, bytes]], number: int, behind: bytes, data: st.DataObject
) -> None:
    pieces = [
        packet(first, topic.encode(), properties, payload, (number + place) % 65_536)
        for place, (first, topic, properties, payload) in enumerate(publishes)
    ]
    sent = bytearray(b"".join(pieces) + behind)
    for _ in range(data.draw(st.integers(0, 2))):  # damaged
        if sent:
            sent[data.draw(st.integers(0, len(sent) - 1))] = data.draw(st.integers(0, 255))
    whole = bytes(sent)
    for at in (0, data.draw(st.integers(0, len(whole)))):
        for new in (True, False):
            found, expected = (
                result(function, whole, at, TopicNames(), 150, new)
                for function in (parse_publishes, py_parse_publishes)
            )
            assert found == expected


def result(function: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return function(*arguments)
    except PacketError as error:
        return type(error), error.reason, str(error)


def test_packets_of_one_topic_are_handled_as_one() -> None:
    one, two, other = (packet(0x32, topic, None, b"x" * 200, 7) for topic in (b"t", b"t", b"u"))
    for function in (parse_publishes, py_parse_publishes):
        _, found = function(one + two + other, 0, TopicNames(), 1_000, False)
        assert [(each.topic, each.ids, each.packets) for each in found] == [
            ("t", [7, 7], 2),
            ("u", [7], 1),
        ]
    for special in (0x33, 0x3A):  # RETAIN, DUP
        _, found = parse_publishes(packet(special, b"t", None, b"") * 2, 0, TopicNames(), 99, False)
        assert [each.packets for each in found] == [1, 1]
