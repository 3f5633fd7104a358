"""What subscribers see of entries in every form."""

from __future__ import annotations

from magnetar.core.entry.kafka import form as kafka
from magnetar.core.entry.mqtt import form as mqtt
from magnetar.core.entry.mqtt.run import head, packet
from magnetar.core.entry.record import Record
from magnetar.wire.mqtt.delivery.stored_messages import messages_of

NOW = 1_700_000_000_000


def nowhere(_key: bytes | None) -> bytes | None:
    raise AssertionError("packets have their topics")


def test_packets_are_what_their_publisher_sent() -> None:
    run = head(b"me", has_properties=False) + packet(0x33, b"t", None, b"1")
    found = messages_of(mqtt.head(1, NOW) + run, nowhere)
    (only,) = found.packets
    assert (found.client_id, found.published_ms) == (b"me", NOW)
    assert (only.topic, only.qos, only.retain, only.payload) == (b"t", 1, True, b"1")


def test_records_of_others_are_packets_of_the_topic_that_they_stand_for() -> None:
    records = [
        Record(0, NOW, b"a/b", b"1", [(b"color", b"red")]),
        Record(1, NOW, None, b"2"),
        Record(2, NOW, b"a/b", None, [(b"mqtt.qos", b"1")]),
    ]
    sent = kafka.entry_of(records, 0, NOW, "p")
    found = messages_of(sent, lambda key: key, 7)
    packets = found.packets
    assert (found.client_id, found.published_ms, found.first_index) == (b"", NOW, 7)
    assert [(one.packets, one.plain) for one in found.segments] == [(1, False), (1, False)]
    assert [list(found.places_of(one)) for one in found.segments] == [[0], [2]]
    assert [(one.place, one.topic, one.qos, one.payload) for one in packets] == [
        (0, b"a/b", 2, b"1"),
        (2, b"a/b", 1, b""),
    ]
    assert packets[0].properties == b"\x26\0\x05color\0\x03red"
