"""The embedded store as link and broker see it: groups, congestion, refusals."""

import msgspec
import pytest
import trio
import trio.testing

from magnetar.bookie.embedded import open_embedded
from magnetar.bookie.server.settings import BookieSettings
from magnetar.bookie.tests.metadata_fake import DictMetadata
from magnetar.core.kernel.errors import Overloaded, StorageFull
from magnetar.core.ports.tests.contract_ledger_store import Outcome, append

SETTINGS = BookieSettings()


def opened(directory, metadata, settings=SETTINGS):
    return open_embedded(directory / "bookie", metadata, settings, on_fatal=pytest.fail)


async def test_congestion_then_refusal_then_room(tmp_path):
    small = msgspec.structs.replace(
        SETTINGS, write_cache_bytes=64 * 1024, burst_bytes_max=16 * 1024
    )
    async with opened(tmp_path, DictMetadata(), small) as store:
        writer = await store.create({})
        results = []
        confirmed = []
        while not any(isinstance(error, Overloaded) for error in results):
            first = writer.append([b"x" * 1000] * 10, results.append)
            confirmed.append(first)
            if len(confirmed) % 8 == 0:
                await trio.lowlevel.checkpoint()
        with trio.fail_after(20):
            while store.congested or store.statistics().journal_queue_bytes:
                await store.checkpoint()
        # Nothing is lost, nothing is doubled, and the writer may go on.
        first = await append(writer, b"after")
        assert first == 10 * results.count(None)
        assert writer.last_confirmed == first
        assert (await writer.read(first, first, 10)) == [b"after"]


async def test_a_group_that_was_announced_goes_when_it_is_flushed(tmp_path):
    async with opened(tmp_path, DictMetadata()) as store:
        writer = await store.create({})
        await append(writer, b"first")
        outcome = Outcome(2)
        store.begin_group()
        writer.append([b"a"], outcome)
        for _ in range(5):
            await trio.lowlevel.checkpoint()
        assert store.statistics().journal_groups == 1
        store.flush_group()
        writer.append([b"b"], outcome)  # nobody promised anything for this one
        assert await outcome.wait() == [None, None]


async def test_a_full_disk_refuses_writes_and_serves_reads(tmp_path):
    metadata = DictMetadata()
    async with opened(tmp_path, metadata) as store:
        writer = await store.create({})
        await append(writer, b"x")
        await writer.close()
    full = msgspec.structs.replace(SETTINGS, disk_usage_threshold=0.0)
    async with opened(tmp_path, metadata, full) as store:
        assert not store.writable()
        other = await store.create({})
        outcome = Outcome()
        assert other.append([b"y"], outcome) == 0
        (error,) = await outcome.wait()
        assert isinstance(error, StorageFull)
        reader = await store.open(writer.ledger_id, recover=False)
        assert await reader.read(0, 0, 1) == [b"x"]
