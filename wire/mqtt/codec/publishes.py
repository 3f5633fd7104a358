"""PUBLISH packets in runs: a device that sends many is read with one call. Pure.

    fixed header | topic | packet identifier if QoS > 0 | properties in 5.0 | payload

Invariant: what is read satisfies every rule about a single PUBLISH; what is left to the wire and
the session is what depends on other packets (aliases, identifiers in use, quotas).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from msgspec import Struct

from magnetar.wire.mqtt import topics
from magnetar.wire.mqtt.codec.fields import FieldReader, text_of, varint_at
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
NAMES_MAX: Final = 1024
"""Topic names of one connection that are known to be valid."""


class Publish(NamedTuple):
    """One PUBLISH of a run."""

    flags: int
    """The lower four bits of its first byte."""
    topic: str
    """Empty where an alias stands for it."""
    packet_id: int
    """0 with QoS 0."""
    begin: int
    """Where it begins in the bytes of its run; it ends where the payload ends."""
    payload_at: int
    end: int
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


class Publishes(Struct, frozen=True):
    """PUBLISH packets that came one behind the other."""

    data: bytes
    """The packets as they came, and nothing else."""
    packets: Sequence[Publish]


class TopicNames:
    """Names that this connection has used, by their bytes: a device uses few, many times."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[bytes, str] = {}

    def get(self, data: bytes) -> str:
        name = self._known.get(data)
        return name if name is not None else self._new(data)

    def _new(self, data: bytes) -> str:
        name = text_of(data)
        if not topics.is_name(name):
            raise PacketError(ReasonCode.TOPIC_NAME_INVALID, "the topic is no topic name")
        if len(self._known) >= NAMES_MAX:
            self._known.clear()
        self._known[data] = name
        return name


def parse_publishes(
    data: bytes, at: int, names: TopicNames, size_max: int, *, has_properties: bool
) -> tuple[int, list[Publish]]:
    """The whole PUBLISH packets from there on, up to one of another type, and the offset behind
    them. Offsets are those of `data`.
    """
    found: list[Publish] = []
    size = len(data)
    while at < size and data[at] >> 4 == PacketType.PUBLISH:
        length, fields_at = varint_at(data, at + 1, size)
        end = fields_at + length
        if not fields_at or end > size:
            break
        if end - at > size_max:
            raise PacketError(ReasonCode.PACKET_TOO_LARGE, f"a packet of {end - at} bytes")
        found.append(_parse(data, at, fields_at, end, names, has_properties))
        at = end
    return at, found


def _parse(
    data: bytes, begin: int, at: int, end: int, names: TopicNames, has_properties: bool
) -> Publish:
    flags = data[begin] & 15
    qos = flags >> 1 & 3
    if qos == 3:
        raise MalformedPacket("a quality of service of 3")  # [MQTT-3.3.1-4]
    if flags & DUP and not qos:
        raise MalformedPacket("DUP with QoS 0")  # [MQTT-3.3.1-2]
    topic_end = at + 2 + int.from_bytes(data[at : at + 2])
    if topic_end + (2 if qos else 0) > end:
        raise MalformedPacket("a packet ends within a field")
    topic = names.get(data[at + 2 : topic_end]) if topic_end > at + 2 else ""
    packet_id = 0
    if qos:
        packet_id = int.from_bytes(data[topic_end : topic_end + 2])
        if not packet_id:
            raise MalformedPacket("the packet identifier is zero")  # [MQTT-2.2.1-3]
        topic_end += 2
    properties = NO_PROPERTIES
    if has_properties:
        fields = FieldReader(data, topic_end, end)
        properties = read_properties(fields, IN_PUBLISH)
        topic_end = end - fields.left
    if not topic and Property.TOPIC_ALIAS not in properties:
        raise ProtocolViolation("neither a topic name nor an alias")  # [MQTT-3.3.2-1], 3.3.2.3.4
    return Publish(flags, topic, packet_id, begin, topic_end, end, properties)
