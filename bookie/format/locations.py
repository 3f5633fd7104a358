"""Keys and values of the locations index, as Apache's `EntryLocationIndex.java` has them. Pure.

key    i64 ledger id | i64 entry id
value  i64 location: (entry log id << 32) | offset of the entry, behind its length word
mark   i64 journal id | i64 offset | i64 sequence number | CRC32 of that, a file of ours
"""

from __future__ import annotations

from array import array
from struct import Struct
from typing import Final
from zlib import crc32

from magnetar.bookie.format.journal import Mark
from magnetar.core.kernel.errors import Corrupted

ENTRY_ID_MAX: Final = 2**63 - 1
LOST: Final = 0
"""The location of an entry that is lost; `split` refuses it."""

_key = Struct(">qq")
_value = Struct(">q")
_mark = Struct(">qqqI")
_CHECK_BYTES: Final = 4

key = _key.pack
"""(ledger id, entry id) -> bytes"""
ids_of = _key.unpack
"""bytes -> (ledger id, entry id)"""
value = _value.pack
"""(location) -> bytes"""


def rows(
    ledger_id: int, first: int, offsets: array[int], location: int, start: int, stop: int
) -> list[tuple[bytes, bytes]]:
    """Keys and values of the records `start`..`stop` of a run whose first one is at `location`.

    0.5 us for each, 0.1 us compiled.
    """
    return [
        (key(ledger_id, first + place), value(location + offsets[place]))
        for place in range(start, stop)
    ]


def location_of(stored: bytes) -> int:
    """The location in a value."""
    return int(_value.unpack(stored)[0])


def split(location: int) -> tuple[int, int]:
    """Entry log id, and offset of the entry behind its length word."""
    if location == LOST:
        raise Corrupted("the entry was lost: nothing of it was found when the index was rebuilt")
    log_id, offset = location >> 32, location & 0xFFFFFFFF
    if log_id < 0 or offset < 4:
        raise Corrupted(f"the index gives an impossible location: {location}")
    return log_id, offset


def encode_mark(mark: Mark, sequence: int) -> bytes:
    """A mark, and the database's sequence number from which on the index covers the journal up to
    it.
    """
    plain = _mark.pack(mark.journal_id, mark.offset, sequence, 0)[:-_CHECK_BYTES]
    return plain + crc32(plain).to_bytes(_CHECK_BYTES, "big")


def decode_mark(data: bytes) -> tuple[Mark, int]:
    """Parse what `encode_mark` made; ValueError if it is damaged."""
    if len(data) != _mark.size:
        raise ValueError(f"has {len(data)} bytes, not {_mark.size}")
    journal_id, offset, sequence, check = _mark.unpack(data)
    if crc32(data[:-_CHECK_BYTES]) != check:
        raise ValueError("is damaged")
    return Mark(journal_id, offset), sequence
