"""All records of one entry log, past whatever is damaged in it.

Theory. Records have no marks between them, only a length, so behind a damaged one nothing is where
it should be. But a record has its ids and a digest over them, so its beginning can be searched for:
wherever bytes look like the head of one, its digest decides. What lies between is a gap.

A record whose digest is wrong is told apart: its ids may be right, and then its readers must hear
that it is damaged rather than that it does not exist.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

from msgspec import Struct

from bookie import entries
from bookie.entries import Run
from bookie.entry_log import format
from bookie.entry_log.reader import EntryLogReader
from core.errors import Corrupted

WINDOW_BYTES: Final = 4 * (entries.ENTRY_BYTES_MAX + entries.LENGTH_BYTES)
"""Any record that begins in the first quarter of it is whole in it."""
FIRST_WINDOW_BYTES: Final = 1024 * 1024
HEAD_BYTES: Final = entries.RECORD_OVERHEAD_BYTES

_HEAD: Final = re.compile(
    rb"(?=\x00[\x00-\x50](?!\x00\x00)[\s\S]{2}\x00\x00[\s\S]{6}\x00\x00[\s\S]{6})"
    rb"|(?=\x00[\x01-\x50]\x00\x00\x00\x00[\s\S]{6}\x00\x00[\s\S]{6})"
)
"""A length that may be, and two ids below 2^48."""


class Salvaged(Struct, frozen=True):
    """A run of records, each with its digest, and the location of its first entry."""

    location: int
    run: Run


class Damaged(Struct, frozen=True):
    """A record that does not have its digest; if that is all, these are its ids."""

    location: int
    ledger_id: int
    entry_id: int


class Gap(Struct, frozen=True):
    """Bytes in which there is no record."""

    log_id: int
    start: int
    end: int


def records(
    reader: EntryLogReader, log_id: int, breathe: Callable[[], None]
) -> Iterator[Salvaged | Damaged | Gap]:
    """In the order in which they lie there."""

    def read(offset: int, size: int) -> bytes:
        breathe()
        return reader.bytes_at(log_id, offset, size)

    yield from records_in(read, log_id, format.HEADER_BYTES, _end(reader, log_id))


def records_in(
    read: Callable[[int, int], bytes],
    log_id: int,
    offset: int,
    end: int,
    window_bytes: int = FIRST_WINDOW_BYTES,
) -> Iterator[Salvaged | Damaged | Gap]:
    """Likewise, of any file. Zeros are no gap: room that was never written."""
    window = window_bytes
    while offset < end:
        data = read(offset, min(window, end - offset))
        if not data:
            return
        last = offset + len(data) >= end
        size, window, position = window, window_bytes, 0
        while position < len(data):
            run = entries.run_at(data, position, len(data))
            if run is None and not last and _is_cut_off(data, position):
                break
            if run is not None:
                good = entries.count_intact(run)
                if good:
                    whole = run if good == run.count else entries.cut(run, good)
                    yield Salvaged(_location(log_id, offset + position), whole)
                position += run.offsets[good]
                if good == run.count:
                    continue
                location = _location(log_id, offset + position)
                yield Damaged(location, run.ledger_id, run.first + good)
            start, position = position, _next_record(data, position + 1, last=last)
            if data.count(0, start, position) != position - start:
                yield Gap(log_id, offset + start, offset + position)
        if position == 0:
            window = min(4 * size, WINDOW_BYTES)  # the record is only long
        offset += position


def _is_cut_off(data: bytes, position: int) -> bool:
    """Whether what begins there may be a record that is longer than the data."""
    length = int.from_bytes(data[position : position + entries.LENGTH_BYTES], "big")
    left = len(data) - position
    return left < HEAD_BYTES or (
        entries.OVERHEAD_BYTES <= length <= entries.ENTRY_BYTES_MAX
        and entries.LENGTH_BYTES + length > left
    )


def _location(log_id: int, offset: int) -> int:
    return (log_id << 32) | (offset + entries.LENGTH_BYTES)


def _end(reader: EntryLogReader, log_id: int) -> int:
    """Where the map begins, if there is one that can be believed."""
    size = reader.size(log_id)
    try:
        offset = reader.ledgers_map_offset(log_id)
    except Corrupted:
        return size
    return offset if format.HEADER_BYTES <= offset <= size else size


def _next_record(data: bytes, start: int, *, last: bool) -> int:
    """Where from `start` on the next record with its digest begins. A head whose record is not
    whole in the data may be one, unless it is the `last` data that there is.
    """
    for found in _HEAD.finditer(data, start):
        begin = found.start()
        length = int.from_bytes(data[begin : begin + entries.LENGTH_BYTES], "big")
        stop = begin + entries.LENGTH_BYTES + length
        if not entries.OVERHEAD_BYTES <= length <= entries.ENTRY_BYTES_MAX:
            continue
        if stop <= len(data):
            if entries.is_intact(data, begin, stop):
                return begin
        elif not last:
            return begin
    return len(data) if last else max(start, len(data) - HEAD_BYTES)
