"""Which entries of one log belong to transactions that are open, or aborted. Pure.

Kafka stores it beside each segment (`TransactionIndex.java` of 4.1, and the ongoing transactions
in `ProducerStateManager.java`), Pulsar in the topic's transaction buffer (PIP-31).

A transaction has a key, which is opaque here (`core/entry/form.py`); at most one transaction of a
key is open in a log at a time. It begins with the first entry that names it, and ends with a
marker: an entry of its own. Everything below the first entry of every open transaction is stable.
Entries stay where they are, however the transaction ends. An aborted one is recorded by its key and
the indexes at which it began and ended, because later transactions may have the same key.

A commit that is decided elsewhere is seen before its marker is stored (`show_committed`).

Invariants: entries come in the order of the log, each once; replayed from some place on, after a
restart, the state is the same; a marker of nothing open changes nothing.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate
from typing import Final, NamedTuple

from magnetar.core.entry.form import MarkKind, TransactionKey
from magnetar.core.entry.forms import form_of
from magnetar.core.kernel.errors import NotAllowed
from magnetar.core.ledger.log.chain import Position
from magnetar.core.ledger.log.change_notice import ChangeNotice

ABORTED_MAX: Final = 50_000
"""Transactions of one log that are aborted, or may be: 19 MB of memory, and 440 KB of a snapshot,
which has to fit into a znode."""
ALL_ABORTED_MAX: Final = 250_000
"""Aborted ones of all logs that are loaded, in 93 MB."""


class Open(NamedTuple):
    """Where a transaction begins."""

    first: int
    position: Position
    since_ms: int


class Aborted(NamedTuple):
    """An aborted transaction, from its first entry to its marker."""

    key: TransactionKey
    first: int
    last: int


class IndexImage(NamedTuple):
    """The index, as snapshots have it."""

    open: list[tuple[TransactionKey, Open]]
    aborted: list[Aborted]


class TransactionIndex:
    """See the module's docstring. A view of the log (`fold.py`)."""

    __slots__ = (
        "_firsts",
        "_notice",
        "_placed",
        "_places",
        "aborted",
        "committed",
        "ending",
        "open",
        "present",
    )

    def __init__(self, notice: ChangeNotice | None = None) -> None:
        self._notice = ChangeNotice() if notice is None else notice
        self.present = False
        """Whether the log has, or ever had, transactions; else no entry is looked at for them."""
        self.open: dict[TransactionKey, Open] = {}
        """In the order in which they began."""
        self.ending: dict[TransactionKey, Open] = {}
        """Committed ones whose markers are on their way (`show_committed`): readers see them, and
        snapshots have them as open, since whoever replays the log has no marker yet."""
        self.committed = 0
        """How many were committed since the log was opened, or its last snapshot."""
        self._places: dict[TransactionKey, list[Aborted]] = {}
        """Those of `aborted` by key, as far as `_placed` of them."""
        self._placed = 0
        self.aborted: list[Aborted] = []
        """In the order in which they ended."""
        self._firsts: list[int] = []
        """For each of `aborted` the least `first` of it and of all later ones, so they ascend."""

    def wrote(self, key: TransactionKey, index: int, position: Position, now_ms: int) -> None:
        """An entry of the transaction is stored."""
        if key not in self.open and key not in self.ending:
            self._notice.changed()
            self.open[key] = Open(index, position, now_ms)

    def show_committed(self, key: TransactionKey) -> None:
        """The decision is stored elsewhere, and the marker is on its way: readers need not wait for
        it. A key that comes again may not be ended so.
        """
        begun = self.open.pop(key, None)
        if begun is not None:
            self._notice.changed()
            self.committed += 1
            self.ending[key] = begun

    def ended(self, key: TransactionKey, index: int, *, committed: bool) -> None:
        """The marker of the transaction is stored."""
        self._notice.changed()
        self.ending.pop(key, None)
        begun = self.open.pop(key, None)
        if begun is not None and not committed:
            self.aborted.append(Aborted(key, begun.first, index))
            self._note_first(begun.first)
        elif begun is not None:
            self.committed += 1

    def _note_first(self, first: int) -> None:
        """Of those before it, only what ended since it began is looked at."""
        firsts = self._firsts
        firsts.append(first)
        place = len(firsts) - 2
        while place >= 0 and firsts[place] > first:
            firsts[place] = first
            place -= 1

    # -- questions ----------------------------------------------------------------------------

    def check_none_open(self) -> None:
        """Raise `NotAllowed` if the log may not end: the marker of one would find no place."""
        if self.open or self.ending:
            count = len(self.open) + len(self.ending)
            raise NotAllowed(f"transactions are open in the topic ({count}): end them first")

    def check_room(self, all_aborted: int) -> None:
        """Raise `NotAllowed` if no more transactions may begin, as they may be aborted."""
        if len(self.aborted) + len(self.open) >= ABORTED_MAX or all_aborted >= ALL_ABORTED_MAX:
            raise NotAllowed(
                f"messages of too many aborted transactions are stored ({len(self.aborted)} here, "
                f"{all_aborted} in all topics): wait for retention, or delete them"
            )

    @property
    def oldest(self) -> Open | None:
        """The open transaction that began first."""
        return next(iter(self.open.values())) if self.open else None

    def stable_index(self, end: int) -> int:
        """Everything below is decided; `end` is where the log ends."""
        first = self.oldest
        return end if first is None else first.first

    def stable_position(self, end: Position) -> Position:
        """The last entry that is decided, or the place before the first one that is not; `end` is
        the last entry of the log.
        """
        first = self.oldest
        if first is None:
            return end
        ledger_id, entry_id = first.position
        return min(end, (ledger_id, entry_id - 1))

    def stable_entries(self, ledger_id: int, first_entry: int, entries: int) -> int:
        """How many of consecutive entries are decided."""
        first = self.oldest
        if first is None:
            return entries
        position = first.position
        if ledger_id < position[0]:
            return entries
        if ledger_id > position[0]:
            return 0
        return max(min(position[1] - first_entry, entries), 0)

    def hides(self, key: TransactionKey, index: int) -> bool:
        """Whether the entry with that key and index belongs to an aborted transaction."""
        return any(one.first <= index <= one.last for one in self._aborted_of(key))

    def has_aborted(self, key: TransactionKey) -> bool:
        """Whether a transaction of that key was aborted, of which there are entries still."""
        return bool(self._aborted_of(key))

    def _aborted_of(self, key: TransactionKey) -> Sequence[Aborted]:
        if self._placed != len(self.aborted):
            self._place()
        return self._places.get(key, ())

    def _place(self) -> None:
        """Sort those by key that are new; all of them again if some have left."""
        if self._placed > len(self.aborted):
            self._places, self._placed = {}, 0
        for one in self.aborted[self._placed :]:
            self._places.setdefault(one.key, []).append(one)
        self._placed = len(self.aborted)

    def aborted_within(self, first: int, end: int) -> list[Aborted]:
        """Those that overlap what is from `first` up to, not including, `end`."""
        at = bisect_left(self.aborted, first, key=_last)
        stop = bisect_left(self._firsts, end, at)
        return [one for one in self.aborted[at:stop] if one.first < end]

    # -- as a view of the log -----------------------------------------------------------------

    def apply(self, sent: bytes, index: int, position: Position, now_ms: int) -> None:
        """Apply an entry that is replayed; most belong to no transaction."""
        found = form_of(sent).transaction_mark(sent)
        if found is None:
            return
        if found.kind is MarkKind.PART:
            self.wrote(found.key, index, position, now_ms)
        else:
            self.ended(found.key, index, committed=found.kind is MarkKind.COMMIT)

    def forget_before(self, index: int) -> None:
        """The log begins there now."""
        self._notice.changed()
        gone = bisect_left(self.aborted, index, key=_last)
        del self.aborted[:gone], self._firsts[:gone]
        if gone:
            self._places, self._placed = {}, 0

    def snapshot(self) -> IndexImage:
        begun = list(self.open.items())
        if self.ending:
            begun = sorted([*begun, *self.ending.items()], key=lambda item: item[1].first)
        return IndexImage(begun, list(self.aborted))

    def restore(self, image: IndexImage, _now_ms: int) -> None:
        self._notice.changed()
        self.open, self.ending, self.aborted = dict(image.open), {}, list(image.aborted)
        self._firsts = list(accumulate((one.first for one in reversed(self.aborted)), min))[::-1]
        self._places, self._placed = {}, 0


def _last(one: Aborted) -> int:
    return one.last
