"""When connections that add are not read, and when their adds are refused.

    state       connections that add    leaves for
    OPEN        are read                HELD when storage is congested, or `journal_queue_size`
                                        adds wait for their sync
    HELD        are not read            OPEN when neither is so any more; REFUSING after
                                        `db_storage_max_throttle_time_ms`
    REFUSING    are read; their adds    OPEN, likewise
                are TOO_MANY_REQUESTS

In Apache's bookie the thread that adds waits for room in the journal's queue and in the write
cache, and after that time the add is refused (`SingleDirectoryDbLedgerStorage.
triggerFlushAndAddEntry` of 4.18). Here nothing waits but unread bytes. A client that is refused
knows where it stands, and what it reads and fences over that connection is served.

What had been received when a connection was held is stored, up to
`max_pending_add_requests_per_thread` adds; more are refused, but for urgent ones.

Invariant: adds are refused for lack of room only while storage has none.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from magnetar.bookie.requests.in_progress import InProgress
from magnetar.bookie.requests.limits import RequestLimits
from magnetar.core.kernel.errors import Overloaded
from magnetar.core.ports.group_commit import GroupCommit


class BackPressure:
    """The storage of a bookie as the link sees it, a `GroupCommit`. The link settles each second
    at least, so the state is that of a second ago or newer.
    """

    def __init__(
        self,
        storage: GroupCommit,
        adds: InProgress,
        limits: RequestLimits,
        now: Callable[[], float],
    ) -> None:
        self.congested = False
        """Whether the state is HELD."""
        self.held = self.refused = 0
        """Times since the start that connections were not read, and adds that were refused."""
        self._storage = storage
        self._adds = adds
        self._queue_max = limits.journal_queue_size or math.inf
        self._adds_max = self._queue_max + limits.max_pending_add_requests_per_thread
        self._held_seconds_max = limits.db_storage_max_throttle_time_ms / 1000
        self._now = now
        self._short_since = -1.0
        """When there was no room at first; negative if there is."""
        self._refuses = False

    def begin_group(self) -> None:
        self._storage.begin_group()

    def flush_group(self) -> None:
        """The end of a sweep: adds have come, or were stored."""
        self._storage.flush_group()
        if not (self._storage.congested or self._adds.count >= self._queue_max):
            self.congested = self._refuses = False
            self._short_since = -1.0
            return
        if self._short_since < 0:
            self._short_since = self._now()
            self.held += 1
        self._refuses = self._now() - self._short_since >= self._held_seconds_max
        self.congested = not self._refuses

    def refusal(self, count: int, *, urgent: bool) -> Overloaded | None:
        """The error of so many adds that come now; None if they may be stored."""
        if self._refuses or (self._adds.count >= self._adds_max and not urgent):
            self.refused += count
            return Overloaded("too many adds wait for storage")
        return None
