"""What the answers of bookies prove to a client that recovers a ledger. Pure.

A recovery fences the last segment's bookies, which also tell how far the ledger was confirmed, and
then reads entry by entry beyond that, until one certainly was never confirmed
(`ReadLastConfirmedOp`, `LedgerRecoveryOp`, `ListenerBasedPendingReadOp` of BookKeeper 4.18). Both
need to know when the answers are enough, and when they never will be: a hung bookie must not stop a
recovery (#1067), and an undecided one must not be guessed.

Invariants, as long as a bookie's "no such entry" is a promise that it will not have it either:
- When `Fencing` is covered, no add of the old writer can reach its ack quorum any more.
- An entry that is `MISSING` was never confirmed; one that was confirmed is `FOUND` or undecided.
- The ledger ends at `last_confirmed` or later, and never before the last segment begins (#2615: an
  empty last segment would make a recovery write the one before again).
"""

from __future__ import annotations

import enum
from typing import Final

from magnetar.bookie.client.quorum.striping import Striping
from magnetar.bookie.format.entries import DigestHeader


class Proof(enum.Enum):
    """What is known of an entry, or of a fence."""

    UNDECIDED = "undecided"
    """More answers may decide it."""
    FOUND = "found"
    MISSING = "missing"
    LOST = "lost"
    """All have answered, and it is not decided: the recovery fails, and may be tried again."""


class Fencing:
    """The answers to fencing reads of the last entry."""

    def __init__(self, striping: Striping, segment_first: int) -> None:
        self._striping = striping
        self._answered: set[int] = set()
        self._failed: set[int] = set()
        self.last_confirmed = segment_first - 1
        self.length_told = 0
        """The length in the entry that told of `last_confirmed`: it may be that of more entries."""

    def fenced(self, position: int, last: DigestHeader | None) -> None:
        """A bookie is fenced; `last` is its last entry, if it has one that is intact.

        The LAC in it is what the writer knew when it sent the entry. The length in it is that of
        the ledger up to the entry itself, which may not be recovered; so the ledger's length is to
        be taken from the last entry that is.
        """
        self._answered.add(position)
        if last is not None and last.last_confirmed > self.last_confirmed:
            self.last_confirmed, self.length_told = last.last_confirmed, last.length

    def failed(self, position: int) -> None:
        """A bookie could not be asked, or did not answer."""
        self._failed.add(position)

    @property
    def proof(self) -> Proof:
        if self._striping.is_covered(self._answered):
            return Proof.FOUND
        if len(self._answered | self._failed) == self._striping.ensemble:
            return Proof.LOST
        return Proof.UNDECIDED


class RecoveryRead:
    """The answers to recovery reads of one entry, which fence as well (#2614)."""

    def __init__(self, striping: Striping, entry_id: int) -> None:
        self._striping = striping
        self.write_set: Final = striping.write_set(entry_id)
        self._missing: set[int] = set()
        self._failed: set[int] = set()
        self.entry: bytes | None = None

    def found(self, position: int, entry: bytes) -> None:
        """A bookie has the entry, and it is intact."""
        if self.entry is None:
            self.entry = entry

    def missing(self, position: int) -> None:
        """A bookie certainly does not have it."""
        self._missing.add(position)

    def failed(self, position: int) -> None:
        """A bookie could not be asked, did not answer, or has the entry damaged."""
        self._failed.add(position)

    @property
    def proof(self) -> Proof:
        """An entry that one bookie has is kept, whether it was confirmed or not."""
        if self.entry is not None:
            return Proof.FOUND
        if len(self._missing) >= self._striping.missing_needed:
            return Proof.MISSING
        if len(self._missing | self._failed) == self._striping.write:
            return Proof.LOST
        return Proof.UNDECIDED
