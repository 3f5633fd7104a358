"""The pace: how many bytes are received in one sweep, so that a sweep is short; and how long the
longest one was.

Bytes say little about work: half a megabyte may be one batch, or thousands of requests, and other
peers wait for the end of the sweep. So a slow sweep is followed by one that receives half as much,
until sweeps are fast enough, and then by larger ones again (multiplicative decrease, as in TCP's
congestion control, RFC 5681). So is one that a few connections have filled, so that others were
passed over: with hundreds of those, each waits for all others to have their turn.

Invariant: `bytes` is between `SWEEP_BYTES_MIN` and `SWEEP_BYTES_MAX`.
"""

from __future__ import annotations

from typing import Final

from magnetar.core.kernel.clock import thread_seconds

SWEEP_BYTES_MAX: Final = 512 * 1024
SWEEP_BYTES_MIN: Final = 16 * 1024
SHARE_BYTES_MIN: Final = 16 * 1024
"""The least share of a connection, while sweeps are fast enough."""
SHARE_BYTES_LEAST: Final = 2 * 1024
"""The least share of a connection in any case."""
SLOW_SECONDS: Final = 0.02
"""A sweep that takes longer has received too much."""
QUICK_SECONDS: Final = 0.005
"""After a sweep that took less, more may be received."""


class Pace:
    """See the module's docstring."""

    __slots__ = ("bytes", "share_min")

    def __init__(self) -> None:
        self.bytes = SWEEP_BYTES_MAX
        self.share_min = SHARE_BYTES_MIN
        """The least share of a connection, which shrinks with `bytes`."""

    def share(self, connections: int) -> int:
        """The bytes to receive from each of so many connections."""
        share = self.bytes // connections if connections > 1 else self.bytes
        return share if share > self.share_min else self.share_min

    def adjust(self, seconds: float, *, filled_by_few: bool = False) -> None:
        """Adjust the pace after a sweep."""
        if seconds > SLOW_SECONDS or filled_by_few:
            self._set(max(self.bytes // 2, SWEEP_BYTES_MIN))
        elif seconds < QUICK_SECONDS and self.bytes < SWEEP_BYTES_MAX:
            self._set(self.bytes * 2)

    def _set(self, size: int) -> None:
        self.bytes = size
        self.share_min = max(SHARE_BYTES_MIN * size // SWEEP_BYTES_MAX, SHARE_BYTES_LEAST)


class LongestSweep:
    """The longest sweeps since the start."""

    __slots__ = ("_own_started", "own_seconds", "seconds")

    def __init__(self) -> None:
        self.seconds = self.own_seconds = 0.0
        self._own_started = 0.0

    def begin(self) -> None:
        self._own_started = thread_seconds()

    def end(self, seconds: float) -> None:
        """A sweep has taken so long by the clock."""
        if seconds > self.own_seconds:  # else its CPU time is not longer either
            self.own_seconds = max(self.own_seconds, thread_seconds() - self._own_started)
            self.seconds = max(self.seconds, seconds)
