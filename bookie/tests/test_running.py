"""A running bookie's parts: what they say together, and what a stop leaves."""

import errno
import os

import pytest

from magnetar.bookie.tests.memory_machine import START_MS, open_in_memory
from magnetar.bookie.tests.metadata_fake import DictMetadata
from magnetar.core.kernel.errors import StorageFailed, StorageFull
from magnetar.core.ports.tests.contract_ledger_store import append
from magnetar.core.testing.memory_disk import MemoryDisk


async def test_figures_of_all_parts_and_an_end(autojump_clock):
    async with open_in_memory(MemoryDisk(), DictMetadata()) as store:
        running = store._parts
        writer = await store.create({})
        await append(writer, b"a", b"b")
        figures = running.statistics()
        assert (figures.entries_added, figures.write_cache_entries) == (2, 2)
        assert figures.writable
        assert not running.congested
    assert isinstance(running.bookie.failed, StorageFailed)
    assert not running.bookie.writable
    assert running.statistics().write_cache_entries == 0


@pytest.mark.parametrize("hours", [-1, 1])
async def test_a_clock_that_jumps_between_two_starts_takes_nothing(autojump_clock, hours):
    """Journals are named after the clock, and must be in order all the same."""
    disk, metadata = MemoryDisk(), DictMetadata()
    journals = []
    for life in range(3):
        now_ms = START_MS + life * hours * 3_600_000
        async with open_in_memory(disk, metadata, now_ms=now_ms) as store:
            if life == 0:
                writer = await store.create({})
                await append(writer, b"a", b"b")
                ledger_id = writer.ledger_id
            else:
                reader = await store.open(ledger_id, recover=True)
                assert await reader.read(0, 1, 100) == [b"a", b"b"]
            journals.append(store._parts.journal.synced.journal_id)
    assert journals == sorted(set(journals))


async def test_a_start_without_room_for_a_journal_says_where_it_needs_some(autojump_clock):
    disk = MemoryDisk()

    def before(step, path):
        if step == "write" and path.endswith("spare.fresh"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)

    disk.before = before
    said = "no room for a journal: make some in /bookie/journal/current"
    with pytest.RaisesGroup(pytest.RaisesExc(StorageFull, match=said), flatten_subgroups=True):
        async with open_in_memory(disk, DictMetadata()):
            pass
