"""MQTT packets that are wrong, out of place, or too many: the reason code or a closed connection,
and bystanders notice nothing.
"""

from __future__ import annotations

import socket
from contextlib import ExitStack
from struct import pack

import pytest

from interop_tests.hostile.conftest import MIB, rss
from interop_tests.hostile.mqtt_peer import MqttPeer
from magnetar.wire.mqtt.tests import peer
from magnetar.wire.mqtt.tests.peer import V3, V5, acknowledge, frame, publish, subscribe, text

VERSIONS = [V3, V5]
MALFORMED, PROTOCOL_ERROR, TOPIC_FILTER_INVALID = 0x81, 0x82, 0x8F
RECEIVE_MAXIMUM_EXCEEDED, TOO_LARGE, QUOTA_EXCEEDED = 0x93, 0x95, 0x97
LONGEST = b"\xff\xff\xff\x7f"
"""The length of the largest packet: 268,435,455 bytes."""
NO_TEXT = pack(">H", 3) + b"\xff\xfe\xfd"


@pytest.fixture
def one(magnetar_module):
    with MqttPeer(magnetar_module) as found:
        yield found


@pytest.fixture
def elder(magnetar_module):
    """A client of 3.1.1."""
    with MqttPeer(magnetar_module, V3) as found:
        yield found


WRONG = {
    "topic that is no UTF-8": (MALFORMED, frame(0x30, NO_TEXT + b"\0")),
    "topic with U+0000": (MALFORMED, frame(0x30, text("a\0b") + b"\0")),
    "topic with a surrogate": (MALFORMED, frame(0x30, text(b"\xed\xa0\x80") + b"\0")),
    "filter that is no UTF-8": (MALFORMED, frame(0x82, b"\0\1\0" + NO_TEXT + b"\0")),
    "length of five bytes": (MALFORMED, b"\x30\xff\xff\xff\xff\x01"),
    "reserved type": (PROTOCOL_ERROR, b"\0\0"),
    "flags of SUBSCRIBE": (MALFORMED, frame(0x80, b"\0\1\0" + text("a") + b"\0")),
    "a string beyond its packet": (MALFORMED, frame(0x30, b"\xff\xff" + bytes(20))),
    "second CONNECT": (PROTOCOL_ERROR, peer.connect("again", version=V5)),
    "CONNACK": (PROTOCOL_ERROR, frame(0x20, b"\0\0\0")),
    "identifier 0": (MALFORMED, publish("t", qos=1, number=0, version=V5)),
    "alias that is not set": (
        PROTOCOL_ERROR,
        publish("", version=V5, properties=b"\x23\0\1"),
    ),
    "268 MB": (TOO_LARGE, b"\x32" + LONGEST),
    "268 MB of filters": (TOO_LARGE, b"\x82" + LONGEST),
}


@pytest.mark.parametrize("what", WRONG)
def test_the_reason_is_said(one, bystander, what):
    reason, packet = WRONG[what]
    (last,) = one.connected().say(packet).ends()
    assert (last.kind, last.reasons) == ("DISCONNECT", (reason,))
    bystander.works()


@pytest.mark.parametrize("what", [each for each in WRONG if "alias" not in each])
def test_clients_of_3_1_1_are_closed(elder, bystander, what):
    _, packet = WRONG[what]
    assert elder.connected("c").say(packet).ends() == []
    bystander.works()


def test_a_byte_at_a_time(magnetar_module, bystander, topic):
    packets = (
        peer.connect("slow", version=V5),
        subscribe((topic, 2), version=V5),
        publish(topic, b"x" * 300, qos=2, number=7, version=V5),
        acknowledge("PUBREL", 7),
        peer.PINGREQ,
    )
    with MqttPeer(magnetar_module) as one:
        one.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in b"".join(packets):
            one.say(bytes((byte,)))
        kinds = {one.take().kind for _ in range(6)}
        assert kinds == {"CONNACK", "SUBACK", "PUBLISH", "PUBREC", "PUBCOMP", "PINGRESP"}


@pytest.mark.parametrize("end", range(1, 30, 3))
def test_cut_anywhere(magnetar_module, bystander, end, topic):
    words = publish(topic, b"x" * 40, qos=2, number=1, version=V5)
    with MqttPeer(magnetar_module) as one:
        one.connected().say(words[:end])
    with MqttPeer(magnetar_module) as one:
        one.say(peer.connect("client", version=V5)[:end])
    bystander.works()


def test_filters_of_65_kb_with_30_000_levels(one, elder, bystander):
    for client, refusal in ((one.connected(), TOPIC_FILTER_INVALID), (elder.connected("c"), 0x80)):
        for levels in ("+/" * 30_000 + "#", "/" * 65_000, "a/" * 30_000):
            suback = client.say(subscribe((levels, 1), version=client.version)).take()
            assert (suback.kind, suback.reasons) == ("SUBACK", (refusal,))
    bystander.works()


def test_thousands_of_filters(one, bystander):
    """Each has its reason: ten thousand are subscriptions, the others too many."""
    one.connected()
    for number in range(12):
        filters = [(f"f/{number}/{each}", 1) for each in range(1_000)]
        one.say(subscribe(*filters, number=number + 1, version=V5))
        expected = 1 if number < 10 else QUOTA_EXCEEDED
        assert set(one.take_until("SUBACK").reasons) == {expected}
        bystander.works()


def test_a_packet_of_a_million_filters(one, bystander):
    before = rss_of(one, bystander)
    one.connected().say(subscribe(*[("a", 0)] * 60_000, version=V5))
    bystander.works()
    assert one.take().reasons == (0,) * 60_000
    (last,) = one.say(subscribe(*[("a", 0)] * 1_000_000, version=V5)).ends()
    assert (last.kind, last.reasons) == ("DISCONNECT", (TOO_LARGE,))
    assert rss_of(one, bystander) - before < 48 * MIB


def rss_of(one, bystander) -> int:
    bystander.works()
    return rss(one.server)


def test_a_packet_of_two_million_properties(one, bystander):
    properties = b"\x26\0\1a\0\1b" * 2_000_000
    (last,) = one.connected().say(publish("t", properties=properties, version=V5)).ends()
    assert (last.kind, last.reasons) == ("DISCONNECT", (QUOTA_EXCEEDED,))
    bystander.works()


def test_more_than_receive_maximum(one, bystander, topic):
    """Messages of QoS 2 that are never released."""
    one.connected()
    for number in range(1, 1_002):
        one.say(publish(topic, qos=2, number=number, version=V5))
    packets = one.ends()
    assert {one.kind for one in packets[:-1]} <= {"PUBREC"}
    assert (packets[-1].kind, packets[-1].reasons) == ("DISCONNECT", (RECEIVE_MAXIMUM_EXCEEDED,))
    bystander.works()


@pytest.mark.parametrize("qos", [1, 2])
def test_a_flood_of_3_1_1_is_acknowledged(elder, bystander, topic, qos):
    """3.1.1 has no Receive Maximum: whoever sends thousands at once waits."""
    elder.connected("c")
    elder.say(*(publish(topic, b"x", qos=qos, number=number) for number in range(1, 20_001)))
    kind = "PUBACK" if qos == 1 else "PUBREC"
    assert [elder.take()[:3] for _ in range(20_000)] == [(kind, 0, n) for n in range(1, 20_001)]
    bystander.works()


def test_identifiers_that_nobody_has_used(one, bystander):
    one.connected()
    for kind in ("PUBACK", "PUBCOMP"):
        one.say(*(acknowledge(kind, number) for number in range(1, 60_001)))
    one.say(*(acknowledge("PUBREL", number) for number in range(1, 1_001)))
    assert {one.take()[:4] for _ in range(1_000)} == {
        ("PUBCOMP", 0, number, (0x92,)) for number in range(1, 1_001)
    }
    bystander.works()


def test_many_announce_268_mb(magnetar_module, bystander):
    before = rss(magnetar_module)
    with ExitStack() as stack:
        peers = [stack.enter_context(MqttPeer(magnetar_module)) for _ in range(300)]
        for one in peers:
            one.connected().say(b"\x30" + LONGEST + bytes(100))
        bystander.works()
        for one in peers:
            assert one.ends()[-1].reasons == (TOO_LARGE,)
        assert rss(magnetar_module) - before < 32 * MIB


def test_hundreds_connect_with_one_name(magnetar_module, bystander):
    """Each takes over; the last one stays."""
    with ExitStack() as stack:
        peers = [stack.enter_context(MqttPeer(magnetar_module)) for _ in range(200)]
        for one in peers:
            one.say(peer.connect("same", version=V5, clean=False, properties=b"\x11\0\0\0\x64"))
        left = [one for one in peers if one.take().reasons == (0,)]
        assert len(left) == 200
        bystander.works()
        answers = []
        for one in peers:
            one.say(peer.PINGREQ)
            answers.append(one.take())
        assert [one.kind for one in answers].count("PINGRESP") == 1
        assert {one.reasons for one in answers if one.kind == "DISCONNECT"} == {(0x8E,)}
