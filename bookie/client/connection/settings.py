"""Limits of connections to bookies, with Apache's defaults where it has them."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

MEBIBYTE: Final = 1024 * 1024


class ConnectionSettings(Struct, frozen=True):
    """See the module's docstring (`ClientConfiguration.java` of 4.18)."""

    connect_seconds: float = 10.0
    """`clientConnectTimeoutMillis`."""
    answer_seconds: float = 5.0
    """`addEntryTimeoutSec`, `readEntryTimeoutSec`."""
    expire_seconds: float = 0.25
    """How often it is checked what has not been answered in time."""
    retry_seconds_min: float = 0.1
    retry_seconds_max: float = 10.0
    """How long a bookie that could not be reached is not tried again: doubled from the first to
    the second. What is asked of it meanwhile fails at once.
    """
    adds_bytes_max: int = 64 * MEBIBYTE
    """Adds to one bookie that it has not answered. One more fails: the bookie does not keep up."""
    error_threshold: int = 0
    """`bookieErrorThresholdPerInterval`: a bookie that fails so often in an interval gets no new
    ledgers for a while. 0: never, as Apache without `enableBookieHealthCheck`.
    """
    error_interval_seconds: float = 60.0
    """`bookieHealthCheckInterval`."""
    error_quarantine_seconds: float = 1800.0
    """`bookieQuarantineTime`."""
