"""Whole entries: from each cache and the disk, with neighbours that certainly belong there."""

import pytest

from magnetar.bookie.format import entries
from magnetar.bookie.format.entries import Run
from magnetar.bookie.server import entry_lookup
from magnetar.bookie.tests.memory_machine import open_in_memory
from magnetar.bookie.tests.metadata_fake import DictMetadata
from magnetar.core.kernel.errors import Corrupted, EntryNotFound, LedgerNotFound
from magnetar.core.ports.tests.contract_ledger_store import Outcome
from magnetar.core.testing.memory_disk import MemoryDisk

KEY = b"k" * 20


@pytest.fixture
def disk():
    return MemoryDisk()


@pytest.fixture
async def store(disk, autojump_clock):
    async with open_in_memory(disk, DictMetadata()) as opened:
        await opened._bookie.create(1, KEY)
        yield opened


def run(first, count, *, digest=True):
    """Records of the same size, without right digests if asked."""
    some = entries.seal(1, first, first - 1, 0, [b"%05d" % i for i in range(first, first + count)])
    if digest:
        return some
    return Run(1, first, some.blob.replace(b"00", b"01"), some.offsets)


async def add(store, some):
    outcome = Outcome()
    store._bookie.add(some, KEY, outcome)
    assert await outcome.wait() == [None]


async def on_the_disk(store):
    await store.checkpoint()
    store.drop_read_cache()


@pytest.mark.parametrize("digest", [True, False])
async def test_one_read_of_the_disk_brings_the_neighbours(store, digest):
    lookup, some = store._bookie.lookup, run(0, 40, digest=digest)
    await add(store, some)
    whole = [entries.entry_of(some, i) for i in range(40)]
    assert [lookup.entry_at_once(1, i) for i in range(40)] == whole
    await on_the_disk(store)
    assert lookup.entry_at_once(1, 3) is None
    assert await lookup.entry(1, 3) == whole[3]
    assert [lookup.entry_at_once(1, i) for i in range(3, 40)] == whole[3:]
    assert lookup.counters.from_disk == 1


async def test_a_neighbour_that_was_written_again_elsewhere_is_not_taken(store):
    lookup = store._bookie.lookup
    await add(store, run(0, 10, digest=False))
    await store.checkpoint()
    newer = entries.seal(1, 5, 4, 0, [b"newer"])
    await add(store, newer)
    await on_the_disk(store)
    await lookup.entry(1, 0)
    assert lookup.entry_at_once(1, 4) is not None
    assert lookup.entry_at_once(1, 5) is None
    assert await lookup.entry(1, 5) == entries.entry_of(newer, 5)


async def test_what_is_not_here_and_what_is_damaged(store, disk):
    lookup = store._bookie.lookup
    await add(store, run(0, 3))
    await on_the_disk(store)
    with pytest.raises(EntryNotFound):
        await lookup.entry(1, 3)
    location = store._parts.storage.locations.find(1, 1)
    disk.rot("/bookie/ledgers/current/0.log", (location & 0xFFFFFFFF) + 3)
    with pytest.raises(Corrupted):
        await lookup.entry(1, 1)
    store._bookie.deleted(1)
    with pytest.raises(LedgerNotFound):
        await lookup.entry(1, 9)


async def test_the_ids_of_a_ledger_are_gathered_from_everywhere(store):
    lookup = store._bookie.lookup
    await add(store, run(0, 3))
    await on_the_disk(store)
    await add(store, run(5, 2))
    assert await lookup.entry_ids(1, list) == [0, 1, 2, 5, 6]
    assert await lookup.last_id(1) == 6
    assert await lookup.last_id(2) == -1
    await add(store, run(2, 2))  # some once more, by a recovery
    await add(store, run(4, 2))
    assert await lookup.entry_ids(1, list) == list(range(7))
    assert await lookup.entry_ids(2, list) == []


async def test_a_long_list_is_made_while_the_loop_runs(store, monkeypatch):
    monkeypatch.setattr(entry_lookup, "IDS_PER_BREATH", 10)
    breaths = []
    monkeypatch.setattr(type(store._bookie.lookup._storage), "pause", lambda _: breaths.append(1))
    await add(store, run(0, 100))
    assert await store._bookie.lookup.entry_ids(1, sum) == 4950
    assert len(breaths) == 10


@pytest.mark.parametrize("digest", [True, False])
async def test_entries_with_gaps_between_their_ids_are_read_together(store, digest):
    """A ledger that is striped over more bookies than have each of its entries."""
    lookup, ids = store._bookie.lookup, [i for i in range(3000) if i % 3 != 1]
    for entry_id in ids:
        await add(store, run(entry_id, 1, digest=digest))
    await on_the_disk(store)
    for entry_id in ids:
        found = lookup.entry_at_once(1, entry_id)
        if found is None:
            found = await lookup.entry(1, entry_id)
        assert found == entries.entry_of(run(entry_id, 1, digest=digest), entry_id)
    assert lookup.counters.from_disk <= 3
    with pytest.raises(EntryNotFound):
        await lookup.entry(1, 4)


async def test_a_striped_neighbour_that_was_written_again_elsewhere_is_not_taken(store):
    lookup = store._bookie.lookup
    for entry_id in (0, 2, 4, 6):
        await add(store, run(entry_id, 1, digest=False))
    await store.checkpoint()
    newer = entries.seal(1, 4, 3, 0, [b"newer"])
    await add(store, newer)
    await on_the_disk(store)
    await lookup.entry(1, 0)
    assert lookup.entry_at_once(1, 2) is not None
    assert lookup.entry_at_once(1, 4) is None
    assert await lookup.entry(1, 4) == entries.entry_of(newer, 4)
