"""Properties of messages and the headers that other protocols see instead."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnetar.core.entry.mqtt import properties
from magnetar.core.entry.mqtt.run import head, opened, packet
from magnetar.core.kernel.errors import Corrupted

NOW = 1_000_000
HEADERS = (
    (b"color", b"red"),
    (b"mqtt.content-type", b"text/plain"),
    (b"color", b"blue"),
    (b"mqtt.response-topic", b"answers/1"),
    (b"mqtt.correlation-data", b"\xff\0"),
    (b"mqtt.payload-format", b"1"),
    (b"mqtt.expires-at", b"1007000"),
)
TEXT = st.text(max_size=20).map(lambda text: text.replace("\0", "").encode())


def test_every_property_crosses_in_its_order() -> None:
    written = properties.properties_of(HEADERS, NOW)
    assert tuple(properties.headers_of(written, NOW, 0, retain=False)) == HEADERS
    assert properties.expires_at(written, NOW) == NOW + 7000
    assert properties.properties_of((*HEADERS, (b"mqtt.qos", b"2")), NOW) == written


def test_quality_and_retain_are_headers_too() -> None:
    headers = properties.headers_of(b"", NOW, 2, retain=True)
    assert properties.qos_of(headers, 0) == 2
    assert properties.has_retain(headers)
    assert properties.qos_of([(b"mqtt.qos", b"7")], 1) == 1


@given(st.lists(st.tuples(TEXT, TEXT)))
def test_user_properties_repeat_and_keep_their_order(pairs: list[tuple[bytes, bytes]]) -> None:
    own = [pair for pair in pairs if not pair[0].startswith(b"mqtt.")]
    written = properties.properties_of(own, NOW)
    assert list(properties.headers_of(written, NOW, 0, retain=False)) == own


@pytest.mark.parametrize(
    "header",
    [
        (b"\xff", b"x"),
        (b"x", b"\xff"),
        (b"x", b"\0"),
        (b"x", None),
        (b"x", bytes(70_000)),
        (b"mqtt.content-type", b"x" * 70_000),
        (b"mqtt.content-type", b"\xff"),
        (b"mqtt.content-type", b"text\0"),
        (b"mqtt.response-topic", b"\xed\xa0\x80"),
        (b"mqtt.response-topic", b"answers/+"),
        (b"mqtt.response-topic", b"#"),
        (b"mqtt.response-topic", b""),
        (b"mqtt.correlation-data", bytes(70_000)),
        (b"mqtt.payload-format", b"2"),
        (b"mqtt.expires-at", b"soon"),
        (b"mqtt.expires-at", b"9" * 5_000),
    ],
)
def test_what_packets_cannot_say_is_left_out(header: tuple[bytes, bytes | None]) -> None:
    assert properties.properties_of([header], NOW) == b""


def test_the_first_valid_one_of_each_counts() -> None:
    """Kafka's headers may repeat, and so may those that a gateway adds again."""
    invalid = [(b"mqtt.response-topic", b"a/#"), (b"mqtt.content-type", b"\xff"),
               (b"mqtt.payload-format", b"9"), (b"mqtt.expires-at", b"")]  # fmt: skip
    later = [(name, b"0") for name, _ in HEADERS if name.startswith(b"mqtt.")]
    user = [(b"color", b"red"), (b"color", b"red")]
    written = properties.properties_of([*invalid, *HEADERS, *later, *user], NOW)
    assert tuple(properties.headers_of(written, NOW, 0, retain=False)) == (*HEADERS, *user)


def test_what_has_expired_has_no_time_left() -> None:
    written = properties.properties_of([(b"mqtt.expires-at", b"5")], NOW)
    assert properties.expires_at(written, NOW) == NOW


@pytest.mark.parametrize(("note", "key", "value"), [((), b"t", b""), ((b"key",), b"t", b""),
                                                    ((b"value",), b"t", None)])  # fmt: skip
def test_nulls(note: tuple[bytes, ...], key: bytes, value: bytes | None) -> None:
    written = properties.properties_of([(b"mqtt.null", one) for one in note], NOW)
    (found,) = opened(head(b"", has_properties=True) + packet(0x30, b"t", written, b""))
    assert (properties.key_of(found), properties.value_of(found)) == (key, value)


def test_an_empty_payload_that_is_retained_is_null() -> None:
    (found,) = opened(head(b"", has_properties=False) + packet(0x31, b"t", None, b""))
    assert properties.value_of(found) is None


def test_a_time_of_its_own() -> None:
    for value, expected in ((b"77", 77), (b"soon", NOW), (b"1" * 40, NOW)):
        written = properties.properties_of([(b"mqtt.time", value)], NOW)
        (found,) = opened(head(b"", has_properties=True) + packet(0x30, b"t", written, b""))
        assert properties.time_of(found, NOW) == expected


@given(st.binary(max_size=40))
def test_damage_is_corrupted(data: bytes) -> None:
    with contextlib.suppress(Corrupted):
        list(properties.fields(data))
