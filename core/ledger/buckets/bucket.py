"""Delayed entries of a log by blocks, and the buckets in which these are stored. Pure.

A *block* is about 1,024 consecutive positions: the second in which each of them is due, 0 for those
that are not delayed, or of which nobody knows. A *bucket* is a sealed ledger of blocks, 16 in an
entry. The property `BUCKETS` of the log names all of them, each with its first and last block:

    ledger:first block:last block:blocks, as in 71:12.0:12.31:32, by blanks

Pulsar's `BucketDelayedDeliveryTracker` (PIP-195) has buckets for each subscription, which a
property of the cursor names. Here all subscriptions of a log share them, because they say nothing
of acknowledgements: an index is never wrong, and may miss anything. An entry that is not in it is
read, as if there were none.

Buckets become one as they grow many (`to_merge`), as Pulsar's do.

Invariants: what is decoded was encoded here, or is `Corrupted`; no entry is due before its second,
which stays true for ever, because entries never change.
"""

from __future__ import annotations

import sys
import zlib
from array import array
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from magnetar.core.kernel.errors import Corrupted

BLOCK_BITS: Final = 10
BLOCK_ENTRIES: Final = 1 << BLOCK_BITS
PLACE_MASK: Final = BLOCK_ENTRIES - 1

BUCKETS: Final = "magnetar.delayed-buckets"
"""Property of the log: its buckets."""
ENTRY_BLOCKS: Final = 16
"""Blocks in an entry of a bucket: 64 KB, and a fraction of it where delays are alike."""
MERGED: Final = 8
"""Buckets that become one."""
UNMERGED_MAX: Final = 32
"""So many buckets may be beside each other before some are merged."""
BUCKET_BLOCKS_MAX: Final = 512
"""Of a bucket that is merged: half a million entries, and 2 MB of memory when it is read."""
LEDGER_BLOCKS_MAX: Final = 1 << 22
"""Four billion entries."""
SECOND_MAX: Final = (1 << 32) - 1
"""In the year 2106. What is due later is read then."""
_BLOCK_BYTES: Final = 4 * BLOCK_ENTRIES
_ENTRY_BYTES_MAX: Final = (_BLOCK_BYTES + 64) * ENTRY_BLOCKS

BlockKey = tuple[int, int]
"""The ledger, and the number of the block in it."""


class DelayedBlock:
    """Delayed entries among 1,024 consecutive ones."""

    __slots__ = ("_seconds", "key")

    def __init__(self, key: BlockKey, seconds: array[int] | None = None) -> None:
        self.key = key
        self._seconds = array("I", bytes(_BLOCK_BYTES)) if seconds is None else seconds

    def add(self, entry_id: int, due_ms: int) -> None:
        """It is delayed."""
        self._seconds[entry_id & PLACE_MASK] = min(due_ms // 1000, SECOND_MAX)

    def waiting(self, place: int, now_ms: int) -> int:
        """Which entries are not due yet: a bit for each, from a place on."""
        now = now_ms // 1000
        bits = ["1" if second > now else "0" for second in reversed(self._seconds[place:])]
        return int("".join(bits), 2)

    def soonest_ms(self, place: int, entries: int) -> int:
        """None of these, a bit for each from a place on, is due before."""
        seconds = self._seconds[place : place + entries.bit_length()]
        if entries & entries + 1:
            seconds = array("I", [one for at, one in enumerate(seconds) if entries >> at & 1])
        return 1000 * min(seconds, default=SECOND_MAX)

    def with_those(self, other: DelayedBlock | None) -> DelayedBlock:
        """What either knows of the same entries."""
        if other is None:
            return self
        return DelayedBlock(self.key, array("I", map(max, self._seconds, other._seconds)))

    @property
    def image(self) -> bytes:
        """As it is stored."""
        return _swapped(self._seconds).tobytes()


def _swapped(seconds: array[int]) -> array[int]:
    """Between the order of this machine and the little end first."""
    if sys.byteorder == "big":
        seconds = seconds[:]
        seconds.byteswap()
    return seconds


class Bucket(NamedTuple):
    """Where blocks are stored."""

    ledger_id: int
    first: BlockKey
    last: BlockKey
    blocks: int

    @property
    def text(self) -> str:
        """As one word of the property."""
        (first, at), (last, to) = self.first, self.last
        return f"{self.ledger_id}:{first}.{at}:{last}.{to}:{self.blocks}"


def buckets_of(properties: Mapping[str, str]) -> list[Bucket]:
    """The buckets that a log names, without words that name none."""
    return [one for word in words_of(properties) if (one := _named(word)) is not None]


def words_of(properties: Mapping[str, str]) -> list[str]:
    """What should be names of buckets."""
    return properties.get(BUCKETS, "").split()


def _named(word: str) -> Bucket | None:
    try:
        ledger_id, first, last, blocks = word.split(":")
        return Bucket(int(ledger_id), _key(first), _key(last), int(blocks))
    except ValueError:
        return None


def _key(text: str) -> BlockKey:
    ledger_id, number = text.split(".")
    return int(ledger_id), _checked(int(number))


def _checked(number: int) -> int:
    if not 0 <= number < LEDGER_BLOCKS_MAX:
        raise ValueError(f"block {number} of a ledger")
    return number


def to_merge(buckets: Sequence[Bucket]) -> Sequence[Bucket]:
    """Neighbours that become one: those with the fewest blocks; none as long as there are few, or
    all are large.
    """
    if len(buckets) < UNMERGED_MAX:
        return ()
    runs = [buckets[at : at + MERGED] for at in range(len(buckets) - MERGED + 1)]
    smallest = min(runs, key=_blocks_in)
    return smallest if _blocks_in(smallest) <= BUCKET_BLOCKS_MAX else ()


def _blocks_in(buckets: Sequence[Bucket]) -> int:
    return sum(one.blocks for one in buckets)


# -- what a bucket's ledger holds -----------------------------------------------------------------

_Image = tuple[int, int, bytes]
"""Ledger, number of the block, seconds of its entries."""
_decode: Final = msgspec.msgpack.Decoder(list[_Image]).decode


def encoded(blocks: Sequence[DelayedBlock]) -> list[bytes]:
    """The entries of a bucket."""
    starts = range(0, len(blocks), ENTRY_BLOCKS)
    return [_entry(blocks[start : start + ENTRY_BLOCKS]) for start in starts]


def _entry(blocks: Sequence[DelayedBlock]) -> bytes:
    images = [(*one.key, one.image) for one in blocks]
    return zlib.compress(msgspec.msgpack.encode(images), 1)


def decoded(entry: bytes) -> list[DelayedBlock]:
    """The blocks of one entry; `Corrupted` if it has none."""
    try:
        images = _decode(zlib.decompressobj().decompress(entry, _ENTRY_BYTES_MAX))
        return [_block(*image) for image in images]
    except (zlib.error, msgspec.MsgspecError, ValueError) as error:
        raise Corrupted(f"these are no blocks of delayed entries: {error}") from error


def _block(ledger_id: int, number: int, image: bytes) -> DelayedBlock:
    seconds = array("I", image)
    if len(seconds) != BLOCK_ENTRIES:
        raise ValueError(f"a block of {len(seconds)} entries")
    return DelayedBlock((ledger_id, _checked(number)), _swapped(seconds))
