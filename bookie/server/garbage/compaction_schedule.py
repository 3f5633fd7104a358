"""When entry logs are compacted: minor and major compaction, each with its interval and threshold.

Names and meaning are Apache's (`GarbageCollectorThread.java` of 4.18): a major compaction takes
logs of which more is live than a minor one does. Operators may ask for either, and suspend either.

Compaction needs room before it gives any back, so a disk suspends them as well
(`InterleavedLedgerStorage.getLedgerDirsListener`):

    almost full    the major one, unless it is asked for by name
    full           both, unless asked for by name

Theirs stays suspended when a disk that was almost full and never full has room again
(`LedgerDirsMonitor.check` tells nobody); ours goes on.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from msgspec import Struct

from magnetar.bookie.server.disk_usage import DiskPressure
from magnetar.bookie.server.settings import BookieSettings


class CompactionStatistics(Struct, frozen=True):
    """One kind of compaction at one moment."""

    suspended: bool
    running: bool
    count: int
    """Rounds since the start."""
    last_ms: int
    """The end of the last one, in milliseconds since 1970; 0 if there was none."""


class CompactionKind:
    """One kind of compaction. `interval_seconds` is 0 if it is off."""

    def __init__(
        self, interval_seconds: float, threshold: float, now: float, no_room: Callable[[], bool]
    ) -> None:
        self.suspended = False
        """By an operator."""
        self._no_room = no_room
        self._interval_seconds = interval_seconds
        self._threshold = threshold
        self._due_at = now + interval_seconds
        self._forced = self._running = False
        self._count = self._last_ms = 0

    @property
    def is_suspended(self) -> bool:
        """By an operator, or since there is no room."""
        return self.suspended or self._no_room()

    def force(self) -> None:
        """Run with the next round, whenever it is due."""
        self._forced = True

    def force_for_room(self) -> None:
        """The same in spite of a disk without room, unless an operator has suspended it."""
        self._forced = self._forced or not self.suspended

    def begin(self, now: float) -> float:
        """The live part of a log below which it is compacted in this round; 0 for none."""
        due = bool(self._interval_seconds) and now >= self._due_at and not self.is_suspended
        if not (due or self._forced):
            return 0.0
        self._forced, self._running = False, True
        self._due_at = now + self._interval_seconds
        return self._threshold

    def end(self, wall_ms: int) -> None:
        """The round is over."""
        if self._running:
            self._running = False
            self._count += 1
            self._last_ms = wall_ms

    def statistics(self) -> CompactionStatistics:
        return CompactionStatistics(self.is_suspended, self._running, self._count, self._last_ms)


class CompactionSchedule:
    """See the module's docstring."""

    def __init__(
        self,
        settings: BookieSettings,
        now: float,
        wall_ms: Callable[[], int],
        pressure: Callable[[], DiskPressure],
    ) -> None:
        """`pressure` is that of the disks, as they were seen last."""
        self._in_spite = settings.force_gc_when_no_space
        self._pressure = pressure
        self.minor = CompactionKind(
            settings.minor_compaction_interval_seconds,
            settings.minor_compaction_threshold,
            now,
            partial(self._has_no_room, DiskPressure.FULL),
        )
        self.major = CompactionKind(
            settings.major_compaction_interval_seconds,
            settings.major_compaction_threshold,
            now,
            partial(self._has_no_room, DiskPressure.ALMOST_FULL),
        )
        self._wall_ms = wall_ms

    def _has_no_room(self, least: DiskPressure) -> bool:
        return not self._in_spite and self._pressure() >= least

    def begin(self, now: float) -> float:
        """As `CompactionKind.begin`, of both."""
        return max(self.minor.begin(now), self.major.begin(now))

    def end(self) -> None:
        self.minor.end(self._wall_ms())
        self.major.end(self._wall_ms())
