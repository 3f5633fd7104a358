"""What a start says of a journal that is not what was written; and a start with little room."""

import errno
import logging
import os
import random
import shutil

import msgspec
import pytest

from magnetar.bookie.embedded import open_embedded
from magnetar.bookie.format.entry_log import is_log
from magnetar.bookie.server.entry_log.block_file import BLOCK_BYTES
from magnetar.bookie.server.index.locations import LocationIndex
from magnetar.bookie.server.settings import BookieSettings
from magnetar.bookie.server.small_files import size_of
from magnetar.bookie.tests.memory_machine import QUIET, open_in_memory
from magnetar.bookie.tests.metadata_fake import DictMetadata
from magnetar.core.kernel.errors import Corrupted, StorageFull
from magnetar.core.ports.disk import DiskUsage
from magnetar.core.ports.tests.contract_ledger_store import append
from magnetar.core.testing.memory_disk import MemoryDisk


def opened(directory, metadata):
    return open_embedded(directory, metadata, BookieSettings(), on_fatal=print)


BEGINNING = "has lost its beginning: zeros stand there"


@pytest.mark.parametrize(
    ("hole", "size", "said"),
    [
        (0, 512, f" {BEGINNING}"),
        (0, None, f" {BEGINNING}"),
        (512, 512, ": the record at 512 makes no sense"),
    ],
)
async def test_a_hole_in_a_journal_stops_the_start(tmp_path, caplog, hole, size, said):
    """It is told from the zeros at the end by what follows, and from a torn end too."""
    metadata = DictMetadata()
    async with opened(tmp_path / "bookie", metadata) as store:
        writer = await store.create({})
        for _ in range(3):
            await append(writer, b"x" * 1000)
        for name in ("whole", "holed"):
            shutil.copytree(tmp_path / "bookie", tmp_path / name)
    journals = sorted((tmp_path / "holed" / "journal" / "current").glob("*.txn"))
    with journals[-1].open("r+b") as file:
        file.seek(hole)
        file.write(bytes(size or journals[-1].stat().st_size))
    caplog.set_level(logging.WARNING, "magnetar.bookie.server.replay")
    async with opened(tmp_path / "whole", metadata):
        assert not caplog.messages
    with pytest.raises(Corrupted, match=f"{journals[-1]}{said}"):
        async with opened(tmp_path / "holed", metadata):
            pass


async def test_entries_of_a_collected_ledger_can_be_collected_again():
    """The journal has them behind the mark, and the ledger's key before it."""
    disk, metadata = MemoryDisk(), DictMetadata()
    async with open_in_memory(disk, metadata) as store:
        writer = await store.create({})
        await append(writer, b"x")
        await store.checkpoint()
        await append(writer, b"y")
        await store.delete(writer.ledger_id)
        await store.collect(compact_below=0)
        left = disk.left(None)
    async with open_in_memory(left, metadata) as store:
        locations = store._parts.storage.locations
        assert locations.last(writer.ledger_id) is not None
        await store.collect(compact_below=0)
        assert locations.last(writer.ledger_id) is None


SMALL = msgspec.structs.replace(QUIET, entry_log_size_max_bytes=20_000)
NO_ROOM = DiskUsage(0.97, 0)
LOGS = "/bookie/ledgers/current"


def log_bytes(disk, *paths):
    found = [disk.directory(path) for path in paths or (LOGS,)]
    return sum(size_of(each, name) for each in found for name in each.names() if is_log(name))


def logs_of(disk):
    return sorted(name for name in disk.directory(LOGS).names() if is_log(name))


class Killed:
    """What a bookie had appended when it was killed, and the disk that it left."""

    def __init__(self, *ledgers):
        self.ledgers = ledgers
        self.metadata = DictMetadata()
        self.appended = {}
        self.disk = MemoryDisk()

    async def live(self, written_out, cached):
        """Write so many batches out without a mark, and leave others to the journal."""
        async with self.opened(self.disk) as store:
            writers = [await store.create({}) for _ in range(2)]
            for number in range(written_out + cached):
                for writer in writers:
                    bodies = [b"%d " % number * 50 for _ in range(4)]
                    self.appended.setdefault(writer.ledger_id, []).extend(bodies)
                    await append(writer, *bodies)
                if number < written_out:
                    await store._parts.checkpointer.make_room()
            self.disk = self.disk.left(None)

    def opened(self, disk):
        return open_in_memory(disk, self.metadata, SMALL, ledgers=self.ledgers)

    async def check(self, store):
        for ledger_id, bodies in self.appended.items():
            for entry_id, body in enumerate(bodies):
                assert await store._bookie.lookup.read(ledger_id, entry_id, entry_id, 1) == [body]


async def test_with_room_a_replay_writes_all_of_the_journal(autojump_clock):
    killed = Killed()
    await killed.live(4, 1)
    before = log_bytes(killed.disk)
    async with killed.opened(killed.disk) as store:
        assert log_bytes(killed.disk) >= 2 * before > 0
        await killed.check(store)


@pytest.mark.parametrize("ledgers", [(), ("/a", "/b")], ids=["one", "two"])
async def test_without_room_a_replay_writes_only_what_logs_lack(autojump_clock, ledgers):
    killed = Killed(*ledgers)
    await killed.live(8, 0)
    disk = killed.disk
    disk.usage_now = NO_ROOM
    paths = [f"{path}/current" for path in ledgers] or [LOGS]
    before = log_bytes(disk, *paths)
    async with killed.opened(disk) as store:
        assert log_bytes(disk, *paths) == before > 4_000
        await killed.check(store)


async def test_a_replay_without_room_loses_nothing_by_a_cut_at_any_step(autojump_clock):
    """What the killed process wrote out, it had not synced."""
    killed = Killed()
    await killed.live(3, 1)
    disk = killed.disk
    disk.usage_now = NO_ROOM
    async with killed.opened(disk):
        pass  # ended in order: with a mark
    chance = random.Random(1)
    for _, cut in disk.cuts(chance.randrange):
        for usage in (NO_ROOM, cut.usage_now):
            cut.usage_now = usage
            async with killed.opened(cut) as store:
                await killed.check(store)


def refused(said):
    """A task group stands around a bookie in memory."""
    return pytest.RaisesGroup(pytest.RaisesExc(StorageFull, match=said), flatten_subgroups=True)


def full(disk, path_of_logs):
    """Have new logs in that directory, and nothing else, find no space."""
    there = [f"{path_of_logs}/{name}" for name in disk.directory(path_of_logs).names()]

    def before(step, path):
        if (
            step == "write"
            and path not in there
            and path.endswith(".log")
            and path.startswith(path_of_logs)
        ):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)

    return before


async def test_a_start_that_finds_no_room_says_how_much_it_needs_and_leaves_nothing(autojump_clock):
    killed = Killed()
    await killed.live(3, 2)
    disk = killed.disk
    disk.usage_now = NO_ROOM
    before, names = log_bytes(disk), logs_of(disk)
    lacking = sum(len(body) + 40 for bodies in killed.appended.values() for body in bodies[12:])
    said = (
        f"no room to replay the journal: {lacking} bytes of it are in no entry log yet, and "
        f"0 bytes are free in {LOGS}. Make room there"
    )
    for _ in range(3):
        disk.before = full(disk, LOGS)
        with refused(said):
            async with killed.opened(disk):
                pass
        disk = disk.left(None)
        disk.usage_now = NO_ROOM
        assert (log_bytes(disk), logs_of(disk)) == (before, names)
    async with killed.opened(disk) as store:
        assert before + lacking <= log_bytes(disk) <= before + lacking + 3 * BLOCK_BYTES
        await killed.check(store)


async def test_what_a_start_has_written_before_its_room_ended_is_not_written_again(
    autojump_clock, monkeypatch
):
    killed = Killed()
    await killed.live(0, 20)
    disk = killed.disk
    disk.usage_now = NO_ROOM
    small = msgspec.structs.replace(SMALL, write_cache_bytes=12_000)
    whole = full(disk, LOGS)
    disk.before = lambda step, path: whole(step, path) if log_bytes(disk) > 9_000 else None
    with refused("no room to replay the journal"):
        async with open_in_memory(disk, killed.metadata, small):
            pass
    disk = disk.left(None)
    disk.usage_now = NO_ROOM
    before = log_bytes(disk)
    assert before > 9_000
    async with killed.opened(disk) as store:
        lacking = sum(len(body) + 40 for bodies in killed.appended.values() for body in bodies)
        assert log_bytes(disk) < lacking + 6 * BLOCK_BYTES
        await killed.check(store)


async def test_a_directory_that_finds_no_room_is_passed_over(autojump_clock):
    killed = Killed("/a", "/b")
    await killed.live(1, 4)
    for path in ("/a", "/b"):
        disk = killed.disk.left(None)
        disk.before = full(disk, f"{path}/current")
        before = log_bytes(disk, f"{path}/current")
        async with killed.opened(disk) as store:
            assert log_bytes(disk, f"{path}/current") == before
            await killed.check(store)


async def test_above_the_threshold_there_is_room_for_what_the_journal_has(autojump_clock):
    """Where the only directory below it finds none."""
    killed = Killed("/a", "/b")
    await killed.live(1, 4)
    for path in ("/a", "/b"):
        disk = killed.disk.left(None)
        above = disk.directory("/b" if path == "/a" else "/a").path
        disk.usage = lambda of, above=above: DiskUsage(0.97 if of.path.startswith(above) else 0, 9)
        disk.before = full(disk, f"{path}/current")
        async with killed.opened(disk) as store:
            await killed.check(store)


async def test_indexes_without_room_are_told_of(autojump_clock, monkeypatch):
    killed = Killed()
    await killed.live(0, 1)

    def fail(index):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(LocationIndex, "sync", fail)
    with refused(f"no room for the indexes .* in {LOGS}"):
        async with killed.opened(killed.disk):
            pass
