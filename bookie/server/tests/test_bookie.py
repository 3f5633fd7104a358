"""One bookie in memory: the way of an entry, fences, refusals, what is said of what is not here."""

import errno
from contextlib import suppress

import msgspec
import pytest
import trio

from magnetar.bookie.format import entries
from magnetar.bookie.server.index.locations import LocationIndex
from magnetar.bookie.tests.memory_machine import QUIET, open_in_memory
from magnetar.bookie.tests.metadata_fake import DictMetadata
from magnetar.core.kernel.errors import (
    Corrupted,
    EntryNotFound,
    Fenced,
    LedgerNotFound,
    Overloaded,
    StorageFailed,
    StorageFull,
)
from magnetar.core.ports.disk import DiskUsage
from magnetar.core.ports.tests.contract_ledger_store import Outcome
from magnetar.core.testing.memory_disk import MemoryDisk, MemoryReadFile

KEY = b"k" * 20


@pytest.fixture
def disk():
    return MemoryDisk()


@pytest.fixture
async def store(disk, autojump_clock):
    async with open_in_memory(disk, DictMetadata()) as opened:
        yield opened


@pytest.fixture
async def bookie(store):
    await store._bookie.create(1, KEY)
    return store._bookie


def run(first, *payloads, ledger_id=1):
    return entries.seal(ledger_id, first, -1, 0, payloads)


async def add(bookie, some):
    outcome = Outcome()
    bookie.add(some, KEY, outcome)
    assert await outcome.wait() == [None]


async def test_an_entry_is_read_wherever_it_is(store, bookie):
    await add(bookie, run(0, b"a", b"b"))
    counters = bookie.counters
    assert await bookie.read(1, 0, 1, 100) == [b"a", b"b"]
    assert (counters.from_write_cache, counters.from_disk) == (1, 0)
    await store.checkpoint()
    assert await bookie.read(1, 0, 1, 100) == [b"a", b"b"]
    assert (counters.from_write_cache, counters.from_disk) == (1, 1)
    assert await bookie.read(1, 1, 1, 100) == [b"b"]
    assert (counters.from_disk, counters.from_read_cache) == (1, 1)
    assert (counters.entries_added, counters.entries_read, counters.bytes_read) == (2, 5, 5)


async def test_a_read_goes_from_the_log_into_the_cache_of_what_is_newer(store, bookie):
    await add(bookie, run(0, b"old"))
    await store.checkpoint()
    await add(bookie, run(1, b"new"))
    assert await bookie.read(1, 0, 1, 100) == [b"old", b"new"]
    assert await bookie.read(1, 0, 1, 3) == [b"old"], "what does not fit is not read"
    assert await bookie.read(1, 0, 1, 0) == [b"old"], "one at least"


async def test_what_is_nowhere_is_not_there_and_what_is_deleted_is(store, bookie):
    await add(bookie, run(0, b"a"))
    for ledger_id, entry_id in ((1, 1), (2, 0)):
        with pytest.raises(EntryNotFound):
            await bookie.read(ledger_id, entry_id, entry_id, 100)
    await store.checkpoint()
    bookie.deleted(1)
    with pytest.raises(Fenced):
        bookie.add(run(1, b"b"), KEY, pytest.fail)
    with pytest.raises(LedgerNotFound):
        await bookie.read(1, 5, 5, 100)


async def test_a_damaged_entry_ends_an_answer_and_begins_none(store, bookie, disk):
    await add(bookie, run(0, b"a" * 600, b"b" * 600, b"c" * 600))
    await store.checkpoint()
    disk.rot("/bookie/ledgers/current/0.log", 1024 + 640 + 100)
    assert await bookie.read(1, 0, 2, 1 << 20) == [b"a" * 600]
    with pytest.raises(Corrupted, match="1:1"):
        await bookie.read(1, 1, 2, 1 << 20)
    assert await bookie.damage(1, 1, 2) == (1, 1)
    assert await bookie.read(1, 2, 2, 1 << 20) == [b"c" * 600]


async def test_a_log_that_is_moved_between_index_and_read_is_looked_up_again(
    store, bookie, monkeypatch
):
    """As compaction moves entries; one that is nowhere then is damaged, not missing."""
    await add(bookie, run(0, b"a"))
    await store.checkpoint()
    find, misled = LocationIndex.find, [(9 << 32) | 1028]

    def mislead(index, ledger_id, entry_id):
        return misled.pop() if misled else find(index, ledger_id, entry_id)

    monkeypatch.setattr(LocationIndex, "find", mislead)
    assert await bookie.read(1, 0, 0, 100) == [b"a"]
    bookie.read_cache.forget(1)
    misled += [(9 << 32) | 1028] * 2
    with pytest.raises(Corrupted, match="entry log of 1:0 is missing"):
        await bookie.read(1, 0, 0, 100)


async def test_a_disk_that_cannot_be_read_is_no_damage(store, bookie, monkeypatch):
    await add(bookie, run(0, b"a"))
    await store.checkpoint()

    def fail(file, size, offset):
        raise OSError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(MemoryReadFile, "pread", fail)
    with pytest.raises(StorageFailed, match="cannot be read"):
        await bookie.read(1, 0, 0, 100)


async def test_a_fence_is_journalled_with_the_key_and_kept_over_a_restart(disk, autojump_clock):
    metadata = DictMetadata()
    async with open_in_memory(disk, metadata) as store:
        await store._bookie.create(1, KEY)
        await store._bookie.fence(1, KEY)
        with pytest.raises(Fenced, match="is fenced"):
            store._bookie.add(run(0, b"a"), KEY, pytest.fail)
        store._bookie.release(1)
    async with open_in_memory(disk, metadata, now_ms=1_800_000_000_000) as store:
        with pytest.raises(Fenced, match="is fenced"):
            store._bookie.add(run(0, b"a"), KEY, pytest.fail)


async def test_a_ledgers_key_goes_to_the_journal_once(bookie, disk):
    await add(bookie, run(0, b"a"))
    await add(bookie, run(1, b"b"))
    journal = disk.directory("/bookie/journal/current")
    (name,) = [name for name in journal.names() if name.endswith(".txn")]
    file = journal.open(name)
    assert file.pread(file.size(), 0).count(KEY) == 1


async def test_a_full_disk_refuses_entries_and_gives_them(store, bookie, disk):
    await add(bookie, run(0, b"a"))
    disk.usage_now = DiskUsage(0.99, 1)
    store._parts.disk.check()
    with pytest.raises(StorageFull, match="99% full"):
        bookie.add(run(1, b"b"), KEY, pytest.fail)
    assert await bookie.read(1, 0, 0, 100) == [b"a"]


async def test_more_than_may_wait_is_refused_and_taken_when_it_is_gone(disk, autojump_clock):
    small = msgspec.structs.replace(
        QUIET, write_cache_bytes=20_000, burst_bytes_max=10_000, journal_queue_bytes_max=10_000
    )
    async with open_in_memory(disk, DictMetadata(), small) as store:
        bookie = store._bookie
        await bookie.create(1, KEY)
        taken, outcome = 0, []
        with suppress(Overloaded):
            while taken < 1000:
                bookie.add(run(taken, b"x" * 1000), KEY, outcome.append)
                taken += 1
        assert 10 < taken < 40
        assert bookie.congested
        await trio.sleep(1)  # of the clock that jumps: until all are at rest
        assert not bookie.congested
        assert outcome == [None] * taken
        await add(bookie, run(taken, b"x"))


async def test_after_a_failure_nothing_is_taken(store, bookie):
    bookie.failed = StorageFailed("broken")
    with pytest.raises(StorageFailed, match="broken"):
        bookie.add(run(0, b"a"), KEY, pytest.fail)
    with pytest.raises(StorageFailed, match="broken"):
        await bookie.fence(1, KEY)
    bookie.failed = None


async def test_the_last_entry_is_the_higher_of_cache_and_index(store, bookie):
    assert await bookie.last_entry(1) is None
    await add(bookie, run(0, b"a", b"b"))
    await store.checkpoint()
    assert (await bookie.last_entry(1)).entry_id == 1
    await add(bookie, run(2, b"c"))
    assert (await bookie.last_entry(1)).entry_id == 2
