"""Reading a journal file after a crash: whole records, in order, up to the torn tail. Pure.

The theory is in `journal.py`. A scan returns every acknowledged record, and perhaps a few that were
stored and not yet acknowledged, or ends with `RottenError`; it never returns a record that was not
written, but for entries that are broken, under ids that are right.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Generator
from typing import Final

from magnetar.bookie.format import entries
from magnetar.bookie.format import journal as journal_format

WINDOW_BYTES: Final = 4 * 1024 * 1024
TEAR_BYTES_MAX: Final = 24 * 1024 * 1024
"""More than any group has. Bytes further behind a broken record belong to a later group."""
SMALL_GROUP_BYTES: Final = 64 * 1024
"""More than most groups have."""
LEFT_OVER_BYTES: Final = 1024 * 1024
"""How far behind the end of a scan leftovers are searched for: cheap enough for every start."""
RECORD_BYTES_MAX: Final = entries.ENTRY_BYTES_MAX + 1024

_PADDING: Final = journal_format.PADDING.to_bytes(4, "big", signed=True)

Read = Callable[[int, int], bytes]
"""(offset, size) -> bytes, fewer only at the end of the file."""


FAR_BYTES: Final = 1024 * 1024
"""Behind that, a look at one sector in so many bytes: whole files would be read at each start."""


class RottenError(ValueError):
    """A synced part of the journal is damaged, and what it said cannot be told."""

    def __init__(self, offset: int) -> None:
        super().__init__(f"the record at {offset} makes no sense and is not the last")
        self.offset = offset


class Seal(enum.Enum):
    """What the seal of a group says of its records."""

    NONE = enum.auto()
    RIGHT = enum.auto()
    WRONG = enum.auto()


def scan(
    read: Read, start: int, *, proving: bool = False
) -> Generator[entries.Run | journal_format.Note, None, int]:
    """Yield runs and notes from `start` on, in the order of writing; return the end's offset.

    `proving`: all entries have a CRC32C, as those of a bookie that is its only client.
    """
    window = _Window(read, start)
    while word := window.word():
        if word == journal_format.PADDING:
            window.position = journal_format.padding_end(
                window.data, window.position, window.offset
            )
            window.begin_group()
            continue
        end = window.position + 4 + word
        if not 16 <= word <= RECORD_BYTES_MAX or end > len(window.data):
            _check_torn(read, window.offset)
            break
        kind = journal_format.kind(window.data, window.position)
        if kind < 0:
            if not _is_whole_note(read, window, kind):
                break
            yield journal_format.parse_note(window.data[window.position + 4 : end])
            window.position = end
            continue
        run, whole = _run(read, window, proving)
        if run is not None:
            yield run
            end = window.position + run.offsets[-1]
        if not whole:
            break
        window.position = end
    if not window.word() and _goes_on(read, window.offset):
        _check_torn(read, window.offset)
    return window.offset


def _check_torn(read: Read, offset: int) -> None:
    """Make sure that a length that leads nowhere is in the torn tail."""
    if _synced_after(read, offset):
        raise RottenError(offset)


def check_empty(read: Read) -> None:
    """Make sure that a file whose header is zeros has nothing else: `RottenError`."""
    if _goes_on(read, 0):
        raise RottenError(0)


def left_over(read: Read, end: int) -> bool:
    """Whether bytes other than zero follow soon after the end of a scan.

    A torn group leaves such bytes and was never acknowledged. But so does a disk that lost data,
    which deserves a warning.
    """
    window = read(end, LEFT_OVER_BYTES)
    return window.count(0) != len(window)


def _is_whole_note(read: Read, window: _Window, kind: int) -> bool:
    """Whether the note at the window's position was written so; False for one that is torn."""
    if kind not in journal_format.KINDS and not _group_follows(read, window.offset):
        return False
    seal = window.seal()
    if seal is Seal.RIGHT or (seal is Seal.NONE and not window.is_cut_at_a_sector()):
        return True
    if window.is_followed():
        if seal is Seal.WRONG:
            raise RottenError(window.offset)
        return True
    return False


def _run(read: Read, window: _Window, proving: bool) -> tuple[entries.Run | None, bool]:
    """The run at the window's position, and whether the scan may go on behind it.

    A broken record that is not the torn tail is the last of its run: reading it must fail.
    """
    run = entries.run_at(window.data, window.position, len(window.data))
    if run is None:  # too short to be an entry
        return None, _group_follows(read, window.offset)
    good = entries.count_intact(run)
    if good == run.count or window.seal() is Seal.RIGHT:
        return run, True
    if window.followed or _group_follows(read, window.offset + run.offsets[good]):
        window.followed = True
        if (proving or window.seal() is Seal.WRONG) and not (good or _next_is_intact(run)):
            raise RottenError(window.offset)
        return entries.cut(run, good + 1), True
    return (entries.cut(run, good) if good else None), False


def _next_is_intact(run: entries.Run) -> bool:
    """Whether the second record of a run proves its id, and so that of the first."""
    return run.count > 1 and entries.count_intact(entries.cut(entries.rest(run, 1), 1)) == 1


class _Window:
    """A piece of the file that moves on, so that it has the whole record at `position`."""

    def __init__(self, read: Read, start: int) -> None:
        self.data = read(start, WINDOW_BYTES)
        self.position = 0
        self._read = read
        self._base = start
        self.begin_group()

    def begin_group(self) -> None:
        """A group begins at the position."""
        self._group = self.offset
        self._seal: Seal | None = None
        self.followed = False
        """Whether it is known that a later group follows."""

    def seal(self) -> Seal:
        """What the seal of the group at the position says: RIGHT if all of it was written."""
        if self._seal is None:
            self._seal = _seal_of(self._read, self._group)
        return self._seal

    def is_cut_at_a_sector(self) -> bool:
        """Whether the record at the position ends in zeros from a sector's beginning on: that
        sector may not have been written.
        """
        size = 4 + journal_format.word(self.data, self.position)
        room = journal_format.ALIGNMENT_BYTES - self.offset % journal_format.ALIGNMENT_BYTES
        behind = self.data[self.position + room : self.position + size]
        return room < size and behind.count(0) == len(behind)

    def is_followed(self) -> bool:
        """Whether a later group follows that at the position."""
        self.followed = self.followed or _synced_after(self._read, self._group)
        return self.followed

    @property
    def offset(self) -> int:
        return self._base + self.position

    def word(self) -> int:
        """The word at the position, after moving the window on if its record does not fit."""
        word, needed = self._ahead()
        # A loop, because at the window's end even the record's length may have been missing.
        while (left := len(self.data) - self.position) < needed <= RECORD_BYTES_MAX:
            self._base += self.position
            self.position = 0
            self.data = self._read(self._base, max(WINDOW_BYTES, needed))
            if len(self.data) <= left:
                break  # the end of the file
            word, needed = self._ahead()
        return 0 if word == journal_format.PADDING and len(self.data) - self.position < 8 else word

    def _ahead(self) -> tuple[int, int]:
        """The word at the position, and the number of bytes that its record needs."""
        word = journal_format.word(self.data, self.position)
        return (
            word,
            8 + journal_format.ALIGNMENT_BYTES
            if word == journal_format.PADDING
            else 4 + max(word, 16),
        )


def _seal_of(read: Read, start: int) -> Seal:
    """The seal of the group that begins at `start`: it says itself how long the group is, so that
    it is found also where lengths lead past it. Where they lead to padding without one, as in all
    of a journal of Apache's, it is not searched for: that is asked of each group with a note.
    """
    for size in (SMALL_GROUP_BYTES, WINDOW_BYTES, TEAR_BYTES_MAX):
        window = read(start, size)
        if _ends_unsealed(window):
            return Seal.NONE
        position = window.find(_PADDING)
        while position >= 0:
            if position and journal_format.sealed_bytes(window, position) == position:
                return Seal.RIGHT if journal_format.is_sealed(window, position) else Seal.WRONG
            position = window.find(_PADDING, position + 1)
        if len(window) < size:
            break
    return Seal.NONE


def _ends_unsealed(window: bytes) -> bool:
    """Whether the lengths of a group, which begins the window, lead to padding without a seal."""
    position = 0
    while (word := journal_format.word(window, position)) >= 16:
        position += 4 + word
    magic = window[position + 8 : position + 12]
    return word == journal_format.PADDING and len(magic) == 4 and magic != journal_format.SEAL_MAGIC


def _goes_on(read: Read, offset: int) -> bool:
    """Whether anything but zeros seems to stand behind `offset`."""
    window = read(offset, LEFT_OVER_BYTES)
    while window:
        if window.count(0) != len(window):
            return True
        offset += FAR_BYTES
        window = read(offset, journal_format.ALIGNMENT_BYTES)
    return False


def _group_follows(read: Read, offset: int) -> bool:
    """Whether a later group begins behind the record at `offset`."""
    window = read(offset, TEAR_BYTES_MAX)
    position = 0
    while word := journal_format.word(window, position):
        if word == journal_format.PADDING:
            if position + 8 > len(window):
                return False
            position = journal_format.padding_end(window, position, offset + position)
            return journal_format.word(window, position) != 0
        if word < 16:
            break
        position += 4 + word
    return _synced_after(read, offset)


def _synced_after(read: Read, offset: int) -> bool:
    """Whether a group was written after the one at `offset`, which has a senseless length: if so,
    that one was synced (rule 2 of `journal.py`).

    Every group ends in padding, and a later group has a whole record behind it. Bytes further away
    than the largest group belong to a later one in any case.
    """
    window = read(offset, TEAR_BYTES_MAX)
    position = window.find(_PADDING)
    while 0 <= position <= len(window) - 8:
        end = journal_format.padding_end(window, position, offset + position)
        run = entries.run_at(window, end, len(window))
        zeros = window.count(0, position + 8, end) == end - position - 8
        if zeros and run is not None and entries.count_intact(entries.cut(run, 1)):
            return True
        if position and journal_format.is_sealed(window, position):
            return True  # its records are behind the broken one, which is at 0
        position = window.find(_PADDING, position + 1)
    return _anything_after(read, offset + TEAR_BYTES_MAX)


def _anything_after(read: Read, offset: int) -> bool:
    """Whether a byte other than zero stands at `offset` or behind it."""
    while window := read(offset, WINDOW_BYTES):
        if window.count(0) != len(window):
            return True
        offset += len(window)
    return False
