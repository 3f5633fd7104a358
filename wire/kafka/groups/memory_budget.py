"""The memory budget of all groups together. Pure.

A member reserves memory before any of its state is stored, and releases it when it leaves. Its size
is the size of the client's fields plus a fixed amount per object.

Invariants: nothing new is accepted beyond `bytes_max`; groups loaded from storage are, because they
were accepted before, perhaps by another coordinator. `used_bytes` is zero without members and
assigned ids.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

BYTES_MAX: Final = 64 * 1024 * 1024
GROUP_BYTES: Final = 4_000
MEMBER_BYTES: Final = 2_000
"""The memory of a member without its fields."""
ID_BYTES: Final = 500
"""The memory of an assigned id whose client has not rejoined."""


class GroupMemory:
    """See the module's docstring."""

    __slots__ = ("bytes_max", "used_bytes")

    def __init__(self, bytes_max: int = BYTES_MAX) -> None:
        self.bytes_max = bytes_max
        self.used_bytes = 0

    def has(self, size: int) -> bool:
        """Whether that many more bytes are available; a negative number always is."""
        return size <= 0 or self.used_bytes + size <= self.bytes_max

    def take(self, size: int) -> None:
        """Reserve memory; a negative number releases it. For anything new, check `has` first."""
        self.used_bytes += size
        assert self.used_bytes >= 0, "given back twice"


def size_of(parts: Iterable[tuple[str, bytes]]) -> int:
    """The size of names and their bytes; a character may take four bytes."""
    return sum(4 * len(name) + len(data) + 100 for name, data in parts)
