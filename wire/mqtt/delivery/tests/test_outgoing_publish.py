"""A stored message as its subscribers get it, read back by the codec for clients."""

from __future__ import annotations

import pytest

from magnetar.core.entry.mqtt.properties import properties_of
from magnetar.core.entry.mqtt.run import StoredPublish, head, opened, packet
from magnetar.wire.mqtt.codec.properties import Property
from magnetar.wire.mqtt.codec.publishes import TopicNames, parse_publishes
from magnetar.wire.mqtt.delivery.outgoing_publish import Addressee, first_byte, packed

OLD, NEW = Addressee(has_properties=False), Addressee(has_properties=True)
HEADERS = [
    (b"a", b"1"),
    (b"mqtt.expires-at", b"60000"),
    (b"mqtt.content-type", b"text"),
    (b"a", b"2"),
]


def stored(first: int, properties: bytes | None = None) -> StoredPublish:
    data = head(b"me", has_properties=properties is not None)
    (found,) = opened(data + packet(first, b"t/1", properties, b"payload"))
    return found


@pytest.mark.parametrize("properties", [None, b"", properties_of(HEADERS, 0)])
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_for_3_1_1(properties: bytes | None, qos: int) -> None:
    sent = packed(stored(0x30, properties), first_byte(qos, retain=True), 77, OLD)
    behind, (found,) = parse_publishes(sent, 0, TopicNames(), 10_000, has_properties=False)
    assert behind == len(sent)
    assert (found.topic, found.qos, found.retain, found.dup) == ("t/1", qos, True, False)
    assert found.packet_id == (77 if qos else 0)
    assert sent[found.payload_at :] == b"payload"


def test_for_5_with_everything() -> None:
    message = stored(0x35, properties_of(HEADERS, 0))
    addressee = Addressee(has_properties=True, identifiers=(5, 300))
    sent = packed(message, first_byte(2, retain=False, dup=True), 9, addressee, 33)
    assert b"\x0b\x05\x0b\xac\x02" in sent, "both subscription identifiers"
    without = packed(message, first_byte(2, retain=False, dup=True), 9, NEW, 33)
    _, (found,) = parse_publishes(without, 0, TopicNames(), 10_000, has_properties=True)
    assert found.dup
    assert found.properties == {
        Property.USER_PROPERTY: [("a", "1"), ("a", "2")],
        Property.MESSAGE_EXPIRY_INTERVAL: 33,
        Property.CONTENT_TYPE: "text",
    }
    assert without.endswith(b"payload")


def test_a_message_of_3_1_1_for_5() -> None:
    sent = packed(stored(0x30), first_byte(0, retain=False), 0, NEW)
    assert sent == b"\x30\x0d\x00\x03t/1\x00payload"


def test_an_expiry_that_is_not_there_is_not_made() -> None:
    message = stored(0x30, properties_of(HEADERS[:1], 0))
    sent = packed(message, first_byte(0, retain=False), 0, NEW, 5)
    _, (found,) = parse_publishes(sent, 0, TopicNames(), 10_000, has_properties=True)
    assert found.properties == {Property.USER_PROPERTY: [("a", "1")]}
