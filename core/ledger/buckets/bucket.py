"""Delayed entries of a log by blocks, and the buckets in which these are stored. Pure.

A *block* is about 1,024 consecutive positions: which of them are delayed, a bit for each, and a
time before which none of those is due. A *bucket* is a sealed ledger of blocks, 64 in an entry. The
property `BUCKETS` of the log names all of them, each with its first and last block:

    ledger:first block:last block:blocks, as in 71:12.0:12.31:32, by blanks

Pulsar's `BucketDelayedDeliveryTracker` (PIP-195) has a bucket for each subscription, with the time
of each message, and names it in a property of the cursor. Here all subscriptions of a log share
them, because it says nothing of acknowledgements: it is never wrong, and may miss anything. An
entry without a bit is read, as if there were no index.

Buckets become one as they grow many (`to_merge`), as Pulsar's do.

Invariants: what is decoded was encoded here, or is `Corrupted`; a bit stays true for ever, because
entries never change.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from magnetar.core.kernel.errors import Corrupted

BLOCK_BITS: Final = 10
BLOCK_ENTRIES: Final = 1 << BLOCK_BITS
PLACE_MASK: Final = BLOCK_ENTRIES - 1

BUCKETS: Final = "magnetar.delayed-buckets"
"""Property of the log: its buckets."""
ENTRY_BLOCKS: Final = 64
"""Blocks in an entry of a bucket: 9 KB, mostly compressed to a tenth."""
MERGED: Final = 8
"""Buckets that become one."""
UNMERGED_MAX: Final = 32
"""So many buckets may be beside each other before some are merged."""
BUCKET_BLOCKS_MAX: Final = 2_048
"""Of a bucket that is merged: two million entries, and 600 KB of memory when it is read."""
_ENTRY_BYTES_MAX: Final = 64 * 1024

BlockKey = tuple[int, int]
"""The ledger, and the number of the block in it."""


class DelayedBlock(NamedTuple):
    """Delayed entries among 1,024 consecutive ones."""

    key: BlockKey
    due_ms: int
    """None of them is due before."""
    entries: int
    """A bit for each, from the lowest on."""


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
    """The buckets that a log names."""
    text = properties.get(BUCKETS, "")
    try:
        return [_named(word) for word in text.split()]
    except ValueError as error:
        raise Corrupted(f"{text!r} names no buckets of delayed entries") from error


def _named(word: str) -> Bucket:
    ledger_id, first, last, blocks = word.split(":")
    return Bucket(int(ledger_id), _key(first), _key(last), int(blocks))


def _key(text: str) -> BlockKey:
    ledger_id, number = text.split(".")
    return int(ledger_id), int(number)


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


def merged(buckets: Sequence[Bucket], ledger_id: int) -> Bucket:
    """The bucket that has all blocks of these."""
    first, last = min(one.first for one in buckets), max(one.last for one in buckets)
    return Bucket(ledger_id, first, last, _blocks_in(buckets))


# -- what a bucket's ledger holds -----------------------------------------------------------------

_Image = tuple[int, int, int, bytes]
"""Ledger, number of the block, time, bits."""
_decode: Final = msgspec.msgpack.Decoder(list[_Image]).decode


def encoded(blocks: Sequence[DelayedBlock]) -> list[bytes]:
    """The entries of a bucket."""
    starts = range(0, len(blocks), ENTRY_BLOCKS)
    return [_entry(blocks[start : start + ENTRY_BLOCKS]) for start in starts]


def _entry(blocks: Sequence[DelayedBlock]) -> bytes:
    images = [
        (*one.key, one.due_ms, one.entries.to_bytes(BLOCK_ENTRIES // 8, "little")) for one in blocks
    ]
    return zlib.compress(msgspec.msgpack.encode(images), 1)


def decoded(entry: bytes) -> list[DelayedBlock]:
    """The blocks of one entry; `Corrupted` if it has none."""
    try:
        images = _decode(zlib.decompressobj().decompress(entry, _ENTRY_BYTES_MAX))
    except (zlib.error, msgspec.MsgspecError) as error:
        raise Corrupted(f"these are no blocks of delayed entries: {error}") from error
    return [
        DelayedBlock((ledger_id, number), due_ms, int.from_bytes(bits, "little"))
        for ledger_id, number, due_ms, bits in images
    ]
