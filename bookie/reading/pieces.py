"""One piece of a range that is read: consecutive entries that are asked for together. Pure.

    asked -> whole                            a bookie sent all of it
          -> asked, from where it ended       it sent a part
          -> asked, the next bookie           it did not have the next entry, or not intact; it was
                                              slow; it could not be reached
          -> failed                           no bookie is left

Invariant: `payloads` are those of entries up to `next`, exclusive, that were not taken yet.
"""

from __future__ import annotations

from collections.abc import Sequence

from magnetar.bookie.reading.errors import Answer, Trouble, UnreadEntry, unread


class RangePiece:
    """See the module's docstring."""

    __slots__ = ("answers", "broken", "error", "last", "next", "order", "payloads", "waiting")

    def __init__(self, first: int, last: int, order: Sequence[str]) -> None:
        self.next = first
        self.last = last
        self.order = order
        """The bookies, in the order in which to ask them."""
        self.payloads: list[bytes] = []
        self.answers: dict[str, Answer] = {}
        """Of bookies that did not give the entry `next`."""
        self.waiting: dict[str, float] = {}
        """Bookies that have been asked, and when."""
        self.broken: set[str] = set()
        """Bookies whose connection ended while it was asked for: they are asked once more."""
        self.error: UnreadEntry | None = None

    @property
    def whole(self) -> bool:
        return self.next > self.last

    def candidate(self) -> str | None:
        """The bookie to ask next."""
        for bookie in self.order:
            if bookie not in self.answers and bookie not in self.waiting:
                return bookie
        return None

    def take(self, first: int, payloads: Sequence[bytes]) -> bool:
        """Take entries from `first` on, of which the first may be here already; whether any was
        new. What bookies said of the entry before means nothing for the next one.
        """
        new = payloads[self.next - first : self.last + 1 - first]
        if not new:
            return False
        self.payloads += new
        self.next += len(new)
        self.answers = {
            bookie: answer
            for bookie, answer in self.answers.items()
            if answer.trouble is Trouble.UNREACHABLE
        }
        return True

    def refused(self, bookie: str, entry_id: int, answer: Answer) -> None:
        """A bookie did not give this entry."""
        if entry_id == self.next:
            self.answers[bookie] = answer

    def fail(self, ledger_id: int) -> None:
        self.error = unread(ledger_id, self.next, self.answers)
