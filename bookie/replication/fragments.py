"""Fragments of ledgers: a segment, as far as it has entries, and the bookies that have it. Pure.

A fragment is closed if no entry will ever be added to it: every fragment of a closed ledger, and
all but the last one of any other, since a writer begins a segment only behind what is confirmed
(`LedgerFragment.java` of BookKeeper 4.18). Of closed fragments all entries are known by the
metadata alone: a LAC that a writer's entries tell of may be behind by one (#3917).

Invariant: only closed fragments are replicated (`replaced`). The last one of a ledger that may be
written belongs to its writer, who changes the same bookies in the same metadata.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise

from msgspec import Struct

from magnetar.bookie.client.quorum.ledger_view import Ensemble
from magnetar.bookie.client.quorum.striping import Striping
from magnetar.bookie.format import ledger_metadata
from magnetar.bookie.proto.storage_pb2 import LedgerMetadata


class LedgerFragment(Struct, frozen=True):
    """See the module's docstring. `last` is before `first` if it has no entry."""

    first: int
    last: int
    ensemble: Ensemble
    closed: bool

    def stored(self, striping: Striping, position: int) -> range:
        """Some entries that the bookie at a position should have: the first one and the last one,
        which is what Apache looks at too (`LedgerChecker.java`).
        """
        first = next((e for e in self._some(self.first, 1) if striping.has(position, e)), None)
        last = next((e for e in self._some(self.last, -1) if striping.has(position, e)), None)
        if first is None or last is None:
            return range(0)
        return range(first, last + 1, max(last - first, 1))

    def _some(self, begin: int, step: int) -> Iterator[int]:
        """As many entries from here on as have different write sets."""
        entry_id = begin
        for _ in self.ensemble:
            if not self.first <= entry_id <= self.last:
                return
            yield entry_id
            entry_id += step

    def entries(self, striping: Striping, positions: Mapping[int, str]) -> Iterator[int]:
        """All entries that one of these positions should have, in their order."""
        for entry_id in range(self.first, self.last + 1):
            if any(striping.has(position, entry_id) for position in positions):
                yield entry_id


def fragments_of(ledger: LedgerMetadata, confirmed: int) -> list[LedgerFragment]:
    """All of them; `confirmed` is how far a ledger that is not closed is known to be."""
    is_closed = ledger.state == ledger_metadata.CLOSED
    found = [
        LedgerFragment(one.firstEntryId, after.firstEntryId - 1, tuple(one.ensembleMember), True)
        for one, after in pairwise(ledger.segment)
    ]
    last = ledger.segment[-1]
    end = ledger.lastEntryId if is_closed else confirmed
    found.append(LedgerFragment(last.firstEntryId, end, tuple(last.ensembleMember), is_closed))
    return found


def replaced(ledger: LedgerMetadata, fragment: LedgerFragment, bookies: Mapping[int, str]) -> bool:
    """Have the metadata name other bookies at positions of a fragment; False if another client has
    replaced those that it was copied for, or made one of them a member, so that it must be looked
    at again.
    """
    last = len(ledger.segment) - 1
    for place, segment in enumerate(ledger.segment):
        if segment.firstEntryId != fragment.first:
            continue
        may_grow = place == last and ledger.state != ledger_metadata.CLOSED
        if may_grow or tuple(segment.ensembleMember) != fragment.ensemble:
            return False
        for position, bookie in bookies.items():
            segment.ensembleMember[position] = bookie
        return True
    return False
