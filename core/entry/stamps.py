"""Makes the headers that `header` tells of: what runs for each message that is stored. Pure.

Invariant: `header.read` gives back the timestamp, index and count each was made from.

All entries of a run share their timestamp, and 128 neighbours share all of their index but its low
seven bits (`core.varints`). `compiled.pyx` has the twin; `header` takes whichever there is.
"""

from __future__ import annotations

import struct
from typing import Final

from core.varints import stretches, varint

MAGIC: Final = b"\x0e\x02"
_SIZE = struct.Struct(">I")


def headers(
    entries: int, counts: list[int] | None, timestamp_ms: int, first_index: int
) -> list[bytes]:
    """Headers of a run; `counts` is None where every entry holds one message.

    They are not put before the entries here: storage copies both into its own buffer, once.
    """
    time_part = b"\x08" + varint(timestamp_ms) + b"\x10"
    if counts is None:
        return _of_singles(entries, time_part, first_index)
    made = []
    index = first_index - 1
    for count in counts:
        index += count
        metadata = time_part + varint(index)
        if count > 1:
            metadata += b"\x78" + varint(count)
        made.append(MAGIC + _SIZE.pack(len(metadata)) + metadata)
    return made


def _of_singles(entries: int, time_part: bytes, first_index: int) -> list[bytes]:
    """One message per entry: neighbours share all but one byte of their index."""
    made: list[bytes] = []
    for firsts, rest in stretches(first_index, entries):
        prefix = MAGIC + _SIZE.pack(len(time_part) + 1 + len(rest)) + time_part
        made += [prefix + first + rest for first in firsts]
    return made
