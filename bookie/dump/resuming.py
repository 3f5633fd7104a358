"""Where to go on in a damaged file: the next place that looks like a record. Pure.

Records have no separators. A place is surely one if the record there has a CRC32C, and the right
one, or if its length leads to records: to `CHAIN` of them, or to fewer and then to the padding of a
journal. Else it may be one if its length and ids are plausible, and it leads to zeros or the end:
the last record, with another digest. A place that is surely one is preferred, however far away:
lengths that are read one byte too late are plausible, and lead far.

A message that contains the bytes of records may be taken for these, behind damage only.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from magnetar.bookie.dump.layouts import RECORD_HEAD
from magnetar.bookie.dump.parts import has_crc32c
from magnetar.bookie.format import journal
from magnetar.bookie.format.entries import ENTRY_BYTES_MAX, ENTRY_BYTES_MIN

if TYPE_CHECKING:
    from magnetar.bookie.dump.parts import Data

HEAD_BYTES: Final = 20
ID_MAX: Final = 2**48
RECORD_BYTES_MIN: Final = 16
RECORD_BYTES_MAX: Final = ENTRY_BYTES_MAX + 1024
PADDING: Final = journal.PADDING.to_bytes(4, "big", signed=True)
CHAIN: Final = 4
_CANDIDATE: Final = re.compile(
    rb"(?=[\x00\x01][\s\S]{3}\x00\x00[\s\S]{6}(?:\x00\x00|\xff\xff)[\s\S]{6})"
    rb"|(?=" + re.escape(PADDING) + rb"\x00)"
)


def next_place(data: Data, start: int, kinds: Sequence[int]) -> int:
    """The first place from `start` on where a dump can go on, or the end of the data.

    `kinds` are the negative entry ids that the file may have.
    """
    maybe = len(data)
    for found in _CANDIDATE.finditer(data, start):
        at = found.start()
        if data[at : at + 4] == PADDING:
            if kinds == journal.KINDS and is_padding(data, at):
                return at
        elif is_record(data, at, kinds):
            if has_crc32c(_body(data, at)):
                return at
            links = _links(data, at, kinds, CHAIN)
            if links == CHAIN:
                return at
            if links > 0:
                maybe = min(maybe, at)
    return maybe


def is_sound(data: Data, at: int, kinds: Sequence[int]) -> bool:
    """Whether the record here, which has a plausible head, is whole, or leads on at least."""
    return has_crc32c(_body(data, at)) or _links(data, at, kinds, 1) > 0


def _body(data: Data, at: int) -> bytes:
    return data[at + 4 : _end(data, at)]


def _end(data: Data, at: int) -> int:
    return at + 4 + int.from_bytes(data[at : at + 4], "big")


def is_record(data: Data, at: int, kinds: Sequence[int]) -> bool:
    """Whether a record is here, to judge by its length and its ids."""
    if at + HEAD_BYTES > len(data):
        return False
    head = RECORD_HEAD.parse(data[at : at + HEAD_BYTES])
    least = ENTRY_BYTES_MIN if head.entry >= 0 else RECORD_BYTES_MIN
    return (
        least <= head.size <= RECORD_BYTES_MAX
        and at + 4 + head.size <= len(data)
        and (0 <= head.entry < ID_MAX or head.entry in kinds)
        and (0 <= head.ledger < ID_MAX or head.entry in kinds)
    )


def is_padding(data: Data, at: int) -> bool:
    """Whether the padding of a journal is here, to judge by where it ends."""
    if at + 8 > len(data):
        return False
    size = int.from_bytes(data[at + 4 : at + 8], "big")
    aligned = (at + 8 + size) % journal.ALIGNMENT_BYTES == 0
    return aligned and size <= journal.PADDING_BYTES_MAX


def _links(data: Data, at: int, kinds: Sequence[int], enough: int) -> int:
    """To how many records this one leads, up to `enough`, which padding is at once; where zeros or
    the end follow, as many as there were before, and 1 at least; 0 if it leads nowhere.
    """
    for links in range(enough):
        at = _end(data, at)
        word = data[at : at + 4]
        if word == PADDING and is_padding(data, at):
            return enough
        if len(word) < 4 or not any(word):
            return max(links, 1) if enough > 1 else 1
        if not is_record(data, at, kinds):
            return 0
    return enough
