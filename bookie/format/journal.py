"""The journal's bytes, version 6, and how to read them after a crash. Pure.

A file is a header of 512 bytes, then groups; a group is what one sync covered:

    header  "BKLG" | i32 version 6 | zeros
    group   records, then padding to a multiple of 512
    record  i32 length | body; that is an entry, or a note: i64 ledger id | i64 kind < 0 | ...
    padding i32 -0x100 | i32 n | n zeros
    end     i32 0, or the end of the file

There is no checksum on a record, so two rules of ours do its work:

1. *After the last group there are only zeros.* Files are zeroed before they are used, or reused.
2. *A group is begun only after the one before it is synced*, and nothing in it is acknowledged
   before it is synced itself.

By 2, a crash can tear the last group only; by 1, nothing old follows the tear. So, at a record that
is broken: if a later group exists, that record was synced and has rotted since; it is kept, because
readers of it must hear "corrupted" and not "no such entry". If none exists it is the torn tail, it
was never acknowledged, and the scan stops there, at the last whole record. Where a length leads to
nothing, later groups are looked for behind the padding of those before them. (A length that rots
into another that may be, and leads to a zero, is still taken for the end: there is a warning.)
"""

from __future__ import annotations

import re
from struct import Struct
from typing import Final

import msgspec

HEADER_BYTES: Final = 512
"""One sector, so that groups can align to sectors: since version 5 (JournalChannel.java)."""
ALIGNMENT_BYTES: Final = 512
PADDING_BYTES_MAX: Final = 1024 * 1024
"""Other bookies may align their groups to more than we do."""
MAGIC: Final = b"BKLG"
VERSION: Final = 6
VERSIONS_READABLE: Final = (5, 6)
"""Those with a header of 512 bytes; version 4 has one of 8 (JournalChannel.java)."""
HEADER: Final = (MAGIC + VERSION.to_bytes(4, "big")).ljust(HEADER_BYTES, b"\0")
SUFFIX: Final = ".txn"

# They stand where an entry has its id, so all are negative; -0x100 is a length (BookKeeper 4.18).
# Apache never writes FORCE, and skips unknown kinds on replay.
PADDING: Final = -0x100
KEY: Final = -0x1000
FENCE: Final = -0x2000
FORCE: Final = -0x4000
EXPLICIT_LAC: Final = -0x8000
KINDS: Final = (KEY, FENCE, FORCE, EXPLICIT_LAC)

_NAME: Final = re.compile(rf"[0-9a-f]{{1,15}}{re.escape(SUFFIX)}")
_word = Struct(">i")
_words = Struct(">ii")
_note = Struct(">iqq")
_key = Struct(">iqqi")
_long = Struct(">q")
_note_body = Struct(">qq")


class Mark(msgspec.Struct, frozen=True, order=True):
    """A place in the journal; everything before it is somewhere else too."""

    journal_id: int
    offset: int

    def encode(self) -> bytes:
        return _mark.pack(self.journal_id, self.offset)


_mark = Struct(">qq")


def decode_mark(data: bytes) -> Mark:
    if len(data) != _mark.size:
        raise ValueError(f"a mark has 16 bytes, this has {len(data)}")
    return Mark(*_mark.unpack(data))


class Note(msgspec.Struct, frozen=True):
    """A record that is not an entry: a ledger's key, a fence."""

    ledger_id: int
    kind: int
    value: bytes


def file_name(journal_id: int) -> str:
    return f"{journal_id:x}{SUFFIX}"


def is_journal(name: str) -> bool:
    """Whether it is the name of one: an operator's copy may lie beside it."""
    return _NAME.fullmatch(name) is not None


def journal_id(name: str) -> int:
    return int(name.removesuffix(SUFFIX), 16)


def key_note(ledger_id: int, master_key: bytes) -> bytes:
    """The record that goes before a ledger's first entry since the start."""
    return _key.pack(20 + len(master_key), ledger_id, KEY, len(master_key)) + master_key


def fence_note(ledger_id: int) -> bytes:
    return _note.pack(16, ledger_id, FENCE)


def parse_note(body: bytes) -> Note:
    """Read the body of a record whose second number is negative."""
    ledger_id, kind = _note_body.unpack_from(body)
    value = b""
    if kind in (KEY, EXPLICIT_LAC) and len(body) >= 20:
        (size,) = _word.unpack_from(body, 16)
        value = body[20 : 20 + size]
    return Note(ledger_id, kind, value)


def padding(position: int) -> bytes:
    """What fills a group that ends at `position`; never nothing, so that each group's end shows."""
    # The two words of padding take 8 bytes: with less room it runs on through the next sector, as
    # Apache's does (BookKeeper 4.18).
    room = ALIGNMENT_BYTES - position % ALIGNMENT_BYTES
    zeros = room - 8 if room >= 8 else ALIGNMENT_BYTES - (8 - room)
    return _words.pack(PADDING, zeros) + bytes(zeros)


def padding_end(data: bytes, position: int, offset: int) -> int:
    """Where the padding that begins at `position` ends; `offset` is where that is in the file.

    It has no digest, so it is believed only if there are zeros up to where a group may begin: a
    number that has rotted must not lead backwards, for ever, or past groups that were synced. Else
    it ends at the next boundary, as all of ours do.
    """
    begin = position + 8
    zeros = int(_word.unpack_from(data, position + 4)[0])
    there = min(zeros, len(data) - begin)
    if (
        0 <= zeros <= PADDING_BYTES_MAX
        and (offset + 8 + zeros) % ALIGNMENT_BYTES == 0
        and data.count(0, begin, begin + there) == there
    ):
        return begin + zeros
    return begin + -(offset + 8) % ALIGNMENT_BYTES


def word(data: bytes, position: int) -> int:
    """The signed word at `position`; 0, the end, where there are not four bytes any more."""
    return int(_word.unpack_from(data, position)[0]) if position + 4 <= len(data) else 0


def kind(data: bytes, position: int) -> int:
    """The second number of the record at `position`: an entry id, or the kind of a note."""
    return int(_long.unpack_from(data, position + 12)[0])


def read_header(data: bytes) -> bool:
    """Whether anything may follow; ValueError if this is no journal that we can read.

    All zeros is a file whose creation was cut short: nothing follows.
    """
    if len(data) < HEADER_BYTES or data.count(0) == len(data):
        return False
    version = int.from_bytes(data[4:8], "big")
    if data[:4] != MAGIC:
        raise ValueError("it does not begin like a journal")
    if version not in VERSIONS_READABLE:
        raise ValueError(f"its version is {version}, this program reads {VERSIONS_READABLE}")
    return True
