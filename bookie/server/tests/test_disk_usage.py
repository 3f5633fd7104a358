"""Thresholds with a gap between them."""

import pytest

from magnetar.bookie.machine.disk import SystemDisk
from magnetar.bookie.server import disk_usage
from magnetar.bookie.server.log_directories import LogDirectories
from magnetar.bookie.tests.real_disk import directory_at
from magnetar.core.ports.disk import Creation, DiskUsage
from magnetar.core.testing.memory_disk import MemoryDisk


@pytest.fixture
def disk():
    return MemoryDisk()


def watching(disk, threshold=0.95, low_mark=0.90):
    return disk_usage.DiskWatch(disk, disk.directory("/bookie"), threshold, low_mark)


def test_between_the_marks_the_answer_stays(disk):
    watch = watching(disk)
    steps = [(0.94, True), (0.96, False), (0.92, False), (0.90, True), (0.94, True)]
    for used, writable in steps:
        disk.usage_now = DiskUsage(used, 1)
        before = watch.writable
        assert watch.check() == (before != writable)
        assert watch.writable == writable


def test_a_real_look(tmp_path):
    usage = SystemDisk().usage(directory_at(tmp_path))
    assert 0 < usage.used_part < 1
    assert usage.free_bytes > 0


def test_a_write_that_found_no_room_counts_until_the_next_look(disk):
    watch = watching(disk, 1.0, 1.0)
    assert watch.writable
    watch.ran_out()
    assert not watch.writable
    assert watch.check()
    assert watch.writable


def test_readiness_does_not_flap_while_writes_find_no_room(disk):
    """Below the low mark, and still without room for what is written: tried ever more rarely."""
    disk.usage_now = DiskUsage(0.5, 1_000_000)
    watch = watching(disk)
    changes = 0
    for _ in range(100):
        changes += watch.check()
        if watch.writable:
            watch.ran_out()
    assert changes <= 10
    disk.usage_now = DiskUsage(0.5, 1_000_000 + disk_usage.ROOM_BYTES)
    assert watch.check()
    assert watch.writable, "at once, when there is room"


@pytest.fixture
def several(disk):
    """Three directories with disks of their own, and the part of each that is used."""
    used = {"/a": 0.5, "/b": 0.5, "/c": 0.5}

    def usage(directory):
        place = list(used).index(directory.path)
        return DiskUsage(used[directory.path], 1000 - place, 1000, place)

    disk.usage = usage
    logs = LogDirectories([disk.directory(path) for path in used])
    return used, logs, disk_usage.DiskWatch(disk, logs, 0.95, 0.90)


def test_of_several_disks_the_full_ones_are_passed_over(several):
    used, logs, watch = several
    assert watch.usage == DiskUsage(0.5, 2997, 3000)
    used["/a"] = 0.97
    assert not watch.check(), "others have room"
    assert logs.full == {0}
    used["/b"] = used["/c"] = 0.99
    assert watch.check()
    assert not watch.writable
    used["/b"] = 0.5
    assert watch.check()
    assert logs.full == {0, 2}


def test_a_log_without_room_goes_on_elsewhere_and_an_index_without_room_does_not(several):
    _, logs, watch = several
    logs.open_for_writing("0.log", Creation.NEW).close()
    logs.open_for_writing("1.log", Creation.NEW).close()
    watch.ran_out_for("1.log")
    assert logs.full == {1}
    assert watch.writable
    watch.ran_out()
    assert not watch.writable, "the indexes are in the first directory only"


def test_directories_that_share_a_disk_do_not_count_twice(disk):
    disk.usage_now = DiskUsage(0.25, 750, 1000, 7)
    logs = LogDirectories([disk.directory("/a"), disk.directory("/b")])
    assert disk_usage.DiskWatch(disk, logs, 0.95, 0.90).usage == DiskUsage(0.25, 750, 1000)
