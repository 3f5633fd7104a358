"""One transaction as its coordinator knows it: its state, its logs, its pending commits. Pure.

    EMPTY       its writer is known; it has no logs and no participants
    ONGOING     it has logs, participants or both
    COMMITTING  the decision is stored; markers are written, pending commits carried out
    ABORTING    the decision is stored; markers are written, pending commits dropped
    COMMITTED   every marker and every pending commit is stored; the next transaction begins here
    ABORTED     every marker is stored; the next transaction begins here

Invariant: the state of a transaction is the one that was stored last.
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterable, Mapping
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace


class TransactionState(enum.Enum):
    EMPTY = "empty"
    ONGOING = "ongoing"
    COMMITTING = "committing"
    ABORTING = "aborting"
    COMMITTED = "committed"
    ABORTED = "aborted"


NAME_BYTES: Final = 150
"""What a name takes in memory, beside its letters, which are counted in UTF-8."""
DECIDED: Final = (TransactionState.COMMITTING, TransactionState.ABORTING)
"""States in which nothing is added, and the outcome is being carried out."""
AT_REST: Final[Mapping[TransactionState, TransactionState]] = {
    TransactionState.COMMITTING: TransactionState.COMMITTED,
    TransactionState.ABORTING: TransactionState.ABORTED,
}
"""The state that follows once every log and participant has the outcome."""


class PendingCommit(Struct, frozen=True):
    """The data that a participant commits with the transaction, in its own encoding."""

    participant: str = field(name="to")
    data: bytes = field(name="says")


class Transaction(Struct, frozen=True):
    """See the module's docstring."""

    name: str
    writer: int
    epoch: int
    """Raised when another writer takes over the name, which fences writes with a lower epoch."""
    timeout_ms: int
    previous_epoch: int = field(default=-1, name="epoch_before")
    """The epoch before the last raise: its writer may not have received the new one (KIP-360)."""
    state: TransactionState = TransactionState.EMPTY
    logs: tuple[str, ...] = ()
    """Full names of topics that may have entries of it."""
    participants: tuple[str, ...] = field(default=(), name="parties")
    """Groups that may have pending commits; or subscriptions (`topic_transactions.py`)."""
    pending: tuple[PendingCommit, ...] = field(default=(), name="promises")
    began_ms: int = 0
    changed_ms: int = 0
    sink: str = ""
    """Of an attempt to write a batch of a sink, which alone decides it (`sinks.py`)."""
    batch: int = -1
    """That batch."""
    spellings: Mapping[str, str] = {}
    """Of topics that its client has named otherwise than in full, for it to find them by."""
    owner: str = ""
    """Who began it, if only he may use it."""

    @property
    def decided(self) -> bool:
        return self.state in DECIDED

    def extended(
        self,
        now_ms: int,
        logs: Iterable[str],
        participants: Iterable[str],
        spellings: Mapping[str, str],
        *,
        pending: Iterable[PendingCommit] = (),
    ) -> Transaction:
        """With more logs and participants; the first ones begin the transaction."""
        assert not self.decided, "nothing new comes into what is decided"
        goes_on = self.state is TransactionState.ONGOING
        return replace(
            self,
            state=TransactionState.ONGOING,
            began_ms=self.began_ms if goes_on else now_ms,
            logs=tuple(dict.fromkeys((*self.logs, *logs))),
            participants=tuple(dict.fromkeys((*self.participants, *participants))),
            pending=(*self.pending, *pending),
            spellings={**self.spellings, **spellings},
        )

    def expires_ms(self) -> int:
        """The wall clock time, in ms, at which it is aborted if it is still ongoing."""
        return self.began_ms + self.timeout_ms

    def names_bytes(self) -> int:
        """What the names of its logs and participants take in memory."""
        named = self.logs, self.participants, self.spellings, self.spellings.values()
        return sum(map(bytes_of_names, named))


def bytes_of_names(names: Collection[str]) -> int:
    return sum(map(len, map(str.encode, names))) + NAME_BYTES * len(names)


def writer_of(found: Transaction) -> int:
    return found.writer
