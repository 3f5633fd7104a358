"""The memory budget of all groups together. Pure.

A member reserves memory before anything of it is stored, and releases it when it leaves. The sizes
are those of what a client sends, plus a flat amount for each object that is made of it.

Invariants: nothing new is accepted beyond `bytes_max`; what is loaded from storage is, because it
was accepted before, perhaps by another coordinator. `used_bytes` is zero when there are no members
and no ids handed out.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

BYTES_MAX: Final = 64 * 1024 * 1024
GROUP_BYTES: Final = 4_000
MEMBER_BYTES: Final = 2_000
"""Of a member that says nothing."""
ID_BYTES: Final = 500
"""Of an id that its owner has not come back with."""


class GroupMemory:
    """See the module's docstring."""

    __slots__ = ("bytes_max", "used_bytes")

    def __init__(self, bytes_max: int = BYTES_MAX) -> None:
        self.bytes_max = bytes_max
        self.used_bytes = 0

    def has(self, size: int) -> bool:
        """Whether so many bytes more could be taken; fewer always."""
        return size <= 0 or self.used_bytes + size <= self.bytes_max

    def take(self, size: int) -> None:
        """Below zero gives back. For something new, check `has` first."""
        self.used_bytes += size
        assert self.used_bytes >= 0, "given back twice"


def size_of(parts: Iterable[tuple[str, bytes]]) -> int:
    """Of names and what stands under them; a character may take four bytes."""
    return sum(4 * len(name) + len(data) + 100 for name, data in parts)
