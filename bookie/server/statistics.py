"""Snapshots for metrics, logs, admin and tests; and the histogram that fills them."""

from __future__ import annotations

from typing import Final

from magnetar.core.kernel.structs import FrozenStruct

LATENCY_SECONDS: Final[tuple[float, ...]] = (
    0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 1.0, 10.0,
)  # fmt: skip


class Histogram:
    """Counts per bucket, Prometheus' way: `bounds` are upper ends, the last count is beyond all."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: tuple[float, ...], counts: list[int], total: float = 0.0) -> None:
        self.bounds = bounds
        self.counts = counts
        self.total = total

    @classmethod
    def of_latency(cls) -> Histogram:
        return cls(LATENCY_SECONDS, [0] * (len(LATENCY_SECONDS) + 1))

    def add(self, value: float) -> None:
        bounds = self.bounds
        place, end = 0, len(bounds)
        while place < end and value > bounds[place]:  # most are among the first
            place += 1
        self.counts[place] += 1
        self.total += value

    def copy(self) -> Histogram:
        return Histogram(self.bounds, list(self.counts), self.total)

    @property
    def count(self) -> int:
        return sum(self.counts)


class Counters:
    """Plain integers, summed on the loop."""

    __slots__ = (
        "bytes_added", "bytes_read", "entries_added", "entries_read",
        "from_disk", "from_read_cache", "from_write_cache",
    )  # fmt: skip

    def __init__(self) -> None:
        self.entries_added = self.bytes_added = self.entries_read = self.bytes_read = 0
        self.from_write_cache = self.from_read_cache = self.from_disk = 0


class BookieStatistics(FrozenStruct, frozen=True):
    """One bookie at one moment. Counters count since the start."""

    writable: bool
    congested: bool
    entries_added: int
    bytes_added: int
    entries_read: int
    bytes_read: int
    reads_from_write_cache: int
    reads_from_read_cache: int
    reads_from_disk: int
    journal_groups: int
    journal_bytes: int
    journal_queue_bytes: int
    journal_sync_seconds: Histogram
    journal_direct: bool
    write_cache_bytes: int
    write_cache_entries: int
    read_cache_bytes: int
    checkpoints: int
    checkpoint_seconds: Histogram
    entry_logs: int
    entry_log_bytes: int
    entry_log_live_bytes: int
    ledgers_deleted: int
    entry_logs_unlinked: int
    bytes_compacted: int
    scrubbed_bytes: int
    damaged_ranges: int
    damaged_entries: int
    disk_used_part: float
    disk_free_bytes: int
