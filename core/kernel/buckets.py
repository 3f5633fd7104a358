"""The buckets of a histogram: each bound is the upper end of one, and the last has none. Pure."""

from __future__ import annotations


def bucket_of(bounds: tuple[float, ...], value: float) -> int:
    """The place of a value. Most are small: that is found sooner from the front than by halves."""
    place, end = 0, len(bounds)
    while place < end and value > bounds[place]:
        place += 1
    return place
