"""Thresholds with a gap between them."""

import pytest

from magnetar.bookie.machine.disk import SystemDisk
from magnetar.bookie.server import disk_usage
from magnetar.bookie.tests.real_disk import directory_at
from magnetar.core.ports.disk import DiskUsage
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
