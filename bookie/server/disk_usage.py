"""Free space on the disk: checked now and then, decides whether writes are accepted.

Invariant: between the low mark and the threshold the decision does not change, so that it does not
flap while space is being freed (Apache's `diskUsageLwmThreshold`, `LedgerDirsMonitor.java`, 4.18).
Nor does it flap if a write finds no space although usage is below the low mark: on a small disk a
journal file may be larger than the rest, and figures do not show quotas. Then writes are refused
until more space is free than was at that time, or tried again at growing intervals.
"""

from __future__ import annotations

import errno
import logging
from typing import Final

from magnetar.core.ports.disk import Directory, Disk

log = logging.getLogger(__name__)


def is_full(error: OSError) -> bool:
    """Whether the disk is only full, which may pass."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT)


ROOM_BYTES: Final = 16 * 1024 * 1024
"""The growth of free space, since a write found none, after which writes are accepted again."""
LOOKS_MAX: Final = 16
"""The most checks between two tries without that growth: almost three minutes by default."""


class DiskWatch:
    """The last check and the decision after it."""

    def __init__(self, disk: Disk, directory: Directory, threshold: float, low_mark: float) -> None:
        self._disk = disk
        self._directory = directory
        self._threshold = threshold
        self._low_mark = min(low_mark, threshold)
        self.usage = disk.usage(directory)
        self.writable = self.usage.used_part <= threshold
        self._free_when_full = -1
        """Free bytes when a write found no space; -1 if none did."""
        self._looks = self._looks_left = 0

    def ran_out(self) -> None:
        """Refuse writes: one found no space, whatever the usage is."""
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

    def check_and_log(self) -> None:
        """Check the disk, and log a change of the decision."""
        if self.check():
            log.warning(
                "the disk is %.0f%% full: %s",
                100 * self.usage.used_part,
                "writing again" if self.writable else "nothing is written any more",
            )

    def check(self) -> bool:
        """Check the disk; returns whether `writable` changed."""
        self.usage = self._disk.usage(self._directory)
        before = self.writable
        if self.usage.used_part > self._threshold:
            self.writable = False
        elif self.usage.used_part <= self._low_mark and self._is_worth_a_try():
            self.writable = True
        return before != self.writable
