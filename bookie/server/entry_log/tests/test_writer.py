"""Entry logs written, finished, set aside, and begun after a crash."""

import errno
import os
import random

import pytest

from magnetar.bookie.format.entries import seal, seal_apart
from magnetar.bookie.machine.files import SystemWriteFile
from magnetar.bookie.machine.threads import SystemThreads
from magnetar.bookie.server.entry_log import writer as writer_module
from magnetar.bookie.server.entry_log.block_file import BLOCK_BYTES, BlockFile
from magnetar.bookie.server.entry_log.reader import EntryLogReader
from magnetar.bookie.server.entry_log.writer import EntryLogWriter, log_ids
from magnetar.bookie.server.small_files import read_whole
from magnetar.bookie.tests.real_disk import directory_at
from magnetar.core.testing.memory_disk import MemoryDisk


def run(ledger_id, first, *bodies):
    return seal(ledger_id, first, -1, 0, bodies)


def test_the_first_location_is_apaches(tmp_path):
    writer = EntryLogWriter(directory_at(tmp_path), 1 << 20)
    assert writer.append(run(1, 0, b"x")) == 0x404
    writer.sync()
    assert (tmp_path / "0.log").read_bytes()[:8] == b"BKLO\x00\x00\x00\x01"
    assert (tmp_path / "lastId").read_text() == "0"


def test_blocks_that_were_reserved_are_given_back(tmp_path):
    blob = run(1, 0, b"x" * 1_000_000)
    path = tmp_path / "0.log"
    writer = EntryLogWriter(directory_at(tmp_path), 1 << 30)
    writer.append(blob)
    writer.append(blob)
    writer.flush()
    assert 0 <= path.stat().st_size - (1024 + 2 * len(blob.blob)) < BLOCK_BYTES
    writer.abandon()
    EntryLogWriter(directory_at(tmp_path), 1 << 30)
    assert path.stat().st_blocks * 512 < 2_100_000
    writer = EntryLogWriter(directory_at(tmp_path), 1 << 30)
    writer.append(blob)
    writer.finish()
    assert (tmp_path / "1.log").stat().st_blocks * 512 < 1_100_000


def test_a_log_that_no_reader_has_seen_is_gone_when_it_fails(tmp_path):
    """A disk that stays full is tried each second: nothing gathers."""
    writer = EntryLogWriter(directory_at(tmp_path), 1 << 20)
    before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    for _ in range(20):
        writer.append(run(1, 0, b"x"))
        writer.set_aside()
    assert log_ids(directory_at(tmp_path)) == []
    if before:
        assert len(os.listdir("/proc/self/fd")) == before
    assert writer.append(run(1, 0, b"x")) >> 32 == 20, "ids only grow"
    writer.abandon()


def test_a_log_set_aside_is_synced_with_the_next(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr(
        BlockFile, "sync", lambda file: synced.append(os.fstat(file._file.fileno()).st_ino)
    )
    writer = EntryLogWriter(directory_at(tmp_path), 1 << 20)
    writer.append(run(1, 0, b"x"))
    writer.flush()
    writer.set_aside()
    assert writer.log_id == -1
    assert writer.append(run(1, 0, b"x")) >> 32 == 1
    writer.sync()
    assert sorted(synced) == sorted(path.stat().st_ino for path in tmp_path.glob("*.log"))
    writer.sync()
    assert len(synced) == 3


@pytest.mark.parametrize("said", [b"", b"nonsense", b"\xff", b"f" * 20, b"-7"])
def test_a_last_id_that_makes_no_sense_is_what_the_names_say(tmp_path, said):
    """As a machine without power may leave it."""
    writer = EntryLogWriter(directory_at(tmp_path), 1 << 20)
    writer.append(run(1, 0, b"x"))
    writer.finish()
    (tmp_path / "lastId").write_bytes(said)
    again = EntryLogWriter(directory_at(tmp_path), 1 << 20)
    assert again.append(run(1, 1, b"x")) >> 32 == 1
    again.abandon()


def test_the_last_id_is_durable_before_its_log_is_there(tmp_path, monkeypatch):
    steps = []
    monkeypatch.setattr(SystemWriteFile, "sync", lambda file: steps.append("synced"))
    monkeypatch.setattr(
        writer_module,
        "BlockFile",
        lambda directory, name: steps.append(name) or BlockFile(directory, name),
    )
    writer = EntryLogWriter(directory_at(tmp_path), 1 << 20)
    writer.append(run(1, 0, b"x"))
    assert steps == ["synced", "0.log"]
    writer.abandon()


def test_other_files_are_no_logs(tmp_path):
    for name in ("copy.log", "-1.log", "1.LOG", "1.log.old", "123456789.log"):
        (tmp_path / name).write_bytes(b"")
    (tmp_path / "1f.log").write_bytes(b"")
    assert log_ids(directory_at(tmp_path)) == [0x1F]


def test_a_log_set_aside_keeps_no_room_that_it_does_not_use(tmp_path):
    """It is set aside because the disk is full."""
    writer = EntryLogWriter(directory_at(tmp_path), 1 << 30)
    written = run(1, 0, b"x" * 2_200_000)
    place = writer.append(written)
    writer.flush()
    writer.set_aside()
    assert (tmp_path / "0.log").stat().st_blocks * 512 < 2_300_000
    reader = EntryLogReader(directory_at(tmp_path), SystemThreads().lock())
    assert reader.read(1, 0, place, 100) == written
    reader.close()
    writer.abandon()


def test_a_finished_log_survives_a_power_cut_whole():
    disk = MemoryDisk()
    writer = EntryLogWriter(disk.directory("/logs"), 1 << 20)
    writer.append(run(1, 0, b"abc", b"de"))
    writer.finish()
    done = disk.steps
    for steps, cut in disk.cuts(lambda count: 0):
        directory = cut.directory("/logs")
        again = EntryLogWriter(directory, 1 << 20)
        if steps == done:
            reader = EntryLogReader(directory, SystemThreads().lock())
            assert reader.ledgers(0) == ({1: 43 + 42}, 0)
            assert reader.ledgers_map_offset(0) == 1024 + 43 + 42
        before = log_ids(directory)
        assert again.append(run(1, 9, b"x")) >> 32 > max(before, default=-1), steps
        assert before or steps < done
        again.abandon()


def test_a_log_ends_where_the_next_run_does_not_fit():
    disk = MemoryDisk()
    directory = disk.directory("/logs")
    size = run(1, 0, b"x" * 100).size
    writer = EntryLogWriter(directory, 1024 + 2 * size)
    logs = [writer.append(run(1, i, b"x" * 100)) >> 32 for i in range(5)]
    assert logs == [0, 0, 1, 1, 2]
    assert writer.append(run(1, 5, b"x" * 5000)) >> 32 == 3, "a larger one has a log of its own"
    writer.abandon()


def test_after_a_sync_that_failed_none_succeeds():
    disk = MemoryDisk()
    writer = EntryLogWriter(disk.directory("/logs"), 1 << 20)
    writer.append(run(1, 0, b"x"))

    def fail(step, path):
        if step == "sync" and path.endswith(".log"):
            raise OSError(28, "No space left on device")

    disk.before = fail
    for _ in range(2):
        with pytest.raises(OSError, match="synced") as caught:
            writer.sync()
        assert caught.value.errno == errno.EIO, "which nobody waits out"
        disk.before = lambda step, path: None
    writer.abandon()


def test_a_run_in_two_pieces_is_one_record():
    disk = MemoryDisk()
    directory = disk.directory("/logs")
    writer = EntryLogWriter(directory, 1 << 20)
    apart = seal_apart(1, 0, -1, 0, b"x" * 70_000, b"head")
    place = writer.append(apart)
    writer.finish()
    reader = EntryLogReader(directory, SystemThreads().lock())
    found = reader.read(1, 0, place, 100)
    assert found.checked_payloads(0, 0, 1) == [b"head" + b"x" * 70_000]
    assert reader.ledgers(0) == ({1: apart.size}, 0)
    reader.close()


def test_a_run_written_once_more_is_durable_with_the_next_sync_and_uses_no_room(monkeypatch):
    """Also in more logs than are open at once."""
    monkeypatch.setattr(writer_module, "REPEATED_LOGS_MAX", 2)
    disk = MemoryDisk()
    runs = [run(1, 0, b"a" * 5000), run(1, 1, b"b" * 600), run(1, 2, b"c")]
    locations = []
    for one in runs:
        writer = EntryLogWriter(disk.directory("/logs"), 1 << 20)
        locations.append(writer.append(one))
        writer.flush()
        writer.abandon()
    contents = [read_whole(disk.directory("/logs"), f"{i}.log") for i in range(3)]
    left = disk.left(None)
    writer = EntryLogWriter(left.directory("/logs"), 1 << 20)
    steps = left.steps
    for one, location in zip(runs, locations, strict=True):
        writer.repeat(one, location)
    written = [arguments[2] for step, arguments in left.history[steps:] if step == "write"]
    assert written == [one.blob for one in runs]
    writer.sync()
    writer.abandon()
    cut = left.left(random.Random(0).randrange)
    assert [read_whole(cut.directory("/logs"), f"{i}.log") for i in range(3)] == contents
