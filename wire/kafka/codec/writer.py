"""Functions for generated encoders: varints and tagged fields. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from magnetar.core.kernel import varints

SHORT: Final = [varints.varint(number) for number in range(1024)]
"""The varints of small numbers, which most sizes are."""


def varint(number: int) -> bytes:
    """Encode an unsigned varint."""
    return SHORT[number] if number < len(SHORT) else varints.varint(number)


def tags(fields: Sequence[tuple[int, list[bytes]]]) -> bytes:
    """Encode tagged fields in order: their count, then number, size and value of each."""
    pieces = [varint(len(fields))]
    for number, value in fields:
        joined = b"".join(value)
        pieces += (varint(number), varint(len(joined)), joined)
    return b"".join(pieces)
