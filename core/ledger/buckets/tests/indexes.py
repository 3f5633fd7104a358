"""What the suites of the index play with."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
import trio

from magnetar.core.ledger.buckets import delayed_index
from magnetar.core.ledger.buckets.bucket import (
    BLOCK_ENTRIES,
    UNMERGED_MAX,
    BlockKey,
    Bucket,
    buckets_of,
)
from magnetar.core.ledger.buckets.delayed_index import (
    NOTED_BLOCKS,
    DelayedIndex,
)
from magnetar.core.ledger.log.managed_ledger import ManagedLedger
from magnetar.core.testing.bench import Bench, settled, stored

FULL = (1 << BLOCK_ENTRIES) - 1
Asked = list[str]


async def opened(desk: Bench) -> ManagedLedger:
    """A log with ledger 0, which is being written."""
    ledger = await desk.ledger()
    if not ledger.chain.segments:
        await stored(ledger, b"x")
    return ledger


async def note_blocks(index: DelayedIndex, numbers: Iterable[int], ledger_id: int = 0) -> None:
    """Note all entries of these blocks, due in the second of a thousand and the block's number."""
    for number in numbers:
        first = number * BLOCK_ENTRIES
        entry_ids = range(first, first + BLOCK_ENTRIES)
        index.note(ledger_id, entry_ids, [1_000 * (1_000 + number)] * BLOCK_ENTRIES)
    await settled()


Seen = tuple[BlockKey, int, int]
"""A block: its key, the entries in it, and the first second in which one of them is due."""


async def found(index: DelayedIndex, key: BlockKey) -> Seen | None:
    heard: Asked = []
    while not index.is_loaded(key, lambda: heard.append("loaded")):
        await settled()
        assert heard == ["loaded"]
    block = index.block(key)
    if block is None:
        return None
    entries = block.waiting(0, 0)
    return block.key, entries, block.soonest_ms(0, entries) // 1000


async def told(index: DelayedIndex, key: BlockKey) -> bool:
    """Wait for what is stored of a block; False if it was there."""
    loaded = trio.Event()
    if index.is_loaded(key, loaded.set):
        return False
    await loaded.wait()
    await settled()
    return True


async def left_behind(desk: Bench) -> Bucket:
    """The bucket of a log that is closed."""
    ledger = await opened(desk)
    await note_blocks(ledger.delayed_index, range(NOTED_BLOCKS + 1))
    (made,) = buckets_of(ledger.properties)
    await ledger.close()
    return made


async def with_many_buckets(desk: Bench, monkeypatch: pytest.MonkeyPatch) -> ManagedLedger:
    """A log with a bucket for each block, as many as do not become one yet; the last block is in
    none.
    """
    monkeypatch.setattr(delayed_index, "NOTED_BLOCKS", 1)
    ledger = await opened(desk)
    for number in range(UNMERGED_MAX):
        await note_blocks(ledger.delayed_index, [number])
    return ledger


async def with_wide_buckets(desk: Bench, monkeypatch: pytest.MonkeyPatch) -> ManagedLedger:
    """A log that was opened again, with buckets of two blocks, between which block 50 is."""
    monkeypatch.setattr(delayed_index, "NOTED_BLOCKS", 2)
    ledger = await opened(desk)
    for number in range(1, 10):
        await note_blocks(ledger.delayed_index, [number, 100 - number])
    await ledger.close()
    return await opened(desk)
