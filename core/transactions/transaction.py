"""One transaction as its coordinator knows it: its state, its logs, its promises. Pure.

    EMPTY       its writer is known; it has no participants
    ONGOING     it has logs, or promises
    COMMITTING  decided, and stored: markers are being written, promises fulfilled
    ABORTING    likewise, but its promises are void
    COMMITTED   all is done; the next one begins here
    ABORTED     likewise

Invariant: the state of a transaction is the one that was stored last.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Final

from msgspec import Struct


class TransactionState(enum.Enum):
    EMPTY = "empty"
    ONGOING = "ongoing"
    COMMITTING = "committing"
    ABORTING = "aborting"
    COMMITTED = "committed"
    ABORTED = "aborted"


DECIDED: Final = (TransactionState.COMMITTING, TransactionState.ABORTING)
"""Nothing new comes in, and the end is not everywhere yet."""
AT_REST: Final[Mapping[TransactionState, TransactionState]] = {
    TransactionState.COMMITTING: TransactionState.COMMITTED,
    TransactionState.ABORTING: TransactionState.ABORTED,
}
"""What comes of those."""


class Promise(Struct, frozen=True):
    """Something to be done if it is committed; its party knows what it means."""

    to: str
    says: bytes


class Transaction(Struct, frozen=True):
    """See the module's docstring."""

    name: str
    writer: int
    epoch: int
    """Raised when another writer takes the name over: writes with a lower one are fenced."""
    timeout_ms: int
    epoch_before: int = -1
    """With which its writer asked for the present epoch: the answer may not have reached it."""
    state: TransactionState = TransactionState.EMPTY
    logs: tuple[str, ...] = ()
    """Full names of topics that have entries of it, or may have."""
    parties: tuple[str, ...] = ()
    """To whom promises may be made."""
    promises: tuple[Promise, ...] = ()
    began_ms: int = 0
    changed_ms: int = 0

    @property
    def decided(self) -> bool:
        return self.state in DECIDED

    def expires_ms(self) -> int:
        """When it has been going on for too long."""
        return self.began_ms + self.timeout_ms
