"""An entry log as its parts: header, entries, the map of its ledgers; and what is damaged. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from construct import ConstructError

from magnetar.bookie.dump import layouts, resuming
from magnetar.bookie.dump.parts import Damage, EntryPart, HeaderPart, LedgersMap, Part, entry_at
from magnetar.bookie.format import entry_log

if TYPE_CHECKING:
    from magnetar.bookie.dump.parts import Data

KINDS: Final = (entry_log.MAP_ENTRY_ID,)


def parts_of(data: Data, start: int = 0) -> Iterator[Part]:
    """The parts of an entry log in their order; from `start` on, which is the offset of a record.

    Bytes of zero are no damage: they were never written, or were given back to the disk.
    """
    if start < entry_log.HEADER_BYTES:
        yield _header(data)
        start = entry_log.HEADER_BYTES
    at = start
    while at < len(data):
        part, at = _part(data, at)
        if part is not None:
            yield part


def _header(data: Data) -> HeaderPart | Damage:
    if len(data) < entry_log.HEADER_BYTES:
        return Damage(0, len(data), "the file ends inside its header")
    begin = data[: layouts.LOG_HEADER.sizeof()]
    found = layouts.LOG_HEADER.parse(begin)
    if found.magic != entry_log.MAGIC or found.version not in (0, entry_log.VERSION):
        return Damage(0, entry_log.HEADER_BYTES, f"no header of an entry log: {begin.hex()}")
    return HeaderPart(found.version, found.map_offset, found.ledgers)


def _part(data: Data, at: int) -> tuple[Part | None, int]:
    """The part that begins here, if it is one to show, and its end."""
    if resuming.is_record(data, at, KINDS) and resuming.is_sound(data, at, KINDS):
        head = layouts.RECORD_HEAD.parse(data[at : at + resuming.HEAD_BYTES])
        end = at + 4 + head.size
        found = _record(at, data[at + 4 : end], head.entry)
        if found is not None:
            return found, end
    end = resuming.next_place(data, at + 1, KINDS)
    lost = data[at:end]
    if not any(lost):
        return None, end
    return Damage(at, end, f"no record: {lost[: resuming.HEAD_BYTES].hex()}"), end


def _record(at: int, body: bytes, entry_id: int) -> EntryPart | LedgersMap | None:
    try:
        if entry_id == entry_log.MAP_ENTRY_ID:
            batch = layouts.MAP_BATCH.parse(body[16:])
            return LedgersMap(at, {each.ledger: each.bytes for each in batch.ledgers})
        return entry_at(at, body)
    except ConstructError:  # it is too short for what it says it is
        return None
