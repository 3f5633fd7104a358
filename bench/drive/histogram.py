"""Latency histograms as `pulsarload` prints them.

Pure. A histogram is pairs of a bucket's upper bound in nanoseconds and a count. Rounds are
joined by adding their counts, never by averaging their quantiles.
"""

from collections import Counter
from collections.abc import Iterable

Buckets = list[tuple[int, int]]


def merge(histograms: Iterable[Buckets]) -> Buckets:
    total: Counter[int] = Counter()
    for buckets in histograms:
        for upper_ns, count in buckets:
            total[upper_ns] += count
    return sorted(total.items())


def quantile_ms(buckets: Buckets, quantile: float) -> float:
    """Return the upper bound of the bucket that holds the wanted sample; 0 when there is none."""
    count = sum(held for _, held in buckets)
    wanted = min(int(quantile * count), count - 1)
    passed = 0
    for upper_ns, held in buckets:
        passed += held
        if passed > wanted:
            return upper_ns / 1e6
    return 0.0
