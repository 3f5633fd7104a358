"""Protobuf's variable-length integers, written and read by hand. Pure.

A varint has seven bits per byte, lowest first; the top bit is set if more bytes follow. Consecutive
numbers share all but the first byte while they share all but the low seven bits; `stretches` splits
a range of numbers accordingly, so that many varints are written by joining prepared pieces.

Invariant: a number that is read here has at most 63 bits (9 bytes). Longer forms are valid, and
callers use protobuf for them.
"""

from collections.abc import Iterator, Sequence
from typing import Final

VARINT_BYTES_MAX: Final = 9
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


def varint_end(data: bytes, at: int, end: int) -> int:
    """The offset behind the varint at `at`; 0 when it is not whole there, or is too long."""
    limit = at + VARINT_BYTES_MAX
    if limit > end:
        limit = end
    while at < limit:
        if data[at] < 128:
            return at + 1
        at += 1
    return 0


def number_at(data: bytes, at: int, end: int) -> int:
    """The number whose varint is exactly `data[at:end]`."""
    number = data[end - 1]
    while end - 1 > at:
        end -= 1
        number = number << 7 | data[end - 1] & 127
    return number
