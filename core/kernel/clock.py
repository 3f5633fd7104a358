"""Time as a parameter: the one module that asks the operating system what time it is."""

import time
from typing import Protocol


class Clock(Protocol):
    """What the rest of the house knows of time."""

    def monotonic(self) -> float:
        """Seconds that never go back: for deadlines and durations."""
        ...

    def wall_ms(self) -> int:
        """Milliseconds since 1970: for what users see and what is stored."""
        ...


class SystemClock:
    """The real one."""

    monotonic = staticmethod(time.monotonic)
    """As it is: the loop asks several times a sweep, and a method around it costs another call."""

    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000
