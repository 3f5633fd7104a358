"""What follows a log as it grows: state that is derived from its entries."""

from __future__ import annotations

from typing import Protocol

from magnetar.core.ledger.log.chain import Position


class Follower(Protocol):
    """A fold (`core/ledger/fold/fold.py`), as the log sees it."""

    counts: bool
    """Whether to call `advanced`."""

    def advanced(self) -> None:
        """A run is stored. Plain call."""
        ...

    async def cover(self, position: Position) -> None:
        """Store the state derived from entries up to `position`: they are about to be deleted."""
        ...
