"""MQTT's form: what is stored, and what others see of it. All forms are held in `core/entry`."""

from __future__ import annotations

import pytest

from magnetar.core.entry import forms
from magnetar.core.entry.conversion import converted
from magnetar.core.entry.kafka import form as kafka
from magnetar.core.entry.mqtt import form
from magnetar.core.entry.mqtt.run import head, packet
from magnetar.core.entry.record import Record
from magnetar.core.kernel.errors import Corrupted

NOW = 1_700_000_000_000


def stored(*packets: bytes, client: bytes = b"device") -> bytes:
    return form.head(len(packets), NOW) + head(client, has_properties=False) + b"".join(packets)


def test_the_key_is_the_topic_and_the_value_the_payload() -> None:
    sent = stored(packet(0x32, b"a/b", None, b"21"), packet(0x31, b"c", None, b""))
    assert forms.form_of(sent) is form
    assert form.records(sent) == [
        Record(0, NOW, b"a/b", b"21", [(b"mqtt.qos", b"1")]),
        Record(1, NOW, b"c", None, [(b"mqtt.retain", b"1")]),
    ]
    assert form.run_of(sent).client_id == b"device"
    assert form.ordering_key(sent) == b"a/b"
    assert (form.publish_time(sent), form.latest_time(sent)) == (NOW, NOW)


def test_it_crosses_to_another_protocol_and_back() -> None:
    sent = stored(packet(0x30, b"a", None, b"1"), packet(0x35, b"b", None, b"2"))
    there, count = converted(sent, kafka, 100)
    back, _ = converted(there, form, 100)
    assert count == 2
    assert form.records(back) == form.records(sent)


def test_a_key_that_is_too_long_for_a_topic_is_left_out() -> None:
    sent = form.entry_of([Record(0, NOW, b"k" * 70_000, b"v")], 0, NOW, "kafka")
    assert form.records(sent) == [Record(0, NOW, None, b"v", [])]


def test_an_entry_that_ends_too_soon() -> None:
    for sent in (b"", b"\0\0\0\x01", stored()[:30]):
        with pytest.raises(Corrupted):
            form.run_of(sent)
    assert form.ordering_key(b"") is None
