"""What the bookie does by itself."""

import pytest
import trio
import trio.testing

from magnetar.bookie.embedded import EmbeddedStore, open_embedded
from magnetar.bookie.machine.disk import SystemDisk
from magnetar.bookie.server import housekeeping
from magnetar.bookie.server.settings import BookieSettings
from magnetar.bookie.tests.metadata_fake import DictMetadata
from magnetar.core.ports.disk import DiskUsage
from magnetar.core.ports.tests.contract_ledger_store import append


async def test_the_disk_is_looked_at_whenever_much_was_written(tmp_path, monkeypatch, caplog):
    """The interval is for what others write."""
    settings = BookieSettings(disk_check_interval_seconds=3600, write_cache_bytes=20_000)
    async with open_embedded(tmp_path, DictMetadata(), settings, on_fatal=pytest.fail) as store:
        writer = await store.create({})
        monkeypatch.setattr(SystemDisk, "usage", lambda disk, directory: DiskUsage(0.96, 1))
        await append(writer, b"x")
        assert store.writable()
        with trio.fail_after(10):
            while store.writable():
                await append(writer, b"x" * 1000)
        assert "nothing is written any more" in caplog.text


async def read_from_disk(store: EmbeddedStore) -> None:
    writer = await store.create({})
    await append(writer, b"x" * 1000)
    await store.checkpoint()
    info = await writer.close()
    reader = await store.open(info.ledger_id, recover=False)
    assert await reader.read(0, 0, 10_000) == [b"x" * 1000]


async def test_what_was_read_from_the_disk_is_not_cached_for_ever(tmp_path, monkeypatch):
    monkeypatch.setattr(housekeeping, "AGE_SECONDS", 0.001)
    async with open_embedded(
        tmp_path, DictMetadata(), BookieSettings(), on_fatal=pytest.fail
    ) as store:
        await read_from_disk(store)
        assert store.statistics().reads_from_disk == 1
        with trio.fail_after(10):
            while store.statistics().read_cache_bytes:
                await trio.lowlevel.checkpoint()


async def test_what_a_start_has_read_is_dropped(tmp_path):
    async with open_embedded(
        tmp_path, DictMetadata(), BookieSettings(), on_fatal=pytest.fail
    ) as store:
        await read_from_disk(store)
        assert store.statistics().read_cache_bytes > 1000
        store.drop_read_cache()
        assert store.statistics().read_cache_bytes == 0


async def test_a_full_disk_is_compacted_if_it_is_to_be_so(tmp_path, monkeypatch):
    """Never by its interval, and at each check of the disk."""
    settings = BookieSettings(
        disk_check_interval_seconds=0.001,
        force_gc_when_no_space=True,
        gc_interval_seconds=3600,
        major_compaction_interval_seconds=0,
    )
    async with open_embedded(tmp_path, DictMetadata(), settings, on_fatal=pytest.fail) as store:
        schedule = store._parts.collector.schedule
        monkeypatch.setattr(SystemDisk, "usage", lambda disk, directory: DiskUsage(0.96, 1))
        with trio.fail_after(10):
            while schedule.major.statistics().count < 2:
                await trio.lowlevel.checkpoint()
