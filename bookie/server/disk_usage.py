"""Room on the disk: looks now and then, and says whether anything may be written.

Invariant: between the low mark and the threshold the answer stays what it was, so that it does not
flap while something is being cleaned up. Nor does it where a write finds no room below the low mark
(on a small disk a file of the journal is more than that leaves; a quota is no part of the figures):
then it stays "no" until there is more room than there was, or is tried again ever more rarely.
"""

from __future__ import annotations

import errno
import logging
from typing import Final

from magnetar.core.ports.disk import Directory, Disk

log = logging.getLogger(__name__)


def is_full(error: OSError) -> bool:
    """Whether it is for lack of room only: that passes."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT)


ROOM_BYTES: Final = 16 * 1024 * 1024
"""So much more than there was when a write found no room is room again."""
LOOKS_MAX: Final = 16
"""Between two tries where there is not so much: almost three minutes by default."""


class DiskWatch:
    """Remembers the last look and what follows from it."""

    def __init__(self, disk: Disk, directory: Directory, threshold: float, low_mark: float) -> None:
        self._disk = disk
        self._directory = directory
        self._threshold = threshold
        self._low_mark = min(low_mark, threshold)
        self.usage = disk.usage(directory)
        self.writable = self.usage.used_part <= threshold
        self._free_when_full = -1
        """What was free when a write found no room; -1 if none has."""
        self._looks = self._looks_left = 0

    def ran_out(self) -> None:
        """A write found no room, whatever the threshold says: nothing more until there is some."""
        if self.writable or self._free_when_full < 0:
            self._looks = self._looks_left = min(2 * self._looks + 1, LOOKS_MAX)
        self.writable = False
        self._free_when_full = self._disk.usage(self._directory).free_bytes

    def _is_worth_a_try(self) -> bool:
        if self._free_when_full < 0:
            return True
        if self.usage.free_bytes >= self._free_when_full + ROOM_BYTES:
            self._free_when_full, self._looks = -1, 0
            return True
        self._looks_left -= 1
        return self._looks_left <= 0

    def look(self) -> None:
        """Look again, and report a change."""
        if self.check():
            log.warning(
                "the disk is %.0f%% full: %s",
                100 * self.usage.used_part,
                "writing again" if self.writable else "nothing is written any more",
            )

    def check(self) -> bool:
        """Look again; returns whether `writable` changed."""
        self.usage = self._disk.usage(self._directory)
        before = self.writable
        if self.usage.used_part > self._threshold:
            self.writable = False
        elif self.usage.used_part <= self._low_mark and self._is_worth_a_try():
            self.writable = True
        return before != self.writable
