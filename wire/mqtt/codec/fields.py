"""Reads and writes the data types of packets (1.5). Pure.

Invariant: reading raises `MalformedPacket` and nothing else for any bytes, and returns well-formed
strings.
"""

from __future__ import annotations

from struct import Struct as Layout
from typing import Final

from magnetar.wire.mqtt.errors import MalformedPacket

VARINT_MAX: Final = 268_435_455
VARINT_BYTES_MAX: Final = 4
_U16: Final = Layout(">H")
_U32: Final = Layout(">I")


def varint_at(data: bytes, at: int, end: int) -> tuple[int, int]:
    """A variable byte integer and the offset after it; (0, 0) if it is incomplete at `end`."""
    number = shift = 0
    for place in range(at, min(at + VARINT_BYTES_MAX, end)):
        byte = data[place]
        number |= (byte & 127) << shift
        if byte < 128:
            if not byte and shift:
                raise MalformedPacket("a variable byte integer is longer than it need be")
            return number, place + 1
        shift += 7
    if end - at >= VARINT_BYTES_MAX:
        raise MalformedPacket("a variable byte integer has more than four bytes")
    return 0, 0


def varint(number: int) -> bytes:
    """Encode in the shortest form, the only valid one [MQTT-1.5.5-1]."""
    pieces = bytearray()
    while number > 127:
        pieces.append(number & 127 | 128)
        number >>= 7
    pieces.append(number)
    return bytes(pieces)


def u16(number: int) -> bytes:
    return _U16.pack(number)


def u32(number: int) -> bytes:
    return _U32.pack(number)


def binary(data: bytes) -> bytes:
    return _U16.pack(len(data)) + data


def string(text: str) -> bytes:
    return binary(text.encode())


def text_of(data: bytes) -> str:
    """Decode a UTF-8 string. U+0000 and surrogates are invalid; a byte order mark is a character
    like others [MQTT-1.5.4-1, -2, -3]; 3.1.1 has the same rules in 1.5.3.
    """
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise MalformedPacket("a string is not UTF-8") from None
    if "\0" in text:
        raise MalformedPacket("a string holds the null character")
    return text


class FieldReader:
    """Reads the fields of one packet in order."""

    __slots__ = ("_at", "_data", "_end")

    def __init__(self, data: bytes, at: int, end: int) -> None:
        self._data, self._at, self._end = data, at, end

    @property
    def left(self) -> int:
        """The number of bytes left to read."""
        return self._end - self._at

    def take(self, size: int) -> bytes:
        at = self._at
        if size > self._end - at:
            raise MalformedPacket("a packet ends within a field")
        self._at = at + size
        return self._data[at : at + size]

    def rest(self) -> bytes:
        return self.take(self.left)

    def part(self, size: int) -> FieldReader:
        """A reader of the next `size` bytes alone."""
        at = self._at
        self.take(size)
        return FieldReader(self._data, at, at + size)

    def byte(self) -> int:
        return self.take(1)[0]

    def u16(self) -> int:
        number: int = _U16.unpack(self.take(2))[0]
        return number

    def u32(self) -> int:
        number: int = _U32.unpack(self.take(4))[0]
        return number

    def varint(self) -> int:
        number, behind = varint_at(self._data, self._at, self._end)
        if not behind:
            raise MalformedPacket("a packet ends within a field")
        self._at = behind
        return number

    def binary(self) -> bytes:
        return self.take(self.u16())

    def string(self) -> str:
        return text_of(self.binary())

    def packet_id(self) -> int:
        """A packet identifier, which is not zero [MQTT-2.2.1-3], [MQTT-2.3.1-1] of 3.1.1."""
        number = self.u16()
        if not number:
            raise MalformedPacket("the packet identifier is zero")
        return number

    def end(self) -> None:
        if self.left:
            raise MalformedPacket(f"{self.left} bytes behind the end of a packet")
