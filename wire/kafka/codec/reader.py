"""Functions for generated decoders: varints and tagged fields. Pure.

An index past the end raises `IndexError`, which decoders turn into `WireError`.
"""

from __future__ import annotations

from typing import Final

from magnetar.core.kernel.errors import WireError

VARINT_BYTES_MAX: Final = 5


def varint(data: bytes, at: int) -> tuple[int, int]:
    """An unsigned varint and the offset after it."""
    number = shift = 0
    for place in range(at, at + VARINT_BYTES_MAX):
        byte = data[place]
        number |= (byte & 127) << shift
        if byte < 128:
            return number, place + 1
        shift += 7
    raise WireError(f"a varint of more than {VARINT_BYTES_MAX} bytes")


def tag(data: bytes, at: int) -> tuple[int, int, int]:
    """A tagged field: its number, and the offsets of its value's begin and end."""
    number, at = varint(data, at)
    size, at = varint(data, at)
    if size > len(data) - at:
        raise beyond(f"tagged field {number}")
    return number, at, at + size


def skip_tags(data: bytes, at: int) -> int:
    """Skip unknown tagged fields, which are valid (KIP-482); returns the offset after them."""
    count, at = varint(data, at)
    for _ in range(count):
        _, _, at = tag(data, at)
    return at


def missing(name: str) -> WireError:
    return WireError(f"{name} is null")


def beyond(name: str) -> WireError:
    return WireError(f"{name} does not end where it should")
