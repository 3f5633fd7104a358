"""How much is received in one sweep: about as much as is done within a moment. Pure.

Bytes tell little of work: half a megabyte may be one batch, or thousands of questions that nobody
was expected to ask at once. Other peers that have sent something wait for the sweep's end. So one
that took long is followed by one that receives half, until that is quick enough, and then by more
again.

Invariant: `bytes` is between `SWEEP_BYTES_MIN` and `SWEEP_BYTES_MAX`.
"""

from __future__ import annotations

from typing import Final

SWEEP_BYTES_MAX: Final = 512 * 1024
SWEEP_BYTES_MIN: Final = 16 * 1024
SHARE_BYTES_MIN: Final = 16 * 1024
"""Each connection has an equal share, but never less, while all that is received is worked off in
time.
"""
SHARE_BYTES_LEAST: Final = 2 * 1024
"""Nor ever less than this."""
SLOW_SECONDS: Final = 0.02
"""A sweep that takes longer received too much."""
QUICK_SECONDS: Final = 0.005
"""After one that took less, more may be received."""


class Pace:
    """See the module's docstring."""

    __slots__ = ("bytes",)

    def __init__(self) -> None:
        self.bytes = SWEEP_BYTES_MAX

    @property
    def share_min(self) -> int:
        """It shrinks with the whole."""
        return max(SHARE_BYTES_MIN * self.bytes // SWEEP_BYTES_MAX, SHARE_BYTES_LEAST)

    def share(self, connections: int) -> int:
        """What is received at once from each of so many."""
        return max(self.bytes // (connections or 1), self.share_min)

    def took(self, seconds: float) -> None:
        """A sweep is over, and took so long."""
        if seconds > SLOW_SECONDS:
            self.bytes = max(self.bytes // 2, SWEEP_BYTES_MIN)
        elif seconds < QUICK_SECONDS and self.bytes < SWEEP_BYTES_MAX:
            self.bytes *= 2
