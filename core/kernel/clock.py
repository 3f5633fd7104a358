"""The clock, as a parameter: no other module reads the operating system's time."""

import time
from collections.abc import Callable
from typing import Final, Protocol

thread_seconds: Final = time.thread_time
"""The CPU time of the calling thread. It is for measurements only: nothing is decided by it."""


class Clock(Protocol):
    """The time, as all other modules see it."""

    def monotonic(self) -> float:
        """Seconds that never decrease, for deadlines and durations."""
        ...

    def wall_ms(self) -> int:
        """Milliseconds since 1970, for users and for storage."""
        ...


class SystemClock:
    """The operating system's clock."""

    def __init__(self) -> None:
        self.monotonic: Callable[[], float] = time.monotonic
        """Not wrapped in a method, because the loop calls it several times a sweep."""

    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000
