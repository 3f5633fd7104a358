"""Checkpoints, and disks that are full or fail; the crash points have their own file."""

import errno
import os
import shutil

import msgspec
import pytest
import trio

from magnetar.bookie.embedded import open_embedded
from magnetar.bookie.server import checkpoint, ledger_storage
from magnetar.bookie.server.directories import read_last_mark
from magnetar.bookie.server.entry_log.block_file import BLOCK_BYTES, BlockFile
from magnetar.bookie.server.index.locations import LocationIndex
from magnetar.bookie.server.settings import BookieSettings
from magnetar.bookie.tests.loops import NotedLoop
from magnetar.bookie.tests.metadata_fake import DictMetadata
from magnetar.bookie.tests.real_disk import directories_at
from magnetar.core.ports.tests.contract_ledger_store import Outcome, append

SETTINGS = BookieSettings(checkpoint_interval_seconds=3600)


def opened(directory, metadata, settings=SETTINGS, on_fatal=pytest.fail):
    return open_embedded(directory, metadata, settings, on_fatal=on_fatal)


class Full:
    """A disk that takes no piece of an entry log while `left` of them are to be refused."""

    def __init__(self, patch):
        self.refused = self.left = 0
        write = BlockFile._write

        def refuse(file, size):
            if self.left:
                self.left -= 1
                self.refused += 1
                write(file, BLOCK_BYTES)  # as far as there was room
                raise OSError(errno.ENOSPC, "No space left on device")
            write(file, size)

        patch.setattr(BlockFile, "_write", refuse)


async def test_a_half_that_is_written_out_can_be_read_and_is_not_durable_before_a_mark(tmp_path):
    async with opened(tmp_path / "bookie", DictMetadata()) as store:
        directories = directories_at(tmp_path / "bookie")
        before = read_last_mark(directories)
        writer = await store.create({})
        await append(writer, *[b"x" * 100] * 50)
        await store._parts.checkpointer.make_room()
        assert store.statistics().write_cache_entries == 0
        assert await writer.read(0, 49, 1 << 20) == [b"x" * 100] * 50
        assert read_last_mark(directories) == before
        await store.checkpoint()
        assert read_last_mark(directories) == store._parts.journal.synced > before


async def test_marks_come_after_so_many_bytes_or_entries_or_so_long(tmp_path, monkeypatch):
    marks = []
    monkeypatch.setattr(ledger_storage, "write_last_mark", lambda _, mark: marks.append(mark))

    async def begun(_):
        return

    monkeypatch.setattr(checkpoint.Checkpointer, "begin", begun)
    monkeypatch.setattr(checkpoint, "MARK_SECONDS", 3600)
    monkeypatch.setattr(checkpoint, "MARK_BYTES", 3000)
    async with opened(tmp_path / "bookie", DictMetadata()) as store:
        make_room = store._parts.checkpointer.make_room
        writer = await store.create({})
        assert len(marks) == 1  # of the start
        marks.clear()
        for expected in (0, 0, 1):
            await append(writer, b"x" * 1000)
            await make_room()
            assert len(marks) == expected
        monkeypatch.setattr(checkpoint, "MARK_ENTRIES", 20)
        for expected in (1, 2):
            await append(writer, *[b""] * 10)
            await make_room()
            assert len(marks) == expected
        monkeypatch.setattr(checkpoint, "MARK_SECONDS", 0)
        await append(writer, b"x")
        await make_room()
        assert len(marks) == 3
        await make_room()  # nothing is new
        assert len(marks) == 3


async def test_a_full_disk_is_waited_for_and_what_was_written_before_is_kept(tmp_path, monkeypatch):
    metadata = DictMetadata()
    full = Full(monkeypatch)
    synced = {}
    sync = BlockFile.sync

    def noting(file):
        sync(file)
        found = os.fstat(file._file.fileno())
        synced[found.st_ino] = found.st_size

    monkeypatch.setattr(BlockFile, "sync", noting)
    async with opened(tmp_path / "bookie", metadata) as store:
        checkpointer = store._parts.checkpointer
        writer = await store.create({})
        await append(writer, *[b"%d" % i for i in range(100)])
        await checkpointer.make_room()  # in a log that will be set aside, not synced
        await append(writer, *[b"%d" % i for i in range(100, 200)])
        full.left = 2
        for _ in range(2):
            with pytest.raises(OSError, match="No space"):
                await checkpointer.make_room()
        await append(writer, *[b"%d" % i for i in range(200, 300)])
        expected = [b"%d" % i for i in range(300)]
        assert await writer.read(0, 299, 1 << 20) == expected
        await checkpointer.make_room()
        await store.checkpoint()
        assert full.refused == 2
        logs = {path.name: path.stat() for path in tmp_path.glob("bookie/ledgers/current/*.log")}
        assert len(logs) > 1
        shutil.copytree(tmp_path / "bookie", tmp_path / "cut")
        for name, found in logs.items():
            os.truncate(tmp_path / "cut/ledgers/current" / name, synced.get(found.st_ino, 0))
    async with opened(tmp_path / "cut", metadata) as store:
        reader = await store.open(writer.ledger_id, recover=True)
        assert await reader.read(0, 299, 1 << 20) == expected


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC])
async def test_a_sync_that_failed_is_never_believed_again(tmp_path, monkeypatch, number):
    """The page cache may have dropped what it could not write: only the journal has it."""
    metadata = DictMetadata()
    sync = BlockFile.sync

    def fail(file):
        monkeypatch.setattr(BlockFile, "sync", sync)
        raise OSError(number, os.strerror(number))

    async with opened(tmp_path / "bookie", metadata) as store:
        directories = directories_at(tmp_path / "bookie")
        before = read_last_mark(directories)
        writer = await store.create({})
        await append(writer, *[b"%d" % i for i in range(100)])
        monkeypatch.setattr(BlockFile, "sync", fail)
        for _ in range(2):
            with pytest.raises(OSError, match="synced") as caught:
                await store.checkpoint()
            assert caught.value.errno == errno.EIO  # which no one waits out
        assert read_last_mark(directories) == before
    async with opened(tmp_path / "bookie", metadata) as store:
        reader = await store.open(writer.ledger_id, recover=True)
        assert await reader.read(0, 99, 1 << 20) == [b"%d" % i for i in range(100)]


async def test_a_failed_sync_is_told_as_fatal(tmp_path, monkeypatch):
    fatal = []
    outcome = trio.Event()

    def on_fatal(reason):
        fatal.append(reason)
        outcome.set()

    def fail(file):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(checkpoint, "MARK_BYTES", 0)
    small = msgspec.structs.replace(SETTINGS, write_cache_bytes=20_000)
    async with opened(tmp_path / "bookie", DictMetadata(), small, on_fatal) as store:
        writer = await store.create({})
        await append(writer, b"for the mark to come to")
        monkeypatch.setattr(BlockFile, "sync", fail)
        await append(writer, *[b"x" * 1000] * 12)
        with trio.fail_after(20):
            await outcome.wait()
        assert not store.writable()
    assert len(fatal) == 1


@pytest.mark.parametrize("refusals", [0, 1])
async def test_who_is_held_hears_of_room(tmp_path, monkeypatch, nursery, refusals):
    """Held by a full half: every time the loop must hear that there is room."""
    monkeypatch.setattr(checkpoint, "RETRY_SECONDS", 0)
    full = Full(monkeypatch)
    full.left = refusals
    small = msgspec.structs.replace(SETTINGS, write_cache_bytes=20_000)
    loop = NotedLoop(nursery)
    async with open_embedded(
        tmp_path / "bookie", DictMetadata(), small, on_fatal=pytest.fail, loop=loop
    ) as store:
        writer = await store.create({})
        outcome = Outcome(30 * 12)
        with trio.fail_after(30):
            for _ in range(30):
                for _ in range(12):
                    writer.append([b"x" * 1000], outcome)
                while store.congested:
                    await loop.changed()
            assert await outcome.wait() == [None] * (30 * 12)
        assert writer.last_confirmed == 30 * 12 - 1
        assert full.refused == refusals
        assert "schedule_settle" in loop.said
    loop.scope.cancel()


async def test_an_index_without_room_is_tried_again_alone(tmp_path, monkeypatch):
    """The entries are in their log already, which nobody takes for garbage meanwhile."""
    metadata = DictMetadata()
    settings = msgspec.structs.replace(SETTINGS, entry_log_size_max_bytes=10_000)
    put, refused = LocationIndex.put, []

    def refuse(index, *arguments):
        if len(refused) < 3:
            refused.append(index)
            raise OSError(errno.ENOSPC, "No space left on device")
        put(index, *arguments)

    async with opened(tmp_path / "bookie", metadata, settings) as store:
        writer = await store.create({})
        payloads = [b"%d" % i * 20 for i in range(300)]
        for start in range(0, 300, 50):  # into several logs
            await append(writer, *payloads[start : start + 50])
        monkeypatch.setattr(LocationIndex, "put", refuse)
        storage = tmp_path / "bookie/ledgers/current"
        logs = set()
        for _ in range(3):
            with pytest.raises(OSError, match="No space"):
                await store.checkpoint()
            logs.add(tuple(sorted(path.name for path in storage.glob("*.log"))))
            await store.collect(compact_below=1.0)
        assert len(logs) == 1
        assert len(logs.pop()) > 1
        assert store.statistics().entry_logs_unlinked == 0
        await store.checkpoint()
        assert await writer.read(0, 299, 1 << 20) == payloads
    async with opened(tmp_path / "bookie", metadata, settings) as store:
        reader = await store.open(writer.ledger_id, recover=True)
        assert await reader.read(0, 299, 1 << 20) == payloads
