"""When entry logs are compacted: minor and major compaction, each with its interval and threshold.

Names and meaning are Apache's (`GarbageCollectorThread.java` of 4.18): a major compaction takes
logs of which more is live than a minor one does. Operators may ask for either, and suspend either.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

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

    def __init__(self, interval_seconds: float, threshold: float, now: float) -> None:
        self.suspended = False
        self._interval_seconds = interval_seconds
        self._threshold = threshold
        self._due_at = now + interval_seconds
        self._forced = self._running = False
        self._count = self._last_ms = 0

    def force(self) -> None:
        """Run with the next round, whenever it is due."""
        self._forced = True

    def begin(self, now: float) -> float:
        """The live part of a log below which it is compacted in this round; 0 for none."""
        due = bool(self._interval_seconds) and now >= self._due_at and not self.suspended
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
        return CompactionStatistics(self.suspended, self._running, self._count, self._last_ms)


class CompactionSchedule:
    """See the module's docstring."""

    def __init__(self, settings: BookieSettings, now: float, wall_ms: Callable[[], int]) -> None:
        self.minor = CompactionKind(
            settings.minor_compaction_interval_seconds, settings.minor_compaction_threshold, now
        )
        self.major = CompactionKind(
            settings.major_compaction_interval_seconds, settings.major_compaction_threshold, now
        )
        self._wall_ms = wall_ms

    def begin(self, now: float) -> float:
        """As `CompactionKind.begin`, of both."""
        return max(self.minor.begin(now), self.major.begin(now))

    def end(self) -> None:
        self.minor.end(self._wall_ms())
        self.major.end(self._wall_ms())
