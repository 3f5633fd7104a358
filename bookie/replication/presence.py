"""When bookies were away, as far as this process has seen: what tells why a ledger is marked.

A mark names bookies that lack something, and not why. Whoever has written it may have seen that
they were away, or have read any of their entries; Apache's auditor and ours write the same.

    the bookie                                      the mark tells
    left before the mark, and came back behind it   that it was away: it has what it had before
    was there, or nobody knows                      that it lacks entries, whichever

Nobody knows of who was there already when this process began, except for the bookie of the process
itself: that was away until then.

Wall clocks of several machines are compared, and two of them hear of a bookie's end at different
times: a mark may be `SLACK_MS` older than what we have seen. An auditor that reads entries between
the first and the last marks again what is lacking, in one of its next checks.
"""

from __future__ import annotations

from typing import Final

from magnetar.bookie.cluster.bookies import Bookies
from magnetar.core.kernel.clock import Clock

SLACK_MS: Final = 10_000


class BookiePresence:
    """See the module's docstring."""

    def __init__(
        self, bookies: Bookies, clock: Clock, bookie_id: str = "", began_ms: int | None = None
    ) -> None:
        """`began_ms` is when the bookie of this process began, if there is one."""
        self._bookies = bookies
        self._clock = clock
        self._began_ms = clock.wall_ms()
        self._there = self._running()
        self._left_ms: dict[str, int] = {}
        self._came_ms: dict[str, int] = {}
        """The last absence of each; of who was there all the time there is none."""
        if began_ms is not None:
            self._left_ms[bookie_id], self._came_ms[bookie_id] = 0, began_ms

    def _running(self) -> set[str]:
        return {*self._bookies.writable, *self._bookies.read_only}

    def changed(self) -> None:
        """The list of bookies is another one."""
        now_ms, running = self._clock.wall_ms(), self._running()
        for gone in self._there - running:
            self._left_ms[gone] = now_ms
            self._came_ms.pop(gone, None)
        for come in running - self._there:
            self._came_ms[come] = now_ms
            self._left_ms.setdefault(come, self._began_ms)
        self._there = running

    def was_away(self, bookie_id: str, marked_ms: int | None) -> bool:
        """Whether a bookie is known to have been away when a ledger was marked, and is back."""
        left_ms, came_ms = self._left_ms.get(bookie_id), self._came_ms.get(bookie_id)
        if left_ms is None or came_ms is None or marked_ms is None:
            return False
        return left_ms - SLACK_MS <= marked_ms <= came_ms
