"""How many parts of large messages went out to one consumer, for its statistics.

Entries are not taken apart on their way out, and whether one is a part of something larger stands
inside it. Parts are large, but for the last one of a message. So only slices of large entries are
looked at, and whatever follows a part until the last part is seen: for small messages this is one
comparison per slice.

Not here: who gets which part (`core.dispatch.chunks`).
"""

from __future__ import annotations

from typing import Final

from magnetar.core.entry.forms import NATIVE
from magnetar.core.ledger.read.tail_cache import Slice

MEAN_BYTES_MIN: Final = 16 * 1024
"""Slices of smaller entries are not looked at."""


class ChunksOut:
    """See the module's docstring."""

    __slots__ = ("_amid", "count")

    def __init__(self) -> None:
        self.count = 0
        self._amid = False
        """Further parts of a message are still to come."""

    def note(self, part: Slice, size: int) -> None:
        """These entries, of so many bytes, went out."""
        if not self._amid and size < MEAN_BYTES_MIN * len(part.payloads):
            return
        for at, payload in enumerate(part.payloads):
            if part.counts is not None and part.counts[at] != 1:
                continue
            found = NATIVE.chunk(payload)
            if found is not None:
                self.count += 1
                self._amid = found.chunk_id < found.chunks - 1
