"""A journal as its parts: header, entries, notes, paddings; and what is damaged. Pure.

Unlike a replay (`format/journal_scan.py`) it decides nothing, and does not end at damage.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from construct import ConstructError

from magnetar.bookie.dump import layouts, resuming
from magnetar.bookie.dump.parts import (
    Damage,
    EntryPart,
    HeaderPart,
    NotePart,
    PaddingPart,
    Part,
    entry_at,
)
from magnetar.bookie.format import journal

if TYPE_CHECKING:
    from magnetar.bookie.dump.parts import Data

NOTES: Final = {
    journal.KEY: "master key",
    journal.FENCE: "fence",
    journal.FORCE: "force",
    journal.EXPLICIT_LAC: "explicit LAC",
}
ZERO_STEP: Final = 1 << 16


def parts_of(data: Data, start: int = 0) -> Iterator[Part]:
    """The parts of a journal in their order; from `start` on, which is the offset of a record."""
    if start < journal.HEADER_BYTES:
        yield _header(data)
        start = journal.HEADER_BYTES
    at = group = start
    while at < len(data):
        begin = _behind_zeros(data, at)
        group = group if begin == at else begin
        if begin == len(data):
            return
        part, at = _part(data, begin, group)
        yield part
        if isinstance(part, PaddingPart | Damage):
            group = at


def _header(data: Data) -> HeaderPart | Damage:
    begin = data[: layouts.JOURNAL_HEADER.sizeof()]
    if len(data) < journal.HEADER_BYTES:
        return Damage(0, len(data), "the file ends inside its header")
    found = layouts.JOURNAL_HEADER.parse(begin)
    if found.magic != journal.MAGIC or found.version not in journal.VERSIONS_READABLE:
        return Damage(0, journal.HEADER_BYTES, f"no header of a journal: {begin.hex()}")
    return HeaderPart(found.version)


def _behind_zeros(data: Data, at: int) -> int:
    """The first byte from here on that is not zero, if a zero length is here: files are zeroed
    before they are used. Then whatever stands behind begins a group.
    """
    if at + 4 <= len(data) and any(data[at : at + 4]):
        return at
    while at < len(data):
        step = data[at : at + ZERO_STEP]
        if rest := step.lstrip(b"\0"):
            found = at + len(step) - len(rest)
            return max(at, found - found % journal.ALIGNMENT_BYTES)
        at += len(step)
    return at


def _part(data: Data, at: int, group: int) -> tuple[Part, int]:
    """The part that begins here, and its end; `group` is where its group begins."""
    if data[at : at + 4] == resuming.PADDING and resuming.is_padding(data, at):
        return _padding(data, at, group)
    if resuming.is_record(data, at, journal.KINDS) and resuming.is_sound(data, at, journal.KINDS):
        head = layouts.RECORD_HEAD.parse(data[at : at + resuming.HEAD_BYTES])
        end = at + 4 + head.size
        found = _record(data, at, end, head.entry)
        if found is not None:
            return found, end
    end = resuming.next_place(data, at + 1, journal.KINDS)
    return Damage(at, end, f"no record: {data[at : at + resuming.HEAD_BYTES].hex()}"), end


def _record(data: Data, at: int, end: int, kind: int) -> EntryPart | NotePart | None:
    body = data[at + 4 : end]
    try:
        if kind >= 0:
            return entry_at(at, body)
        value = b""
        if kind in (journal.KEY, journal.EXPLICIT_LAC):
            value = layouts.NOTE_VALUE.parse(body[16:]).value
        return NotePart(at, int.from_bytes(body[:8], "big", signed=True), NOTES[kind], value.hex())
    except ConstructError:  # it is too short for what it says it is
        return None


def _padding(data: Data, at: int, group: int) -> tuple[PaddingPart, int]:
    found = layouts.PADDING.parse(data[at : at + 8])
    seal = data[at + 8 : at + 8 + layouts.SEAL.sizeof()]
    state = ""
    if seal[:4] == journal.SEAL_MAGIC:
        whole = data[group : at + 8 + len(seal)]
        end = at - group
        sealed = journal.sealed_bytes(whole, end) == end and journal.is_sealed(whole, end)
        state = "intact" if sealed else "broken"
    return PaddingPart(at, 8 + found.size, state), at + 8 + found.size
