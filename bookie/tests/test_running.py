"""A running bookie's parts: what they say together, and what a stop leaves."""

from magnetar.bookie.tests.memory_machine import open_in_memory
from magnetar.bookie.tests.metadata_fake import DictMetadata
from magnetar.core.kernel.errors import StorageFailed
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
