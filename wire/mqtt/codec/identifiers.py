"""Sequences of packet identifiers. Pure.

Most clients use identifiers in turn, so those of a run are nearly always a range: it is made,
compared, and taken apart in one step, whatever its length.

Invariant: two or more consecutive identifiers that are parsed together are a range.
"""

from __future__ import annotations

from collections.abc import Sequence


def as_range(ids: list[int]) -> Sequence[int]:
    """The same identifiers, as a range if they are two or more consecutive ones."""
    count = len(ids)
    if count > 1 and ids[-1] - ids[0] == count - 1:
        found = range(ids[0], ids[0] + count)
        if ids == list(found):
            return found
    return ids
