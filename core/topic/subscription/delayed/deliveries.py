"""Delayed entries of a subscription, and the times when they are due. Pure.

    add --> known --due--> taken
             |  ^             ^
     put_off v  | learn       |
            unknown ----------+ due by then

The times of the soonest are *known* (`known_times.py`), up to a number for each subscription and
one for all (`memory.py`). Beyond it, the entries that are due last are *put off*: they are still
members, and their times are read again when they are near (`unknown_times.py`). So delayed entries
hold up no others, however many there are, and are delivered on time as long as storage is read fast
enough. Pulsar's broker keeps all times, or stops reading where all delays are the same
(`InMemoryDelayedDeliveryTracker.java` of 4.2).

If delays are the same, each entry is read once more. If they are random, and entries m times as
many as may be known, each is read about m times.

Invariants: a member's time is known, or it is in a block; a time that is known of an entry that is
no member any more does not count; `known` is within its limit between two calls.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from magnetar.core.ledger.buckets.bucket import BLOCK_ENTRIES
from magnetar.core.ledger.log.chain import Position
from magnetar.core.topic.subscription.delayed.known_times import KnownTimes
from magnetar.core.topic.subscription.delayed.memory import DelayedMemory
from magnetar.core.topic.subscription.delayed.position_set import PositionSet
from magnetar.core.topic.subscription.delayed.unknown_times import UnknownTimes

AHEAD_MS: Final = 10_000
"""How long before its soonest entry is due a block is read, if there is room for its times."""

UNREADABLE_MS: Final = 10_000
"""After so long, at least, an entry that cannot be read is read again."""


class DelayedDeliveries:
    """See the module's docstring."""

    __slots__ = ("_counted", "_known", "_members", "_memory", "_unknown", "known_max")

    def __init__(self, memory: DelayedMemory, known_max: int) -> None:
        self.known_max = known_max
        self._memory = memory
        self._members = PositionSet()
        self._known = KnownTimes(self._members)
        self._unknown = UnknownTimes()
        self._counted = 0

    def __len__(self) -> int:
        return len(self._members)

    def __contains__(self, position: Position) -> bool:
        return position in self._members

    @property
    def first(self) -> Position | None:
        """The lowest entry; None if there is none."""
        return self._members.first

    @property
    def next_change_ms(self) -> int:
        """No entry is due before, nor read to know when it is; 0 while some are being read."""
        known, block = self._known.soonest(), self._unknown.soonest_ms
        if self._unknown.wanted is not None:
            return 0
        return min([time_ms for time_ms in (known, block) if time_ms is not None], default=0)

    @property
    def known(self) -> int:
        """How many times are known, also of entries that are no members any more."""
        return len(self._known)

    def _changed(self) -> None:
        """Forget all times once there are no members; tell the memory how many are known now."""
        if not self._members:
            self._known.clear()
            self._unknown.clear()
        change, self._counted = len(self._known) - self._counted, len(self._known)
        if change:
            self._memory.changed(self, change)

    # -- coming and going ---------------------------------------------------------------------

    def add(self, position: Position, due_ms: int) -> None:
        """Add an entry; if it is there already, its first due time counts."""
        if self._members.add(position):
            self._know(position, due_ms)

    def add_unread(self, position: Position, entries: int, due_ms: int) -> None:
        """Add entries of one block, at least one: a bit for each from `position` on. None of them
        is due before.
        """
        new = self._members.add_all(position, entries)
        if new:
            self._unknown.add(position, due_ms, new)

    def _know(self, position: Position, due_ms: int) -> None:
        self._known.add(position, due_ms)
        while len(self._known) > self.known_max:
            self.put_off()
        self._changed()

    def put_off(self) -> None:
        """Forget the times of some that are due last."""
        for position, due_ms in self._known.give_up():
            if position in self._members:
                self._unknown.add(position, due_ms)
        self._changed()

    def discard(self, position: Position) -> None:
        """Remove an entry."""
        if self._members.discard(position):
            self._unknown.discard(position)
            self._changed()

    def discard_to(self, position: Position) -> None:
        """Remove all entries up to a position."""
        self._members.discard_to(position)
        self._unknown.discard_to(position)
        self._changed()

    def clear(self) -> None:
        self._members.clear()
        self._changed()

    # -- being due ----------------------------------------------------------------------------

    @property
    def next_look_ms(self) -> int | None:
        """When the next entry is due, or a block is to be read; None if nothing is to be done.
        While a block is being read, others are not looked at.
        """
        known, block = self._known.soonest(), self._unknown.soonest_ms
        if block is None or self._unknown.wanted is not None:
            return known
        block -= AHEAD_MS if self._has_room else 0
        return block if known is None else min(known, block)

    @property
    def _has_room(self) -> bool:
        """Whether the times of a block put off no others."""
        return min(self.known_max - len(self._known), self._memory.room) >= BLOCK_ENTRIES

    def is_due(self, now_ms: int) -> bool:
        """Whether `take_due` has something to do."""
        soonest = self._known.soonest()
        return soonest is not None and soonest <= now_ms

    def take_due(self, now_ms: int, entries_max: int) -> list[Position]:
        """Remove and return entries that are known to be due; looks at so many at most, also of
        those that are no members any more.
        """
        due: list[Position] = []
        for _ in range(entries_max):
            if not self.is_due(now_ms):
                break
            position = self._known.pop()
            if self._members.discard(position):
                self._unknown.discard(position)
                due.append(position)
        self._changed()
        return due

    def postpone(self, first: Position, entries: int, now_ms: int) -> None:
        """So many from there on are to be read, and cannot be: others first."""
        ledger_id, entry_id = first
        due_ms = now_ms + UNREADABLE_MS + AHEAD_MS
        for position in ((ledger_id, entry_id + at) for at in range(entries)):
            if self._unknown.discard(position):
                self._unknown.add(position, due_ms)

    def to_read(self, now_ms: int) -> tuple[Position, int] | None:
        """Where entries are whose times are wanted now, and how many to read at most."""
        while (wanted := self._unknown.wanted) is None:
            soonest = self._unknown.soonest_ms
            if soonest is None or soonest > now_ms + (AHEAD_MS if self._has_room else 0):
                return None
            self._unknown.take_out()
        return wanted

    def learn(self, first: Position, dues_ms: Sequence[int], now_ms: int) -> list[Position]:
        """These are the times of consecutive entries that were to be read. Removes and returns
        those that are due.
        """
        due: list[Position] = []
        ledger_id, entry_id = first
        for at, due_ms in enumerate(dues_ms):
            position = ledger_id, entry_id + at
            if self._unknown.discard(position):
                if due_ms > now_ms:
                    self._know(position, due_ms)
                else:
                    self._members.discard(position)
                    due.append(position)
        self._changed()
        return due
