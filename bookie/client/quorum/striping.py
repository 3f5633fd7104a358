"""Which bookies of an ensemble have an entry, and how many answers prove something. Pure.

Entry e of a ledger with ensemble size E, write quorum W and ack quorum A is stored by the W bookies
at the positions (e + i) mod E, i < W, and is confirmed when A of them have acknowledged it
(`RoundRobinDistributionSchedule.java` of BookKeeper 4.18).

Invariants, with 1 <= A <= W <= E:
- Two entries with ids that differ by E have the same write set.
- Once `is_covered` holds for the bookies that a recovery has fenced, no entry can be confirmed any
  more: of the W bookies of any entry fewer than A are not fenced.
- Once `missing_needed` bookies of an entry's write set do not have it and never will, it cannot
  have been confirmed: fewer than A are left.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple


class Striping(NamedTuple):
    """The sizes of a ledger: of its ensemble, write quorum and ack quorum."""

    ensemble: int
    write: int
    ack: int

    def check(self) -> None:
        """Raise ValueError unless the sizes make sense together."""
        if not 1 <= self.ack <= self.write <= self.ensemble:
            raise ValueError(
                f"an ensemble of {self.ensemble}, a write quorum of {self.write} and an ack quorum "
                f"of {self.ack}: each must be at least 1, and at most the one before"
            )

    def write_set(self, entry_id: int) -> tuple[int, ...]:
        """The positions of the bookies that store an entry, in the order in which to read it."""
        first = entry_id % self.ensemble
        return tuple((first + i) % self.ensemble for i in range(self.write))

    def has(self, position: int, entry_id: int) -> bool:
        """Whether the bookie at a position stores an entry."""
        return (position - entry_id) % self.ensemble < self.write

    def is_covered(self, answered: Collection[int]) -> bool:
        """Whether the bookies at these positions are in the way of every ack quorum.

        That all but A - 1 of the whole ensemble have answered is enough, and is the rule that is
        often written down; it is needed only if E = W.
        """
        windows = range(self.ensemble if self.write < self.ensemble else 1)
        return all(
            sum(position not in answered for position in self.write_set(first)) < self.ack
            for first in windows
        )

    @property
    def missing_needed(self) -> int:
        """How many bookies of a write set without an entry prove that it was never confirmed."""
        return self.write - self.ack + 1
