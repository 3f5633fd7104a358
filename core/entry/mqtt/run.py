"""A run: consecutive PUBLISH packets of one connection, as its client sent them. Pure.

    u8 1 | u8 flags | u16 size, client id | places, if flagged | packet | packet | ...

    flags   1  packets have properties: their client speaks MQTT 5.0
            2  places: u16 count, then as many u16: the place of each packet among the messages
               of the entry; without them no packet is missing. Two bytes suffice: a run is of one
               read (256 KiB), and no packet takes less than 5 bytes

A packet is stored as sent, fixed header included, with one exception: a topic alias is replaced by
its topic. Packet identifiers and DUP belong to the publisher's session, and readers ignore them.

Invariant: reading raises `Corrupted` and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from struct import Struct as Layout
from typing import Final, NamedTuple

from magnetar.core.kernel.errors import Corrupted
from magnetar.core.kernel.structs import FrozenStruct

LAYOUT: Final = 1
HAS_PROPERTIES: Final = 1
HAS_PLACES: Final = 2
TOPIC_BYTES_MAX: Final = 65_535
PUBLISH: Final = 0x30
RETAIN: Final = 1
_HEAD: Final = Layout(">BBH")
HEAD_BYTES: Final = 4
_U16: Final = Layout(">H")
_LENGTH_BYTES_MAX: Final = 4


class StoredPublish(NamedTuple):
    """One packet of a run."""

    place: int
    first: int
    """Its first byte."""
    topic: bytes
    properties: bytes
    """Encoded, without their length; empty for none."""
    payload: bytes
    begin: int
    """Its offset in the run."""
    end: int

    @property
    def qos(self) -> int:
        return self.first >> 1 & 3

    @property
    def retain(self) -> bool:
        return bool(self.first & RETAIN)


class PublishRun(FrozenStruct, frozen=True):
    """A run with a parsed header."""

    data: bytes
    flags: int
    client_id: bytes
    """The client id of the publisher."""
    places: Sequence[int] | None
    packets_at: int

    @property
    def has_properties(self) -> bool:
        return bool(self.flags & HAS_PROPERTIES)

    def __iter__(self) -> Iterator[StoredPublish]:
        at, size, places = self.packets_at, len(self.data), self.places
        place = 0
        while at < size:
            number = place
            if places is not None:
                if place == len(places):
                    raise Corrupted("a run has more packets than places")
                number = places[place]
            packet = _packet(self.data, at, number, has_properties=self.has_properties)
            yield packet
            at, place = packet.end, place + 1
        if places is not None and place < len(places):
            raise Corrupted("a run has fewer packets than places")


def head(client_id: bytes, *, has_properties: bool, places: Sequence[int] | None = None) -> bytes:
    """The bytes before the packets."""
    flags = HAS_PROPERTIES if has_properties else 0
    if places is None:
        return _HEAD.pack(LAYOUT, flags, len(client_id)) + client_id
    pieces = [_HEAD.pack(LAYOUT, flags | HAS_PLACES, len(client_id)), client_id]
    pieces += map(_U16.pack, (len(places), *places))
    return b"".join(pieces)


def opened(data: bytes) -> PublishRun:
    """Parse the header of a run."""
    if len(data) < HEAD_BYTES:
        raise Corrupted("a run of PUBLISH packets ends in its header")
    if data[0] != LAYOUT:
        raise Corrupted(f"a run of PUBLISH packets has layout {data[0]}")
    flags = data[1]
    at = HEAD_BYTES + (data[2] << 8 | data[3])
    client_id, places = data[HEAD_BYTES:at], None
    if flags & HAS_PLACES:
        count = u16_at(data, at)
        places_at, at = at + 2, at + 2 + 2 * count
        places = [u16_at(data, place) for place in range(places_at, at, 2)]
    if at > len(data):
        raise Corrupted("a run of PUBLISH packets ends in its header")
    return PublishRun(data, flags, client_id, places, at)


def packet(
    first: int, topic: bytes, properties: bytes | None, payload: bytes, packet_id: int = 1
) -> bytes:
    """A PUBLISH as a client would send it; `properties` is None before 5.0."""
    pieces = [_U16.pack(len(topic)), topic]
    if first >> 1 & 3:
        pieces.append(_U16.pack(packet_id))
    if properties is not None:
        pieces += length(len(properties)), properties
    pieces.append(payload)
    body = b"".join(pieces)
    return bytes((first,)) + length(len(body)) + body


def length(number: int) -> bytes:
    """Encode a variable byte integer (1.5.5 of MQTT 5.0)."""
    pieces = bytearray()
    while number > 127:
        pieces.append(number & 127 | 128)
        number >>= 7
    pieces.append(number)
    return bytes(pieces)


def length_at(data: bytes | bytearray, at: int, end: int) -> tuple[int, int]:
    """A variable byte integer, and the offset after it."""
    number = shift = 0
    for place in range(at, min(at + _LENGTH_BYTES_MAX, end)):
        byte = data[place]
        number |= (byte & 127) << shift
        if byte < 128:
            return number, place + 1
        shift += 7
    raise Corrupted("a length in a PUBLISH packet does not end")


def packet_id_of(run: PublishRun, packet: StoredPublish) -> int:
    """The packet identifier with which the publisher sent a packet of QoS 1 or 2."""
    _, at = length_at(run.data, packet.begin + 1, packet.end)
    return u16_at(run.data, at + 2 + len(packet.topic))


def u16_at(data: bytes | bytearray, at: int) -> int:
    if at + 2 > len(data):
        raise Corrupted("a PUBLISH packet ends within a field")
    number: int = _U16.unpack_from(data, at)[0]
    return number


def _packet(data: bytes, begin: int, place: int, *, has_properties: bool) -> StoredPublish:
    first = data[begin]
    if first & 0xF0 != PUBLISH:
        raise Corrupted(f"a packet of a run begins with {first:#x}")
    size, at = length_at(data, begin + 1, len(data))
    end = at + size
    if end > len(data):
        raise Corrupted("a PUBLISH packet is longer than its run")
    topic_at = at + 2
    at = topic_at + u16_at(data, at)
    topic = data[topic_at:at]
    if first >> 1 & 3:
        at += 2
    properties = b""
    if has_properties and at < end:
        size, properties_at = length_at(data, at, end)
        at = properties_at + size
        properties = data[properties_at:at]
    if at > end:
        raise Corrupted("a PUBLISH packet ends within a field")
    return StoredPublish(place, first, topic, properties, data[at:end], begin, end)
