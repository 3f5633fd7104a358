"""Free space on the disks: checked now and then, decides whether writes are accepted, and where
entry logs begin.

    a directory of several has no room      new logs begin in others
    all have none, or the journal or the    writes are refused (Apache's
    indexes found none                      `readOnlyModeOnAnyDiskFullEnabled` = false)

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

from magnetar.bookie.server.log_directories import LogDirectories
from magnetar.core.ports.disk import Directory, Disk, DiskUsage

log = logging.getLogger(__name__)


def is_full(error: OSError) -> bool:
    """Whether the disk is only full, which may pass."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT)


ROOM_BYTES: Final = 16 * 1024 * 1024
"""The growth of free space, since a write found none, after which writes are accepted again."""
LOOKS_MAX: Final = 16
"""The most checks between two tries without that growth: almost three minutes by default."""


class DirectoryWatch:
    """The last check of one directory's disk, and the decision after it."""

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

    @property
    def is_starved(self) -> bool:
        """Whether a write found no space, and there is no more since."""
        return not self.writable and self._free_when_full >= 0

    def check_and_log(self) -> bool:
        """Check the disk, and log a change of the decision, which is returned."""
        changed = self.check()
        if changed:
            log.warning(
                "the disk of %s is %.0f%% full: %s",
                self._directory.path,
                100 * self.usage.used_part,
                "writing again" if self.writable else "nothing is written any more",
            )
        return changed

    def check(self) -> bool:
        """Check the disk; returns whether `writable` changed."""
        self.usage = self._disk.usage(self._directory)
        before = self.writable
        if self.usage.used_part > self._threshold:
            self.writable = False
        elif self.usage.used_part <= self._low_mark and self._is_worth_a_try():
            self.writable = True
        return before != self.writable


class DiskWatch:
    """The disks of all ledger directories."""

    def __init__(self, disk: Disk, logs: Directory, threshold: float, low_mark: float) -> None:
        """`logs` has the entry logs; `LogDirectories` begin them where there is room."""
        self._logs = logs if isinstance(logs, LogDirectories) else None
        directories = logs.directories if isinstance(logs, LogDirectories) else (logs,)
        self._watches = [DirectoryWatch(disk, each, threshold, low_mark) for each in directories]
        self._decide()

    def _decide(self) -> None:
        """Whether writes are accepted, and what the disks hold together."""
        watches = self._watches
        writable = [each.writable for each in watches]
        self.writable = any(writable) and not watches[0].is_starved
        self.usage = _together([each.usage for each in watches])
        self.most_free_bytes = max([each.usage.free_bytes for each in watches])
        """Of one disk: what it takes to go on with a log."""
        if self._logs is not None:
            self._logs.full = frozenset([i for i, has_room in enumerate(writable) if not has_room])

    def ran_out(self) -> None:
        """Refuse writes: one of the journal or of an index found no space."""
        self._watches[0].ran_out()
        self._decide()

    def ran_out_for(self, name: str) -> None:
        """A write to an entry log found no space: of several directories, others get the next."""
        if self._logs is not None:
            self._watches[self._logs.place_of(name)].ran_out()
            self._decide()

    def check_and_log(self) -> None:
        """Check the disks, and log changes."""
        for each in self._watches:
            each.check_and_log()
        self._decide()

    def check(self) -> bool:
        """Check the disks; returns whether `writable` changed."""
        before = self.writable
        for each in self._watches:
            each.check()
        self._decide()
        return before != self.writable


def _together(usages: list[DiskUsage]) -> DiskUsage:
    """The space of all file systems, each counted once."""
    if len(usages) == 1:
        return usages[0]
    found = {usage.filesystem: usage for usage in usages}.values()
    total, free = sum([one.total_bytes for one in found]), sum([one.free_bytes for one in found])
    used = sum([one.used_part * one.total_bytes for one in found])
    return DiskUsage(used / max(total, 1), free, total)
