"""Reading a journal file after a crash: whole records, in order, up to the torn tail. Pure.

The theory is in `format.py`. What a scan gives is what the bookie promised, and perhaps a little
more (records that were stored but not yet acknowledged), never less and never invented.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from bookie import entries
from bookie.journal import format

WINDOW_BYTES: Final = 4 * 1024 * 1024
TEAR_BYTES_MAX: Final = 16 * 1024 * 1024
"""More than any group has. Bytes further behind a break than this were written after it."""
RECORD_BYTES_MAX: Final = 8 * 1024 * 1024

Read = Callable[[int, int], bytes]
"""(offset, size) -> bytes, fewer only at the end of the file."""


class Rotten(ValueError):
    """A synced part of the journal makes no sense any more, and what follows cannot be found."""

    def __init__(self, offset: int) -> None:
        super().__init__(f"the record at {offset} makes no sense and is not the last")
        self.offset = offset


def scan(read: Read, start: int) -> Iterator[entries.Run | format.Note]:
    """Runs and notes from `start` on, in the order they were written."""
    base = start
    window = read(base, WINDOW_BYTES)
    position = 0
    while True:
        word = format.word(window, position)
        needed = 8 + format.ALIGNMENT_BYTES if word == format.PADDING else 4 + max(word, 16)
        if position + needed > len(window) and needed <= RECORD_BYTES_MAX:
            base, position = base + position, 0
            window = read(base, max(WINDOW_BYTES, needed))
            word = format.word(window, position)
        if word == 0:
            return
        if word == format.PADDING:
            position = format.padding_end(window, position)
        elif not 16 <= word <= RECORD_BYTES_MAX or position + 4 + word > len(window):
            if _anything_after(read, base + position + TEAR_BYTES_MAX):
                raise Rotten(base + position)
            return
        elif format.kind(window, position) < 0:
            yield format.parse_note(window[position + 4 : position + 4 + word])
            position += 4 + word
        else:
            run = entries.run_at(window, position, len(window))
            if run is None:  # too short for an entry of ours, but not the end
                if not _group_follows(read, base + position):
                    return
                position += 4 + word
                continue
            good = entries.count_intact(run)
            if good < run.count:
                run = entries.cut(run, good + 1)
                if not _group_follows(read, base + position + run.offsets[good]):
                    if good:
                        yield entries.cut(run, good)
                    return
            yield run
            position += run.offsets[-1]


def _group_follows(read: Read, offset: int) -> bool:
    """Whether a later group begins somewhere behind the record at `offset`."""
    window = read(offset, TEAR_BYTES_MAX)
    position = 0
    while word := format.word(window, position):
        if word == format.PADDING:
            if position + 8 > len(window):
                return False
            position = format.padding_end(window, position)
            return format.word(window, position) != 0
        if word < 16:
            break
        position += 4 + word
    return _anything_after(read, offset + TEAR_BYTES_MAX)


def _anything_after(read: Read, offset: int) -> bool:
    """Whether a byte other than zero stands at `offset` or behind it."""
    while window := read(offset, WINDOW_BYTES):
        if window.count(0) != len(window):
            return True
        offset += len(window)
    return False
