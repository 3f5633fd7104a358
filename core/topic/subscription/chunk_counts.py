"""Counts chunks of large messages (PIP-37) delivered to one consumer, for its statistics.

Only an entry's metadata says whether it is a chunk, and entries are not parsed on delivery. All
chunks but the last one of a message are large. So only slices of large entries are examined, and
what follows a chunk until the last one: for small messages this costs one comparison per slice.

Not here: the choice of a consumer for a chunk (`core/dispatch/chunks.py`).
"""

from __future__ import annotations

from typing import Final

from magnetar.core.entry.forms import NATIVE
from magnetar.core.ledger.read.tail_cache import Slice

MEAN_BYTES_MIN: Final = 16 * 1024
"""Slices of smaller entries are not examined."""


class ChunksOut:
    """See the module's docstring."""

    __slots__ = ("_amid", "count")

    def __init__(self) -> None:
        self.count = 0
        self._amid = False
        """Further chunks of a message follow."""

    def note(self, part: Slice, size: int) -> None:
        """These entries, of so many bytes, are delivered."""
        if not self._amid and size < MEAN_BYTES_MIN * len(part.payloads):
            return
        for at, payload in enumerate(part.payloads):
            if part.counts is not None and part.counts[at] != 1:
                continue
            found = NATIVE.chunk(payload)
            if found is not None:
                self.count += 1
                self._amid = found.chunk_id < found.chunks - 1
