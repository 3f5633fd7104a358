"""Makes the headers that `header` tells of: what runs for each message that is stored. Pure.

Invariant: `header.read` gives back the timestamp, index and count each was made from.

All entries of a run share their timestamp, and 128 neighbours share all of their index but its low
seven bits, which come from a table. `compiled.pyx` has the twin; `header` takes whichever there is.
"""

from __future__ import annotations

import struct
from typing import Final

MAGIC: Final = b"\x0e\x02"
_SIZE = struct.Struct(">I")
_LOW: Final = [bytes((low | 0x80,)) for low in range(128)]
"""Low seven bits of an index, with the mark that more follow."""


def headers(
    entries: int, counts: list[int] | None, timestamp_ms: int, first_index: int
) -> list[bytes]:
    """Headers of a run; `counts` is None where every entry holds one message.

    They are not put before the entries here: storage copies both into its own buffer, once.
    """
    time_part = b"\x08" + _varint(timestamp_ms) + b"\x10"
    if counts is None:
        return _of_singles(entries, time_part, first_index)
    made = []
    index = first_index - 1
    for count in counts:
        index += count
        metadata = time_part + _varint(index)
        if count > 1:
            metadata += b"\x78" + _varint(count)
        made.append(MAGIC + _SIZE.pack(len(metadata)) + metadata)
    return made


def _of_singles(entries: int, time_part: bytes, index: int) -> list[bytes]:
    """One message per entry: go block by block of equal high bits."""
    made: list[bytes] = []
    while entries:
        low = index & 0x7F
        block = min(entries, 128 - low)
        # below 128 there are no high bits, and the low ones are the whole varint
        high = _varint(index >> 7) if index >= 128 else b""
        lows = _LOW[low : low + block] if high else [bytes((low + i,)) for i in range(block)]
        size = len(time_part) + 1 + len(high)
        prefix = MAGIC + _SIZE.pack(size) + time_part
        made += [prefix + bits + high for bits in lows]
        entries -= block
        index += block
    return made


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
