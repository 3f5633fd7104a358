"""What a log says of itself in numbers: how much is in it, and how long storage takes. Pure.

Latencies and sizes are counted in Pulsar's own buckets, for runs and not for entries, so
that a message costs nothing: all entries of a run took as long as the run, and count as of its mean
size (which is true where a producer sends alike).

Invariant: each list of counts holds every entry that was stored, once.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Final

from msgspec import Struct

LATENCY_SECONDS: Final = (0.0005, 0.001, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 1.0)
SIZE_BYTES: Final = (128, 512, 1024, 2048, 4096, 16 * 1024, 100 * 1024, 1024 * 1024)


class LedgerStatistics(Struct, frozen=True):
    """A snapshot for internal stats."""

    entries_added: int
    entries: int
    size: int
    open_entries: int
    open_size: int
    """Of the ledger being written, if there is one."""
    opened_ms: int
    state: str
    pending_appends: int


class WriteStatistics:
    """Counts per bucket, those beyond the last bound at the end. Of one managed ledger."""

    __slots__ = ("bytes", "latencies", "ledger_latencies", "ledger_seconds", "seconds", "sizes")

    def __init__(self) -> None:
        self.latencies = [0] * (len(LATENCY_SECONDS) + 1)
        """From the moment an entry was brought."""
        self.ledger_latencies = [0] * (len(LATENCY_SECONDS) + 1)
        """From the moment it was given to storage: it may have waited for a ledger."""
        self.sizes = [0] * (len(SIZE_BYTES) + 1)
        self.seconds = self.ledger_seconds = 0.0
        """Of all entries together."""
        self.bytes = 0

    def stored(self, entries: int, size: int, seconds: float, ledger_seconds: float) -> None:
        """A run is stored, so long after it was brought, and given to storage."""
        self.latencies[bisect_left(LATENCY_SECONDS, seconds)] += entries
        self.ledger_latencies[bisect_left(LATENCY_SECONDS, ledger_seconds)] += entries
        self.sizes[bisect_left(SIZE_BYTES, size / entries)] += entries
        self.seconds += seconds * entries
        self.ledger_seconds += ledger_seconds * entries
        self.bytes += size

    @property
    def entries(self) -> int:
        return sum(self.sizes)
