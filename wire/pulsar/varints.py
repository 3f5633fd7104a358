"""Checks many varints at once; `core/kernel/varints.py` reads and writes single ones."""

from collections.abc import Sequence
from typing import Final

from magnetar.core.kernel.varints import VARINT_BYTES_MAX, varint_end

MORE_FOLLOWS: Final = bytes(number >> 7 for number in range(256))
"""Translates each byte to 1 if its varint continues, to 0 if it ends there."""


def all_varints(pieces: Sequence[bytes], size: int) -> bool:
    """Whether each of the pieces, all of `size` bytes, is exactly one varint.

    Checking them together costs a tenth of checking one at a time.
    """
    if size > VARINT_BYTES_MAX:
        return False
    if len(pieces) == 1:
        return varint_end(pieces[0], 0, size) == size
    pattern = b"\x01" * (size - 1) + b"\x00"
    return b"".join(pieces).translate(MORE_FOLLOWS) == pattern * len(pieces)
