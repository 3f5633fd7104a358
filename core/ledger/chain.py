"""The chain of ledgers of one topic as arithmetic: which positions exist, what follows what. Pure.

Invariants: segments are in order of ledger id; `confirmed` is the last entry that may be read and
never goes back; a position one past the last entry is legal and means "the next one written".
"""

from collections.abc import Mapping

from msgspec import Struct

Position = tuple[int, int]
"""(ledger id, entry id). (-1, -1) is before everything."""

START: Position = (-1, -1)


class Segment(Struct):
    """One ledger of the chain; `entries` of the one being written follows what is confirmed."""

    ledger_id: int
    first_index: int
    entries: int = 0
    size: int = 0
    """Bytes of payload, known when it is closed."""
    closed_ms: int = 0
    """0 while open."""
    others: Mapping[str, str] = {}
    """Properties that somebody else gave it; they are kept as they are."""
    offload: bytes = b""
    """Where somebody else has moved it, likewise."""


class Chain:
    """See the module's docstring."""

    def __init__(self) -> None:
        self.segments: list[Segment] = []
        self.confirmed: Position = START

    def last_entry_of(self, segment: Segment) -> int:
        """The last entry that may be read of one ledger of the chain, -1 if none."""
        if segment.ledger_id == self.confirmed[0]:
            return self.confirmed[1]
        return segment.entries - 1

    def entries_from(self, position: Position) -> int:
        """How many entries its ledger has from `position` on, that one counted in any case."""
        for segment in self.segments:
            if segment.ledger_id == position[0]:
                return max(self.last_entry_of(segment) - position[1] + 1, 1)
        return 1

    @property
    def first(self) -> Position:
        """Where the first entry is, or will be."""
        for segment in self.segments:
            if segment.entries:
                return (segment.ledger_id, 0)
        return (self.confirmed[0], self.confirmed[1] + 1)

    def after(self, position: Position) -> Position:
        """The position to read next after `position`: it may not have been written yet."""
        return self.normal((position[0], position[1] + 1))

    def normal(self, position: Position) -> Position:
        """Move a position beyond the end of its ledger, or inside a trimmed one, to the next."""
        ledger_id, entry_id = position
        confirmed = self.confirmed
        if ledger_id == confirmed[0]:
            if entry_id <= confirmed[1]:
                return (ledger_id, max(entry_id, 0))
            return (ledger_id, confirmed[1] + 1)
        for segment in self.segments:
            if segment.ledger_id < ledger_id:
                continue
            if segment.ledger_id == ledger_id:
                if 0 <= entry_id <= self.last_entry_of(segment):
                    return position
                if entry_id < 0 and segment.entries:
                    return (ledger_id, 0)
                continue
            if segment.entries:
                return (segment.ledger_id, 0)
        return (confirmed[0], confirmed[1] + 1)

    def has(self, position: Position) -> bool:
        """Whether an entry that may be read stands at `position`, which is as `normal` gives it."""
        return position <= self.confirmed and position[1] >= 0

    def entries_between(self, after: Position, up_to: Position) -> int:
        """How many entries lie in (after, up_to]."""
        if up_to <= after:
            return 0
        if after[0] == up_to[0]:
            return up_to[1] - after[1]
        total = 0
        for segment in self.segments:
            if not after[0] <= segment.ledger_id <= up_to[0]:
                continue
            first = after[1] + 1 if segment.ledger_id == after[0] else 0
            last = up_to[1] if segment.ledger_id == up_to[0] else self.last_entry_of(segment)
            total += max(last - first + 1, 0)
        return total

    @property
    def entries(self) -> int:
        return sum(self.last_entry_of(segment) + 1 for segment in self.segments)
