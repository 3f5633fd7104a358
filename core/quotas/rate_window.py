"""The rate of something over the last seconds, and how long to wait until it is within a limit.
Pure.

Theory. Use is counted in samples of a second, of which the last `SAMPLES` are kept. The rate is
their sum over the time since the oldest began, but never over less than ten seconds: so a client
that was silent may use ten seconds' worth at once. Where the rate is beyond its limit, the wait is
the time after which that sum would be within the limit:

    wait = window * (rate - limit) / limit

(`Rate.java`, `SampledStat.java`, `QuotaUtils.java` of Kafka 4.3, with the broker's defaults
`quota.window.num` = 11 and `quota.window.size.seconds` = 1). Unlike a bucket of tokens
(`core/kernel/throttle.py`) it tells a client for how long it is not read, and that stays so.

Invariants: at most `SAMPLES` samples, in order; a window that is idle is equal to a new one.
"""

from __future__ import annotations

from collections import deque
from typing import Final

SAMPLES: Final = 11
SAMPLE_SECONDS: Final = 1.0
WINDOW_SECONDS: Final = SAMPLES * SAMPLE_SECONDS
BURST_SECONDS: Final = (SAMPLES - 1) * SAMPLE_SECONDS
"""What may be used at once, in seconds of the limit."""


class RateWindow:
    """See the module's docstring."""

    __slots__ = ("_begun", "_samples", "_used", "limit")

    def __init__(self, limit: float, now: float = 0.0) -> None:
        self.limit = limit
        self._begun = now
        self._samples: deque[list[float]] = deque(maxlen=SAMPLES)
        """When each began, and what was used in it."""
        self._used = 0.0
        """The sum of the samples."""

    @property
    def burst(self) -> float:
        """What an idle client may use at once without a wait."""
        return self.limit * BURST_SECONDS

    @property
    def used_at(self) -> float:
        """When it was used last; when it was made, if it was not since."""
        return self._samples[-1][0] if self._samples else self._begun

    def spend(self, amount: float, now: float) -> float:
        """Count a use, and return the seconds to wait; negative to take a use back. Plain call, for
        each request.
        """
        samples = self._samples
        if samples and now - samples[-1][0] < SAMPLE_SECONDS:
            samples[-1][1] += amount
            self._used += amount
        else:
            samples.append([now, amount])
            self._used = sum(used for _, used in samples)
        if self._used <= self.limit * BURST_SECONDS:
            return 0.0  # no window is shorter, and samples that are too old only add to the sum
        return self.wait_seconds(now)

    def wait_seconds(self, now: float) -> float:
        """How long to wait; 0 if the rate is within its limit."""
        window, used = self._measured(now)
        excess = used / window - self.limit
        return excess / self.limit * window if excess > 0 else 0.0

    def used(self, now: float) -> float:
        """What was used within the window."""
        return self._measured(now)[1]

    def _measured(self, now: float) -> tuple[float, float]:
        """The length of the window and the sum of its samples."""
        samples = self._samples
        if samples and now - samples[0][0] >= WINDOW_SECONDS:
            while samples and now - samples[0][0] >= WINDOW_SECONDS:
                samples.popleft()
            self._used = sum(used for _, used in samples)
        if not samples:
            return BURST_SECONDS, 0.0
        elapsed = now - samples[0][0]
        missing = SAMPLES - 1 - elapsed // SAMPLE_SECONDS
        if missing > 0:
            elapsed += missing * SAMPLE_SECONDS
        return elapsed, self._used
