"""A crash between any two steps of a checkpoint, of compaction, of a torn journal: nothing lost.

A crash point is a copy of the directory, taken by wrapping the step: what a killed process leaves.
What a machine without power leaves is less: there a second copy has of each entry log only what was
synced. (Journal and small files are durable when they are written, indexes write only to sync.)
"""

import os
import shutil

import msgspec
import pytest

from magnetar.bookie.embedded import open_embedded
from magnetar.bookie.format import journal as journal_format
from magnetar.bookie.server import checkpoint as checkpoint_module
from magnetar.bookie.server import ledger_storage
from magnetar.bookie.server.directories import read_last_mark
from magnetar.bookie.server.entry_log.block_file import BLOCK_BYTES, BlockFile
from magnetar.bookie.server.entry_log.writer import EntryLogWriter
from magnetar.bookie.server.index import locations as index_module
from magnetar.bookie.server.index.ledgers import LedgersIndex
from magnetar.bookie.server.index.locations import LocationIndex
from magnetar.bookie.server.journal.files import JournalFiles
from magnetar.bookie.server.settings import BookieSettings
from magnetar.bookie.tests.metadata_fake import DictMetadata
from magnetar.bookie.tests.real_disk import directories_at
from magnetar.core.kernel.errors import Fenced
from magnetar.core.ports.tests.contract_ledger_store import Outcome, append

SETTINGS = BookieSettings(checkpoint_interval_seconds=3600)


def opened(directory, metadata, settings=SETTINGS):
    return open_embedded(directory, metadata, settings, on_fatal=pytest.fail)


def copied(metadata):
    same = DictMetadata()
    same.values = metadata.without_leases()
    same.counters = dict(metadata.counters)
    return same


def snapshot(source, target):
    """Copy a directory as a crash would leave it: RocksDB's threads replace files meanwhile,
    so a copy counts only if no file came or went.
    """
    while True:
        before = sorted(path for path in source.rglob("*"))
        try:
            shutil.copytree(source, target)
        except shutil.Error:
            shutil.rmtree(target)
            continue
        if before == sorted(path for path in source.rglob("*")):
            return
        shutil.rmtree(target)


class CrashPoints:
    """Copies a directory before and after each step that it wraps."""

    def __init__(self, source, target, metadata, patch):
        self.source, self.target, self.metadata, self.patch = source, target, metadata, patch
        self.copies = []
        self.cuts = []
        """The same, cut from power."""
        self.armed = False
        self.synced = {}
        """Bytes of each entry log that the disk has for sure, by inode."""
        sync = BlockFile.sync

        def noting(file):
            sync(file)
            found = os.fstat(file._file.fileno())
            self.synced[found.st_ino] = found.st_size

        patch.setattr(BlockFile, "sync", noting)

    def wrap(self, owner, name):
        step = getattr(owner, name)

        def wrapped(*arguments, **named):
            self.copy(f"before-{name}")
            result = step(*arguments, **named)
            self.copy(f"after-{name}")
            return result

        self.patch.setattr(owner, name, wrapped)

    def copy(self, name):
        if self.armed:
            number = len(self.copies) + len(self.cuts)
            killed, cut = (self.target / f"{number}-{how}-{name}" for how in ("killed", "cut"))
            storage = self.source / "ledgers/current"
            logs = {path.name: path.stat() for path in storage.glob("*.log")}
            snapshot(self.source, killed)
            self.copies.append((killed, copied(self.metadata)))
            shutil.copytree(killed, cut)
            for log, found in logs.items():
                os.truncate(cut / "ledgers/current" / log, self.synced.get(found.st_ino, 0))
            self.cuts.append((cut, copied(self.metadata)))


async def check(copies, expected, fenced=()):
    assert copies
    for directory, metadata in copies:
        for _ in range(2):  # the second start finds what the first one left
            async with opened(directory, metadata) as store:
                for ledger_id, payloads in expected.items():
                    reader = await store.open(ledger_id, recover=True)
                    assert reader.last_confirmed == len(payloads) - 1, directory.name
                    got = await reader.read(0, len(payloads), 1 << 30)
                    assert got == payloads, directory.name
                for ledger_id in fenced:
                    state = store._client._link.states.touch(ledger_id, b"")
                    assert state.fenced, directory.name


async def test_between_any_two_steps_of_a_checkpoint(tmp_path, monkeypatch):
    metadata = DictMetadata()
    source = tmp_path / "source"
    points = CrashPoints(source, tmp_path, metadata, monkeypatch)
    points.wrap(EntryLogWriter, "sync")
    points.wrap(LocationIndex, "put")
    points.wrap(LocationIndex, "sync")
    points.wrap(LedgersIndex, "put")
    points.wrap(ledger_storage, "write_last_mark")
    points.wrap(JournalFiles, "retire")
    async with opened(source, metadata) as store:
        writers = [await store.create({}) for _ in range(3)]
        expected = {}
        for writer in writers:
            payloads = [b"%d-%d" % (writer.ledger_id, i) for i in range(200)]
            await append(writer, *payloads[:90])
            expected[writer.ledger_id] = payloads
        await store.checkpoint()
        for writer in writers:
            await append(writer, *expected[writer.ledger_id][90:])
        fenced = (await store.create({})).ledger_id
        await store._client._link.fence(fenced, b"k" * 20)
        points.armed = True
        await store.checkpoint()
        points.armed = False
    assert len(points.copies) == 12
    await check(points.copies + points.cuts, expected, [fenced])


async def test_between_any_two_steps_of_many_halves_and_few_marks(tmp_path, monkeypatch):
    """Halves leave without a sync, and what they hold is in no group of the journal yet when the
    index is synced: for the collector, because its memory is full, for a mark.
    """
    metadata = DictMetadata()
    source = tmp_path / "source"
    points = CrashPoints(source, tmp_path, metadata, monkeypatch)
    monkeypatch.setattr(index_module, "BATCH_PUTS_MAX", 10)
    async with opened(source, metadata) as store:
        checkpointer = store._parts.checkpointer
        writers = [await store.create({}) for _ in range(2)]
        deleted = await store.create({})
        await append(deleted, b"gone")
        for writer in writers:
            await append(writer, *[b"%d" % i for i in range(50)])
        await store.checkpoint()
        points.wrap(EntryLogWriter, "sync")
        points.wrap(LocationIndex, "sync")
        points.wrap(ledger_storage, "write_last_mark")
        points.armed = True
        for start in (50, 90):
            # Not handed over: ledger storage has them before the journal does.
            store.begin_group()
            outcome = Outcome(2)
            for writer in writers:
                writer.append([b"%d" % i for i in range(start, start + 40)], outcome)
            await checkpointer.make_room()
            if start == 50:
                await deleted.close()
                await store.delete(deleted.ledger_id)
                await store.collect(compact_below=0)
                monkeypatch.setattr(index_module, "MEMORY_PUTS_MAX", 60)
            store.flush_group()
            await outcome.wait()
        await store.checkpoint()
        points.armed = False
    assert len(points.copies) == 14
    await check_prefix(points.copies + points.cuts, {writer.ledger_id for writer in writers}, 50)


async def check_prefix(copies, ledger_ids, least):
    """Each ledger ends somewhere behind what was acknowledged, and is whole up to there."""
    for directory, metadata in copies:
        async with opened(directory, metadata) as store:
            for ledger_id in ledger_ids:
                reader = await store.open(ledger_id, recover=True)
                last = reader.last_confirmed
                assert last >= least - 1, directory.name
                got = await reader.read(0, last, 1 << 30)
                assert got == [b"%d" % i for i in range(last + 1)], directory.name


async def test_a_fence_alone_reaches_the_index_before_the_mark_passes_it(tmp_path):
    """Apache's #4843: an empty write cache must not let the checkpoint skip the rows."""
    metadata = DictMetadata()
    async with opened(tmp_path / "bookie", metadata) as store:
        writer = await store.create({})
        await store._client._link.fence(writer.ledger_id, b"k" * 20)
        await store.checkpoint()
        shutil.copytree(tmp_path / "bookie", tmp_path / "copy")
    mark = read_last_mark(directories_at(tmp_path / "copy"))
    journal = (tmp_path / "copy/journal/current") / journal_format.file_name(mark.journal_id)
    assert journal_format.fence_note(writer.ledger_id) in journal.read_bytes()[: mark.offset]
    async with opened(tmp_path / "copy", metadata) as store:
        outcome = Outcome()
        writer._link, writer._call_soon = store._client._link, store._client._call_soon
        writer.append([b"zombie"], outcome)
        (error,) = await outcome.wait()
        assert isinstance(error, Fenced)


async def test_between_any_two_steps_of_compaction(tmp_path, monkeypatch):
    metadata = DictMetadata()
    source = tmp_path / "source"
    settings = msgspec.structs.replace(SETTINGS, entry_log_size_max_bytes=20_000)
    points = CrashPoints(source, tmp_path, metadata, monkeypatch)
    points.wrap(EntryLogWriter, "sync")
    points.wrap(LocationIndex, "put")
    points.wrap(LocationIndex, "sync")
    points.wrap(LocationIndex, "forget")
    points.wrap(LedgersIndex, "forget")
    async with opened(source, metadata, settings) as store:
        writers = [await store.create({}) for _ in range(4)]
        payloads = [b"%d" % i * 10 for i in range(300)]
        for start in range(0, 300, 100):
            for writer in writers:
                await append(writer, *payloads[start : start + 100])
            await store.checkpoint()
        for writer in writers:
            await writer.close()
        for writer in writers[2:]:
            await store.delete(writer.ledger_id)
        points.armed = True
        await store.collect(compact_below=0.9)
        points.copy("done")
        points.armed = False
        assert store.statistics().bytes_compacted > 0
    expected = {writer.ledger_id: payloads for writer in writers[:2]}
    await check(points.copies + points.cuts, expected)


async def test_a_journal_torn_at_every_byte_of_its_last_records(tmp_path):
    metadata = DictMetadata()
    source = tmp_path / "source"
    async with opened(source, metadata) as store:
        writer = await store.create({})
        await append(writer, b"zero", b"one")
        start = store.statistics().journal_bytes
        before = store._parts.journal.synced.offset
        await append(writer, b"two", b"three")
        after = store._parts.journal.synced.offset
        shutil.copytree(source, tmp_path / "copy")
        assert start
    (journal,) = (tmp_path / "copy" / "journal" / "current").glob("*.txn")
    whole = journal.read_bytes()
    end = before + 43 + 45
    assert after > end
    counts = set()
    # Every byte in the pure test of the scan; here a whole start for some of them.
    for torn in [*range(before, before + 8), *range(before + 8, end - 3, 9), *range(end - 3, end)]:
        copy = tmp_path / "torn"
        shutil.copytree(tmp_path / "copy", copy)
        (copy / "journal" / "current" / journal.name).write_bytes(
            whole[:torn] + bytes(len(whole) - torn)
        )
        async with opened(copy, copied(metadata)) as store:
            reader = await store.open(writer.ledger_id, recover=True)
            found = await reader.read(0, reader.last_confirmed, 1000)
            assert found == [b"zero", b"one", b"two", b"three"][: len(found)]
            assert len(found) == 2 + (torn >= before + 43) + (torn >= end)
            counts.add(len(found))
        shutil.rmtree(copy)
    assert counts == {2, 3}


async def test_a_start_that_is_killed_during_replay_can_be_repeated(tmp_path, monkeypatch):
    metadata = DictMetadata()
    source = tmp_path / "source"
    async with opened(source, metadata) as store:
        writer = await store.create({})
        payloads = [b"%d" % i for i in range(500)]
        await append(writer, *payloads)
        shutil.copytree(source, tmp_path / "killed")
    points = CrashPoints(tmp_path / "killed", tmp_path, metadata, monkeypatch)
    points.wrap(LocationIndex, "sync")
    points.wrap(LedgersIndex, "put")
    points.wrap(JournalFiles, "create")
    points.armed = True
    async with opened(tmp_path / "killed", copied(metadata)):
        points.armed = False
    assert len(points.copies) == 6
    await check(points.copies + points.cuts, {writer.ledger_id: payloads})


@pytest.mark.parametrize("left", ["nothing", "zeros", "garbage"])
async def test_an_entry_log_may_end_in_anything_behind_what_was_synced(tmp_path, monkeypatch, left):
    """Also within the block that was synced and is written again with more in it."""
    monkeypatch.setattr(checkpoint_module, "MARK_SECONDS", 3600)
    metadata = DictMetadata()
    source = tmp_path / "source"
    payloads = [b"%d" % number * 20 for number in range(60)]
    async with opened(source, metadata) as store:
        checkpointer = store._parts.checkpointer
        writer = await store.create({})
        await append(writer, *payloads[:20])
        await store.checkpoint()
        synced = checkpointer.storage.entry_log._file.size
        for start in (20, 40):
            await append(writer, *payloads[start : start + 20])
            await checkpointer.make_room()
        snapshot(source, tmp_path / "killed")
    (log,) = (tmp_path / "killed/ledgers/current").glob("*.log")
    whole = log.read_bytes()
    end = len(whole.rstrip(b"\0"))
    assert synced // BLOCK_BYTES * BLOCK_BYTES < synced < end
    for cut in [*range(synced, synced + 44, 9), (synced + end) // 2, end - 1]:
        copy = tmp_path / "cut"
        shutil.copytree(tmp_path / "killed", copy)
        behind = len(whole) - cut
        tail = {"nothing": b"", "zeros": bytes(behind), "garbage": b"\x01" * behind}[left]
        (copy / "ledgers/current" / log.name).write_bytes(whole[:cut] + tail)
        async with opened(copy, copied(metadata)) as store:
            reader = await store.open(writer.ledger_id, recover=True)
            assert await reader.read(0, 59, 1 << 20) == payloads
            await store.collect(compact_below=1.0)
            assert await reader.read(0, 59, 1 << 20) == payloads
        shutil.rmtree(copy)
