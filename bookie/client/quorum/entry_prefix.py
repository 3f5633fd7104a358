"""Entries of which the first are wanted, as many as there is room for, and which come in any order.
Pure.

Nobody knows the size of an entry before it comes. So what was asked for may be far more than has
room, and what cannot be among the first ones any more is dropped as it comes.

Invariant: what is kept takes `bytes_max`, or is the first entry alone.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from magnetar.core.kernel.errors import BrokerError


class EntryPrefix:
    """See the module's docstring. `entry_ids` are in order."""

    def __init__(self, entry_ids: Sequence[int], bytes_max: float) -> None:
        self.largest = 0
        """Bytes of the largest entry that has come, whether it was kept or not."""
        self._ids = entry_ids
        self._wanted = len(entry_ids)
        """How many of the ids are; those behind are not."""
        self._bytes_max = bytes_max
        self._bytes = 0
        self._found: dict[int, bytes | BrokerError] = {}

    @property
    def complete(self) -> bool:
        """Whether all that are wanted have come."""
        return len(self._found) == self._wanted

    def missing(self) -> list[int]:
        """Those that are wanted and have not come."""
        return [each for each in self._ids[: self._wanted] if each not in self._found]

    def put(self, entry_id: int, found: bytes | BrokerError) -> None:
        """One has come, or cannot be read: then those behind it are not wanted."""
        place = bisect_left(self._ids, entry_id)
        if isinstance(found, BrokerError):
            if place < self._wanted:
                self._found[entry_id] = found
                self._end_behind(place + 1)
            return
        self.largest = max(self.largest, len(found))
        if place >= self._wanted:
            return
        self._found[entry_id] = found
        self._bytes += len(found)
        while self._bytes > self._bytes_max and (last := max(self._found)) != self._ids[0]:
            self._end_behind(bisect_left(self._ids, last))

    def _end_behind(self, wanted: int) -> None:
        for entry_id in self._ids[wanted : self._wanted]:
            dropped = self._found.pop(entry_id, b"")
            if isinstance(dropped, bytes):
                self._bytes -= len(dropped)
        self._wanted = wanted

    def taken(self) -> tuple[list[bytes], BrokerError | None]:
        """The first entries, and why the next one cannot be read if that is what ends them."""
        assert self.complete
        entries: list[bytes] = []
        for entry_id in self._ids[: self._wanted]:
            found = self._found[entry_id]
            if isinstance(found, BrokerError):
                return entries, found
            entries.append(found)
        return entries, None
