"""Makes the broker's headers, and reads them back: the code that runs for each message. Pure.

Invariant: `plain` returns the timestamp, index and count from which `headers` made a header.

All entries of a run share their timestamp, and 128 neighbours share all of their index but its low
seven bits (`kernel/varints.py`). `compiled.pyx` has the twin; `header` takes whichever there is.
"""

from __future__ import annotations

import struct
from typing import Final

from magnetar.core.kernel.structs import FrozenStruct
from magnetar.core.kernel.varints import number_at, stretches, varint, varint_end

MAGIC: Final = b"\x0e\x02"
PREFIX_BYTES: Final = 6
"""Magic and size."""
TIMESTAMP: Final = 0x08
INDEX: Final = 0x10
COUNT: Final = 0x78
_SIZE = struct.Struct(">I")


class EntryHeader(FrozenStruct, frozen=True):
    """The contents of a broker's header."""

    size: int
    """The size of the header, after which the producer's bytes begin; 0 if there is none."""
    timestamp_ms: int
    index: int
    """The index of the entry's last message; -1 if unknown."""
    count: int

    @property
    def first_index(self) -> int:
        """The index of the entry's first message."""
        return self.index - self.count + 1


def headers(
    entries: int, counts: list[int] | None, timestamp_ms: int, first_index: int
) -> list[bytes]:
    """The headers of a run; `counts` is None if each entry holds one message.

    They are not joined with the entries here, because storage copies both into its buffer.
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


def plain(entry: bytes) -> EntryHeader | None:
    """The header of an entry that begins with one; None for any other entry."""
    if len(entry) < PREFIX_BYTES or not entry.startswith(MAGIC):
        return None
    at, end = PREFIX_BYTES, PREFIX_BYTES + _SIZE.unpack_from(entry, 2)[0]
    if end > len(entry):
        return None
    numbers = [0, 0, 1]
    for place, tag in enumerate((TIMESTAMP, INDEX, COUNT)):
        if at == end and tag == COUNT:
            break
        if at == end or entry[at] != tag:
            return None
        begin, at = at + 1, varint_end(entry, at + 1, end)
        if not at:
            return None
        numbers[place] = number_at(entry, begin, at)
    timestamp_ms, index, count = numbers
    return EntryHeader(end, timestamp_ms, index, count) if at == end and count else None
