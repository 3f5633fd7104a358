"""Buckets: their names, what their ledgers hold, and when they become one."""

from __future__ import annotations

import zlib

import msgspec
import pytest

from magnetar.core.kernel.errors import Corrupted
from magnetar.core.ledger.buckets.bucket import (
    BUCKET_BLOCKS_MAX,
    BUCKETS,
    ENTRY_BLOCKS,
    LEDGER_BLOCKS_MAX,
    MERGED,
    SECOND_MAX,
    UNMERGED_MAX,
    BlockKey,
    Bucket,
    DelayedBlock,
    buckets_of,
    decoded,
    encoded,
    to_merge,
    words_of,
)


def test_names() -> None:
    buckets = [Bucket(71, (12, 0), (12, 31), 32), Bucket(80, (12, 32), (15, 3), 512)]
    text = " ".join(one.text for one in buckets)
    assert text == "71:12.0:12.31:32 80:12.32:15.3:512"
    assert buckets_of({BUCKETS: text}) == buckets
    assert buckets_of({}) == []


@pytest.mark.parametrize("word", ["7", "a:1.1:1.2:3", "7:1:1.2:3", "7:1.1:1.2:3:4", "7:1.1:1.2:"])
def test_what_names_no_bucket_is_left_out(word: str) -> None:
    named = {BUCKETS: f"{word} 71:12.0:12.31:32"}
    assert buckets_of(named) == [Bucket(71, (12, 0), (12, 31), 32)]
    assert words_of(named) == [word, "71:12.0:12.31:32"]


def block(key: BlockKey, dues_ms: dict[int, int]) -> DelayedBlock:
    made = DelayedBlock(key)
    for entry_id, due_ms in dues_ms.items():
        made.add(entry_id, due_ms)
    return made


def test_what_a_ledger_holds() -> None:
    blocks = [
        block((3, number), {1024 * number + at: 1_000 * (at + number + 1) for at in range(900)})
        for number in range(40)
    ]
    entries = encoded(blocks)
    assert len(entries) == 1 + 40 // ENTRY_BLOCKS
    found = [one for entry in entries for one in decoded(entry)]
    assert [(one.key, one.image) for one in found] == [(one.key, one.image) for one in blocks]
    assert encoded([]) == []
    last = block((1 << 62, LEDGER_BLOCKS_MAX - 1), {1023: (1 << 64) - 1})
    (found_last,) = decoded(*encoded([last]))
    assert (found_last.key, found_last.image) == (last.key, last.image)
    assert found_last.soonest_ms(1023, 1) == 1000 * SECOND_MAX


def test_who_is_not_due_and_when_the_first_of_some_is() -> None:
    one = block((3, 1), {1024: 9_999, 1025: 4_000, 1027: 60_500, 2047: 7_000})
    assert one.waiting(0, 3_999) == 1 << 1023 | 0b1011
    assert one.waiting(1, 4_000) == 1 << 1022 | 0b100
    assert one.waiting(0, 60_000) == 0, "in its second"
    assert one.waiting(1023, 0) == 1
    assert one.soonest_ms(0, 0b1011) == 4_000
    assert one.soonest_ms(0, 0b1001) == 9_000
    assert one.soonest_ms(3, 0b1) == 60_000


@pytest.mark.parametrize(
    "entry",
    [
        b"",
        b"xyz",
        zlib.compress(b"\xc1"),
        zlib.compress(msgspec.msgpack.encode([(1, 2, 3)])),
        zlib.compress(bytes(1 << 24)),
        zlib.compress(msgspec.msgpack.encode([(1, 2, bytes(4092))])),
        zlib.compress(msgspec.msgpack.encode([(1, 2, bytes(4097))])),
    ],
)
def test_what_is_no_bucket(entry: bytes) -> None:
    with pytest.raises(Corrupted, match="no blocks"):
        decoded(entry)


def test_the_smallest_neighbours_become_one() -> None:
    buckets = [Bucket(at, (at, 0), (at, 9), 80) for at in range(UNMERGED_MAX - 1)]
    assert to_merge(buckets) == ()
    buckets.append(Bucket(99, (99, 0), (99, 9), 32))
    assert to_merge(buckets) == (), f"{MERGED} of them would be larger than {BUCKET_BLOCKS_MAX}"
    buckets[7:15] = [one._replace(blocks=32) for one in buckets[7:15]]
    assert to_merge(buckets) == buckets[7:15]


def test_what_two_know_of_the_same_entries() -> None:
    one, other = DelayedBlock((7, 0)), DelayedBlock((7, 0))
    one.add(3, 5_000)
    other.add(3, 5_000)
    other.add(9, 7_000)
    both = one.with_those(other)
    assert (both.key, both.waiting(0, 0)) == ((7, 0), 1 << 3 | 1 << 9)
    assert both.soonest_ms(0, 1 << 9) == 7_000
    assert one.with_those(None) is one
