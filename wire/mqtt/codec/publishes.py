"""Runs of PUBLISH packets, which are parsed with one call. Pure.

    fixed header | topic | packet identifier if QoS > 0 | properties in 5.0 | payload

Invariant: a parsed packet satisfies every rule about a single PUBLISH. The wire and the session
check rules that involve other packets (aliases, identifiers in use, quotas). `parse_publishes` has
a compiled twin.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from magnetar.core.native import quickest
from magnetar.wire.mqtt import topics
from magnetar.wire.mqtt.codec.fields import FieldReader, text_of, varint_at
from magnetar.wire.mqtt.codec.identifiers import as_range
from magnetar.wire.mqtt.codec.packets import PacketType
from magnetar.wire.mqtt.codec.properties import (
    IN_PUBLISH,
    NO_PROPERTIES,
    Properties,
    Property,
    read_properties,
)
from magnetar.wire.mqtt.errors import MalformedPacket, PacketError, ProtocolViolation
from magnetar.wire.mqtt.reason_codes import ReasonCode

DUP: Final = 8
RETAIN: Final = 1
NAMES_MAX: Final = 16_384
"""Validated topic names that are cached for all connections."""
_PUBLISH: Final = int(PacketType.PUBLISH)
_BAD_FLAGS: Final[Mapping[int, str]] = {
    **dict.fromkeys((6, 7, 14, 15), "a quality of service of 3"),  # [MQTT-3.3.1-4]
    **dict.fromkeys((8, 9), "DUP with QoS 0"),  # [MQTT-3.3.1-2]
}


class Publish(Struct, frozen=True, gc=False):
    """Consecutive PUBLISH packets that differ in their identifiers and payloads only, so that they
    are handled as one. A packet with RETAIN, DUP or properties is one by itself. It is part of no
    reference cycle.
    """

    flags: int
    """The lower four bits of their first byte."""
    topic: str
    """Empty if an alias replaces it."""
    ids: Sequence[int]
    """Their packet identifiers (`identifiers.py`); none with QoS 0."""
    packets: int
    """How many they are."""
    begin: int
    """The offset of the first one in the bytes of the run."""
    payload_at: int
    """That of its payload, which ends with the packet."""
    end: int
    """The offset after the last one."""
    properties: Properties

    @property
    def qos(self) -> int:
        return self.flags >> 1 & 3

    @property
    def retain(self) -> bool:
        return bool(self.flags & RETAIN)

    @property
    def dup(self) -> bool:
        return bool(self.flags & DUP)

    @property
    def packet_id(self) -> int:
        """That of the first one; 0 with QoS 0."""
        return self.ids[0] if self.ids else 0


class Publishes(Struct, frozen=True):
    """Consecutive PUBLISH packets."""

    data: bytes
    """The bytes of the packets."""
    packets: list[Publish]


def count_of(packets: Sequence[Publish]) -> int:
    """How many packets these are."""
    if len(packets) == 1:
        return packets[0].packets
    return sum([one.packets for one in packets])


class TopicNames(dict[bytes, str]):
    """A cache of valid topic names, by their bytes: devices repeat theirs."""

    __slots__ = ()

    def __missing__(self, data: bytes) -> str:
        name = text_of(data)
        if not topics.is_name_of_any_depth(name):  # its log would be too deep: no reason to end
            raise PacketError(ReasonCode.TOPIC_NAME_INVALID, "the topic is no topic name")
        if len(data) <= topics.CACHED_BYTES_MAX:
            if len(self) >= NAMES_MAX:
                self.clear()
            self[data] = name
        return name


def py_parse_publishes(
    data: bytes, at: int, names: TopicNames, size_max: int, has_properties: bool
) -> tuple[int, list[Publish]]:
    """Parse complete PUBLISH packets up to one of another type; returns the offset after them,
    and the packets, whose offsets are those of `data`.
    """
    found: list[Publish] = []
    ids: list[list[int]] = []
    size = len(data)
    while at + 2 < size and data[at] >> 4 == _PUBLISH:
        length, more = data[at + 1], data[at + 2]
        if length < 128:
            fields_at = at + 2
        elif 0 < more < 128:  # most lengths have two bytes
            length, fields_at = length & 127 | more << 7, at + 3
        else:
            length, fields_at = varint_at(data, at + 1, size)
        end = fields_at + length
        if not fields_at or end > size:
            break
        if end - at > size_max:
            raise PacketError(ReasonCode.PACKET_TOO_LARGE, f"a packet of {end - at} bytes")
        one = parse_publish(data, at, fields_at, end, names, has_properties)
        if found and _continues(found[-1], one):
            ids[-1] += one.ids
            found[-1] = replace(found[-1], packets=found[-1].packets + 1, end=one.end)
        else:
            ids.append(list(one.ids))
            found.append(one)
        at = end
    if size - at == 2 and data[at] >> 4 == _PUBLISH and not data[at + 1]:
        raise MalformedPacket("a packet ends within a field")  # the only one of two bytes
    return at, [replace(one, ids=as_range(own)) for one, own in zip(found, ids, strict=True)]


def _continues(last: Publish, one: Publish) -> bool:
    return (
        one.flags == last.flags
        and not one.flags & (RETAIN | DUP)
        and one.topic == last.topic
        and not (one.properties or last.properties)
    )


def one_by_one(data: bytes, several: Publish) -> Iterator[Publish]:
    """Each of the packets by itself."""
    begin = several.begin
    _, fields_at = varint_at(data, begin + 1, several.end)
    head = several.payload_at - fields_at  # topic, identifier and properties have one size
    for place in range(several.packets):
        length, fields_at = varint_at(data, begin + 1, several.end)
        yield Publish(
            several.flags,
            several.topic,
            several.ids[place : place + 1],
            1,
            begin,
            fields_at + head,
            fields_at + length,
            several.properties,
        )
        begin = fields_at + length


def parse_publish(
    data: bytes, begin: int, at: int, end: int, names: TopicNames, has_properties: bool
) -> Publish:
    """Parse one packet, whose fields begin at `at`."""
    flags = data[begin] & 15
    if flags in _BAD_FLAGS:
        raise MalformedPacket(_BAD_FLAGS[flags])
    if end - at < 2:
        raise MalformedPacket("a packet ends within a field")
    topic_end = at + 2 + (data[at] << 8 | data[at + 1])
    packet_id, payload_at = 0, topic_end + 2 if flags > RETAIN else topic_end
    if payload_at > end:
        raise MalformedPacket("a packet ends within a field")
    if flags > RETAIN:
        packet_id = data[topic_end] << 8 | data[topic_end + 1]
        if not packet_id:
            raise MalformedPacket("the packet identifier is zero")  # [MQTT-2.2.1-3]
    topic = names[data[at + 2 : topic_end]] if topic_end > at + 2 else ""
    properties = NO_PROPERTIES
    if has_properties and payload_at < end and not data[payload_at]:
        payload_at += 1  # no properties
    elif has_properties:
        fields = FieldReader(data, payload_at, end)
        properties = read_properties(fields, IN_PUBLISH)
        payload_at = end - fields.left
    if not topic and Property.TOPIC_ALIAS not in properties:
        raise ProtocolViolation("neither a topic name nor an alias")  # [MQTT-3.3.2-1], 3.3.2.3.4
    ids = [packet_id] if packet_id else []
    return Publish(flags, topic, ids, 1, begin, payload_at, end, properties)


parse_publishes = quickest(py_parse_publishes, "magnetar.wire.mqtt.codec.compiled")
