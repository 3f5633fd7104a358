"""The fake keeps the contract of the port, and loses what was not synced."""

import random

import pytest
import trio

pytest.register_assert_rewrite("magnetar.core.ports.tests.contract_disk")

from magnetar.core.ports.disk import Creation, WriteMode  # noqa: E402 (after the rewrite)
from magnetar.core.ports.tests.contract_disk import CHECKS, get, put  # noqa: E402
from magnetar.core.testing.memory_disk import MemoryDisk  # noqa: E402


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_contract(check):
    disk = MemoryDisk()
    check(disk, disk.directory("/data"))


def last_cut(disk, choose):
    *_, (_, cut) = disk.cuts(choose)
    return cut.directory("/data")


def nothing(count):
    """Whatever may be lost is."""
    return 0


def test_what_was_not_synced_may_be_lost_and_what_was_is_not():
    disk = MemoryDisk()
    directory = disk.directory("/data")
    put(directory, "lost", b"abc")
    file = directory.open_for_writing("kept", Creation.NEW)
    file.pwrite(b"abc", 0)
    file.sync()
    assert last_cut(disk, nothing).names() == [], "the names were not synced"
    directory.sync()
    cut = last_cut(disk, nothing)
    assert (get(cut, "kept"), get(cut, "lost")) == (b"abc", b"")
    file.pwrite(b"X", 0)
    directory.rename("kept", "new")
    cut = last_cut(disk, nothing)
    assert sorted(cut.names()) == ["kept", "lost"]
    assert get(cut, "kept") == b"abc"


def test_a_write_is_torn_by_sectors():
    disk = MemoryDisk()
    directory = disk.directory("/data")
    file = directory.open_for_writing("file", Creation.NEW)
    directory.sync()
    file.allocate(4096)
    file.sync()
    file.pwrite(b"x" * 2048, 0)
    seen = set()
    for seed in range(200):
        data = get(last_cut(disk, random.Random(seed).randrange), "file")
        sectors = [data[i : i + 512] for i in range(0, 4096, 512)]
        assert all(sector in (bytes(512), b"x" * 512) for sector in sectors)
        assert sectors[4:] == [bytes(512)] * 4
        seen.add(tuple(sector[0] for sector in sectors[:4]))
    assert len(seen) == 16, "any of them may reach the disk"


def test_a_durable_write_is_torn_only_while_it_is_written():
    disk = MemoryDisk()
    directory = disk.directory("/data")
    put(directory, "file", bytes(512))
    directory.open_for_writing("file", Creation.EXISTING).sync()
    directory.sync()
    file = directory.open_for_writing("file", Creation.EXISTING, WriteMode.DIRECT_SYNC)
    before = disk.steps
    file.pwrite(b"x" * 512, 0)
    found = {
        step: get(cut.directory("/data"), "file")
        for step, cut in disk.cuts(nothing)
        if step >= before
    }
    assert found == {before: bytes(512), before + 1: b"x" * 512}


def test_names_are_lost_from_some_point_on():
    disk = MemoryDisk()
    directory = disk.directory("/data")
    for name in "abc":
        put(directory, name, b"")
    seen = {
        "".join(sorted(last_cut(disk, random.Random(seed).randrange).names())) for seed in range(50)
    }
    assert seen == {"", "a", "ab", "abc"}


def test_there_is_a_cut_for_every_step_and_a_disk_that_was_cut_can_be_cut_again():
    disk = MemoryDisk()
    directory = disk.directory("/data")
    for name in "abc":
        put(directory, name, name.encode())
        directory.sync()
    cuts = list(disk.cuts(nothing))
    assert [step for step, _ in cuts] == list(range(disk.steps + 1))
    again = cuts[-1][1]
    assert again.steps == 0
    again.directory("/data").remove("a")
    assert sorted(last_cut(again, nothing).names()) == ["a", "b", "c"]
    assert sorted(last_cut(again, lambda count: count - 1).names()) == ["b", "c"]


def test_a_step_can_be_refused_and_rot_is_durable():
    disk = MemoryDisk()
    directory = disk.directory("/data")
    put(directory, "file", b"abc")
    seen = []

    def full(step, path):
        seen.append((step, path))
        raise OSError(28, "No space left on device")

    disk.before = full
    with pytest.raises(OSError, match="No space"):
        put(directory, "other", b"abc")
    assert seen == [("create", "/data/other")]
    assert directory.names() == ["file"]
    disk.before = lambda step, path: None
    directory.open_for_writing("file", Creation.EXISTING).sync()
    directory.sync()
    disk.rot("/data/file", 1)
    assert get(directory, "file") == get(last_cut(disk, nothing), "file") == b"a\x22c"


async def test_submitted_writes_are_durable_and_their_end_shows_later():
    disk = MemoryDisk()
    directory = disk.directory("/data")
    put(directory, "file", bytes(1024))
    file = directory.open_for_writing("file", Creation.EXISTING, WriteMode.DIRECT_SYNC)
    buffer = memoryview(bytearray(b"x" * 1024))
    writes = disk.submitted_writes(buffer)
    ended = []
    disk.watch(writes.descriptor, lambda: ended.append(writes.ended()), lambda: writes.busy)
    writes.begin(file.fileno(), 512, 0, 512)
    assert writes.busy
    assert ended == []
    while not ended:
        await trio.lowlevel.checkpoint()
    assert ended == [512]
    assert writes.ended() is None
    assert get(directory, "file") == bytes(512) + b"x" * 512
    writes.begin(file.fileno(), 100, 0, 512)
    with pytest.raises(OSError, match="Invalid argument"):
        writes.ended()
    assert MemoryDisk(direct=False).submitted_writes(buffer) is None


def test_what_a_crash_leaves():
    disk = MemoryDisk()
    directory = disk.directory("/data")
    file = directory.open_for_writing("a", Creation.NEW)
    directory.sync()
    file.pwrite(b"synced", 0)
    file.sync()
    file.pwrite(b"not", 6)
    assert get(disk.left(None).directory("/data"), "a") == b"syncednot", "a process, not power"
    assert get(disk.left(nothing).directory("/data"), "a") == b"synced"
    assert get(directory, "a") == b"syncednot", "the disk itself goes on"


def test_what_a_crash_within_a_step_leaves():
    disk, left = MemoryDisk(), []
    directory = disk.directory("/data")
    file = directory.open_for_writing("a", Creation.NEW, WriteMode.DIRECT_SYNC)
    directory.sync()
    disk.before = lambda step, path: left.extend((disk.left(nothing), disk.left(lambda n: n - 1)))
    file.pwrite(bytes(512), 0)
    assert [len(get(one.directory("/data"), "a")) for one in left] == [0, 512]


async def test_a_submitted_write_is_durable_when_it_is_reported():
    disk, later, ended = MemoryDisk(), [], []
    disk.later = later.append
    directory = disk.directory("/data")
    file = directory.open_for_writing("a", Creation.NEW, WriteMode.DIRECT_SYNC)
    directory.sync()
    writes = disk.submitted_writes(memoryview(b"x" * 512))
    disk.watch(writes.descriptor, lambda: ended.append(writes.ended()), lambda: True)
    writes.begin(file.fileno(), 0, 0, 512)
    assert (ended, get(disk.left(nothing).directory("/data"), "a")) == ([], b"")
    later.pop()()
    assert ended == [512]
    assert get(disk.left(nothing).directory("/data"), "a") == b"x" * 512
    writes.begin(file.fileno(), 512, 0, 512)
    writes.wait()
    assert len(get(disk.left(nothing).directory("/data"), "a")) == 1024
    later.pop()()
    assert ended == [512], "it was waited for"
