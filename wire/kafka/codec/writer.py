"""What compiled encoders call: numbers whose size varies, and tagged fields. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from magnetar.core.kernel import varints

SHORT: Final = [varints.varint(number) for number in range(1024)]
"""Most sizes are small."""


def varint(number: int) -> bytes:
    """Unsigned."""
    return SHORT[number] if number < len(SHORT) else varints.varint(number)


def tags(fields: Sequence[tuple[int, list[bytes]]]) -> bytes:
    """Tagged fields in their order: how many, then number, size, value of each."""
    pieces = [varint(len(fields))]
    for number, value in fields:
        joined = b"".join(value)
        pieces += (varint(number), varint(len(joined)), joined)
    return b"".join(pieces)
