"""Which partition a row goes to. Pure.

A key is hashed as Kafka's Java clients do (`BuiltInPartitioner.partitionForKey` of 4.3), so rows
and what such clients send with the same key stand in one partition. Rows without a key go in runs
from one partition to the next. Both depend on the rows alone: a batch that is written again puts
each row where it was, as long as the topic has as many partitions.
"""

from __future__ import annotations

from typing import Final

_SEED: Final = 0x9747B28C
_FACTOR: Final = 0x5BD1E995
_SHIFT: Final = 24
_MASK: Final = 0xFFFFFFFF
_POSITIVE: Final = 0x7FFFFFFF
ROWS_IN_A_RUN: Final = 1_000
KEYS_KNOWN_MAX: Final = 10_000
"""Hashing takes Python a microsecond for every four bytes, so hashes of keys are kept."""


def murmur2(data: bytes) -> int:
    """The hash of a key (`Utils.murmur2` of Kafka's clients), as 32 bits without a sign."""
    whole = len(data) & ~3
    found = _SEED ^ len(data)
    for at in range(0, whole, 4):
        word = int.from_bytes(data[at : at + 4], "little") * _FACTOR & _MASK
        word = (word ^ word >> _SHIFT) * _FACTOR & _MASK
        found = found * _FACTOR & _MASK ^ word
    if whole != len(data):
        found = (found ^ int.from_bytes(data[whole:], "little")) * _FACTOR & _MASK
    found = (found ^ found >> 13) * _FACTOR & _MASK
    return found ^ found >> 15


class Partitioner:
    """Chooses among the partitions of one topic."""

    def __init__(self, partitions: int, first: int) -> None:
        """Rows without a key begin at partition `first`, counted around."""
        self._partitions = partitions
        self._first = first
        self._without_key = 0
        self._known: dict[bytes, int] = {}

    def of(self, key: bytes | None) -> int:
        if self._partitions == 1:
            return 0
        if key is None:
            run = self._without_key // ROWS_IN_A_RUN
            self._without_key += 1
            return (self._first + run) % self._partitions
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= KEYS_KNOWN_MAX:
                self._known.clear()
            found = self._known[key] = (murmur2(key) & _POSITIVE) % self._partitions
        return found
