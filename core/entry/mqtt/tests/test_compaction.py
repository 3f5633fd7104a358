"""A run without some of its messages."""

from __future__ import annotations

from magnetar.core.entry.compaction import Item, Removal
from magnetar.core.entry.mqtt import form
from magnetar.core.entry.mqtt.run import head, packet

PACKETS = [
    packet(first, topic, None, body)
    for first, topic, body in ((0x30, b"a", b"1"), (0x31, b"b", b""), (0x30, b"a", b"2"))
]
SENT = form.head(3, 5) + head(b"me", has_properties=False) + b"".join(PACKETS)


def test_items() -> None:
    assert form.unpacked(SENT).items == [Item(0, b"a", 1), Item(1, b"b", -1), Item(2, b"a", 1)]


def test_what_stays_has_its_place_its_bytes_and_its_publisher() -> None:
    left = form.unpacked(SENT).without(Removal({0}))
    run = form.run_of(left)
    assert run.client_id == b"me"
    assert [(one.place, run.data[one.begin : one.end]) for one in run] == [
        (1, PACKETS[1]),
        (2, PACKETS[2]),
    ]
    again = form.unpacked(left).without(Removal({1}))
    assert [one.place for one in form.run_of(again)] == [2]


def test_nothing_may_be_left() -> None:
    left = form.unpacked(SENT).without(Removal({0, 1, 2}))
    assert not form.records(left)
    assert form.publish_time(left) == 5
