"""The index of locations is compacted while the bookie works; entries stay where they are."""

import pytest
import trio

from magnetar.bookie.embedded import open_embedded
from magnetar.bookie.server.garbage import location_compaction
from magnetar.bookie.server.garbage.location_compaction import (
    IDS_FIRST,
    IDS_MAX,
    IDS_MIN,
    SLICE_SECONDS,
    next_count,
)
from magnetar.bookie.server.settings import BookieSettings
from magnetar.bookie.tests.metadata_fake import DictMetadata
from magnetar.core.ports.tests.contract_ledger_store import append


async def test_entries_are_found_during_and_after_it(tmp_path):
    settings = BookieSettings(checkpoint_interval_seconds=3600, gc_interval_seconds=3600)
    async with open_embedded(tmp_path, DictMetadata(), settings, on_fatal=pytest.fail) as store:
        compaction = store._parts.collector.locations
        assert compaction.path.endswith("locations")
        writers = [await store.create({}) for _ in range(100)]
        for writer in writers:
            await append(writer, b"%d" % writer.ledger_id, b"x")
        await store.checkpoint()
        await store.delete(writers[0].ledger_id)
        compaction.start()
        assert compaction.statistics().running
        await append(writers[1], b"late")
        with trio.fail_after(10):
            while compaction.statistics().running:
                await trio.lowlevel.checkpoint()
        found = compaction.statistics()
        assert (found.count, found.last_ms > 0) == (1, True)
        store.drop_read_cache()
        for writer in writers[1:]:
            info = await writer.close()
            reader = await store.open(info.ledger_id, recover=False)
            assert (await reader.read(0, 0, 10_000))[0] == b"%d" % info.ledger_id
        compaction.start()
        with trio.fail_after(10):
            while compaction.statistics().count < 2:
                await trio.lowlevel.checkpoint()


def noted_slices(storage, monkeypatch):
    """The ranges that are compacted from now on."""
    slices, compact = [], storage.locations.compact

    def note(start, stop):
        slices.append((start, stop))
        compact(start, stop)

    monkeypatch.setattr(storage.locations, "compact", note)
    return slices


async def test_a_checkpoint_comes_between_two_slices_of_one_ledger(tmp_path, monkeypatch):
    settings = BookieSettings(checkpoint_interval_seconds=3600, gc_interval_seconds=3600)
    monkeypatch.setattr(location_compaction, "IDS_FIRST", 2)
    monkeypatch.setattr(location_compaction, "IDS_MAX", 2)
    async with open_embedded(tmp_path, DictMetadata(), settings, on_fatal=pytest.fail) as store:
        writer = await store.create({})
        for _ in range(10):
            await append(writer, *[b"x"] * 100)
        await store.checkpoint()
        storage = store._parts.storage
        slices = noted_slices(storage, monkeypatch)
        compaction = store._parts.collector.locations
        compaction.start()
        with trio.fail_after(30):
            while not slices:
                await trio.lowlevel.checkpoint()
            await append(writer, b"meanwhile")
            await store.checkpoint()
            assert compaction.statistics().running, "the lock was held until the end"
            while compaction.statistics().running:
                await trio.lowlevel.checkpoint()
        assert len(slices) >= 500
        starts = [start for start, _ in slices]
        assert starts == [(0, 0), *[stop for _, stop in slices[:-1]]]
        assert slices[-1][1] is None
        assert len(await store_read(store, writer)) == 1001


async def store_read(store, writer):
    store.drop_read_cache()
    info = await writer.close()
    reader = await store.open(info.ledger_id, recover=False)
    found = []
    while len(found) <= info.last_entry_id:
        found += await reader.read(len(found), info.last_entry_id, 10_000)
    return found


async def test_ids_that_are_far_apart_make_no_slices_without_an_entry(tmp_path, monkeypatch):
    settings = BookieSettings(checkpoint_interval_seconds=3600, gc_interval_seconds=3600)
    async with open_embedded(tmp_path, DictMetadata(), settings, on_fatal=pytest.fail) as store:
        storage = store._parts.storage
        writer = await store.create({})
        await append(writer, b"x")
        await store.checkpoint()
        for entry_id in (2**40, 2**50, 2**62):
            storage.locations.put_at(writer.ledger_id, entry_id, 1 << 32)
        slices = noted_slices(storage, monkeypatch)
        compaction = store._parts.collector.locations
        compaction.start()
        with trio.fail_after(10):
            while compaction.statistics().running:
                await trio.lowlevel.checkpoint()
        ledger_id = writer.ledger_id
        assert [stop for _, stop in slices] == [
            (ledger_id, 2**40), (ledger_id, 2**50), (ledger_id, 2**62), None,
        ]  # fmt: skip


def test_a_slice_that_takes_long_is_followed_by_a_smaller_one():
    assert next_count(IDS_FIRST, 3 * SLICE_SECONDS) == IDS_FIRST // 2
    assert next_count(IDS_FIRST, SLICE_SECONDS) == IDS_FIRST
    assert next_count(IDS_FIRST, SLICE_SECONDS / 3) == 2 * IDS_FIRST
    assert next_count(IDS_MIN, 100.0) == IDS_MIN
    assert next_count(IDS_MAX, 0.0) == IDS_MAX
