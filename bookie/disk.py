"""Room on the disk: looks now and then, and says whether anything may be written.

Invariant: between the low mark and the threshold the answer stays what it was, so that it does not
flap while something is being cleaned up.
"""

from __future__ import annotations

import errno
import shutil
from pathlib import Path

from msgspec import Struct


def is_full(error: OSError) -> bool:
    """Whether it is for lack of room only: that passes."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT)


class DiskUsage(Struct, frozen=True):
    """A disk at one moment."""

    used_part: float
    free_bytes: int


def look(directory: Path) -> DiskUsage:
    """Ask the system. What only root may use counts as used."""
    usage = shutil.disk_usage(directory)
    return DiskUsage(1.0 - usage.free / usage.total, usage.free)


class DiskWatch:
    """Remembers the last look and what follows from it."""

    def __init__(self, directory: Path, threshold: float, low_mark: float) -> None:
        self._directory = directory
        self._threshold = threshold
        self._low_mark = min(low_mark, threshold)
        self.usage = look(directory)
        self.writable = self.usage.used_part <= threshold

    def ran_out(self) -> None:
        """A write found no room, whatever the threshold says: nothing more before the next look."""
        self.writable = False

    def check(self) -> bool:
        """Look again; returns whether `writable` changed."""
        self.usage = look(self._directory)
        before = self.writable
        if self.usage.used_part > self._threshold:
            self.writable = False
        elif self.usage.used_part <= self._low_mark:
            self.writable = True
        return before != self.writable
