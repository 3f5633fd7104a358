"""Buckets: their names, what their ledgers hold, and when they become one."""

from __future__ import annotations

import zlib

import msgspec
import pytest

from magnetar.core.kernel.errors import Corrupted
from magnetar.core.ledger.buckets.bucket import (
    BLOCK_ENTRIES,
    BUCKET_BLOCKS_MAX,
    BUCKETS,
    ENTRY_BLOCKS,
    MERGED,
    UNMERGED_MAX,
    Bucket,
    DelayedBlock,
    buckets_of,
    decoded,
    encoded,
    merged,
    to_merge,
)


def test_names() -> None:
    buckets = [Bucket(71, (12, 0), (12, 31), 32), Bucket(80, (12, 32), (15, 3), 2048)]
    text = " ".join(one.text for one in buckets)
    assert text == "71:12.0:12.31:32 80:12.32:15.3:2048"
    assert buckets_of({BUCKETS: text}) == buckets
    assert buckets_of({}) == []


@pytest.mark.parametrize("text", ["7", "a:1.1:1.2:3", "7:1:1.2:3", "7:1.1:1.2:3:4", "7:1.1:1.2:"])
def test_names_that_are_none(text: str) -> None:
    with pytest.raises(Corrupted, match="names no buckets"):
        buckets_of({BUCKETS: text})


def test_what_a_ledger_holds() -> None:
    full = (1 << BLOCK_ENTRIES) - 1
    blocks = [DelayedBlock((3, number), 1000 + number, full >> number) for number in range(150)]
    entries = encoded(blocks)
    assert len(entries) == 1 + 150 // ENTRY_BLOCKS
    assert [block for entry in entries for block in decoded(entry)] == blocks
    assert encoded([]) == []
    last = DelayedBlock((1 << 62, 1 << 40), (1 << 63) - 1, 1 << BLOCK_ENTRIES - 1)
    assert decoded(*encoded([last])) == [last]


@pytest.mark.parametrize(
    "entry",
    [
        b"",
        b"xyz",
        zlib.compress(b"\xc1"),
        zlib.compress(msgspec.msgpack.encode([(1, 2, 3)])),
        zlib.compress(bytes(1 << 24)),
    ],
)
def test_what_is_no_bucket(entry: bytes) -> None:
    with pytest.raises(Corrupted, match="no blocks"):
        decoded(entry)


def test_the_smallest_neighbours_become_one() -> None:
    buckets = [Bucket(at, (at, 0), (at, 9), 300) for at in range(UNMERGED_MAX - 1)]
    assert to_merge(buckets) == ()
    buckets.append(Bucket(99, (99, 0), (99, 9), 32))
    assert to_merge(buckets) == (), f"{MERGED} of them would be larger than {BUCKET_BLOCKS_MAX}"
    buckets[7:15] = [one._replace(blocks=32) for one in buckets[7:15]]
    several = to_merge(buckets)
    assert several == buckets[7:15]
    assert merged(several, 5) == Bucket(5, (7, 0), (14, 9), 8 * 32)
