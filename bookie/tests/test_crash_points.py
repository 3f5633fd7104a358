"""A crash between any two steps of a checkpoint, of compaction, of a torn journal: nothing lost.

A crash point is a copy of the directory, taken by wrapping the step: what a killed process leaves.
"""

import shutil

import msgspec
import pytest

from bookie import checkpoint as checkpoint_module
from bookie.directories import Directories, read_last_mark
from bookie.embedded import open_embedded
from bookie.entry_log.writer import EntryLogWriter
from bookie.index import LocationIndex
from bookie.journal import format
from bookie.journal.files import JournalFiles
from bookie.ledgers_index import LedgersIndex
from bookie.settings import BookieSettings
from bookie.tests.metadata_fake import DictMetadata
from core.errors import Fenced
from core.ports.tests.contract_ledger_store import Told, append

SETTINGS = BookieSettings(checkpoint_interval_seconds=3600)


def opened(directory, metadata, settings=SETTINGS):
    return open_embedded(directory, metadata, settings, on_fatal=pytest.fail)


def copied(metadata):
    same = DictMetadata()
    same.values = dict(metadata.values)
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
        self.armed = False

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
            target = self.target / f"{len(self.copies)}-{name}"
            snapshot(self.source, target)
            self.copies.append((target, copied(self.metadata)))


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
                    state = store._client._link._touch(ledger_id, b"")
                    assert state.fenced, directory.name


async def test_between_any_two_steps_of_a_checkpoint(tmp_path, monkeypatch):
    metadata = DictMetadata()
    source = tmp_path / "source"
    points = CrashPoints(source, tmp_path, metadata, monkeypatch)
    points.wrap(EntryLogWriter, "sync")
    points.wrap(LocationIndex, "put")
    points.wrap(LocationIndex, "sync")
    points.wrap(LedgersIndex, "put")
    points.wrap(checkpoint_module, "write_last_mark")
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
    await check(points.copies, expected, [fenced])


async def test_a_fence_alone_reaches_the_index_before_the_mark_passes_it(tmp_path):
    """Apache's #4843: an empty write cache must not let the checkpoint skip the rows."""
    metadata = DictMetadata()
    async with opened(tmp_path / "bookie", metadata) as store:
        writer = await store.create({})
        await store._client._link.fence(writer.ledger_id, b"k" * 20)
        await store.checkpoint()
        shutil.copytree(tmp_path / "bookie", tmp_path / "copy")
    mark = read_last_mark(Directories(tmp_path / "copy"))
    journal = (tmp_path / "copy/journal/current") / format.file_name(mark.journal_id)
    assert format.fence_note(writer.ledger_id) in journal.read_bytes()[: mark.offset]
    async with opened(tmp_path / "copy", metadata) as store:
        told = Told()
        writer._link, writer._later = store._client._link, store._client._later
        writer.append([b"zombie"], told)
        (error,) = await told.wait()
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
    await check(points.copies, {writer.ledger_id: payloads for writer in writers[:2]})


async def test_a_journal_torn_at_every_byte_of_its_last_records(tmp_path):
    metadata = DictMetadata()
    source = tmp_path / "source"
    async with opened(source, metadata) as store:
        writer = await store.create({})
        await append(writer, b"zero", b"one")
        start = store.statistics().journal_bytes
        before = store._journal.synced.offset
        await append(writer, b"two", b"three")
        after = store._journal.synced.offset
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
    await check(points.copies, {writer.ledger_id: payloads})
