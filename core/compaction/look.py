"""What the first pass of a compaction beside the log has found: where the second has to read. Pure.

Entries are numbered from the former horizon on, without gaps, over all ledgers of the log. Numbers
are asked for in ascending order, so what was found in the bits is valid until it is passed: a round
over millions of entries looks at each byte of them once.
"""

from __future__ import annotations

import re
import sys
from bisect import bisect_right
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from magnetar.core.compaction.latest import Latest
from magnetar.core.compaction.retention_rule import TransactionOutcome
from magnetar.core.compaction.value_rule import PLACE_BITS, NumberedEntry, keyed, note
from magnetar.core.ledger.log.chain import START, Position

if TYPE_CHECKING:
    from magnetar.core.ledger.log.managed_ledger import ManagedLedger

ENTRIES_MAX: Final = 100_000_000
"""Entries of one round: one bit each."""
NEVER: Final = sys.maxsize
_SOME: Final = re.compile(rb"[^\0]")


class Numbers:
    """The numbers of entries: of ledgers that the log has when a round begins."""

    def __init__(self, ledger: ManagedLedger, after: Position) -> None:
        self._ids: list[int] = []
        self._bases: list[int] = []
        total = 0
        for segment in ledger.chain.segments:
            if segment.ledger_id >= after[0]:
                self._ids.append(segment.ledger_id)
                self._bases.append(total)
                total += ledger.chain.last_entry_of(segment) + 1
        self.total = total

    def of(self, position: Position) -> int:
        at = bisect_right(self._ids, position[0]) - 1
        return self._bases[at] + position[1]

    def position(self, number: int) -> Position:
        at = bisect_right(self._bases, number) - 1
        return self._ids[at], number - self._bases[at]


class Look:
    """What the first pass has found."""

    def __init__(self, latest: Latest, numbers: Numbers, *, retains_keyless: bool) -> None:
        self.latest = latest
        self._retains_keyless = retains_keyless
        self.orders = b""
        """Of the last messages: in place of their keys, while the new ledger is written."""
        self.numbers = numbers
        self.horizon: Position = START
        """The last entry that was looked at."""
        self.next_index = 0
        """The index after it."""
        self.messages = 0
        """In all entries up to there."""
        self._wanted = bytearray(min(numbers.total, ENTRIES_MAX) // 8 + 1)
        self._searched = (0, -1)
        """No entry is marked from the first number up to the second, which is."""

    def note(self, entries: Iterable[NumberedEntry]) -> bool:
        """Note entries; returns whether there was room for the keys of all."""
        for number, position, entry, about, outcome in entries:
            if number >= ENTRIES_MAX:
                return False
            if outcome is TransactionOutcome.HOLDS:
                found = keyed(entry)
                if found is None or not found.is_decided:
                    self.want(number)
                else:
                    keys = found.key_rows()
                    if not self.latest.has_room(len(keys)):
                        return False
                    note(self.latest, keys, number)
                    if self._retains_keyless and keys.has_keyless:
                        self.want(number)
            self.horizon, self.next_index = position, about.index + 1
            self.messages += about.count
        return True

    def want(self, number: int) -> None:
        """Something of that entry may stay, although it may have no last message of a key."""
        self._wanted[number >> 3] |= 1 << (number & 7)
        self._searched = (0, -1)

    def next_wanted(self, number: int) -> int:
        """The first entry from that number on of which something may stay; -1 if there is none."""
        found = [one for one in (self._next_last(number), self._next_marked(number)) if one >= 0]
        return min(found, default=-1)

    def _next_last(self, number: int) -> int:
        orders = memoryview(self.orders).cast("Q")
        at = bisect_right(orders, (number << PLACE_BITS) - 1)
        return orders[at] >> PLACE_BITS if at < len(orders) else -1

    def _next_marked(self, number: int) -> int:
        since, found = self._searched
        if not since <= number <= found:
            found = self._search(number)
            self._searched = (number, found)
        return found if found < NEVER else -1

    def _search(self, number: int) -> int:
        at = number >> 3
        if at >= len(self._wanted):
            return NEVER
        byte = self._wanted[at] >> (number & 7) << (number & 7)
        if not byte:
            found = _SOME.search(self._wanted, at + 1)
            if found is None:
                return NEVER
            at = found.start()
            byte = self._wanted[at]
        return at << 3 | (byte & -byte).bit_length() - 1
