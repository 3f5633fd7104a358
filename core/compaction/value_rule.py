"""Decides what a compacted ledger has of an entry, given the last message of each key. Pure.

    last of its key?   value?       the message
    no                 any          is left out
    yes                yes          stays
    yes                tombstone    is left out, unless a value that it deletes may stay
    no key             any          stays only if `retains_keyless`

That is `TwoPhaseCompactor` of Pulsar 4.2 (`AbstractTwoPhaseCompactor.phaseTwoLoop`), except for
entries whose messages cannot be told apart (chunks, encrypted batches) or read: they stay. So a
tombstone stays if such an entry before it has its key, or may have it.

Messages of a committed transaction are treated like others; those of an aborted one, and markers,
are left out. There are none of open ones: a compaction ends before them.

Invariant: for each key the last value stays, and no earlier one is the last that a reader gets.
"""

from __future__ import annotations

from typing import Final

from magnetar.core.compaction.latest import Latest, short
from magnetar.core.compaction.retention_rule import TransactionOutcome
from magnetar.core.compaction.rule import Rule
from magnetar.core.compaction.survivors import Survivors
from magnetar.core.entry import header
from magnetar.core.entry.compaction import Item, Removal, UnpackedEntry
from magnetar.core.entry.forms import form_of
from magnetar.core.kernel.errors import Corrupted

PLACE_BITS: Final = 20
"""Of the number that orders messages: the place in the entry. The rest numbers the entry."""
PLACES: Final = 1 << PLACE_BITS
FORMER: Final = -1
"""Orders all messages of the former compacted ledger."""
PINNED_MAX: Final = 50_000
RULE: Final = Rule(empty_is_gone=True)


def order_of(number: int, place: int) -> int:
    """Orders a message of the log, given the number of its entry."""
    return number << PLACE_BITS | min(place, PLACES - 1)


def keyed(entry: bytes) -> UnpackedEntry | None:
    """A stored entry, unpacked; None if it is damaged."""
    sent = entry[header.read(entry).size :]
    try:
        return form_of(sent).keyed(sent)
    except Corrupted:
        return None


class ValueRule:
    """Applies the rule to entries in order, first those of the former compacted ledger."""

    def __init__(self, latest: Latest, survivors: Survivors, *, retains_keyless: bool) -> None:
        """`latest` is for the former ledger, and may be forgotten after it."""
        self.removed = 0
        """Messages that were left out."""
        self._latest = latest
        self._survivors = survivors
        self._retains_keyless = retains_keyless
        self._pinned: set[bytes] = set()
        self._all_pinned = False

    def left_of(self, entry: bytes, number: int, outcome: TransactionOutcome) -> bytes | None:
        """What stays of the log's entry with that number, or (`FORMER`) of a former one's."""
        about = header.read(entry)
        if outcome in (TransactionOutcome.MARKER, TransactionOutcome.VOID):
            self.removed += about.count
            return None
        found = keyed(entry)
        if found is None or not found.is_decided:
            self._pin(found)
            return entry
        lost = {item.place for item in found.items if not self._stays(item, number)}
        self.removed += len(lost)
        if len(lost) == len(found.items):
            return None
        if not lost:
            return entry
        left = found.without(Removal(lost))
        return None if left is None else entry[: about.size] + left

    def _stays(self, item: Item, number: int) -> bool:
        if item.key is None:
            return self._retains_keyless
        if number == FORMER:
            is_last = self._latest.is_last(item.key, FORMER)
        else:
            is_last = self._survivors.has(order_of(number, item.place))
        if not is_last:
            return False
        if not RULE.is_gone(item):
            return True
        return self._all_pinned or short(item.key) in self._pinned

    def _pin(self, found: UnpackedEntry | None) -> None:
        items = found.items if found is not None else ()
        self._pinned.update(short(item.key) for item in items if item.key is not None)
        self._all_pinned |= not items or len(self._pinned) > PINNED_MAX
