"""Protobuf's variable-length integers, for the few places that read them by hand.

They are written by `core.varints`.

Invariant: what is read here has at most 63 bits (9 bytes). Longer forms are legal and are left to
protobuf.
"""

from collections.abc import Sequence
from typing import Final

VARINT_BYTES_MAX: Final = 9

MORE_FOLLOWS: Final = bytes(number >> 7 for number in range(256))
"""Translates each byte to 1 when its varint goes on, to 0 when it ends there."""


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


def all_varints(pieces: Sequence[bytes], size: int) -> bool:
    """Whether each of the pieces, all of `size` bytes, is exactly one varint.

    One look at all of them together: a tenth of the cost of one at a time.
    """
    if size > VARINT_BYTES_MAX:
        return False
    if len(pieces) == 1:
        return varint_end(pieces[0], 0, size) == size
    pattern = b"\x01" * (size - 1) + b"\x00"
    return b"".join(pieces).translate(MORE_FOLLOWS) == pattern * len(pieces)
