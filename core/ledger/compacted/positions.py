"""The positions of the entries of a compacted ledger, as they are stored in it. Pure.

    entry 0 .. n-1     the rests of entries of the log, in their order
    then, per chunk    the positions that 10,000 of them have in the log, packed
    last               the directory: the first position of each chunk

So a reader holds the directory in memory, and of the positions only the chunk that it reads.

Invariants: positions ascend; what is decoded was encoded here, or is `Corrupted`.
"""

from __future__ import annotations

import sys
import zlib
from array import array
from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from magnetar.core.kernel.errors import Corrupted
from magnetar.core.ledger.log.chain import Position

POSITIONS_PER_CHUNK: Final = 10_000
_POSITION_BYTES: Final = 16


def chunks_of(entries: int) -> int:
    """The number of chunks for so many entries."""
    return -(-entries // POSITIONS_PER_CHUNK)


class PositionWriter:
    """Collects positions. Full chunks are packed at once, which is about two bytes a position."""

    __slots__ = ("_chunk", "_firsts", "_packed", "count")

    def __init__(self) -> None:
        self.count = 0
        self._chunk: list[Position] = []
        self._firsts: list[Position] = []
        self._packed: list[bytes] = []

    def add(self, position: Position) -> None:
        self.count += 1
        self._chunk.append(position)
        if len(self._chunk) == POSITIONS_PER_CHUNK:
            self._pack()

    def _pack(self) -> None:
        self._firsts.append(self._chunk[0])
        self._packed.append(packed(self._chunk))
        self._chunk = []

    def finished(self) -> list[bytes]:
        """The entries that follow those of the log; at least one position was added."""
        if self._chunk:
            self._pack()
        return [*self._packed, packed(self._firsts)]


def packed(positions: Sequence[Position]) -> bytes:
    """Positions as one entry: the ledger ids, then the entry ids, compressed."""
    numbers = array("q", [one[0] for one in positions])
    numbers.extend([one[1] for one in positions])
    if sys.byteorder == "big":
        numbers.byteswap()
    return zlib.compress(numbers.tobytes(), 1)


def unpacked(entry: bytes, count: int) -> list[Position]:
    """The positions of an entry; `Corrupted` unless there are `count`, in ascending order."""
    size = count * _POSITION_BYTES
    numbers = array("q")
    try:
        numbers.frombytes(zlib.decompressobj().decompress(entry, size + 1))
    except (zlib.error, ValueError) as error:
        raise Corrupted(f"these are no positions: {error}") from error
    if sys.byteorder == "big":
        numbers.byteswap()
    found = list(zip(numbers[:count], numbers[count:], strict=False))
    if len(numbers) != 2 * count or any(low >= high for low, high in pairwise(found)):
        raise Corrupted(f"these are not {count} positions")
    return found


def chunk_with(directory: Sequence[Position], position: Position) -> int:
    """The chunk in which the first entry from `position` on is, or after which it is next."""
    return max(bisect_right(directory, position) - 1, 0)
