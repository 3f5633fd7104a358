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

from collections.abc import Sequence
from itertools import compress
from typing import Final, NamedTuple

from magnetar.core.compaction.key_index import KEYLESS, LOST, STAYS, TOMBSTONE, among, short
from magnetar.core.compaction.latest import Latest
from magnetar.core.compaction.retention_rule import TransactionOutcome
from magnetar.core.entry import header
from magnetar.core.entry.compaction import ROW, KeyRows, Removal, UnpackedEntry
from magnetar.core.entry.forms import form_of
from magnetar.core.kernel.errors import Corrupted
from magnetar.core.ledger.log.chain import Position

PLACE_BITS: Final = 20
"""Of the number that orders messages: the place in the entry. The rest numbers the entry."""
PLACES: Final = 1 << PLACE_BITS
FORMER: Final = -1
"""Orders all messages of the former compacted ledger."""
PINNED_MAX: Final = 50_000


class NumberedEntry(NamedTuple):
    """An entry that was read."""

    number: int
    """`FORMER` for all of the former compacted ledger."""
    position: Position
    entry: bytes
    about: header.EntryHeader
    outcome: TransactionOutcome


def note(latest: Latest, keys: KeyRows, number: int) -> None:
    """Note the messages of the log's entry with that number."""
    latest.note_rows(keys, number << PLACE_BITS, PLACES - 1)


def keyed(entry: bytes) -> UnpackedEntry | None:
    """A stored entry, unpacked; None if it is damaged."""
    sent = entry[header.read(entry).size :]
    try:
        return form_of(sent).keyed(sent)
    except Corrupted:
        return None


class ValueRule:
    """Applies the rule to entries in order, first those of the former compacted ledger."""

    def __init__(self, latest: Latest, orders: bytes, *, retains_keyless: bool) -> None:
        """`latest` is for the former ledger, and may be forgotten after it; then `orders` has what
        is needed of it.
        """
        self.removed = 0
        """Messages that were left out."""
        self._latest = latest
        self._orders = orders
        self._settled = _table(STAYS if retains_keyless else LOST)
        self._pinned: set[bytes] = set()
        self._all_pinned = False

    def rests(self, entries: Sequence[NumberedEntry]) -> list[bytes | None]:
        """What stays of each entry."""
        return [self.left_of(one.entry, one.number, one.outcome) for one in entries]

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
        keys = found.key_rows()
        judged = self._judged(keys, number)
        lost = judged.count(LOST)
        self.removed += lost
        if lost == len(judged):
            return None
        if not lost:
            return entry
        gone = compress(ROW.iter_unpack(keys.rows), judged.translate(_GONE))
        left = found.without(Removal({place for place, _, _, _ in gone}))
        return None if left is None else entry[: about.size] + left

    def _judged(self, keys: KeyRows, number: int) -> bytearray:
        """For each message whether it stays or is lost."""
        if number == FORMER:
            judged = self._latest.unknown(keys)
        else:
            judged = among(self._orders, keys, number << PLACE_BITS, PLACES - 1)
        if TOMBSTONE in judged and (self._pinned or self._all_pinned):
            for at, (_, begin, size, _) in enumerate(ROW.iter_unpack(keys.rows)):
                if judged[at] == TOMBSTONE and self._is_pinned(keys.data[begin : begin + size]):
                    judged[at] = STAYS
        return judged.translate(self._settled)

    def _is_pinned(self, key: bytes) -> bool:
        return self._all_pinned or short(key) in self._pinned

    def _pin(self, found: UnpackedEntry | None) -> None:
        items = found.items if found is not None else ()
        self._pinned.update(short(item.key) for item in items if item.key is not None)
        self._all_pinned |= not items or len(self._pinned) > PINNED_MAX


def _table(keyless: int) -> bytes:
    """What becomes of messages by what is known of them, for `bytes.translate`."""
    fates = {STAYS: STAYS, KEYLESS: keyless}
    return bytes(fates.get(one, LOST) for one in range(256))


_GONE: Final = bytes(one == LOST for one in range(256))
