"""Since when bookies run, as far as this process has seen: what tells why a ledger is marked.

A mark names bookies that lack something, and not why. Whoever has written it may have seen that
they were away, or have read any of their entries; Apache's auditor and ours write the same.

    the bookie, since the mark was written         the mark tells
    has come (back)                                that it was away: it has what it had before
    was there all the time, or nobody knows        that it lacks entries, whichever

Wall clocks of several machines are compared. If ours is behind the auditor's, more is read than had
to be; if it is ahead, what a bookie lacks is found with the auditor's next mark, which is newer.
"""

from __future__ import annotations

from magnetar.bookie.cluster.bookies import Bookies
from magnetar.core.kernel.clock import Clock


class BookiePresence:
    """See the module's docstring."""

    def __init__(self, bookies: Bookies, clock: Clock) -> None:
        self._bookies = bookies
        self._clock = clock
        self._came_ms: dict[str, int | None] = dict.fromkeys(self._running())
        """When bookies that run came; None for those that were there before we looked."""

    def _running(self) -> set[str]:
        return {*self._bookies.writable, *self._bookies.read_only}

    def changed(self) -> None:
        """The list of bookies is another one."""
        now_ms, running = self._clock.wall_ms(), self._running()
        self._came_ms = {each: self._came_ms.get(each, now_ms) for each in running}

    def has_come_since(self, bookie_id: str, marked_ms: int | None) -> bool:
        """Whether a bookie is known to have been away when a ledger was marked."""
        came_ms = self._came_ms.get(bookie_id)
        return came_ms is not None and marked_ms is not None and marked_ms <= came_ms
