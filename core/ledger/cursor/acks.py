"""The acknowledgements of one cursor. Pure.

Theory. Everything up to and including `mark_delete` is acknowledged. After it, single entries may
be acknowledged: per ledger, sorted disjoint ranges that never touch (`individualDeletedMessages` of
Pulsar's `ManagedCursorImpl`). Of a batch, single messages may be acknowledged (PIP-54): a bitmask
has a 1 for each that is NOT acknowledged, as in Pulsar's `ack_set`.

    acknowledged  [..............]x[.......]  x  x  [..]      (. acknowledged, x not)
                                 ^ mark_delete  ranges ^

When a range touches mark_delete, mark_delete moves to its end; at the end of a ledger it continues
in the next one of the chain.

Invariants: no range is before or adjacent to `mark_delete`; an entry has bits only while it is not
acknowledged, and then at least one; `acked_beyond` is the number of entries in all ranges; only
entries that exist are acknowledged, whatever a client sends. In a compacted ledger, batches are
acknowledged whole or not at all, because their messages may have other places.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator

from magnetar.core.ledger.log.chain import Chain, Position
from magnetar.core.ledger.log.remaining_entries import RemainingEntries

Range = tuple[Position, Position]
"""Open-closed: (the position before the first, the last], as cursors are stored."""


class Ranges:
    """Acknowledged entries of one ledger: sorted disjoint closed intervals that never touch."""

    __slots__ = ("firsts", "lasts")

    def __init__(self) -> None:
        self.firsts: list[int] = []
        self.lasts: list[int] = []

    def add(self, first: int, last: int) -> int:
        """Add a range; returns how many entries are new."""
        firsts, lasts = self.firsts, self.lasts
        # the usual case: just behind the last range
        if lasts and first == lasts[-1] + 1:
            lasts[-1] = last
            return last - first + 1
        # the ranges from `low` up to `high` touch or overlap the new one and melt into it
        low = bisect_left(lasts, first - 1)
        high = bisect_right(firsts, last + 1)
        if low == high:
            firsts.insert(low, first)
            lasts.insert(low, last)
            return last - first + 1
        known = sum(lasts[i] - firsts[i] + 1 for i in range(low, high))
        first, last = min(first, firsts[low]), max(last, lasts[high - 1])
        firsts[low:high] = (first,)
        lasts[low:high] = (last,)
        return last - first + 1 - known

    def last_of_range(self, entry_id: int) -> int | None:
        """The end of the range that contains `entry_id`; None if there is none."""
        at = bisect_right(self.firsts, entry_id) - 1
        return self.lasts[at] if at >= 0 and self.lasts[at] >= entry_id else None

    def drop_up_to(self, entry_id: int) -> int:
        """Remove all entries up to this one; returns how many there were."""
        firsts, lasts = self.firsts, self.lasts
        gone = bisect_right(lasts, entry_id)
        dropped = sum(lasts[i] - firsts[i] + 1 for i in range(gone))
        del firsts[:gone], lasts[:gone]
        if firsts and firsts[0] <= entry_id:
            dropped += entry_id - firsts[0] + 1
            firsts[0] = entry_id + 1
        return dropped

    def count(self) -> int:
        return sum(self.lasts) - sum(self.firsts) + len(self.firsts)


def bits_of(firsts: list[int], lasts: list[int], begin: int, entries: int) -> int:
    """Which of consecutive entries are in some closed ranges, that reach into them: a bit each."""
    found, stop = 0, begin + entries
    for first, last in zip(firsts, lasts, strict=True):
        low, high = max(first, begin), min(last + 1, stop)
        found |= ((1 << (high - low)) - 1) << (low - begin)
    return found


class AckState:
    """See the module's docstring."""

    __slots__ = (
        "_bits",
        "_chain",
        "_ended",
        "_ranges",
        "_remaining",
        "_rewritten",
        "acked_beyond",
        "mark_delete",
    )

    def __init__(self, chain: Chain, mark_delete: Position) -> None:
        self.mark_delete = mark_delete
        """Everything up to here is acknowledged."""
        self.acked_beyond = 0
        """Entries acknowledged after `mark_delete`."""
        self._chain = chain
        self._ranges: dict[int, Ranges] = {}
        self._bits: dict[Position, int] = {}
        self._ended: Position = (-1, -1)
        """The last entry of the closed ledger that was looked up last."""
        self._remaining: RemainingEntries | None = None
        """What compaction left of that ledger."""
        self._rewritten = chain.rewritten

    # -- questions ----------------------------------------------------------------------------

    @property
    def holed(self) -> bool:
        """Whether any entry after `mark_delete` is acknowledged, wholly or in part."""
        return bool(self._ranges or self._bits)

    def is_acked(self, position: Position) -> bool:
        if position <= self.mark_delete:
            return True
        ranges = self._ranges.get(position[0])
        return ranges is not None and ranges.last_of_range(position[1]) is not None

    def acked_among(self, position: Position, entries: int) -> int:
        """Which of consecutive entries of a ledger are acknowledged: a bit for each."""
        ledger_id, first = position
        marked_ledger, marked = self.mark_delete
        if ledger_id < marked_ledger:
            return (1 << entries) - 1
        acked = 0
        if ledger_id == marked_ledger and marked >= first:
            acked = (1 << min(marked + 1 - first, entries)) - 1
        ranges = self._ranges.get(ledger_id)
        if ranges is not None:
            begin = bisect_left(ranges.lasts, first)
            end = bisect_right(ranges.firsts, first + entries - 1)
            acked |= bits_of(ranges.firsts[begin:end], ranges.lasts[begin:end], first, entries)
        return acked

    def bits(self, position: Position) -> int | None:
        """The unacknowledged messages of a batch; None if that is all or none of them."""
        return self._bits.get(position)

    def next_unacked(self, position: Position) -> Position:
        """The first entry from `position` on that is not acknowledged; it may not exist yet."""
        chain = self._chain
        if position <= self.mark_delete:
            position = chain.after(self.mark_delete)
        position = chain.normal(position)
        while (ranges := self._ranges.get(position[0])) is not None:
            last = ranges.last_of_range(position[1])
            if last is None:
                break
            position = chain.after((position[0], last))
        return position

    # -- acknowledgements ---------------------------------------------------------------------

    def ack_range(self, ledger_id: int, first: int, last: int) -> int:
        """Acknowledge entries `first`..`last`; returns how many were not before."""
        confirmed_ledger, confirmed = self._chain.confirmed
        if ledger_id != confirmed_ledger or last > confirmed:
            last = min(last, self._end_of(ledger_id))
            if self._remaining is not None and self._ended[0] == ledger_id:
                return self._ack_remaining(self._remaining, ledger_id, first, last)
        marked_ledger, marked = self.mark_delete
        if ledger_id == marked_ledger and first <= marked + 1:
            if last <= marked:
                return 0
            first = marked + 1
            if not self._ranges:
                # all is in order: there is nothing to touch
                self.mark_delete = (ledger_id, last)
                if self._bits:
                    self._drop_bits(ledger_id, first, last)
                return last - marked
        elif ledger_id < marked_ledger:
            return 0
        first = max(first, 0)
        if last < first:
            return 0
        return self._ack_beyond(ledger_id, first, last)

    def _ack_remaining(
        self, remaining: RemainingEntries, ledger_id: int, first: int, last: int
    ) -> int:
        """As `ack_range`, in a compacted ledger."""
        marked_ledger, marked = self.mark_delete
        if ledger_id < marked_ledger:
            return 0
        if ledger_id == marked_ledger:
            first = max(first, marked + 1)
        runs = list(remaining.runs(first, last))
        return sum([self._ack_beyond(ledger_id, *run) for run in runs])

    def _ack_beyond(self, ledger_id: int, first: int, last: int) -> int:
        ranges = self._ranges.get(ledger_id)
        if ranges is None:
            ranges = self._ranges[ledger_id] = Ranges()
        new = ranges.add(first, last)
        self.acked_beyond += new
        if self._bits:
            self._drop_bits(ledger_id, first, last)
        if ranges.firsts[0] == first:
            self._advance()
        return new

    def ack_bits(self, position: Position, unacked: int, size: int) -> bool:
        """Acknowledge the messages of a batch of `size` that have no bit in `unacked`.

        Returns whether the entry is acknowledged whole by this. A `size` of 0 is unknown.
        """
        if self.is_acked(position) or not 0 <= position[1] <= self._end_of(position[0]):
            return False
        if 0 < size < unacked.bit_length():
            unacked &= (1 << size) - 1
        before = self._bits.get(position)
        if before is not None:
            unacked &= before
        elif size and unacked.bit_count() == size:
            return False
        if not unacked:
            return self.ack_range(position[0], position[1], position[1]) > 0
        if self._remaining is not None and self._ended[0] == position[0]:
            return False
        self._bits[position] = unacked
        return False

    def cumulative(self, position: Position, unacked: int | None = None, size: int = 0) -> int:
        """Acknowledge everything up to `position`; returns how many entries were not before.

        With `unacked`, everything before `position`, and its messages without a bit there.
        """
        if position > self._chain.confirmed:
            position, unacked = self._chain.confirmed, None
        ledger_id, entry_id = position
        whole = entry_id if unacked is None else entry_id - 1
        end = self._end_of(ledger_id)
        # a ledger that the log has no longer may have been read compacted
        if end >= 0 or self._chain.segment_of(ledger_id) is not None:
            whole = min(whole, end)
        target = (ledger_id, max(whole, -1))
        before, beyond = self.mark_delete, self.acked_beyond
        if target > before:
            self.mark_delete = target
            self._drop_ranges()
            self._advance()
        if unacked is not None:
            self.ack_bits(position, unacked, size)
        passed = self._chain.entries_between(before, self.mark_delete)
        return passed + self.acked_beyond - beyond

    def _advance(self) -> None:
        """Move mark_delete over adjacent ranges, also into the next ledgers."""
        while self._ranges:
            ledger_id, entry_id = self._chain.after(self.mark_delete)
            ranges = self._ranges.get(ledger_id)
            if ranges is None or ranges.firsts[0] != entry_id:
                break
            self.mark_delete = (ledger_id, ranges.lasts[0])
            self.acked_beyond -= ranges.lasts[0] - entry_id + 1
            del ranges.firsts[0], ranges.lasts[0]
            if not ranges.firsts:
                del self._ranges[ledger_id]

    def _drop_ranges(self) -> None:
        """mark_delete has jumped: drop ranges and bits up to it."""
        ledger_id, entry_id = self.mark_delete
        for known in [known for known in self._ranges if known < ledger_id]:
            self.acked_beyond -= self._ranges.pop(known).count()
        ranges = self._ranges.get(ledger_id)
        if ranges is not None:
            self.acked_beyond -= ranges.drop_up_to(entry_id)
            if not ranges.firsts:
                del self._ranges[ledger_id]
        if self._bits:
            mark = self.mark_delete
            self._bits = {p: bits for p, bits in self._bits.items() if p > mark}

    def _drop_bits(self, ledger_id: int, first: int, last: int) -> None:
        """Drop the bits of entries that are acknowledged whole."""
        if last - first < len(self._bits):
            for entry_id in range(first, last + 1):
                self._bits.pop((ledger_id, entry_id), None)
        else:
            low, high = (ledger_id, first), (ledger_id, last)
            self._bits = {p: bits for p, bits in self._bits.items() if not low <= p <= high}

    def _end_of(self, ledger_id: int) -> int:
        """The last readable entry of a ledger; -1 if there is none, or no such ledger."""
        confirmed = self._chain.confirmed
        if ledger_id == confirmed[0]:
            return confirmed[1]
        if ledger_id > confirmed[0]:
            return -1
        # a ledger before the confirmed one has ended, so the answer holds for some time
        if self._ended[0] != ledger_id or self._rewritten != self._chain.rewritten:
            segment = self._chain.segment_of(ledger_id)
            if segment is None:
                return -1
            self._ended = (ledger_id, self._chain.last_entry_of(segment))
            self._remaining, self._rewritten = segment.remaining, self._chain.rewritten
        return self._ended[1]

    # -- moving and storing -------------------------------------------------------------------

    def reset(self, mark_delete: Position) -> None:
        """Acknowledge everything up to `mark_delete`, and nothing after it."""
        self.mark_delete = mark_delete
        self.acked_beyond = 0
        self._ranges = {}
        self._bits = {}

    def compacted(self) -> None:
        """Compaction has removed entries: drop their ranges and bits."""
        self.restore(self.mark_delete, self.ranges(len(self)), self.partial(len(self._bits)))

    def restore(
        self,
        mark_delete: Position,
        ranges: Iterable[Range],
        bits: Iterable[tuple[Position, int]],
    ) -> None:
        """Restore stored acknowledgements, without those of entries that no longer exist."""
        self.reset(mark_delete)
        for (low_ledger, low), (high_ledger, high) in ranges:
            if low_ledger == high_ledger:
                self.ack_range(high_ledger, low + 1, high)
                continue
            # other brokers let a range begin in one ledger and end in another
            for segment in self._chain.segments:
                if low_ledger <= segment.ledger_id <= high_ledger:
                    first = low + 1 if segment.ledger_id == low_ledger else 0
                    last = self._chain.last_entry_of(segment)
                    if segment.ledger_id == high_ledger:
                        last = min(last, high)
                    self.ack_range(segment.ledger_id, first, last)
        for position, unacked in bits:
            self.ack_bits(position, unacked, 0)

    def ranges(self, ranges_max: int) -> list[Range]:
        """The lowest ranges, for storage, up to a number."""
        stored: list[Range] = []
        for ledger_id in sorted(self._ranges):
            ranges = self._ranges[ledger_id]
            for first, last in zip(ranges.firsts, ranges.lasts, strict=True):
                if len(stored) == ranges_max:
                    return stored
                stored.append(((ledger_id, first - 1), (ledger_id, last)))
        return stored

    def partial(self, batches_max: int) -> list[tuple[Position, int]]:
        """The lowest batches with bits, for storage, up to a number."""
        return sorted(self._bits.items())[:batches_max]

    def __iter__(self) -> Iterator[Range]:
        """All ranges, lowest first."""
        return iter(self.ranges(len(self)))

    @property
    def highest(self) -> Position:
        """The highest entry that is acknowledged, wholly or in part. Looks at all batches."""
        found = self.mark_delete
        if self._ranges:
            ledger_id = max(self._ranges)
            found = max(found, (ledger_id, self._ranges[ledger_id].lasts[-1]))
        return max(found, max(self._bits)) if self._bits else found

    @property
    def parts(self) -> int:
        """The number of batches that are acknowledged in part."""
        return len(self._bits)

    def __len__(self) -> int:
        """The number of ranges."""
        return sum(len(ranges.firsts) for ranges in self._ranges.values())
