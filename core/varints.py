"""Protobuf's variable-length integers, written by hand. Pure.

A varint has seven bits per byte, lowest first, the top bit saying that more follows. Consecutive
numbers share all but the first byte as long as they share all but the low seven bits; `stretches`
cuts a run of numbers accordingly, so that whoever writes many of them joins ready-made pieces.
"""

from collections.abc import Iterator, Sequence
from typing import Final

ONE_BYTE: Final[Sequence[bytes]] = tuple(bytes([number]) for number in range(128))
"""The whole varint of a number below 128."""
FIRST_BYTE: Final[Sequence[bytes]] = tuple(bytes([number | 128]) for number in range(128))
"""The first byte of the varint of a larger number, by its low seven bits."""


def varint(number: int) -> bytes:
    """The shortest form of an unsigned number."""
    if number < 128:
        return ONE_BYTE[number]
    pieces = bytearray()
    while number > 127:
        pieces.append(number & 127 | 128)
        number >>= 7
    pieces.append(number)
    return bytes(pieces)


def stretches(first: int, count: int) -> Iterator[tuple[Sequence[bytes], bytes]]:
    """The varints of `count` numbers from `first` on, as (first bytes, shared rest) pairs."""
    while count > 0:
        low = first & 127
        number = min(128 - low, count)
        if first < 128:
            yield ONE_BYTE[low : low + number], b""
        else:
            yield FIRST_BYTE[low : low + number], varint(first >> 7)
        first += number
        count -= number
