"""Where to go on in a damaged file: the next place that looks like a record. Pure.

Records have no separators. A place is taken for one if its length and its ids are plausible, and
what its length leads to is plausible as well: another record, the padding of a journal, zeros, or
the end. Digests are not asked: many are none that a bookie knows. So a message that contains the
bytes of records may be taken for these, behind damage only.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from magnetar.bookie.dump.layouts import RECORD_HEAD
from magnetar.bookie.format import journal
from magnetar.bookie.format.entries import ENTRY_BYTES_MAX, ENTRY_BYTES_MIN

if TYPE_CHECKING:
    from magnetar.bookie.dump.parts import Data

HEAD_BYTES: Final = 20
ID_MAX: Final = 2**48
RECORD_BYTES_MIN: Final = 16
RECORD_BYTES_MAX: Final = ENTRY_BYTES_MAX + 1024
PADDING: Final = journal.PADDING.to_bytes(4, "big", signed=True)
_CANDIDATE: Final = re.compile(
    rb"(?=[\x00\x01][\s\S]{3}\x00\x00[\s\S]{6}(?:\x00\x00|\xff\xff)[\s\S]{6})"
    rb"|(?=" + re.escape(PADDING) + rb"\x00)"
)


def next_place(data: Data, start: int, kinds: Sequence[int]) -> int:
    """The first place from `start` on where a dump can go on, or the end of the data.

    `kinds` are the negative entry ids that the file may have.
    """
    for found in _CANDIDATE.finditer(data, start):
        at = found.start()
        if data[at : at + 4] == PADDING:
            if kinds == journal.KINDS and is_padding(data, at):
                return at
        elif is_record(data, at, kinds) and _leads_on(data, at, kinds):
            return at
    return len(data)


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


def _leads_on(data: Data, at: int, kinds: Sequence[int]) -> bool:
    following = at + 4 + int.from_bytes(data[at : at + 4], "big")
    word = data[following : following + 4]
    if len(word) < 4 or not any(word) or (word == PADDING and is_padding(data, following)):
        return True
    return is_record(data, following, kinds)
