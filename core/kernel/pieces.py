"""Bytes in pieces. Pure."""

from __future__ import annotations

from collections.abc import Sequence


def size_of(pieces: Sequence[bytes]) -> int:
    """The size of all pieces together. Mostly there is one, and `sum` costs more than its answer is
    worth where that is asked for each run.
    """
    if len(pieces) == 1:
        return len(pieces[0])
    return sum(map(len, pieces))
