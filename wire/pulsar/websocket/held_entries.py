"""The memory for entries that wait in WebSockets until their peers permit them. Pure.

Permits bound the messages that a peer gets, not what is fetched for it: of a pulled topic one entry
of each partition waits, and of a batch what is beyond the permit. Peers that permit nothing could
so hold any amount. The limit is for all WebSockets of a server together.

When more is held than the limit, the WebSocket that holds the most is closed, with the code of RFC
6455's registry for "try again later". What it held was not acknowledged, so it is delivered again.
Others are not disturbed, however much that one fetches.

Invariant: `used` is the sum over all holders, and at most `limit` once `count` has returned.
"""

from __future__ import annotations

from typing import Protocol


class EntryHolder(Protocol):
    """A WebSocket in which entries wait."""

    def crowded_out(self) -> None:
        """Close it and drop what it holds: there is too much of all."""
        ...


class HeldEntries:
    """See the module's docstring."""

    __slots__ = ("_of_each", "limit", "used")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.used = 0
        self._of_each: dict[EntryHolder, int] = {}

    def count(self, holder: EntryHolder, size: int) -> None:
        """Note how many bytes a holder has now."""
        self.used += size - self._of_each.pop(holder, 0)
        if size:
            self._of_each[holder] = size
        while self.used > self.limit:
            largest = max(self._of_each, key=self._of_each.__getitem__)
            self.used -= self._of_each.pop(largest)
            largest.crowded_out()
