"""The bytes of journals and entry logs, declared. Pure.

`bookie/format/` reads and writes the same bytes where time counts; this says what is where, for
dumps. The theory of both files is in `format/journal.py` and `format/entry_log.py`.
"""

from __future__ import annotations

from typing import Any, Final

from construct import Array, Bytes, Int32sb, Int32ub, Int64sb, Struct, this

JOURNAL_HEADER: Final[Any] = Struct("magic" / Bytes(4), "version" / Int32sb)

LOG_HEADER: Final[Any] = Struct(
    "magic" / Bytes(4),
    "version" / Int32sb,
    "map_offset" / Int64sb,
    "ledgers" / Int32sb,
)

RECORD_HEAD: Final[Any] = Struct(
    "size" / Int32sb,
    "ledger" / Int64sb,
    "entry" / Int64sb,
).compile()
"""What entries, notes and ledgers maps begin with; a note has its kind for the entry."""

ENTRY: Final[Any] = Struct(
    "ledger" / Int64sb,
    "entry" / Int64sb,
    "last_confirmed" / Int64sb,
    "length" / Int64sb,
).compile()

NOTE_VALUE: Final[Any] = Struct("size" / Int32sb, "value" / Bytes(this.size))
"""Behind the head of a master key, or of an explicit LAC."""

PADDING: Final[Any] = Struct("mark" / Int32sb, "size" / Int32sb)

SEAL: Final[Any] = Struct("magic" / Bytes(4), "size" / Int32ub, "checksum" / Int32ub)

MAP_BATCH: Final[Any] = Struct(
    "count" / Int32sb,
    "ledgers" / Array(this.count, Struct("ledger" / Int64sb, "bytes" / Int64sb)),
)
"""Behind the head of a ledgers map."""
