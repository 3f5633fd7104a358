"""All intact records of one entry log, also behind damaged parts.

Records have no separators, only a length. The length of a damaged record usually still leads to the
next one, and the digest of that one proves it. Otherwise the next record is searched for: wherever
bytes look like the head of a record, its digest decides. The bytes in between are a gap.

A message may contain the bytes of a record with a right digest: an entry log that is sent as a
message has many. So nothing is searched for inside a record whose length leads on. A record that is
found by a search, and all records behind it, are not `sure`: they must never replace a record that
was found in order.

A record with a wrong digest is reported as damaged: if its ids are right, its readers must get
"damaged" and not "no such entry". Entries with another digest than CRC32C cannot be judged: they
are taken for intact where lengths and ids lead on.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

from msgspec import Struct

from magnetar.bookie.format import entries
from magnetar.bookie.format import entry_log as log_format
from magnetar.bookie.format.entries import Run
from magnetar.bookie.server.entry_log.reader import EntryLogReader
from magnetar.core.kernel.errors import Corrupted

WINDOW_BYTES: Final = 4 * (entries.ENTRY_BYTES_MAX + entries.LENGTH_BYTES)
"""A record that begins in the first quarter of a window ends in the window."""
FIRST_WINDOW_BYTES: Final = 1024 * 1024
HEAD_BYTES: Final = entries.RECORD_OVERHEAD_BYTES

_HEAD: Final = (
    rb"(?=\x00[\x00-\x50](?!\x00\x00)[\s\S]{2}\x00\x00[\s\S]{6}\x00\x00[\s\S]{6})"
    rb"|(?=\x00[\x01-\x50]\x00\x00\x00\x00[\s\S]{6}\x00\x00[\s\S]{6})"
)
"""A plausible length, and two ids below 2^48. Compiled at the first use (`re` caches it)."""


class Salvaged(Struct, frozen=True):
    """A run of intact records, and the location of its first entry."""

    location: int
    run: Run
    sure: bool = True


class Damaged(Struct, frozen=True):
    """A record with a wrong digest, and its ids, which may be damaged too."""

    location: int
    ledger_id: int
    entry_id: int


class Gap(Struct, frozen=True):
    """Bytes without a record."""

    log_id: int
    start: int
    end: int


Unjudged = Callable[[Run], bool]
"""Whether the entries of this run have another digest."""


def _judged(run: Run) -> bool:
    """As `Unjudged`, where all entries have CRC32C."""
    return False


def records(
    reader: EntryLogReader,
    log_id: int,
    pause: Callable[[], None],
    unjudged: Unjudged = _judged,
) -> Iterator[Salvaged | Damaged | Gap]:
    """Yield the parts of a log in their order."""

    def read(offset: int, size: int) -> bytes:
        pause()
        return reader.bytes_at(log_id, offset, size)

    end = _end(reader, log_id)
    yield from records_in(read, log_id, log_format.HEADER_BYTES, end, unjudged=unjudged)


def records_in(
    read: Callable[[int, int], bytes],
    log_id: int,
    offset: int,
    end: int,
    window_bytes: int = FIRST_WINDOW_BYTES,
    unjudged: Unjudged = _judged,
) -> Iterator[Salvaged | Damaged | Gap]:
    """Yield the parts of any file. Zeros are not a gap: those bytes were never written."""
    window, sure = window_bytes, True
    while offset < end and (data := read(offset, min(window, end - offset))):
        last = offset + len(data) >= end
        size, window, position = window, window_bytes, 0
        while position < len(data):
            run = entries.run_at(data, position, len(data))
            if run is not None:
                good = _count_good(run, unjudged)
                if good:
                    yield Salvaged(_location(log_id, offset + position), _first(run, good), sure)
                position += run.offsets[good]
                if good == run.count:
                    continue
            leads_to = _where_it_leads(data, position, last=last)
            if leads_to is None:
                break
            if run is not None:
                location = _location(log_id, offset + position)
                yield Damaged(location, run.ledger_id, run.first + good)
            start, position = position, leads_to or _next_record(data, position + 1, last=last)
            if not _is_zero(data, start, position):
                sure = sure and leads_to > 0
                yield Gap(log_id, offset + start, offset + position)
        if position == 0:
            window = min(4 * size, WINDOW_BYTES)  # the record is only long
        offset += position


def _count_good(run: Run, unjudged: Unjudged) -> int:
    good = entries.count_intact(run)
    return run.count if good < run.count and unjudged(run) else good


def _first(run: Run, count: int) -> Run:
    return run if count == run.count else entries.cut(run, count)


def _is_zero(data: bytes, start: int, end: int) -> bool:
    return data.count(0, start, end) == end - start


def _where_it_leads(data: bytes, position: int, *, last: bool) -> int | None:
    """The end of a damaged record by its length, if an intact record begins there or the `last`
    data ends there; 0 if not, None if more data is needed to decide.
    """
    if not last and position + HEAD_BYTES > len(data):
        return None
    stop = _stop(data, position)
    if not stop:
        return 0
    if last and stop == len(data):
        return stop
    if not last and stop + HEAD_BYTES > len(data):
        return None
    following = _stop(data, stop)
    if not following:
        return 0
    if following <= len(data):
        return stop if entries.is_intact(data, stop, following) else 0
    return 0 if last else None


def _stop(data: bytes, position: int) -> int:
    """The end of a record by its length; 0 if the length is impossible."""
    length = int.from_bytes(data[position : position + entries.LENGTH_BYTES], "big")
    if not entries.OVERHEAD_BYTES <= length <= entries.ENTRY_BYTES_MAX:
        return 0
    return position + entries.LENGTH_BYTES + length


def _location(log_id: int, offset: int) -> int:
    return (log_id << 32) | (offset + entries.LENGTH_BYTES)


def _end(reader: EntryLogReader, log_id: int) -> int:
    """The offset of the ledgers map, or the log's size if there is no valid one."""
    size = reader.size(log_id)
    try:
        offset = reader.ledgers_map_offset(log_id)
    except Corrupted:
        return size
    return offset if log_format.HEADER_BYTES <= offset <= size else size


def _next_record(data: bytes, start: int, *, last: bool) -> int:
    """The start of the next intact record from `start` on. A head whose record goes beyond the data
    may be one, unless the data is the `last`.
    """
    for found in re.compile(_HEAD).finditer(data, start):
        begin = found.start()
        stop = _stop(data, begin)
        if not stop:
            continue
        if stop <= len(data):
            if entries.is_intact(data, begin, stop):
                return begin
        elif not last:
            return begin
    return len(data) if last else max(start, len(data) - HEAD_BYTES)
