"""The index of locations is compacted while the bookie works; entries stay where they are."""

import pytest
import trio

from magnetar.bookie.embedded import open_embedded
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
