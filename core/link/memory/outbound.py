"""The memory for bytes to be sent to all peers, and the queue for it.

It counts every byte that is packed and not taken by the system, and what is reserved for replies
that are being built. Peers that do not read must not take the memory of those that do:

- One reply may have a quarter of what is left, so that each further one that is not received is
  smaller than the one before.
- The last quarter of all is for peers that have shown that they read (`Connection.reads`): by how
  much they have received, or by acknowledging it.
- Replies of known size, such as entries that a bookie reads, claim memory before they are built
  (`claims.py`).
- When less is left, each outbox may hold less before dispatch skips it (`high`). When only the last
  quarter is left, all others are skipped. A peer with more than that waiting, and more than a
  little, is not read either.

A connection that waits is notified when there is memory again, in order, as many at a time as there
is memory for; those that read come first. A peer that holds memory and receives nothing is closed
(`stalls.py`).

Invariants: `used` is the sum over all connections of packed bytes, outboxes and reservations; a
connection that waits is notified in the end, or closed.
"""

from __future__ import annotations

from typing import Final, Protocol

from magnetar.core.link.memory.claims import Claims

SHARE_BYTES_MIN: Final = 1024 * 1024
"""A smaller reply is not worth its round trip, so it waits."""
SHARES: Final = 4
"""The share of the remaining memory that one reply may use."""
PART_OF_PROVEN: Final = 4
"""The part that is reserved for peers that read."""
SMALL_BYTES: Final = 16 * 1024
"""A peer with no more than this waiting is read, however much waits for others."""
OUTBOXES: Final = 8
"""The share of the remaining memory that one outbox may use."""


class BlockedPeer(Protocol):
    """A connection that waits."""

    @property
    def reads(self) -> bool:
        """Whether it may use what is reserved for peers that read."""
        ...

    def relieved(self) -> None:
        """There is memory again."""
        ...


class OutboundMemory:
    """See the module's docstring."""

    __slots__ = (
        "_easy",
        "_kept",
        "_others",
        "_proven",
        "_share_min",
        "_small",
        "_waiting",
        "claims",
        "high",
        "high_max",
        "high_read",
        "limit",
        "used",
    )

    def __init__(self, limit: int, high_max: int) -> None:
        self.limit = limit
        self.used = 0
        self._kept = limit // PART_OF_PROVEN
        self._share_min = min(SHARE_BYTES_MIN, limit // (SHARES * PART_OF_PROVEN))
        self.high_max = min(high_max, (limit - self._kept) // OUTBOXES)
        """The limit of one outbox while there is enough memory."""
        self.high = self.high_max
        """A connection with more waiting gets no deliveries."""
        self.high_read = self.high_max
        """A connection with more waiting is not read."""
        self._small = min(SMALL_BYTES, self.high_max)
        self._easy = limit - self._kept - OUTBOXES * self.high_max
        """While no more than this is used, all limits are the highest."""
        self._proven: dict[BlockedPeer, None] = {}
        """Those that wait and read."""
        self._others: dict[BlockedPeer, None] = {}
        self._waiting = {True: self._proven, False: self._others}
        self.claims = Claims(self)

    def add(self, size: int) -> None:
        """Count bytes that are packed or reserved."""
        self.used += size
        if self.used > self._easy:
            self._set_high()

    def remove(self, size: int) -> None:
        """Release bytes that were sent, or are no longer reserved."""
        self.used -= size
        assert self.used >= 0, "more was sent than was packed"
        if self.high < self.high_max:
            self._set_high()

    def _set_high(self) -> None:
        left = self._left(reads=False)
        self.high = min(self.high_max, left // OUTBOXES) if left > 0 else -1
        self.high_read = max(self.high, self._small)

    def _left(self, *, reads: bool) -> int:
        left = self.limit - self.used
        return left if reads else left - self._kept

    # -- answers --------------------------------------------------------------------------------

    def share(self, *, reads: bool) -> int:
        """The largest reply now; 0 for none, then `wait`."""
        return self._share_of(self._left(reads=reads))

    def _share_of(self, left: int) -> int:
        return max(left // SHARES, self._share_min) if left >= self._share_min else 0

    # -- waiting --------------------------------------------------------------------------------

    def wait(self, who: BlockedPeer) -> None:
        """Notify this connection when there is memory."""
        self.forget(who)
        self._waiting[who.reads][who] = None

    def forget(self, who: BlockedPeer) -> None:
        for waiting in self._waiting.values():
            waiting.pop(who, None)

    def look_again(self) -> None:
        """Update which connections read: they may have received meanwhile."""
        others = self._waiting[False]
        for who in [who for who in others if who.reads]:
            del others[who]
            self._waiting[True][who] = None

    @property
    def short(self) -> bool:
        """Whether a peer waits, or the limit is exceeded."""
        return any(self._waiting.values()) or self.claims.waiting > 0 or self.used > self.limit

    @property
    def may_relieve(self) -> bool:
        """Whether there is memory for a connection that waits."""
        if self.claims.waiting and self.claims.may_grant:
            return True
        proven, others = self._proven, self._others  # no loop: it is asked twice a sweep
        if not (proven or others):
            return False
        return bool((proven and self.share(reads=True)) or (others and self.share(reads=False)))

    def relieve(self) -> None:
        """Notify the first connections that wait, as many as there is memory for."""
        self.claims.grant()
        for reads, waiting in self._waiting.items():
            left = self._left(reads=reads)
            while waiting and (share := self._share_of(left)):
                first = next(iter(waiting))
                del waiting[first]
                first.relieved()
                left -= share
