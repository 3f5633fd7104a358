"""A clock that stands still until a test moves it."""


class FixedClock:
    """A `Clock` whose two times move together, by `forward` only."""

    def __init__(self, wall_ms: int = 1_700_000_000_000) -> None:
        self._wall_ms = wall_ms
        self._seconds = 0.0

    def monotonic(self) -> float:
        return self._seconds

    def wall_ms(self) -> int:
        return self._wall_ms

    def forward(self, seconds: float) -> None:
        self._seconds += seconds
        self._wall_ms += round(seconds * 1000)
