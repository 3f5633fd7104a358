"""Free space on the disks: checked now and then, decides whether writes are accepted, and where
entry logs begin.

    a directory of several has no room      new logs begin in others
    all have none, or the journal or the    writes are refused, and there is no compaction, which
    indexes found none                      needs room before it gives any back
    all are above the warn threshold        there is no major compaction

Apache's bookie is read-only as soon as one of several has none, unless
`readOnlyModeOnAnyDiskFullEnabled` is off; here that is asked for (`any_full_is_read_only`).

Invariant: between the low mark and the threshold the decision does not change, so that it does not
flap while space is being freed (Apache's `diskUsageLwmThreshold`, `LedgerDirsMonitor.java`, 4.18).
Nor does it flap if a write finds no space although usage is below the low mark: on a small disk a
journal file may be larger than the rest, and figures do not show quotas. Then writes are refused
until more space is free than was at that time, or tried again at growing intervals.
"""

from __future__ import annotations

import enum
import errno
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from magnetar.bookie.server.log_directories import LogDirectories
from magnetar.bookie.server.settings import BookieSettings
from magnetar.core.kernel.errors import StorageFull
from magnetar.core.kernel.structs import FrozenStruct
from magnetar.core.ports.disk import Directory, Disk, DiskUsage

log = logging.getLogger(__name__)


def is_full(error: OSError) -> bool:
    """Whether the disk is only full, which may pass."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT)


@contextmanager
def room_for(what: str, where: Directory) -> Iterator[None]:
    """Have a full disk tell an operator what it has no room for: `StorageFull`."""
    try:
        yield
    except OSError as error:
        if not is_full(error):
            raise
        raise StorageFull(f"there is no room for {what}: make some in {where.path}") from error


ROOM_BYTES: Final = 16 * 1024 * 1024
"""The growth of free space, since a write found none, after which writes are accepted again."""
LOOKS_MAX: Final = 16
"""The most checks between two tries without that growth: almost three minutes by default."""
WARN_GAP: Final = 0.01
"""How far usage falls below the warn threshold before the disk is no longer almost full."""


class DiskThresholds(FrozenStruct, frozen=True):
    """Used parts of a disk, and what one of several means for all."""

    full: float = 0.95
    """`diskUsageThreshold`: nothing is written above it."""
    low_mark: float = 0.94
    """`diskUsageLwmThreshold`: writing goes on below it."""
    warn: float = 0.90
    """`diskUsageWarnThreshold`: the disk is almost full above it."""
    any_full_is_read_only: bool = False
    """`readOnlyModeOnAnyDiskFullEnabled`."""


class DiskPressure(enum.IntEnum):
    """How little room there is, on the disk that has most."""

    NONE = 0
    ALMOST_FULL = 1
    FULL = 2


SAID: Final = {
    DiskPressure.NONE: "compaction goes on",
    DiskPressure.ALMOST_FULL: "almost full, there is no major compaction",
    DiskPressure.FULL: "full, there is no compaction",
}


class DirectoryWatch:
    """The last check of one directory's disk, and the decision after it."""

    def __init__(self, disk: Disk, directory: Directory, thresholds: DiskThresholds) -> None:
        self._disk = disk
        self._directory = directory
        self._threshold = thresholds.full
        self._low_mark = min(thresholds.low_mark, thresholds.full)
        self._warn = min(thresholds.warn, thresholds.full)
        self.usage = disk.usage(directory)
        self.writable = self.usage.used_part <= thresholds.full
        self.almost_full = self.usage.used_part > self._warn
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
    def path(self) -> str:
        return self._directory.path

    @property
    def room_bytes(self) -> int:
        """What may be written until the disk is full; 0 if it is."""
        held_back = int((1 - self._threshold) * self.usage.total_bytes)
        return max(self.usage.free_bytes - held_back, 0) if self.writable else 0

    @property
    def is_starved(self) -> bool:
        """Whether a write found no space, and there is no more since."""
        return not self.writable and self._free_when_full >= 0

    def check_and_log(self) -> None:
        """Check the disk, and log a change of the decision."""
        if self.check():
            log.warning(
                "the disk of %s is %.0f%% full: %s",
                self._directory.path,
                100 * self.usage.used_part,
                "writing again" if self.writable else "nothing is written any more",
            )

    def notice(self) -> None:
        """Notice a disk that has become full between two checks; only a check ends that."""
        if self.writable and self._disk.usage(self._directory).used_part > self._threshold:
            self.check_and_log()

    def check(self) -> bool:
        """Check the disk; returns whether `writable` changed."""
        self.usage = self._disk.usage(self._directory)
        before = self.writable
        if self.usage.used_part > self._threshold:
            self.writable = False
        elif self.usage.used_part <= self._low_mark and self._is_worth_a_try():
            self.writable = True
        if self.usage.used_part > self._warn:
            self.almost_full = True
        elif self.usage.used_part <= self._warn - WARN_GAP:
            self.almost_full = False
        return before != self.writable

    @property
    def pressure(self) -> DiskPressure:
        if not self.writable:
            return DiskPressure.FULL
        return DiskPressure.ALMOST_FULL if self.almost_full else DiskPressure.NONE


class DiskWatch:
    """The disks of all ledger directories."""

    def __init__(self, disk: Disk, logs: Directory, thresholds: DiskThresholds) -> None:
        """`logs` has the entry logs; `LogDirectories` begin them where there is room."""
        self._logs = logs if isinstance(logs, LogDirectories) else None
        directories = logs.directories if isinstance(logs, LogDirectories) else (logs,)
        self._watches = [DirectoryWatch(disk, each, thresholds) for each in directories]
        self._any_full_is_read_only = thresholds.any_full_is_read_only
        self._told = DiskPressure.NONE
        """What the log has last said."""
        if self._logs is not None:
            self._logs.look = self._notice
        self._decide()

    def _decide(self) -> None:
        """Whether writes are accepted, and what the disks hold together."""
        watches = self._watches
        writable = [each.writable for each in watches]
        enough = all(writable) if self._any_full_is_read_only else any(writable)
        self.writable = enough and not watches[0].is_starved
        self.pressure = min([each.pressure for each in watches])
        """Of the disk with most room: what compaction copies goes there."""
        self.usage = _together([each.usage for each in watches])
        self.spare_bytes = (
            0 if watches[0].is_starved else max(each.usage.free_bytes for each in watches)
        )
        """What is left for writes in spite of that, for which a log and the indexes need room."""
        if self._logs is not None:
            self._logs.full = frozenset([i for i, has_room in enumerate(writable) if not has_room])

    def _notice(self) -> None:
        for each in self._watches:
            each.notice()
        self._decide()

    @property
    def directories(self) -> int:
        return len(self._watches)

    @property
    def with_room(self) -> int:
        """How many directories take entries."""
        return len([each for each in self._watches if each.writable])

    @property
    def room_bytes(self) -> int:
        """What may be written until all disks are full."""
        return sum({each.usage.filesystem: each.room_bytes for each in self._watches}.values())

    def free(self) -> str:
        """What is free where, as words of a sentence."""
        return ", ".join(
            [f"{each.usage.free_bytes} bytes are free in {each.path}" for each in self._watches]
        )

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
        if self.pressure != self._told:
            self._told = self.pressure
            used = min([each.usage.used_part for each in self._watches])
            log.warning(
                "the disk of entry logs is %.0f%% full: %s", 100 * used, SAID[self.pressure]
            )

    def check(self) -> bool:
        """Check the disks; returns whether `writable` changed."""
        before = self.writable
        for each in self._watches:
            each.check()
        self._decide()
        return before != self.writable


def disk_watch(disk: Disk, logs: Directory, settings: BookieSettings) -> DiskWatch:
    """What settings say of disks."""
    thresholds = DiskThresholds(
        full=settings.disk_usage_threshold,
        low_mark=settings.disk_usage_low_mark,
        warn=settings.disk_usage_warn_threshold,
        any_full_is_read_only=settings.any_full_is_read_only,
    )
    return DiskWatch(disk, logs, thresholds)


def _together(usages: list[DiskUsage]) -> DiskUsage:
    """The space of all file systems, each counted once."""
    if len(usages) == 1:
        return usages[0]
    found = {usage.filesystem: usage for usage in usages}.values()
    total, free = sum([one.total_bytes for one in found]), sum([one.free_bytes for one in found])
    used = sum([one.used_part * one.total_bytes for one in found])
    return DiskUsage(used / max(total, 1), free, total)
