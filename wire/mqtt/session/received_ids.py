"""Packet identifiers that wait for PUBREL. Pure.

Invariant: they take 8 KiB at most, as a client may leave all 65,535 of them waiting.
"""

from __future__ import annotations

from collections.abc import Sequence


class ReceivedIds:
    """Packet identifiers of QoS 2 that wait for PUBREL: at most 65,535 bits."""

    __slots__ = ("_bits", "count")

    def __init__(self, ids: Sequence[int] = ()) -> None:
        self._bits = bytearray()
        """As many as the largest identifier needs, the lowest first."""
        self.count = 0
        for one in ids:
            self.add(one)

    def __contains__(self, number: int) -> bool:
        place = number >> 3
        return place < len(self._bits) and bool(self._bits[place] >> (number & 7) & 1)

    def add(self, number: int) -> None:
        if number in self:
            return
        lacking = (number >> 3) + 1 - len(self._bits)
        if lacking > 0:
            self._bits.extend(bytes(lacking))
        self._bits[number >> 3] |= 1 << (number & 7)
        self.count += 1

    def discard(self, number: int) -> bool:
        """Remove one; returns whether it was there."""
        if number not in self:
            return False
        self._bits[number >> 3] &= ~(1 << (number & 7))
        self.count -= 1
        return True

    def all(self) -> list[int]:
        if not self.count:
            return []
        bits, found, at = int.from_bytes(self._bits, "little"), [], 0
        while bits:
            low = (bits & -bits).bit_length()
            at += low
            found.append(at - 1)
            bits >>= low
        return found
