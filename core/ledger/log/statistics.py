"""Statistics of a log: its size, and how long its writes take. Pure.

Latencies and sizes are counted in Pulsar's buckets (`ManagedLedgerMBeanImpl.java` of 4.2), once for
each run, so that a message costs nothing: all entries of a run count with the latency of the run
and the mean of its sizes.

Invariant: each list of counts holds every stored entry once.
"""

from __future__ import annotations

from typing import Final

from magnetar.core.kernel.structs import FrozenStruct

LATENCY_SECONDS: Final[tuple[float, ...]] = (0.0005, 0.001, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 1.0)
SIZE_BYTES: Final[tuple[float, ...]] = (
    128.0, 512.0, 1024.0, 2048.0, 4096.0, 16 * 1024.0, 100 * 1024.0, 1024 * 1024.0,
)  # fmt: skip


class LedgerStatistics(FrozenStruct, frozen=True):
    """A snapshot for internal stats."""

    entries_added: int
    entries: int
    size: int
    open_entries: int
    open_size: int
    """Bytes in the ledger being written; 0 if there is none."""
    opened_ms: int
    state: str
    pending_appends: int


class WriteStatistics:
    """Counts per bucket, for one managed ledger; the last bucket has no bound."""

    __slots__ = ("bytes", "latencies", "ledger_latencies", "ledger_seconds", "seconds", "sizes")

    def __init__(self) -> None:
        self.latencies = [0] * (len(LATENCY_SECONDS) + 1)
        """Measured from the append."""
        self.ledger_latencies = [0] * (len(LATENCY_SECONDS) + 1)
        """Measured from the write to storage: an append may wait for a ledger before."""
        self.sizes = [0] * (len(SIZE_BYTES) + 1)
        self.seconds = self.ledger_seconds = 0.0
        """Sums over all entries."""
        self.bytes = 0

    def stored(self, entries: int, size: int, seconds: float, ledger_seconds: float) -> None:
        """A run is stored; the times since its append and since its write."""
        self.latencies[_bucket(LATENCY_SECONDS, seconds)] += entries
        self.ledger_latencies[_bucket(LATENCY_SECONDS, ledger_seconds)] += entries
        self.sizes[_bucket(SIZE_BYTES, size / entries)] += entries
        self.seconds += seconds * entries
        self.ledger_seconds += ledger_seconds * entries
        self.bytes += size

    @property
    def entries(self) -> int:
        return sum(self.sizes)


def _bucket(bounds: tuple[float, ...], value: float) -> int:
    """The place of a value. Most are small: that is found sooner from the front than by halves."""
    place, end = 0, len(bounds)
    while place < end and value > bounds[place]:
        place += 1
    return place
