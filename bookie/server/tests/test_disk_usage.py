"""Thresholds with a gap between them."""

import errno

import pytest

from magnetar.bookie.machine.disk import SystemDisk
from magnetar.bookie.server import disk_usage
from magnetar.bookie.server.disk_usage import DiskPressure, DiskThresholds
from magnetar.bookie.server.log_directories import LogDirectories
from magnetar.bookie.tests.real_disk import directory_at
from magnetar.core.ports.disk import Creation, DiskUsage
from magnetar.core.testing.memory_disk import MemoryDisk


@pytest.fixture
def disk():
    return MemoryDisk()


def watching(disk, threshold=0.95, low_mark=0.90):
    thresholds = DiskThresholds(threshold, low_mark)
    return disk_usage.DiskWatch(disk, disk.directory("/bookie"), thresholds)


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
    return used, logs, disk_usage.DiskWatch(disk, logs, DiskThresholds(0.95, 0.90))


def test_of_several_disks_the_full_ones_are_passed_over(several):
    used, logs, watch = several
    assert watch.usage == DiskUsage(0.5, 2997, 3000)
    used["/a"] = 0.97
    assert not watch.check(), "others have room"
    assert logs.full == {0}
    assert (watch.directories, watch.with_room) == (3, 2)
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
    assert watch.spare_bytes == 1000
    watch.ran_out()
    assert not watch.writable, "the indexes are in the first directory only"
    assert watch.spare_bytes == 0


def test_a_log_that_could_not_begin_tells_of_the_directory_where_it_was_to_be(several):
    _, logs, watch = several
    logs.open_for_writing("0.log", Creation.NEW).close()

    def refuse(*_):
        raise OSError(errno.ENOSPC, "no space")

    logs.directories[1].open_for_writing = refuse
    with pytest.raises(OSError, match="no space"):
        logs.open_for_writing("1.log", Creation.NEW)
    watch.ran_out_for("1.log")
    assert logs.full == {1}
    assert watch.writable


def test_directories_that_share_a_disk_do_not_count_twice(disk):
    disk.usage_now = DiskUsage(0.25, 750, 1000, 7)
    logs = LogDirectories([disk.directory("/a"), disk.directory("/b")])
    assert disk_usage.DiskWatch(disk, logs, DiskThresholds()).usage == DiskUsage(0.25, 750, 1000)


def test_a_disk_is_almost_full_between_warning_and_threshold(disk):
    """And a hair below the warning it is so still: the log would have a line each ten seconds."""
    watch = watching(disk)
    steps = [
        (0.90, DiskPressure.NONE),
        (0.91, DiskPressure.ALMOST_FULL),
        (0.895, DiskPressure.ALMOST_FULL),
        (0.97, DiskPressure.FULL),
        (0.90, DiskPressure.ALMOST_FULL),
        (0.89, DiskPressure.NONE),
    ]
    for used, pressure in steps:
        disk.usage_now = DiskUsage(used, 1)
        watch.check()
        assert watch.pressure is pressure


def test_a_change_of_the_pressure_is_logged_once(disk, caplog):
    watch = watching(disk)
    disk.usage_now = DiskUsage(0.93, 1)
    watch.check_and_log()
    watch.check_and_log()
    assert caplog.text.count("93% full: almost full, there is no major compaction") == 1
    disk.usage_now = DiskUsage(0.5, 1)
    watch.check_and_log()
    assert caplog.text.count("50% full: compaction goes on") == 1


def test_of_several_disks_the_emptiest_says_whether_there_is_room_to_compact(several):
    used, _, watch = several
    used.update({"/a": 0.97, "/b": 0.92})
    watch.check()
    assert watch.pressure is DiskPressure.NONE
    used["/c"] = 0.93
    watch.check()
    assert watch.pressure is DiskPressure.ALMOST_FULL
    used.update({"/b": 0.97, "/c": 0.97})
    watch.check()
    assert watch.pressure is DiskPressure.FULL


def test_one_full_disk_of_several_ends_writing_if_that_is_asked_for(disk, several):
    used, logs, _ = several
    strict = DiskThresholds(0.95, 0.90, any_full_is_read_only=True)
    watch = disk_usage.DiskWatch(disk, logs, strict)
    assert watch.writable
    used["/b"] = 0.96
    assert watch.check()
    assert not watch.writable
    assert watch.pressure is DiskPressure.NONE, "it may compact into the others"
    used["/b"] = 0.90
    assert watch.check()
    assert watch.writable


def test_each_new_log_looks_at_the_disks(several):
    """Half a write cache may be more than a small disk has: several logs, between two checks."""
    used, logs, watch = several
    used["/a"] = used["/c"] = 0.96
    for log_id in range(3):
        logs.open_for_writing(f"{log_id}.log", Creation.NEW).close()
        assert logs.place_of(f"{log_id}.log") == 1
    assert watch.with_room == 1


def test_room_is_what_is_free_below_the_threshold_of_disks_that_take_entries(several):
    used, _, watch = several
    assert watch.room_bytes == 3 * (1000 - 50) - 0 - 1 - 2
    used["/b"] = 0.96
    watch.check()
    assert watch.room_bytes == 950 + 948
    assert watch.free() == ", ".join(
        f"{1000 - place} bytes are free in {path}" for place, path in enumerate(used)
    )


def test_directories_on_one_disk_share_its_room(disk):
    disk.usage_now = DiskUsage(0.5, 700, 1000)
    logs = LogDirectories([disk.directory(path) for path in ("/a", "/b")])
    assert disk_usage.DiskWatch(disk, logs, DiskThresholds(0.75, 0.70)).room_bytes == 450
    disk.usage_now = DiskUsage(0.5, 200, 1000)
    assert disk_usage.DiskWatch(disk, logs, DiskThresholds(0.75, 0.70)).room_bytes == 0
