"""Converts the properties of an MQTT message to headers and back. Pure.

| property | header |
|---|---|
| user property | a header of its name |
| content type, response topic | `mqtt.content-type`, `mqtt.response-topic` |
| correlation data | `mqtt.correlation-data`, its bytes |
| payload format indicator | `mqtt.payload-format`, a digit |
| message expiry interval | `mqtt.expires-at`, ms since 1970 |
| QoS 1 or 2; retain | `mqtt.qos`, a digit; `mqtt.retain`, `1` |

| user property `mqtt.time`, ms since 1970 | none: it is the time of the message |
| user property `mqtt.null`, `key` or `value` | none: the key or the value is null |

User properties keep their order and may repeat. Of the others a packet has at most one (2.2.2.2):
the first header with a valid value counts. What MQTT cannot say is left out: values that are no
text, and response topics with wildcards. Packets have neither event times nor nulls: the last two
user properties carry those of other protocols, and a device may set `mqtt.time` itself.

Invariant: reading raises `Corrupted` and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from struct import Struct as Layout
from typing import Final, NamedTuple

from magnetar.core.entry.mqtt.run import StoredPublish
from magnetar.core.entry.record import Header
from magnetar.core.kernel.errors import Corrupted

PAYLOAD_FORMAT, EXPIRY, CONTENT_TYPE, RESPONSE_TOPIC, CORRELATION_DATA = 1, 2, 3, 8, 9
TOPIC_ALIAS, USER_PROPERTY = 0x23, 0x26

QOS: Final = b"mqtt.qos"
RETAIN: Final = b"mqtt.retain"
EXPIRES_AT: Final = b"mqtt.expires-at"
PAYLOAD_FORMAT_HEADER: Final = b"mqtt.payload-format"
TIME: Final = b"mqtt.time"
NULL: Final = b"mqtt.null"
NULL_KEY: Final[Header] = (NULL, b"key")
NULL_VALUE: Final[Header] = (NULL, b"value")
_NAMES: Final = {
    CONTENT_TYPE: b"mqtt.content-type",
    RESPONSE_TOPIC: b"mqtt.response-topic",
    CORRELATION_DATA: b"mqtt.correlation-data",
}
_NUMBERS: Final = {
    **{name: number for number, name in _NAMES.items()},
    PAYLOAD_FORMAT_HEADER: PAYLOAD_FORMAT,
    EXPIRES_AT: EXPIRY,
}
_OWN: Final = frozenset({QOS, RETAIN})
_SIZE_MAX: Final = 65_535
_TIME_DIGITS_MAX: Final = 19
"""The most digits of a time; more may not fit into 63 bits."""
_U16: Final = Layout(">H")
_U32: Final = Layout(">I")
_SIZES: Final = {PAYLOAD_FORMAT: 1, EXPIRY: 4, TOPIC_ALIAS: 2}
"""The sizes of numeric properties."""


class MessageProperty(NamedTuple):
    """One property."""

    number: int
    name: bytes
    """The name of a user property."""
    value: bytes


def fields(properties: bytes) -> Iterator[MessageProperty]:
    """The properties of a stored packet in order."""
    at, end = 0, len(properties)
    while at < end:
        number = properties[at]
        at += 1
        name = b""
        if number in _SIZES:
            size = _SIZES[number]
            value, at = properties[at : at + size], at + size
        elif number == USER_PROPERTY:
            name, at = _string(properties, at)
            value, at = _string(properties, at)
        elif number in _NAMES:
            value, at = _string(properties, at)
        else:
            raise Corrupted(f"a message has a property 0x{number:02x}")
        if at > end:
            raise Corrupted("a property ends too soon")
        yield MessageProperty(number, name, value)


def size_of(field: MessageProperty) -> int:
    """Its encoded size."""
    if field.number in _SIZES:
        return 1 + len(field.value)
    if field.number == USER_PROPERTY:
        return 5 + len(field.name) + len(field.value)
    return 3 + len(field.value)


def _string(data: bytes, at: int) -> tuple[bytes, int]:
    if at + 2 > len(data):
        raise Corrupted("a property ends too soon")
    end = at + 2 + _U16.unpack_from(data, at)[0]
    return data[at + 2 : end], end


def expires_at(properties: bytes, publish_time_ms: int) -> int | None:
    """The time in ms at which the message expires; None for never."""
    for field in fields(properties):
        if field.number == EXPIRY:
            seconds: int = _U32.unpack(field.value)[0]
            return publish_time_ms + 1000 * seconds
    return None


def headers_of(
    properties: bytes, publish_time_ms: int, qos: int, *, retain: bool
) -> Sequence[Header]:
    """The headers of a packet for other protocols."""
    headers: list[Header] = []
    for field in fields(properties):
        if field.number == USER_PROPERTY:
            if field.name not in (NULL, TIME):
                headers.append((field.name, field.value))
        elif field.number in _NAMES:
            headers.append((_NAMES[field.number], field.value))
        elif field.number == PAYLOAD_FORMAT:
            headers.append((PAYLOAD_FORMAT_HEADER, b"%d" % field.value[0]))
        elif field.number == EXPIRY:
            deadline = publish_time_ms + 1000 * _U32.unpack(field.value)[0]
            headers.append((EXPIRES_AT, b"%d" % deadline))
    if qos:
        headers.append((QOS, b"%d" % qos))
    if retain:
        headers.append((RETAIN, b"1"))
    return headers


def properties_of(headers: Sequence[Header], now_ms: int) -> bytes:
    """The encoded properties for those headers, without their length: one of a kind, but for user
    properties, and with values that MQTT permits.
    """
    pieces: list[bytes] = []
    found: set[int] = set()
    for name, value in headers:
        if value is None:
            continue
        number = _NUMBERS.get(name)
        if number is not None:
            encoded = None if number in found else _encoded(number, value, now_ms)
            if encoded is not None:
                found.add(number)
                pieces += bytes((number,)), encoded
        elif name not in _OWN and _is_string(name) and _is_string(value):
            pieces += bytes((USER_PROPERTY,)), _U16.pack(len(name)), name
            pieces += _U16.pack(len(value)), value
    return b"".join(pieces)


def _encoded(number: int, value: bytes, now_ms: int) -> bytes | None:
    """The value of a property, from its header; None if it is not valid."""
    if number == PAYLOAD_FORMAT:
        return bytes((int(value),)) if value in (b"0", b"1") else None
    if number == EXPIRY:
        if not _is_time(value):
            return None
        left = max(int(value) - now_ms, 0) // 1000
        return _U32.pack(min(left, 0xFFFFFFFF))
    valid = len(value) <= _SIZE_MAX if number == CORRELATION_DATA else _is_string(value)
    if number == RESPONSE_TOPIC:  # a topic name [MQTT-3.3.2-13, MQTT-3.3.2-14]
        valid = valid and value != b"" and b"#" not in value and b"+" not in value
    return _U16.pack(len(value)) + value if valid else None


def qos_of(headers: Sequence[Header], otherwise: int) -> int:
    """The QoS from the header `mqtt.qos`, or `otherwise`."""
    for name, value in headers:
        if name == QOS and value in (b"0", b"1", b"2"):
            return int(value)
    return otherwise


def time_of(packet: StoredPublish, publish_time_ms: int) -> int:
    """The time from the property `mqtt.time`, else the publish time."""
    for field in fields(packet.properties):
        if field.name == TIME and _is_time(field.value):
            return int(field.value)
    return publish_time_ms


def key_of(packet: StoredPublish) -> bytes | None:
    """The topic; None for a null key, which has an empty topic and a property that says so."""
    return packet.topic if packet.topic or not _has(packet, NULL_KEY) else None


def value_of(packet: StoredPublish) -> bytes | None:
    """The payload; None for a null value, or one that deletes a retained message."""
    if packet.payload:
        return packet.payload
    return None if packet.retain or _has(packet, NULL_VALUE) else b""


def _has(packet: StoredPublish, note: Header) -> bool:
    return any((field.name, field.value) == note for field in fields(packet.properties))


def has_retain(headers: Sequence[Header]) -> bool:
    return (RETAIN, b"1") in headers


def _is_time(value: bytes) -> bool:
    return value.isdigit() and len(value) < _TIME_DIGITS_MAX


def _is_string(data: bytes) -> bool:
    """Whether it is a valid UTF-8 string of MQTT (1.5.4)."""
    if len(data) > _SIZE_MAX or b"\0" in data:
        return False
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
