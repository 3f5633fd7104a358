"""The messages of one round that are the last ones of their keys, by their order. Pure.

They take the place of the keys (`latest.py`) while the new ledger is written: eight bytes each.

Memory: they lie in a thousand parts, and the part that was asked about last is a set.
"""

from __future__ import annotations

from array import array
from typing import Final

PARTS: Final = 1024


class Survivors:
    """See the module's docstring."""

    __slots__ = ("_at", "_part", "_parts", "_shift")

    def __init__(self, end: int) -> None:
        """All orders are below `end`."""
        self._shift = max(end // PARTS, 1).bit_length()
        self._parts: dict[int, array[int]] = {}
        self._at = -1
        self._part: frozenset[int] = frozenset()
        """The part of that number."""

    def add(self, order: int) -> None:
        number = order >> self._shift
        part = self._parts.get(number)
        if part is None:
            part = self._parts[number] = array("Q")
        part.append(order)

    def has(self, order: int) -> bool:
        """Quick for one order after the other."""
        number = order >> self._shift
        if number != self._at:
            self._at, self._part = number, frozenset(self._parts.get(number, ()))
        return order in self._part
