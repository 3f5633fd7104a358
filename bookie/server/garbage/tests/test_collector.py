"""Garbage collection beside everything else: it rests, and a full disk only ends a round."""

import pytest
import trio

from magnetar.bookie.client.catalog import LEDGERS_PER_REST
from magnetar.bookie.embedded import open_embedded
from magnetar.bookie.format.ledger_row import LedgerRow
from magnetar.bookie.server.entry_log.block_file import BlockFile
from magnetar.bookie.server.garbage import collector
from magnetar.bookie.server.ledger_storage import LedgerStorage
from magnetar.bookie.server.ledgers import states as states_module
from magnetar.bookie.server.settings import BookieSettings
from magnetar.bookie.tests.memory_machine import open_in_memory
from magnetar.bookie.tests.metadata_fake import DictMetadata
from magnetar.core.kernel.errors import Fenced
from magnetar.core.ports.disk import Creation
from magnetar.core.ports.tests.contract_ledger_store import Outcome, append
from magnetar.core.testing.memory_disk import MemoryDisk
from magnetar.core.testing.turns import counted_turns

SETTINGS = BookieSettings(
    checkpoint_interval_seconds=3600,
    entry_log_size_max_bytes=20_000,
    gc_interval_seconds=0.001,
    minor_compaction_interval_seconds=0.001,
    minor_compaction_threshold=1.0,
)


def opened(directory, metadata, settings=SETTINGS):
    return open_embedded(directory, metadata, settings, on_fatal=pytest.fail)


class Noting(DictMetadata):
    """Notes how many turns others had had when it was asked."""

    turns = None

    async def get(self, path):
        if self.turns is not None:
            self.noted.append(self.turns.count)
        return await super().get(path)


async def test_asking_for_many_ledgers_lets_others_run(tmp_path):
    count = 20 * LEDGERS_PER_REST
    metadata = Noting()
    async with opened(tmp_path, metadata, BookieSettings()) as store:
        ledgers = store._parts.collector._storage.ledgers
        ledgers.put((i, LedgerRow(b"k" * 20, fenced=False)) for i in range(count))
        async with counted_turns() as turns:
            metadata.turns, metadata.noted = turns, []
            await store.collect(compact_below=0)
        assert len(metadata.noted) == count
        assert len(set(metadata.noted)) >= 10  # which of two runs first is chance
        assert store.statistics().ledgers_deleted == count


async def test_a_full_disk_ends_a_round_and_not_the_server(tmp_path, monkeypatch):
    """Compaction needs room before it gives any back."""
    metadata = DictMetadata()
    settings = BookieSettings(checkpoint_interval_seconds=3600, entry_log_size_max_bytes=20_000)
    async with opened(tmp_path, metadata, settings) as store:
        kept, deleted = [await store.create({}) for _ in range(2)]
        for _ in range(4):
            for writer in (kept, deleted):
                await append(writer, *[b"%d" % writer.ledger_id * 20] * 50)
            await store.checkpoint()
        await kept.close()
        await store.delete(deleted.ledger_id)
    rounds = []
    warn = collector.log.warning
    monkeypatch.setattr(collector.log, "warning", lambda *a: rounds.append(a) or warn(*a))
    write, full = BlockFile._write, [True]

    def writing(file, size):
        if full[0]:
            raise OSError(28, "No space left on device")
        write(file, size)

    monkeypatch.setattr(BlockFile, "_write", writing)
    async with opened(tmp_path, metadata) as store:
        with trio.fail_after(10):
            while len(rounds) < 2:
                await trio.lowlevel.checkpoint()
            full[0] = False
            while not store.statistics().bytes_compacted:
                await trio.lowlevel.checkpoint()
        reader = await store.open(kept.ledger_id, recover=False)
        assert len(await reader.read(0, 199, 1 << 20)) == 200
    async with opened(tmp_path, metadata, settings) as store:
        reader = await store.open(kept.ledger_id, recover=False)
        assert len(await reader.read(0, 199, 1 << 20)) == 200


async def test_of_deleted_ledgers_some_are_remembered_and_no_more(tmp_path, monkeypatch):
    monkeypatch.setattr(states_module, "DELETED_MAX", 3)
    async with opened(tmp_path, DictMetadata(), BookieSettings()) as store:
        writers = [await store.create({}) for _ in range(5)]
        for writer in writers:
            await append(writer, b"x")
            await store.delete(writer.ledger_id)
        await store.checkpoint()
        await store.collect(compact_below=0)
        assert list(store._parts.checkpointer.deleted) == [2, 3, 4]
        assert not store._bookie._ledgers
        outcome = Outcome()
        writers[4].append([b"late"], outcome)
        (error,) = await outcome.wait()
        assert isinstance(error, Fenced)


async def test_compaction_lets_the_loop_run(tmp_path, monkeypatch):
    """Its thread holds the interpreter while it looks entries up, and there may be millions."""
    breaths = []
    monkeypatch.setattr(LedgerStorage, "pause", lambda storage: breaths.append(1))
    settings = BookieSettings(checkpoint_interval_seconds=3600, entry_log_size_max_bytes=200_000)
    async with opened(tmp_path, DictMetadata(), settings) as store:
        kept, deleted = [await store.create({}) for _ in range(2)]
        for _ in range(4):
            for writer in (kept, deleted):
                await append(writer, *[b""] * 1000)
            await store.checkpoint()
        await store.delete(deleted.ledger_id)
        await store.collect(compact_below=0)
        breaths.clear()
        await store.collect(compact_below=1.0)
        assert store.statistics().bytes_compacted >= 40 * 2000
        assert len(breaths) >= 2000 // collector.LOOKS_PER_BREATH


async def test_a_log_whose_header_a_loss_of_power_has_torn_is_unlinked(caplog):
    """It was begun, and never synced: nothing is indexed there."""
    disk, metadata = MemoryDisk(), DictMetadata()
    async with open_in_memory(disk, metadata) as store:
        await append(await store.create({}), b"x")
        await store.checkpoint()
    logs = disk.directory("/bookie/ledgers/current")
    logs.open_for_writing("7f.log", Creation.NEW).pwrite(b"BKL", 0)
    async with open_in_memory(disk, metadata) as store:
        await store.collect(compact_below=0)
        assert "7f.log" not in logs.names()
        assert "left alone" not in caplog.text


@pytest.mark.parametrize("place", [0, 8, 12, 14, 15, 16, 19])
async def test_a_log_whose_header_has_rotted_is_left_alone(caplog, place):
    """Its first word; its ledgers map's offset and number of ledgers."""
    disk, metadata = MemoryDisk(), DictMetadata()
    async with open_in_memory(disk, metadata) as store:
        await append(await store.create({}), b"x")
        await store.checkpoint()
    logs = disk.directory("/bookie/ledgers/current")
    (name,) = [each for each in logs.names() if each.endswith(".log")]
    disk.rot(f"{logs.path}/{name}", place)
    async with open_in_memory(disk, metadata) as store:
        await store.collect(compact_below=1)
        assert name in logs.names()
        assert "left alone" in caplog.text
