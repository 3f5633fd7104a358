"""The acknowledgements that open transactions hold in one cursor. Pure.

Theory. A message that is acknowledged in a transaction is *held* by it: it is neither acknowledged
nor delivered again until the transaction ends (`PendingAckHandleImpl.java` of Pulsar 4.2).

    unacknowledged --hold--> held --commit--> acknowledged
                              |
                              +----abort----> unacknowledged, and delivered again

A transaction holds whole entries (ranges, per ledger), messages of batches (bits), and at most one
position up to which it acknowledges everything.

Invariants: a message is held by one transaction at most, and by none if it is acknowledged already:
else the request is refused, and nothing of it is held. Two requests of one transaction for the same
message are one. All of it is stored with the cursor (`image`), in one piece with what is
acknowledged, so that a crash leaves a message held or acknowledged, never lost in between. What
would not fit into a snapshot is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from magnetar.core.entry.form import TransactionKey
from magnetar.core.kernel.errors import Corrupted, NotAllowed, TransactionConflict
from magnetar.core.ledger.cursor.acks import AckState, Ranges
from magnetar.core.ledger.log.chain import START, Position

HELD_MAX: Final = 10_000
"""Ranges and batches that are held in one cursor."""

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


class HeldImage(NamedTuple):
    """What one transaction holds, as it is stored; masks are bytes, since they may be long."""

    key: TransactionKey
    ranges: list[EntryRange]
    parts: list[tuple[int, int, bytes, int]]
    up_to: tuple[int, int, bytes, int] | None


_decode: Final = msgspec.msgpack.Decoder(list[HeldImage]).decode


class _Held:
    """What one transaction holds."""

    __slots__ = ("acked", "ranges", "sizes", "up_to")

    def __init__(self) -> None:
        self.ranges: dict[int, Ranges] = {}
        self.acked: dict[Position, int] = {}
        """Of batches: a 1 for each message that it acknowledges."""
        self.sizes: dict[Position, int] = {}
        self.up_to: HeldPart | None = None

    @property
    def size(self) -> int:
        """How many ranges and batches it holds."""
        return sum(len(one.firsts) for one in self.ranges.values()) + len(self.acked)

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


class PendingAcks:
    """See the module's docstring."""

    __slots__ = ("_acks", "_highest", "held")

    def __init__(self, acks: AckState) -> None:
        self._acks = acks
        self.held: dict[TransactionKey, _Held] = {}
        """What each transaction holds. Empty in most cursors, which look no further."""
        self._highest: Position = START
        """No entry beyond is held."""

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
        return position <= self._highest and any(one.covers(position) for one in self.held.values())

    def left_of(self, position: Position, bits: int | None) -> int | None:
        """The messages of a batch that are neither acknowledged, which `bits` says, nor held."""
        if position > self._highest:
            return bits
        for one in self.held.values():
            held = one.bits(position)
            if held:
                if bits is None:
                    up_to = one.up_to
                    at_end = up_to is not None and position == (up_to[0], up_to[1])
                    size = up_to[3] if at_end and up_to is not None else one.sizes[position]
                    bits = (1 << size) - 1
                bits &= ~held
        return bits

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
        for ledger_id, first, last in ranges:
            for entry_id in range(first, last + 1):
                self._check_whole(key, (ledger_id, entry_id))
        for part in parts:
            self._check_part(key, part)
        held = self.held.get(key) or _Held()
        if self._size + len(ranges) + len(parts) > HELD_MAX:
            raise NotAllowed("too many acknowledgements in open transactions of this subscription")
        self.held[key] = held
        for ledger_id, first, last in ranges:
            held.ranges.setdefault(ledger_id, Ranges()).add(first, last)
            self._highest = max(self._highest, (ledger_id, last))
        for ledger_id, entry_id, unacked, size in parts:
            position = (ledger_id, entry_id)
            acked = ~unacked & ((1 << size) - 1)
            held.acked[position] = held.acked.get(position, 0) | acked
            held.sizes[position] = size
            self._highest = max(self._highest, position)

    def hold_up_to(self, key: TransactionKey, up_to: HeldPart) -> None:
        """Hold everything up to a position; a later one of the same transaction replaces it.

        `TransactionConflict` if all of it is acknowledged, or another transaction does the same.
        """
        position = (up_to[0], up_to[1])
        for other, held in self.held.items():
            if other != key and held.up_to is not None:
                raise TransactionConflict(
                    f"transaction {other} acknowledges up to {held.up_to[0]}:{held.up_to[1]}"
                )
        if position <= self._acks.mark_delete:
            raise TransactionConflict(f"{_named(position)} is acknowledged already")
        held = self.held.get(key) or _Held()
        if held.up_to is not None and position < (held.up_to[0], held.up_to[1]):
            raise TransactionConflict("this transaction acknowledges up to a later message")
        held.up_to = up_to
        self.held[key] = held
        self._highest = max(self._highest, position)

    @property
    def _size(self) -> int:
        return sum(held.size for held in self.held.values())

    def _check_whole(self, key: TransactionKey, position: Position) -> None:
        if self._acks.is_acked(position):
            raise TransactionConflict(f"{_named(position)} is acknowledged already")
        for other, held in self.held.items():
            if other != key and (held.covers(position) or held.bits(position)):
                raise TransactionConflict(f"transaction {other} acknowledges {_named(position)}")

    def _check_part(self, key: TransactionKey, part: HeldPart) -> None:
        position, acked = (part[0], part[1]), ~part[2] & ((1 << part[3]) - 1)
        if self._acks.is_acked(position):
            raise TransactionConflict(f"{_named(position)} is acknowledged already")
        left = self._acks.bits(position)
        if left is not None and acked & ~left:
            raise TransactionConflict(f"a message of {_named(position)} is acknowledged already")
        for other, held in self.held.items():
            if other != key and (held.covers(position) or held.bits(position) & acked):
                raise TransactionConflict(f"transaction {other} acknowledges {_named(position)}")

    # -- the end --------------------------------------------------------------------------------

    def release(self, key: TransactionKey) -> Released:
        """The transaction ends: hold nothing of it any more. Returns what it held."""
        held = self.held.pop(key, None)
        if not self.held:
            self._highest = START
        return NOTHING if held is None else held.released()

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
        return msgspec.msgpack.encode(images)

    def restore(self, image: bytes) -> None:
        """Take over what a snapshot has; `Corrupted` if it cannot be read."""
        self.held, self._highest = {}, START
        if not image:
            return
        try:
            images = _decode(image)
        except msgspec.MsgspecError as error:
            raise Corrupted(f"held acknowledgements cannot be read: {error}") from error
        for key, ranges, parts, up_to in images:
            held = self.held[key] = _Held()
            for ledger_id, first, last in ranges:
                held.ranges.setdefault(ledger_id, Ranges()).add(first, last)
                self._highest = max(self._highest, (ledger_id, last))
            for part in parts:
                ledger_id, entry_id, unacked, size = _unpacked(part)
                position = (ledger_id, entry_id)
                held.acked[position] = ~unacked & ((1 << size) - 1)
                held.sizes[position] = size
                self._highest = max(self._highest, position)
            if up_to is not None:
                held.up_to = _unpacked(up_to)
                self._highest = max(self._highest, (up_to[0], up_to[1]))

    def counts(self) -> Mapping[TransactionKey, int]:
        """How many ranges and batches each transaction holds."""
        return {key: held.size for key, held in self.held.items()}


def _named(position: Position) -> str:
    return f"{position[0]}:{position[1]}"


def _packed(part: HeldPart) -> tuple[int, int, bytes, int]:
    return part[0], part[1], part[2].to_bytes(-(-part[2].bit_length() // 8), "little"), part[3]


def _unpacked(part: tuple[int, int, bytes, int]) -> HeldPart:
    return part[0], part[1], int.from_bytes(part[2], "little"), part[3]
