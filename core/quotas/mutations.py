"""The mutations of one request, such as partitions that it creates, against a limit (KIP-599).

A strict request is refused what exceeds the limit, and its connection is held; a client that does
not know that error gets everything, and is held afterwards.

Invariant: nothing is refused while the bucket is not empty, however much is asked for.
"""

from __future__ import annotations

from collections.abc import Callable

from magnetar.core.kernel.clock import Clock
from magnetar.core.kernel.throttle import Throttle


class MutationQuota:
    """See the module's docstring."""

    __slots__ = ("_bucket", "_clock", "_hold", "_strict")

    def __init__(
        self, bucket: Throttle, clock: Clock, hold: Callable[[float], object], *, strict: bool
    ) -> None:
        self._bucket = bucket
        self._clock = clock
        self._hold = hold
        self._strict = strict

    def take(self, count: int) -> bool:
        """Count mutations; False if they are refused, and then they do not count."""
        if self._strict and self._held():
            return False
        self._bucket.spend(count, 0)
        if not self._strict:
            self._held()
        return True

    def _held(self) -> bool:
        """Hold the connection if the bucket is empty; whether it is."""
        wait = self._bucket.wait_seconds(self._clock.monotonic())
        if wait > 0:
            self._hold(wait)
        return wait > 0
