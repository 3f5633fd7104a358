"""What the link counts."""

from __future__ import annotations

from magnetar.core.kernel.structs import FrozenStruct


class LinkStatistics(FrozenStruct, frozen=True):
    """A snapshot for metrics, logs and tests."""

    connections: int
    accepted: int
    refused: int
    bytes_received: int
    sweeps: int
    longest_pause_seconds: float
    """The longest sweep by the clock: on a busy machine others run meanwhile."""
    longest_own_seconds: float
    """The most CPU time of a sweep."""
