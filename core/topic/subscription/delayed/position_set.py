"""A set of positions: one bit each, in a bitmap of its ledger. Pure.

Pulsar's broker keeps delayed entries in bitmaps as well (`InMemoryDelayedDeliveryTracker.java` of
4.2, with Roaring bitmaps).

Invariant: a ledger without members has no bitmap.
"""

from __future__ import annotations

from magnetar.core.ledger.log.chain import Position


class _Members:
    """The members in one ledger."""

    __slots__ = ("bits", "count")

    def __init__(self) -> None:
        self.bits = bytearray()
        self.count = 0

    def has(self, entry_id: int) -> bool:
        return entry_id >> 3 < len(self.bits) and bool(
            self.bits[entry_id >> 3] >> (entry_id & 7) & 1
        )

    def flip(self, entry_id: int) -> None:
        missing = (entry_id >> 3) + 1 - len(self.bits)
        if missing > 0:
            self.bits += bytes(missing)
        self.bits[entry_id >> 3] ^= 1 << (entry_id & 7)

    def add_all(self, entry_id: int, entries: int) -> int:
        """Add some, a bit for each from an entry on; returns those that were not there."""
        start, shift = entry_id >> 3, entry_id & 7
        stop = start + (entries.bit_length() + shift + 7 >> 3)
        self.bits += bytes(max(stop - len(self.bits), 0))
        before = int.from_bytes(self.bits[start:stop], "little")
        new = (entries << shift) & ~before
        self.bits[start:stop] = (before | new).to_bytes(stop - start, "little")
        self.count += new.bit_count()
        return new >> shift

    @property
    def first(self) -> int:
        """The lowest; there is one."""
        at = len(self.bits) - len(self.bits.lstrip(b"\0"))
        return 8 * at + (self.bits[at] & -self.bits[at]).bit_length() - 1

    def clear_to(self, entry_id: int) -> int:
        """Remove those up to an entry; returns how many."""
        whole, over = divmod(min(entry_id + 1, 8 * len(self.bits)), 8)
        removed = int.from_bytes(self.bits[:whole]).bit_count()
        self.bits[:whole] = bytes(whole)
        if over:
            low = self.bits[whole] & ((1 << over) - 1)
            removed += low.bit_count()
            self.bits[whole] ^= low
        self.count -= removed
        return removed


class PositionSet:
    """See the module's docstring."""

    __slots__ = ("_count", "_ledgers")

    def __init__(self) -> None:
        self._ledgers: dict[int, _Members] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def __contains__(self, position: Position) -> bool:
        members = self._ledgers.get(position[0])
        return members is not None and members.has(position[1])

    def add(self, position: Position) -> bool:
        """False if it is there already."""
        ledger_id, entry_id = position
        members = self._ledgers.get(ledger_id)
        if members is None:
            members = self._ledgers[ledger_id] = _Members()
        elif members.has(entry_id):
            return False
        members.flip(entry_id)
        members.count += 1
        self._count += 1
        return True

    def add_all(self, position: Position, entries: int) -> int:
        """Add some of one ledger, at least one, a bit for each from `position` on; returns those
        that were not there.
        """
        ledger_id, entry_id = position
        new = self._ledgers.setdefault(ledger_id, _Members()).add_all(entry_id, entries)
        self._count += new.bit_count()
        return new

    @property
    def first(self) -> Position | None:
        """The lowest; None if there is none."""
        if not self._ledgers:
            return None
        ledger_id = min(self._ledgers)
        return ledger_id, self._ledgers[ledger_id].first

    def discard(self, position: Position) -> bool:
        """False if it is not there."""
        if position not in self:
            return False
        ledger_id, entry_id = position
        members = self._ledgers[ledger_id]
        members.flip(entry_id)
        members.count -= 1
        self._count -= 1
        if not members.count:
            del self._ledgers[ledger_id]
        return True

    def discard_to(self, position: Position) -> None:
        """Remove all up to a position."""
        last_ledger, last_entry = position
        for ledger_id in [each for each in self._ledgers if each <= last_ledger]:
            members = self._ledgers[ledger_id]
            if ledger_id == last_ledger:
                self._count -= members.clear_to(last_entry)
            else:
                self._count -= members.count
                members.count = 0
            if not members.count:
                del self._ledgers[ledger_id]

    def clear(self) -> None:
        self._ledgers.clear()
        self._count = 0
