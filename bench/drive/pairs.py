"""The row of a table that says what pairs of rounds have shown.

A pair is what a message took in two rounds that ran one after the other, so that what else the
machine does falls on both. The median of the pairs' ratios is the figure; the quartiles and the
extremes say how far it can be trusted.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence


def row(name: str, found: Sequence[tuple[float, float]]) -> str:
    """The medians of both, and of the second over the first the median, quartiles and extremes."""
    ratios = sorted(second / first for first, second in found)
    quarters = statistics.quantiles(ratios, n=4, method="inclusive") if ratios[1:] else ratios * 3
    first, second = (statistics.median(column) for column in zip(*found, strict=True))
    return (
        f"| {name} | {first:.3f} | {second:.3f} | {quarters[1]:.3f} | "
        f"{quarters[0]:.3f} to {quarters[2]:.3f} | {ratios[0]:.3f} to {ratios[-1]:.3f} |"
    )
