"""Bookies with many errors, which get no new ledgers for a while. Pure.

Errors are counted by bookie in intervals; one with as many as the threshold is in quarantine from
then on (`checkForFaultyBookies` of `BookKeeper.java`, `bookieErrorThresholdPerInterval` and its
neighbours in `ClientConfiguration.java` of 4.18, which counts until the end of the interval).

Invariant: a threshold of 0 puts nobody into quarantine.
"""

from __future__ import annotations


class Quarantine:
    """See the module's docstring."""

    def __init__(self, threshold: int, interval_seconds: float, seconds: float) -> None:
        self._threshold = threshold
        self._interval_seconds = interval_seconds
        self._seconds = seconds
        self._begun = 0.0
        self._errors: dict[str, int] = {}
        """Of this interval, by bookie."""
        self._until: dict[str, float] = {}

    def failed(self, bookie_id: str, now: float, count: int = 1) -> None:
        """Requests to a bookie have failed."""
        if not self._threshold:
            return
        if now >= self._begun + self._interval_seconds:
            self._begun, self._errors = now, {}
        errors = self._errors[bookie_id] = self._errors.get(bookie_id, 0) + count
        if errors >= self._threshold:
            self._until[bookie_id] = now + self._seconds

    def holds(self, bookie_id: str, now: float) -> bool:
        """Whether a bookie is in quarantine."""
        return now < self._until.get(bookie_id, now)
