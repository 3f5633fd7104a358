"""Memory that all clients together may take for one purpose. Pure."""

from __future__ import annotations


class MemoryBudget:
    """See the module's docstring."""

    __slots__ = ("_bytes_max", "bytes")

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self.bytes = 0
        """What is taken."""

    def take(self, size: int) -> bool:
        """Take some, until it is given back; False if there is not as much left."""
        if self.bytes + size > self._bytes_max:
            return False
        self.bytes += size
        return True

    def give_back(self, size: int) -> None:
        self.bytes -= size
        assert self.bytes >= 0, "more is given back than was taken"
