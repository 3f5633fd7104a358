"""The acknowledgements that open transactions hold in one cursor. Pure.

Theory. A message that is acknowledged in a transaction is *held* by it: it is neither acknowledged
nor delivered again until the transaction ends (`PendingAckHandleImpl.java` of Pulsar 4.2).

    unacknowledged --hold--> held --commit--> acknowledged
                              |
                              +----abort----> unacknowledged, and delivered again

A transaction holds whole entries (ranges, per ledger), messages of batches (bits), and at most one
position up to which it acknowledges everything.

Invariants: a message is held one by one by at most one transaction, and by none if it is
acknowledged already, or another one acknowledges everything up to it: else the request is refused,
and nothing of it is held. In the other order it is not refused, as in Pulsar: who acknowledges up
to a position passes over what others hold below, and if it commits, that is acknowledged, whatever
becomes of them. Two requests of one transaction for the same message are one. All of it is stored
with the cursor (`image`), in one piece with what is acknowledged, so that a crash leaves a message
held or acknowledged, never lost in between. What would not fit into a snapshot is refused.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from magnetar.core.entry.form import TransactionKey
from magnetar.core.kernel.errors import NotAllowed, TransactionConflict
from magnetar.core.ledger.cursor.acks import AckState, Ranges, bits_of
from magnetar.core.ledger.cursor.held_image import HeldImage, decode, encode
from magnetar.core.ledger.log.chain import START, Position

HELD_MAX: Final = 10_000
"""Ranges and batches that are held in one cursor; long masks count as several."""
ENTRIES_MAX: Final = 50_000
"""Whole entries in the ranges of one cursor, however few these are: each is looked at when it is
held, and comes back by itself if its transaction is aborted. One position up to which a transaction
acknowledges everything is none of them."""
MASK_BITS: Final = 256
"""A mask of so many bits counts as one range."""
BATCH_MAX: Final = 3 << 20
"""Messages of a batch. Clients state how many there are, and that sizes a mask."""

EntryRange = tuple[int, int, int]
"""Ledger, first entry, last entry."""
HeldPart = tuple[int, int, int, int]
"""Ledger, entry, mask of messages that are not acknowledged, size of the batch."""


class Released(NamedTuple):
    """What a transaction held."""

    ranges: Sequence[EntryRange]
    parts: Sequence[HeldPart]
    up_to: HeldPart | None
    """The position up to which it acknowledges everything; a size of 0 is the whole entry."""


NOTHING: Final = Released((), (), None)


class _Held:
    """What one transaction holds."""

    __slots__ = ("acked", "masks", "ranges", "sizes", "up_to")

    def __init__(self) -> None:
        self.ranges: dict[int, Ranges] = {}
        self.acked: dict[Position, int] = {}
        """Of batches: a 1 for each message that it acknowledges."""
        self.sizes: dict[Position, int] = {}
        self.up_to: HeldPart | None = None
        self.masks = 0
        """What its batches count of `HELD_MAX`."""

    @property
    def size(self) -> int:
        """How many ranges and batches it holds."""
        return self._ranges_size + len(self.acked)

    @property
    def weight(self) -> int:
        """What it counts of `HELD_MAX`."""
        return self._ranges_size + self.masks

    @property
    def _ranges_size(self) -> int:
        return sum(len(one.firsts) for one in self.ranges.values())

    def add_part(self, position: Position, acked: int, size: int) -> None:
        """Hold messages of a batch."""
        before = self.sizes.get(position)
        if before is not None:
            self.masks -= _weight(before)
        self.masks += _weight(size)
        self.acked[position] = self.acked.get(position, 0) | acked
        self.sizes[position] = size

    def covers(self, position: Position) -> bool:
        """Whether it holds the whole entry."""
        if self.up_to is not None:
            limit = (self.up_to[0], self.up_to[1])
            if position < limit or (position == limit and not self.up_to[3]):
                return True
        ranges = self.ranges.get(position[0])
        return ranges is not None and ranges.last_of_range(position[1]) is not None

    def bits(self, position: Position) -> int:
        """A 1 for each message of a batch that it holds, if it does not hold all of it."""
        bits = self.acked.get(position, 0)
        if self.up_to is not None and position == (self.up_to[0], self.up_to[1]):
            bits |= ~self.up_to[2] & ((1 << self.up_to[3]) - 1)
        return bits

    def released(self) -> Released:
        ranges = [
            (ledger_id, first, last)
            for ledger_id, one in sorted(self.ranges.items())
            for first, last in zip(one.firsts, one.lasts, strict=True)
        ]
        parts = [
            (*position, ~acked & ((1 << self.sizes[position]) - 1), self.sizes[position])
            for position, acked in sorted(self.acked.items())
        ]
        return Released(ranges, parts, self.up_to)


class EntryHolders:
    """Which transaction holds each whole entry of one ledger: ranges in order, none in two."""

    __slots__ = ("_firsts", "_keys", "_lasts")

    def __init__(self) -> None:
        self._firsts: list[int] = []
        self._lasts: list[int] = []
        self._keys: list[TransactionKey] = []

    def of(self, entry_id: int) -> TransactionKey | None:
        at = bisect_right(self._firsts, entry_id) - 1
        return self._keys[at] if at >= 0 and entry_id <= self._lasts[at] else None

    def other(self, key: TransactionKey, first: int, last: int) -> TransactionKey | None:
        """Another transaction that holds one of these entries."""
        at = bisect_left(self._lasts, first)
        while at < len(self._keys) and self._firsts[at] <= last:
            if self._keys[at] != key:
                return self._keys[at]
            at += 1
        return None

    def among(self, first: int, entries: int) -> int:
        """Which of consecutive entries somebody holds: a bit for each."""
        begin = bisect_left(self._lasts, first)
        end = bisect_right(self._firsts, first + entries - 1)
        return bits_of(self._firsts[begin:end], self._lasts[begin:end], first, entries)

    def add(self, key: TransactionKey, first: int, last: int) -> None:
        """Nobody else holds any of them; neighbours of the same transaction become one range."""
        begin = bisect_left(self._lasts, first)
        if begin and self._keys[begin - 1] == key and self._lasts[begin - 1] == first - 1:
            begin -= 1
        end = begin
        while end < len(self._keys) and self._firsts[end] <= last + (self._keys[end] == key):
            first, last = min(first, self._firsts[end]), max(last, self._lasts[end])
            end += 1
        self._firsts[begin:end], self._lasts[begin:end] = [first], [last]
        self._keys[begin:end] = [key]

    def remove(self, first: int, last: int) -> None:
        """A whole range goes."""
        begin, end = bisect_left(self._lasts, first), bisect_right(self._firsts, last)
        del self._firsts[begin:end], self._lasts[begin:end], self._keys[begin:end]

    def __bool__(self) -> bool:
        return bool(self._keys)


class PendingAcks:
    """See the module's docstring."""

    __slots__ = ("_acks", "_entries", "_highest", "_parts", "_up_to", "_weight", "_whole", "held")

    def __init__(self, acks: AckState) -> None:
        self._acks = acks
        self.held: dict[TransactionKey, _Held] = {}
        """What each transaction holds. Empty in most cursors, which look no further."""
        self._highest: Position = START
        """No entry beyond is held."""
        self._weight = 0
        """What all of them count of `HELD_MAX`."""
        self._entries = 0
        """What the ranges of all of them count of `ENTRIES_MAX`."""
        self._whole: dict[int, EntryHolders] = {}
        self._parts: dict[Position, list[TransactionKey]] = {}
        """Who holds messages of a batch. With these, no question goes through all transactions."""
        self._up_to: TransactionKey | None = None
        """The one that acknowledges everything up to a position."""

    def __bool__(self) -> bool:
        return bool(self.held)

    def __contains__(self, key: TransactionKey) -> bool:
        return key in self.held

    @property
    def keys(self) -> list[TransactionKey]:
        """The transactions that hold anything."""
        return list(self.held)

    # -- questions of dispatch ------------------------------------------------------------------

    def may_cover(self, position: Position) -> bool:
        """Whether an entry from there on may be held."""
        return position <= self._highest and bool(self.held)

    def covers(self, position: Position) -> bool:
        """Whether a transaction holds the whole entry."""
        if position > self._highest:
            return False
        holders = self._whole.get(position[0])
        if holders is not None and holders.of(position[1]) is not None:
            return True
        return self._up_to is not None and self.held[self._up_to].covers(position)

    def held_among(self, position: Position, entries: int) -> int:
        """Which of consecutive entries of a ledger are held whole: a bit for each."""
        ledger_id, first = position
        holders, held = self._whole.get(ledger_id), 0
        if holders is not None:
            held = holders.among(first, entries)
        up_to = None if self._up_to is None else self.held[self._up_to].up_to
        if up_to is not None and position <= (up_to[0], up_to[1]):
            passed = entries
            if up_to[0] == ledger_id:  # at its end it may hold some messages of a batch
                passed = min(up_to[1] - first + (0 if up_to[3] else 1), entries)
            held |= (1 << passed) - 1
        return held

    def left_of(self, position: Position, bits: int | None) -> int | None:
        """The messages of a batch that are neither acknowledged, which `bits` says, nor held."""
        if position > self._highest:
            return bits
        for one in self._with_bits(position):
            held = one.bits(position)
            if held:
                if bits is None:
                    up_to = one.up_to
                    at_end = up_to is not None and position == (up_to[0], up_to[1])
                    size = up_to[3] if at_end and up_to is not None else one.sizes[position]
                    bits = (1 << size) - 1
                bits &= ~held
        return bits

    def _with_bits(
        self, position: Position, without: TransactionKey | None = None
    ) -> Iterator[_Held]:
        """Those that may hold messages of a batch, but for one."""
        keys = self._parts.get(position, ())
        for key in keys:
            if key != without:
                yield self.held[key]
        if self._up_to is not None and self._up_to != without and self._up_to not in keys:
            yield self.held[self._up_to]

    def up_to(self, key: TransactionKey) -> Position | None:
        """Up to where a transaction acknowledges everything; None if it does not."""
        held = self.held.get(key)
        return None if held is None or held.up_to is None else (held.up_to[0], held.up_to[1])

    # -- holding --------------------------------------------------------------------------------

    def hold(
        self, key: TransactionKey, ranges: Iterable[EntryRange], parts: Iterable[HeldPart]
    ) -> None:
        """Hold entries and messages of batches, all of them or none.

        `TransactionConflict` if any is acknowledged, or held by another transaction.
        """
        ranges, parts = list(ranges), list(parts)
        more = len(ranges) + sum(_weight(_checked(part[3])) for part in parts)
        entries = sum(last - first + 1 for _, first, last in ranges)
        if self._weight + more > HELD_MAX or self._entries + entries > ENTRIES_MAX:
            raise NotAllowed("too many acknowledgements in open transactions of this subscription")
        for each in ranges:
            self._check_whole(key, each)
        for part in parts:
            self._check_part(key, part)
        if not ranges and not parts:
            return
        held = self.held.setdefault(key, _Held())
        self._weight -= held.weight
        for ledger_id, first, last in ranges:
            self._add_range(key, held, (ledger_id, first, last))
        for part in parts:
            self._add_part(key, held, part)
        self._weight += held.weight

    def _add_range(self, key: TransactionKey, held: _Held, added: EntryRange) -> None:
        ledger_id, first, last = added
        self._entries += held.ranges.setdefault(ledger_id, Ranges()).add(first, last)
        self._whole.setdefault(ledger_id, EntryHolders()).add(key, first, last)
        self._highest = max(self._highest, (ledger_id, last))

    def _add_part(self, key: TransactionKey, held: _Held, part: HeldPart) -> None:
        ledger_id, entry_id, unacked, size = part
        position = (ledger_id, entry_id)
        if position not in held.acked:
            self._parts.setdefault(position, []).append(key)
        held.add_part(position, ~unacked & ((1 << size) - 1), size)
        self._highest = max(self._highest, position)

    def hold_up_to(self, key: TransactionKey, up_to: HeldPart) -> None:
        """Hold everything up to a position; a later one of the same transaction replaces it, and at
        the same position the messages of both are held.

        `TransactionConflict` if all of it is acknowledged, or another transaction does the same.
        """
        position = (up_to[0], up_to[1])
        _checked(up_to[3])
        if self._up_to is not None and self._up_to != key:
            at = self.held[self._up_to].up_to
            where = "" if at is None else f" up to {at[0]}:{at[1]}"
            raise TransactionConflict(f"transaction {self._up_to} acknowledges{where}")
        if position <= self._acks.mark_delete:
            raise TransactionConflict(f"{_named(position)} is acknowledged already")
        held = self.held.get(key) or _Held()
        if held.up_to is not None and position < (held.up_to[0], held.up_to[1]):
            raise TransactionConflict("this transaction acknowledges up to a later message")
        held.up_to = up_to if held.up_to is None else _joined(held.up_to, up_to)
        self.held[key] = held
        self._up_to = key
        self._highest = max(self._highest, position)

    def _check_whole(self, key: TransactionKey, wanted: EntryRange) -> None:
        ledger_id, first, last = wanted
        holders = self._whole.get(ledger_id)
        other = None if holders is None else holders.other(key, first, last)
        if other is not None:
            raise TransactionConflict(f"transaction {other} acknowledges some of {wanted}")
        for entry_id in range(first, last + 1):
            position = (ledger_id, entry_id)
            if self._acks.is_acked(position):
                raise TransactionConflict(f"{_named(position)} is acknowledged already")
            if self._up_to is None and not self._parts:
                continue
            if self._passed_by_other(key, position) or any(
                held.bits(position) for held in self._with_bits(position, key)
            ):
                raise TransactionConflict(f"another transaction acknowledges {_named(position)}")

    def _check_part(self, key: TransactionKey, part: HeldPart) -> None:
        position, acked = (part[0], part[1]), ~part[2] & ((1 << part[3]) - 1)
        if self._acks.is_acked(position):
            raise TransactionConflict(f"{_named(position)} is acknowledged already")
        left = self._acks.bits(position)
        if left is not None and acked & ~left:
            raise TransactionConflict(f"a message of {_named(position)} is acknowledged already")
        holders = self._whole.get(position[0])
        other = None if holders is None else holders.of(position[1])
        if (
            other not in (None, key)
            or self._passed_by_other(key, position)
            or any(held.bits(position) & acked for held in self._with_bits(position, key))
        ):
            raise TransactionConflict(f"another transaction acknowledges {_named(position)}")

    def _passed_by_other(self, key: TransactionKey, position: Position) -> bool:
        """Whether another one acknowledges everything up to there."""
        other = self._up_to
        return other is not None and other != key and self.held[other].covers(position)

    # -- the end --------------------------------------------------------------------------------

    def release(self, key: TransactionKey) -> Released:
        """The transaction ends: hold nothing of it any more. Returns what it held."""
        held = self.held.pop(key, None)
        if held is not None:
            self._weight -= held.weight
            self._entries -= sum(ranges.count() for ranges in held.ranges.values())
            self._forget(key, held)
        if not self.held:
            self._highest = START
        return NOTHING if held is None else held.released()

    def _forget(self, key: TransactionKey, held: _Held) -> None:
        """Drop it from what questions are answered by."""
        if self._up_to == key:
            self._up_to = None
        for ledger_id, ranges in held.ranges.items():
            holders = self._whole[ledger_id]
            for first, last in zip(ranges.firsts, ranges.lasts, strict=True):
                holders.remove(first, last)
            if not holders:
                del self._whole[ledger_id]
        for position in held.acked:
            keys = self._parts[position]
            keys.remove(key)
            if not keys:
                del self._parts[position]

    # -- what is stored ---------------------------------------------------------------------------

    def image(self) -> bytes:
        """All of it for a snapshot; empty for nothing."""
        if not self.held:
            return b""
        images = []
        for key, held in self.held.items():
            ranges, parts, up_to = held.released()
            packed = [_packed(part) for part in parts]
            images.append(
                HeldImage(key, list(ranges), packed, None if up_to is None else _packed(up_to))
            )
        return encode(images)

    def restore(self, image: bytes) -> None:
        """Take over what a snapshot has; `Corrupted` if it cannot be read."""
        self.held, self._highest, self._weight, self._entries = {}, START, 0, 0
        self._whole, self._parts, self._up_to = {}, {}, None
        if not image:
            return
        images = decode(image)
        for key, ranges, parts, up_to in images:
            held = self.held[key] = _Held()
            for each in ranges:
                self._add_range(key, held, each)
            for part in parts:
                self._add_part(key, held, _unpacked(part))
            self._weight += held.weight
            if up_to is not None:
                held.up_to, self._up_to = _unpacked(up_to), key
                self._highest = max(self._highest, (up_to[0], up_to[1]))

    def counts(self) -> Mapping[TransactionKey, int]:
        """How many ranges and batches each transaction holds."""
        return {key: held.size for key, held in self.held.items()}


def _weight(size: int) -> int:
    """What the mask of a batch counts of `HELD_MAX`."""
    return 1 + size // MASK_BITS


def _checked(size: int) -> int:
    """The size of a batch, before anything of that size is made."""
    if not 0 <= size <= BATCH_MAX:
        raise NotAllowed(f"a batch has no {size} messages")
    return size


def _joined(before: HeldPart, after: HeldPart) -> HeldPart:
    """What both acknowledge; `after` is of the same entry, or of a later one."""
    if before[:2] != after[:2] or not after[3]:
        return after
    if not before[3]:
        return before
    unacked = before[2] & after[2] if before[3] == after[3] else after[2]
    return (*after[:2], unacked, after[3])


def _named(position: Position) -> str:
    return f"{position[0]}:{position[1]}"


def _packed(part: HeldPart) -> tuple[int, int, bytes, int]:
    return part[0], part[1], part[2].to_bytes(-(-part[2].bit_length() // 8), "little"), part[3]


def _unpacked(part: tuple[int, int, bytes, int]) -> HeldPart:
    return part[0], part[1], int.from_bytes(part[2], "little"), part[3]
