"""A client's side of MQTT for tests: packets to bytes, and bytes to what a test compares.

It shares no code with the codec under test, so that a mistake there is not repeated here.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import pack, unpack_from
from typing import Any, NamedTuple

KINDS = (
    "", "CONNECT", "CONNACK", "PUBLISH", "PUBACK", "PUBREC", "PUBREL", "PUBCOMP", "SUBSCRIBE",
    "SUBACK", "UNSUBSCRIBE", "UNSUBACK", "PINGREQ", "PINGRESP", "DISCONNECT", "AUTH",
)  # fmt: skip
PINGREQ = b"\xc0\0"
SIZES = {
    **dict.fromkeys((0x01, 0x17, 0x19, 0x24, 0x25, 0x28, 0x29, 0x2A), 1),
    **dict.fromkeys((0x13, 0x21, 0x22, 0x23), 2),
    **dict.fromkeys((0x02, 0x11, 0x18, 0x27), 4),
}
"""Properties of a fixed size; user properties are pairs of strings, subscription identifiers are
numbers, all others are strings or binary data."""
V3, V5 = 4, 5


class Received(NamedTuple):
    """One packet of the server."""

    kind: str
    flags: int = 0
    number: int = 0
    """Packet identifier, or for CONNACK session present."""
    reasons: tuple[int, ...] = ()
    topic: str = ""
    payload: bytes = b""
    properties: bytes = b""
    size: int = 0
    """Bytes of the whole packet."""

    @property
    def qos(self) -> int:
        return self.flags >> 1 & 3

    @property
    def retain(self) -> bool:
        return bool(self.flags & 1)

    @property
    def dup(self) -> bool:
        return bool(self.flags & 8)


def text(value: str | bytes) -> bytes:
    data = value.encode() if isinstance(value, str) else value
    return pack(">H", len(data)) + data


def number(value: int) -> bytes:
    """A variable byte integer."""
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def frame(first: int, body: bytes) -> bytes:
    return bytes((first,)) + number(len(body)) + body


def block(properties: bytes | None, version: int) -> bytes:
    """Properties with their length, or nothing before 5.0."""
    return b"" if version < V5 else number(len(properties or b"")) + (properties or b"")


def connect(
    client_id: str = "c",
    *,
    version: int = V3,
    clean: bool = True,
    keep_alive: int = 0,
    properties: bytes = b"",
    will: tuple[str, bytes, int, bool] | None = None,
    will_properties: bytes = b"",
    username: str | None = None,
    password: bytes | None = None,
) -> bytes:
    flags = 2 if clean else 0
    payload = text(client_id)
    if will is not None:
        topic, message, qos, retain = will
        flags |= 4 | qos << 3 | (0x20 if retain else 0)
        payload += block(will_properties, version) + text(topic) + text(message)
    if username is not None:
        flags |= 0x80
        payload += text(username)
    if password is not None:
        flags |= 0x40
        payload += text(password)
    name = "MQIsdp" if version == 3 else "MQTT"
    head = text(name) + bytes((version, flags)) + pack(">H", keep_alive)
    return frame(0x10, head + block(properties, version) + payload)


def publish(
    topic: str,
    payload: bytes = b"",
    *,
    qos: int = 0,
    number: int = 0,
    retain: bool = False,
    dup: bool = False,
    version: int = V3,
    properties: bytes = b"",
) -> bytes:
    body = text(topic) + (pack(">H", number) if qos else b"") + block(properties, version)
    return frame(0x30 | (8 if dup else 0) | qos << 1 | retain, body + payload)


def acknowledge(kind: str, number: int, reason: int | None = None) -> bytes:
    first = KINDS.index(kind) << 4 | (2 if kind == "PUBREL" else 0)
    return frame(first, pack(">H", number) + (b"" if reason is None else bytes((reason,))))


def subscribe(
    *filters: tuple[str, int], number: int = 1, version: int = V3, properties: bytes = b""
) -> bytes:
    body = pack(">H", number) + block(properties, version)
    return frame(0x82, body + b"".join(text(name) + bytes((options,)) for name, options in filters))


def unsubscribe(*filters: str, number: int = 1, version: int = V3) -> bytes:
    return frame(0xA2, pack(">H", number) + block(b"", version) + b"".join(map(text, filters)))


def disconnect(reason: int | None = None, properties: bytes = b"") -> bytes:
    if reason is None:
        return frame(0xE0, b"")
    return frame(0xE0, bytes((reason,)) + block(properties, V5))


# -- what the server sends ------------------------------------------------------------------------


def parse(pieces: Sequence[bytes], version: int = V3) -> list[Received]:
    """All packets in these bytes, which end with a packet."""
    data, at, found = b"".join(pieces), 0, []
    while at < len(data):
        begin, first = at, data[at]
        size, at = _number(data, at + 1)
        assert at + size <= len(data), "the server has sent part of a packet"
        packet = _parsed(first, data[at : at + size], version)
        at += size
        found.append(packet._replace(size=at - begin))
    return found


def _number(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        shift += 7
        at += 1
        if data[at - 1] < 128:
            return value, at


def _properties(data: bytes, at: int, version: int) -> tuple[bytes, int]:
    if version < V5 or at >= len(data):
        return b"", at
    size, at = _number(data, at)
    return data[at : at + size], at + size


def properties_in(data: bytes) -> list[tuple[int, bytes]]:
    """The identifiers of properties with their values as bytes, in their order."""
    at, found = 0, []
    while at < len(data):
        name, begin = data[at], at + 1
        if name == 0x26:
            at = begin + 2 + unpack_from(">H", data, begin)[0]
            at += 2 + unpack_from(">H", data, at)[0]
        elif name == 0x0B:
            _, at = _number(data, begin)
        elif name in SIZES:
            at = begin + SIZES[name]
        else:
            begin += 2
            at = begin + unpack_from(">H", data, begin - 2)[0]
        found.append((name, data[begin:at]))
    assert at == len(data), "the last property is cut"
    return found


def _parsed(first: int, body: bytes, version: int) -> Received:
    kind, flags = KINDS[first >> 4], first & 15
    found: dict[str, Any] = {"kind": kind, "flags": flags}
    if kind == "CONNACK":
        found["number"], found["reasons"] = body[0], (body[1],)
        found["properties"], _ = _properties(body, 2, version)
    elif kind == "PUBLISH":
        (size,) = unpack_from(">H", body)
        at = 2 + size
        found["topic"] = body[2:at].decode()
        if flags & 6:
            (found["number"],) = unpack_from(">H", body, at)
            at += 2
        found["properties"], at = _properties(body, at, version)
        found["payload"] = body[at:]
    elif kind in ("SUBACK", "UNSUBACK"):
        (found["number"],) = unpack_from(">H", body)
        found["properties"], at = _properties(body, 2, version)
        found["reasons"] = tuple(body[at:])
    elif kind in ("DISCONNECT", "AUTH"):
        found["reasons"] = tuple(body[:1])
        found["properties"], _ = _properties(body, 1, version)
    elif kind != "PINGRESP":
        (found["number"],) = unpack_from(">H", body)
        found["reasons"] = tuple(body[2:3])
        found["properties"], _ = _properties(body, 3, version)
    return Received(**found)
