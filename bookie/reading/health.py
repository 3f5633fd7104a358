"""What a reader has learned of bookies: which to ask last, and which do not send batches. Pure.

Batched reads came with BookKeeper 4.17 (BP-62). An older bookie closes a connection on which it is
asked for one, and says nothing; so a bookie that ends a connection before its first batch is asked
for single entries from then on.
"""

from __future__ import annotations

from collections.abc import Sequence


class BookieHealth:
    """See the module's docstring."""

    def __init__(self, avoid_seconds: float) -> None:
        self._avoid_seconds = avoid_seconds
        self._avoided: dict[str, float] = {}
        """Until when."""
        self._batches: dict[str, bool] = {}

    def avoid(self, bookie: str, now: float) -> None:
        """It was slow, or could not be reached."""
        self._avoided[bookie] = now + self._avoid_seconds

    def forgive(self, bookie: str) -> None:
        """It has answered."""
        self._avoided.pop(bookie, None)

    def ordered(self, bookies: Sequence[str], now: float) -> list[str]:
        """The same bookies, those to avoid last."""
        return sorted(bookies, key=lambda bookie: self._avoided.get(bookie, 0.0) > now)

    def may_send_batches(self, bookie: str) -> bool:
        return self._batches.get(bookie, True)

    def sent_batch(self, bookie: str) -> None:
        self._batches[bookie] = True

    def sends_no_batches(self, bookie: str) -> bool:
        """It ended a connection on which it was asked for one: whether that may be why."""
        if self._batches.get(bookie):
            return False
        self._batches[bookie] = False
        return True
