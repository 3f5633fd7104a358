"""Decides what becomes of an entry in compaction, given the last index of each key. Pure.

    last of its key?   value?      the message
    no                 any         is removed
    yes                yes         stays
    yes                tombstone   stays for the retention of tombstones, which begins when it is
                                   first met (KIP-534), and while values that it deletes may exist

A message without a key stays, and so does one after the scanned part. An entry that has lost all
messages is removed, except the last batch of a producer, whose header holds its last sequence
number (`Cleaner.cleanInto` of Kafka 4.1). An entry that can only be removed whole stays as
long as one of its messages does.

Messages of a committed transaction are treated like others, those of an aborted one are removed,
and those of an open one stay. Markers stay.

Entries that stay unchanged (these, and those that are not `is_decided`) and entries that stay whole
may hold values that a tombstone deletes. So a tombstone stays if its key was seen in such an
earlier entry; if one of these cannot be read, or there are too many such keys, all tombstones stay.

Invariant: for each key the last value stays, or a later tombstone for its retention time.
"""

from __future__ import annotations

import enum
import sys
from collections.abc import Callable
from typing import Final, NamedTuple

from magnetar.core.compaction.key_index import short
from magnetar.core.compaction.latest import Latest
from magnetar.core.compaction.rule import Rule
from magnetar.core.entry import header
from magnetar.core.entry.compaction import Removal, UnpackedEntry
from magnetar.core.entry.form import MarkKind, TransactionKey
from magnetar.core.entry.forms import NATIVE, form_of
from magnetar.core.kernel.errors import Corrupted

PINNED_MAX: Final = 50_000
PRODUCER_KEPT_MS: Final = 24 * 60 * 60_000
"""After this time without a batch a producer is forgotten anyway
(`producer.id.expiration.ms`)."""


class TransactionOutcome(enum.Enum):
    """The outcome of an entry's transaction."""

    HOLDS = enum.auto()
    VOID = enum.auto()
    OPEN = enum.auto()
    MARKER = enum.auto()
    """The entry ends a transaction."""


Outcomes = Callable[[TransactionKey, int], TransactionOutcome]
"""Returns the outcome of the transaction with that key that has an entry with that index."""


def outcome_of(entry: bytes, outcomes: Outcomes) -> TransactionOutcome:
    """The outcome of an entry's transaction, from the entry's mark; HOLDS if it has none."""
    about = header.read(entry)
    form = form_of(entry, about.size)
    try:
        # 2 MB of entries copied keep the loop for 0.3 ms
        found = form.transaction_mark(entry if form is NATIVE else entry[about.size :])
    except Corrupted:
        return TransactionOutcome.OPEN
    if found is None:
        return TransactionOutcome.HOLDS
    if found.kind is not MarkKind.PART:
        return TransactionOutcome.MARKER
    return outcomes(found.key, about.first_index)


def unpacked(entry: bytes) -> UnpackedEntry | None:
    """A stored entry, unpacked; None if it is damaged, or claims indexes of other entries."""
    about = header.read(entry)
    sent = entry[about.size :]
    try:
        found = form_of(sent).unpacked(sent)
    except Corrupted:
        return None
    return found if all(0 <= item.place < about.count for item in found.items) else None


class Terms(NamedTuple):
    """The parameters of a compaction."""

    rule: Rule
    now_ms: int
    retention_ms: int
    """How long tombstones stay (`delete.retention.ms`)."""
    clean_to: int
    """Messages before this index were compacted before."""
    needed_from: int = sys.maxsize
    """Tombstones from this index on stay: the compacted ledger beside the log still has to learn of
    them (`last_values.py`)."""


class RetentionRule:
    """Applies the rules to the entries of a log, in order, from its beginning."""

    def __init__(self, latest: Latest, terms: Terms) -> None:
        self._latest = latest
        self._terms = terms
        self._pinned: set[bytes] = set()
        self._all_pinned = False

    def left_of(self, entry: bytes, outcome: TransactionOutcome) -> bytes | None:
        """The rest of an entry: all of it, a part, or None."""
        if outcome is TransactionOutcome.MARKER:
            return entry
        found = unpacked(entry)
        if found is None or not found.is_decided or outcome is TransactionOutcome.OPEN:
            self._pin(found)
            return entry
        about = header.read(entry)
        if outcome is TransactionOutcome.VOID:
            removal = Removal({item.place for item in found.items})
        else:
            removal = self._removal(found, about)
        if len(removal.lost) == len(found.items) and not self._stays_empty(found, about):
            return None
        if not removal.lost and removal.tombstones_until_ms < 0:
            return entry
        if not found.loses_some and len(removal.lost) < len(found.items):
            self._pin(found)
            return entry
        left = found.without(removal)
        return None if left is None else entry[: about.size] + left

    def _pin(self, found: UnpackedEntry | None) -> None:
        keys = [item.key for item in found.items if item.key is not None] if found else []
        self._pinned.update(map(short, keys))
        self._all_pinned |= not keys or len(self._pinned) > PINNED_MAX

    def _removal(self, found: UnpackedEntry, about: header.EntryHeader) -> Removal:
        latest, rule = self._latest, self._terms.rule
        lost: set[int] = set()
        tombstones = False
        for item in found.items:
            index = about.first_index + item.place
            if item.key is None or index >= latest.end:
                continue
            if not latest.is_last(item.key, index):
                lost.add(item.place)
            elif rule.is_gone(item):
                if self._may_go(found, about, item.key):
                    lost.add(item.place)
                else:
                    tombstones = True
        if tombstones and found.notes_tombstone_time and found.tombstones_until_ms < 0:
            return Removal(lost, self._terms.now_ms + self._terms.retention_ms)
        return Removal(lost)

    def _may_go(self, found: UnpackedEntry, about: header.EntryHeader, key: bytes) -> bool:
        """Whether a tombstone may be removed."""
        if self._all_pinned or short(key) in self._pinned:
            return False
        if about.index >= self._terms.needed_from:
            return False
        if found.notes_tombstone_time:
            return 0 <= found.tombstones_until_ms <= self._terms.now_ms
        over = about.timestamp_ms + self._terms.retention_ms <= self._terms.now_ms
        return over and about.index < self._terms.clean_to

    def _stays_empty(self, found: UnpackedEntry, about: header.EntryHeader) -> bool:
        if found.producer is None or not self._latest.is_last_of(found.producer, about.index):
            return False
        return self._terms.now_ms - about.timestamp_ms < PRODUCER_KEPT_MS
