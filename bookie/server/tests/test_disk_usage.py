"""Thresholds with a gap between them."""

from magnetar.bookie.server import disk_usage


def test_between_the_marks_the_answer_stays(tmp_path, monkeypatch):
    used = 0.5
    monkeypatch.setattr(disk_usage, "look", lambda directory: disk_usage.DiskUsage(used, 1))
    watch = disk_usage.DiskWatch(tmp_path, threshold=0.95, low_mark=0.90)
    steps = [(0.94, True), (0.96, False), (0.92, False), (0.90, True), (0.94, True)]
    for used, writable in steps:  # noqa: B007 - `look` reads it
        before = watch.writable
        assert watch.check() == (before != writable)
        assert watch.writable == writable


def test_a_real_look(tmp_path):
    usage = disk_usage.look(tmp_path)
    assert 0 < usage.used_part < 1
    assert usage.free_bytes > 0


def test_a_write_that_found_no_room_counts_until_the_next_look(tmp_path):
    watch = disk_usage.DiskWatch(tmp_path, 1.0, 1.0)
    assert watch.writable
    watch.ran_out()
    assert not watch.writable
    assert watch.check()
    assert watch.writable


def test_readiness_does_not_flap_while_writes_find_no_room(tmp_path, monkeypatch):
    """Below the low mark, and still without room for what is written: tried ever more rarely."""
    free = 1_000_000
    monkeypatch.setattr(disk_usage, "look", lambda directory: disk_usage.DiskUsage(0.5, free))
    watch = disk_usage.DiskWatch(tmp_path, threshold=0.95, low_mark=0.90)
    changes = 0
    for _ in range(100):
        changes += watch.check()
        if watch.writable:
            watch.ran_out()
    assert changes <= 10
    free += disk_usage.ROOM_BYTES
    assert watch.check()
    assert watch.writable, "at once, when there is room"
