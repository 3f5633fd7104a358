"""The end mark: a small file that counts the commits, so that a log cannot end early unnoticed.

Two slots of a page each, written in turn: "MGNTMEND" | u64 turn | u64 generation | u64 number of
the last commit | u32 its chain | u32 CRC32C. The slot with the higher turn
counts. A torn write destroys one slot, and the other still names the commit before.

Invariant: no commit is answered before the mark names it, and the mark never names a commit
that is not durable. So at a start the log has the commit that the mark names, or it is damaged.
"""

from __future__ import annotations

import os
from pathlib import Path
from struct import Struct
from typing import Final

import msgspec

from magnetar.core.kernel.checksum import crc32c
from magnetar.core.metadata import files

MAGIC: Final = b"MGNTMEND"
SLOT_BYTES: Final = 4096
_slot = Struct(">8sQQQI")
_crc = Struct(">I")


class End(msgspec.Struct, frozen=True, order=True):
    """The content of a slot."""

    turn: int
    generation: int
    number: int
    chain: int


def encode(end: End) -> bytes:
    packed = _slot.pack(MAGIC, end.turn, end.generation, end.number, end.chain)
    return (packed + _crc.pack(crc32c(packed))).ljust(SLOT_BYTES, b"\0")


def decode(data: bytes) -> End | None:
    """The newer valid slot; None if neither is valid."""
    found = [_decode_slot(data[start : start + SLOT_BYTES]) for start in (0, SLOT_BYTES)]
    return max((end for end in found if end is not None), default=None)


def _decode_slot(data: bytes) -> End | None:
    if len(data) < _slot.size + _crc.size:
        return None
    packed = data[: _slot.size]
    magic, turn, generation, number, chain = _slot.unpack(packed)
    if magic != MAGIC or _crc.unpack_from(data, _slot.size)[0] != crc32c(packed):
        return None
    return End(turn, generation, number, chain)


def read(path: Path) -> End | None:
    """Read the mark; None if no slot is valid, FileNotFoundError if there is no file."""
    return decode(path.read_bytes())


class EndMark:
    """The mark, open for writing. After an OSError the slot being written is undefined."""

    def __init__(self, path: Path, end: End, *, sync: bool) -> None:
        self.end = end
        self._sync = sync
        self._fd = files.open_synced(path, sync=sync)

    @classmethod
    def create(cls, path: Path, end: End, *, sync: bool) -> EndMark:
        """Create a mark with both slots alike, or replace an existing one atomically."""
        files.write_whole(path, encode(end) * 2, sync=sync)
        return cls(path, end, sync=sync)

    def write(self, generation: int, number: int, chain: int) -> None:
        """Write a slot; durable on return. Slots alternate only after a success, so a second try
        after a failure writes into the same slot and never into the valid one.
        """
        end = End(self.end.turn + 1, generation, number, chain)
        slot = end.turn % 2 * SLOT_BYTES
        files.write_at(self._fd, encode(end), slot, sync=self._sync)
        self.end = end

    def close(self) -> None:
        os.close(self._fd)
