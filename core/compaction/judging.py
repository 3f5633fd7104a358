"""What is to become of an entry, once it is known where each key was last. Pure.

    last with its key?   value?      then it
    no                   any         goes
    yes                  yes         stays
    yes                  tombstone   stays until its time has come, which is noted when it is met
                                     first; then it goes, if nothing it deletes can still be there

Without a key, or so late that it has not been looked at: it stays. An entry that is emptied goes
with its messages, but for the last batch of a producer, whose header says how far that one was. One
that can only go as a whole stays as long as one of its messages does.

What a transaction wrote is judged like the rest once that is committed, goes if it came to nothing,
and is left as it is until that is known. Markers stay.

Entries that are left as they are, these and what is not `is_decided`, may hold values that a
tombstone deletes; so may those that stay as a whole. So tombstones of keys that were seen in one
before stay; and all of them, where one cannot be read or there are too many such keys.

Invariant: of each key, the last value stays, or a tombstone behind it for long enough.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Final, NamedTuple, Protocol

from magnetar.core.compaction.batches import UnpackedBatch
from magnetar.core.compaction.latest import Latest, short
from magnetar.core.compaction.messages import Messages
from magnetar.core.compaction.rule import Fate, Item, Rule
from magnetar.core.entry import header, kafka_batch, kafka_form
from magnetar.core.kernel.errors import Corrupted

PINNED_MAX: Final = 50_000
PRODUCER_KEPT_MS: Final = 24 * 60 * 60_000
"""Who has been silent for so long is forgotten anyway."""


class Standing(enum.Enum):
    """What has become of what wrote an entry."""

    HOLDS = enum.auto()
    VOID = enum.auto()
    OPEN = enum.auto()
    MARKER = enum.auto()
    """It only says what became of others."""


Outcomes = Callable[[int, int], Standing]
"""What became of the transaction of that writer that has an entry with that index."""


def standing_of(entry: bytes, outcomes: Outcomes) -> Standing:
    """Told by the header of a batch alone."""
    about = header.read(entry)
    at = kafka_form.batch_at(entry, about.size)
    if at < 0:
        return Standing.HOLDS
    try:
        batch = kafka_batch.header_of(entry[at : at + kafka_batch.HEADER_BYTES])
    except Corrupted:
        return Standing.OPEN
    if batch.attributes & kafka_batch.CONTROL:
        return Standing.MARKER
    if batch.attributes & kafka_batch.TRANSACTIONAL:
        return outcomes(batch.producer_id, about.first_index)
    return Standing.HOLDS


class Form(Protocol):
    """An entry, taken apart."""

    @property
    def items(self) -> list[Item]: ...

    @property
    def is_decided(self) -> bool:
        """It may be compacted: it is known what it holds, and that it holds."""
        ...

    @property
    def producer_id(self) -> int: ...

    @property
    def horizon_ms(self) -> int:
        """From when on its tombstones may go; -1 if that is not said."""
        ...

    @property
    def notes_horizon(self) -> bool: ...

    @property
    def loses_some(self) -> bool:
        """It may go in part."""
        ...

    def without(self, fate: Fate) -> bytes | None:
        """What is left of it; None for nothing."""
        ...


def form_of(entry: bytes) -> Form | None:
    """An entry as it is stored; None if it cannot be read, or claims indexes of other entries."""
    about = header.read(entry)
    tail = entry[about.size :]
    try:
        at = kafka_form.batch_at(tail, 0)
        form: Form = UnpackedBatch(tail, at) if at >= 0 else Messages(tail)
    except Corrupted:
        return None
    return form if all(0 <= item.place < about.count for item in form.items) else None


class Terms(NamedTuple):
    """By what is judged."""

    rule: Rule
    now_ms: int
    retention_ms: int
    """Of tombstones."""
    clean_to: int
    """What is before this index was compacted before."""


class Judge:
    """Judges the entries of a log in their order, from its beginning."""

    def __init__(self, latest: Latest, terms: Terms) -> None:
        self._latest = latest
        self._terms = terms
        self._pinned: set[bytes] = set()
        self._all_pinned = False

    def left_of(self, entry: bytes, standing: Standing) -> bytes | None:
        """What is left of an entry: itself, some of it, or (None) nothing."""
        if standing is Standing.MARKER:
            return entry
        form = form_of(entry)
        if form is None or not form.is_decided or standing is Standing.OPEN:
            self._pin(form)
            return entry
        about = header.read(entry)
        if standing is Standing.VOID:
            fate = Fate({item.place for item in form.items})
        else:
            fate = self._fate(form, about)
        if len(fate.lost) == len(form.items) and not self._stays_empty(form, about):
            return None
        if not fate.lost and fate.horizon_ms < 0:
            return entry
        if not form.loses_some and len(fate.lost) < len(form.items):
            self._pin(form)
            return entry
        left = form.without(fate)
        return None if left is None else entry[: about.size] + left

    def _pin(self, form: Form | None) -> None:
        keys = [item.key for item in form.items if item.key is not None] if form else []
        self._pinned.update(map(short, keys))
        self._all_pinned |= not keys or len(self._pinned) > PINNED_MAX

    def _fate(self, form: Form, about: header.EntryHeader) -> Fate:
        latest, rule = self._latest, self._terms.rule
        lost: set[int] = set()
        tombstones = False
        for item in form.items:
            index = about.first_index + item.place
            if item.key is None or index >= latest.end:
                continue
            if not latest.is_last(item.key, index):
                lost.add(item.place)
            elif rule.is_gone(item):
                if self._may_go(form, about, item.key):
                    lost.add(item.place)
                else:
                    tombstones = True
        if tombstones and form.notes_horizon and form.horizon_ms < 0:
            return Fate(lost, self._terms.now_ms + self._terms.retention_ms)
        return Fate(lost)

    def _may_go(self, form: Form, about: header.EntryHeader, key: bytes) -> bool:
        """Whether the time of a tombstone has come."""
        if self._all_pinned or short(key) in self._pinned:
            return False
        if form.notes_horizon:
            return 0 <= form.horizon_ms <= self._terms.now_ms
        over = about.timestamp_ms + self._terms.retention_ms <= self._terms.now_ms
        return over and about.index < self._terms.clean_to

    def _stays_empty(self, form: Form, about: header.EntryHeader) -> bool:
        if form.producer_id < 0 or not self._latest.is_last_of(form.producer_id, about.index):
            return False
        return self._terms.now_ms - about.timestamp_ms < PRODUCER_KEPT_MS
