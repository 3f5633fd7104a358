"""The journal's bytes, version 6, and how to read them after a crash. Pure.

A file is a header of 512 bytes, then groups; a group is the records that one sync covered:

    header  "BKLG" | i32 version 6 | zeros
    group   records, then padding to a multiple of 512
    record  i32 length | body; that is an entry, or a note: i64 ledger id | i64 kind < 0 | ...
    padding i32 -0x100 | i32 n | n bytes: zeros, or a seal and zeros
    seal    "MGRP" | u32 bytes of the group's records | u32 CRC32C of them
    end     i32 0, or the end of the file

Apache's records have no checksum. An entry with a CRC32C, as Pulsar's have it, proves itself. Other
clients choose other digests, which only they can check; so a bookie that serves them seals each
group, where Apache's replay skips bytes unread. Two more rules of ours:

1. *After the last group there are only zeros.* Files are zeroed before they are used, or reused.
2. *A group is begun only after the one before it is synced*, and nothing in it is acknowledged
   before it is synced itself.

By 2, a crash can tear only the last group; by 1, nothing old follows the tear. A record is broken
if neither its own digest nor the seal of its group proves it. Such a record is judged by what
follows. If no later group exists, it is the torn tail, which was never acknowledged: the scan stops
at the last whole record. If one exists, the record was synced and has rotted since, and then

- an entry whose neighbours show that its id is right is kept: its readers get "corrupted", and not
  "no such entry";
- any other stops the start: which entry, or which ledger's fence, has been lost, nobody knows;
- so does a length of 0, or one that leads nowhere. (Only zeros for more than a megabyte, with less
  than that behind them, are taken for the end.)

Notes are proved by seals alone. In a journal without seals they are believed: it is the journal of
a bookie that is its only client, or Apache's.

Apache's replay (`Journal.scanJournal` of 4.18) ends at a length of 0, or where the file cuts a
record short, and checks nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from struct import Struct
from typing import Final

import msgspec

from magnetar.core.kernel.checksum import crc32c
from magnetar.core.native import quickest

HEADER_BYTES: Final = 512
"""One sector, so that groups can align to sectors: since version 5 (JournalChannel.java)."""
ALIGNMENT_BYTES: Final = 512
PADDING_BYTES_MAX: Final = 1024 * 1024
"""Apache's bookies align groups to `journalAlignmentSize`, which may be larger than ours."""
MAGIC: Final = b"BKLG"
VERSION: Final = 6
VERSIONS_READABLE: Final = (5, 6)
"""Versions with a header of 512 bytes; that of version 4 has 8 (`JournalChannel.java`)."""
HEADER: Final = (MAGIC + VERSION.to_bytes(4, "big")).ljust(HEADER_BYTES, b"\0")
SUFFIX: Final = ".txn"

# Kinds stand in the place of an entry id, so all are negative (METAENTRY_ID_* in BookieImpl.java);
# PADDING stands in the place of a length (PADDING_MASK in Journal.java). Apache never writes FORCE,
# and its replay skips unknown kinds. All as of BookKeeper 4.18.
PADDING: Final = -0x100
KEY: Final = -0x1000
FENCE: Final = -0x2000
FORCE: Final = -0x4000
EXPLICIT_LAC: Final = -0x8000
KINDS: Final = (KEY, FENCE, FORCE, EXPLICIT_LAC)

SEAL_MAGIC: Final = b"MGRP"

_NAME: Final = re.compile(rf"[0-9a-f]{{1,15}}{re.escape(SUFFIX)}")
_word = Struct(">i")
_words = Struct(">ii")
_note = Struct(">iqq")
_key = Struct(">iqqi")
_long = Struct(">q")
_note_body = Struct(">qq")
_seal = Struct(">4sII")


class Mark(msgspec.Struct, frozen=True, order=True):
    """A position in the journal (`LogMark.java`)."""

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
    """Whether this names a journal: an operator's copy may lie beside it."""
    return _NAME.fullmatch(name) is not None


def journal_id(name: str) -> int:
    return int(name.removesuffix(SUFFIX), 16)


def key_note(ledger_id: int, master_key: bytes) -> bytes:
    """A ledger's master key (`BookieImpl.createMasterKeyEntry`): written before the ledger's first
    entry since the start.
    """
    return _key.pack(20 + len(master_key), ledger_id, KEY, len(master_key)) + master_key


def fence_note(ledger_id: int) -> bytes:
    return _note.pack(16, ledger_id, FENCE)


def lac_note(ledger_id: int, packet: bytes) -> bytes:
    """An explicit LAC (`BookieImpl.createExplicitLACEntry`)."""
    return _key.pack(20 + len(packet), ledger_id, EXPLICIT_LAC, len(packet)) + packet


def parse_note(body: bytes) -> Note:
    """Parse the body of a record whose entry id is negative."""
    ledger_id, kind = _note_body.unpack_from(body)
    value = b""
    if kind in (KEY, EXPLICIT_LAC) and len(body) >= 20:
        (size,) = _word.unpack_from(body, 16)
        value = body[20 : 20 + size]
    return Note(ledger_id, kind, value)


def padding(position: int, seal: bytes = b"") -> bytes:
    """The padding of a group that ends at `position`, with its seal.

    Never empty, so that every group has a visible end; Apache writes none after a group that ends
    at a boundary (`Journal.writePaddingBytes`).
    """
    # The two words of padding take 8 bytes. With less room, padding goes on through the next
    # sector, as in `Journal.writePaddingBytes`.
    size = ALIGNMENT_BYTES - position % ALIGNMENT_BYTES - 8
    if size < len(seal):
        size += ALIGNMENT_BYTES
    return _words.pack(PADDING, size) + seal.ljust(size, b"\0")


def seal(size: int, checksum: int) -> bytes:
    """The seal of a group with so many bytes of records, and that CRC32C."""
    return _seal.pack(SEAL_MAGIC, size, checksum)


def py_put_group(
    buffer: memoryview, records: Sequence[bytes], position: int, seals: bool, /
) -> int:
    """Put a whole group into a buffer that is large enough: its records, which begin at `position`
    of the file, and the padding behind them. Returns its size.
    """
    data = b"".join(records)
    end = seal(len(data), crc32c(data)) if seals else b""
    data += padding(position + len(data), end)
    buffer[: len(data)] = data
    return len(data)


def sealed_bytes(data: bytes, end: int) -> int:
    """The bytes of records that the seal in the padding at `end` speaks of; 0 without a seal, or if
    they are not in the data.
    """
    if end + 8 + _seal.size > len(data):
        return 0
    magic, size, _ = _seal.unpack_from(data, end + 8)
    return int(size) if magic == SEAL_MAGIC and size <= end else 0


def is_sealed(data: bytes, end: int) -> bool:
    """Whether padding begins at `end` of the data with the right seal for the records before it."""
    size = sealed_bytes(data, end)
    if not size:
        return False
    _, _, checksum = _seal.unpack_from(data, end + 8)
    computed: int = crc32c(memoryview(data)[end - size : end])
    return computed == int(checksum)


def padding_end(data: bytes, position: int, offset: int) -> int:
    """The end of the padding that begins at `position` of the data, and at `offset` of the file.

    The size of padding has no digest. It is used only if zeros do follow, perhaps behind a seal, up
    to a boundary of groups: a rotten size must not lead backwards, into an endless loop, or past
    synced groups. Otherwise the padding ends at the next boundary, as all of ours does.
    """
    begin = position + 8
    size = int(_word.unpack_from(data, position + 4)[0])
    zeros = begin + (_seal.size if data[begin : begin + 4] == SEAL_MAGIC else 0)
    end = min(begin + size, len(data))
    if (
        0 <= size <= PADDING_BYTES_MAX
        and (offset + 8 + size) % ALIGNMENT_BYTES == 0
        and data.count(0, zeros, end) == max(end - zeros, 0)
    ):
        return begin + size
    return begin + -(offset + 8) % ALIGNMENT_BYTES


def word(data: bytes, position: int) -> int:
    """The signed word at `position`; 0, which marks the end, where fewer than 4 bytes are left."""
    return int(_word.unpack_from(data, position)[0]) if position + 4 <= len(data) else 0


def kind(data: bytes, position: int) -> int:
    """The entry id of the record at `position`, or the kind of a note."""
    return int(_long.unpack_from(data, position + 12)[0])


def read_header(data: bytes) -> bool:
    """Whether records may follow; ValueError for no, or an unknown, journal.

    A header of zeros is that of a file whose creation was cut off: only zeros follow. (Whoever
    reads the file makes sure of that: `journal_scan.check_empty`.)
    """
    if len(data) < HEADER_BYTES or data.count(0) == len(data):
        return False
    version = int.from_bytes(data[4:8], "big")
    if data[:4] != MAGIC:
        raise ValueError("it does not begin like a journal")
    if version not in VERSIONS_READABLE:
        raise ValueError(f"its version is {version}, this program reads {VERSIONS_READABLE}")
    return True


put_group = quickest(py_put_group, "magnetar.bookie.format.compiled")
