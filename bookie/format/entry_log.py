"""The entry log's bytes, as `DefaultEntryLogger.java` of BookKeeper 4.18 writes them. Pure.

    header  1024 bytes: "BKLO" | i32 version 1 | i64 offset of the map | i32 its ledgers | zeros
    record  i32 length | entry                         the same bytes as in the journal
    map     i32 length | i64 -1 | i64 -2 | i32 n | n x (i64 ledger id, i64 bytes), n <= 10,000

The map is appended when the log is finished. Offset 0 means that there is none, in a log that is
still written or was cut off by a crash: its ledgers are found by a scan.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import islice
from struct import Struct
from typing import Final

HEADER_BYTES: Final = 1024
MAGIC: Final = b"BKLO"
VERSION: Final = 1
SUFFIX: Final = ".log"
LOG_ID_MAX: Final = 2**31 - 1
"""The largest id that fits into a location: its upper 32 bits, signed."""
MAP_LEDGERS_MAX: Final = 10_000
"""Per batch of the map (LEDGERS_MAP_MAX_BATCH_SIZE, BookKeeper 4.18, DefaultEntryLogger.java)."""
# A batch is a record of a ledger that cannot exist, so a scan can step over it like over any other
# (INVALID_LID, LEDGERS_MAP_ENTRY_ID in DefaultEntryLogger.java).
MAP_LEDGER_ID: Final = -1
MAP_ENTRY_ID: Final = -2

_NAME: Final = re.compile(rf"[0-9a-f]{{1,8}}{re.escape(SUFFIX)}")
_header = Struct(">4siqi")
_batch = Struct(">iqqi")
_pair = Struct(">qq")
MAP_LEDGER_BYTES_MAX: Final = _batch.size + _pair.size
"""Of one ledger in the map, with a batch of its own."""


def file_name(log_id: int) -> str:
    return f"{log_id:x}{SUFFIX}"


def is_log(name: str) -> bool:
    """Whether this names an entry log: an operator's copy may lie beside it."""
    return _NAME.fullmatch(name) is not None


def log_id(name: str) -> int:
    return int(name.removesuffix(SUFFIX), 16)


def header(map_offset: int = 0, ledgers: int = 0) -> bytes:
    return _header.pack(MAGIC, VERSION, map_offset, ledgers).ljust(HEADER_BYTES, b"\0")


def read_header(data: bytes) -> tuple[int, int]:
    """The map's offset and number of ledgers; ValueError for no, or an unknown, entry log."""
    if len(data) < HEADER_BYTES:
        raise ValueError("it ends inside its header")
    magic, version, offset, ledgers = _header.unpack_from(data)
    if magic != MAGIC:
        raise ValueError("it does not begin like an entry log")
    # Version 0 has no ledgers map, only records to scan (HEADER_V0, DefaultEntryLogger.java).
    if version not in (0, VERSION):
        raise ValueError(f"its version is {version}, this program reads 0 and 1")
    return (offset, ledgers) if version == VERSION else (0, 0)


def ledgers_map(ledgers: Mapping[int, int]) -> bytes:
    """The map's bytes at the end of a log."""
    parts = []
    pairs = iter(ledgers.items())
    while batch := list(islice(pairs, MAP_LEDGERS_MAX)):
        # The length does not count itself (appendLedgersMap, DefaultEntryLogger.java).
        size = _batch.size - 4 + _pair.size * len(batch)
        parts.append(_batch.pack(size, MAP_LEDGER_ID, MAP_ENTRY_ID, len(batch)))
        parts += [_pair.pack(ledger_id, size) for ledger_id, size in batch]
    return b"".join(parts)


def read_ledgers_map(data: bytes, ledgers: int) -> dict[int, int]:
    """Bytes by ledger id; ValueError if this is not a map of that many ledgers."""
    found: dict[int, int] = {}
    position = 0
    while position + _batch.size <= len(data):
        size, ledger_id, entry_id, count = _batch.unpack_from(data, position)
        if (ledger_id, entry_id) != (MAP_LEDGER_ID, MAP_ENTRY_ID) or not (
            count >= 0 and size == _batch.size - 4 + _pair.size * count <= len(data) - position - 4
        ):
            raise ValueError("its ledgers map is damaged")
        pairs: Iterable[tuple[int, int]] = _pair.iter_unpack(
            data[position + _batch.size : position + 4 + size]
        )
        found.update(pairs)
        position += 4 + size
    if len(found) != ledgers:
        raise ValueError(f"its ledgers map names {len(found)} ledgers and not {ledgers}")
    return found
