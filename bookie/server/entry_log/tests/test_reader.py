"""Entry logs read back: whole, cut short, damaged, closed meanwhile."""

import errno

import pytest

from magnetar.bookie.format.entries import cut, payloads, seal
from magnetar.bookie.machine.threads import SystemThreads
from magnetar.bookie.server.cache.large_entries import LargeEntries
from magnetar.bookie.server.entry_log.block_file import BLOCK_BYTES
from magnetar.bookie.server.entry_log.reader import OPEN_LOGS_MAX, EntryLogReader
from magnetar.bookie.server.entry_log.writer import EntryLogWriter, log_ids
from magnetar.bookie.tests.real_disk import directory_at
from magnetar.core.kernel.errors import Corrupted
from magnetar.core.ports.disk import Creation
from magnetar.core.testing.memory_disk import MemoryDirectory, MemoryDisk, MemoryReadFile


def run(ledger_id, first, *bodies):
    return seal(ledger_id, first, -1, 0, bodies)


def trimmed(read):
    """Without what may have been read along with it."""
    return cut(read, read.count)


def test_what_was_appended_is_read_from_its_location(tmp_path):
    writer = EntryLogWriter(directory_at(tmp_path), 1 << 20)
    one, two = run(1, 0, b"a", b"bb"), run(2, 5, b"c" * 100_000)
    places = [writer.append(one), writer.append(two)]
    writer.sync()
    reader = EntryLogReader(directory_at(tmp_path), SystemThreads().lock())
    assert trimmed(reader.read(1, 0, places[0], 1 << 20)) == one
    assert reader.read(1, 1, places[0] + one.offsets[1], 60).first == 1
    assert reader.read(2, 5, places[1], 100) == two  # asked for less than the entry has
    with pytest.raises(Corrupted):
        reader.read(2, 6, places[1], 1 << 20)
    with pytest.raises(Corrupted):
        reader.read(1, 0, places[0] + 1, 1 << 20)
    with pytest.raises(Corrupted):
        reader.read(1, 0, places[1] + 200_000, 1 << 20)
    with pytest.raises(FileNotFoundError):
        reader.read(1, 0, (9 << 32) | 1028, 1 << 20)
    reader.close()


def test_large_entries_are_read_by_themselves(tmp_path):
    writer = EntryLogWriter(directory_at(tmp_path), 1 << 20)
    bodies = [bytes([number]) * 50_000 for number in range(3)]
    place = writer.append(run(1, 0, *bodies))
    writer.append(run(2, 3, b"of another ledger"))
    writer.sync()
    reader = EntryLogReader(directory_at(tmp_path), SystemThreads().lock())
    assert reader.read_large(1, 0, place, 9, 1 << 20) == LargeEntries(1, 0, tuple(bodies))
    assert reader.read_large(1, 0, place, 2, 1 << 20).last == 1
    assert reader.read_large(1, 0, place, 9, 149_999).last == 1
    assert reader.read_large(1, 0, place, 9, 1).last == 0
    with pytest.raises(Corrupted):
        reader.read_large(1, 1, place, 9, 1 << 20)
    with pytest.raises(Corrupted):
        reader.read_large(1, 0, place + 200_000, 9, 1 << 20)
    with pytest.raises(FileNotFoundError):
        reader.read_large(1, 0, (9 << 32) | 1028, 9, 1 << 20)
    path = tmp_path / "0.log"
    whole = bytearray(path.read_bytes())
    whole[1024 + 2 * 50_040 + 45] ^= 1
    path.write_bytes(whole)
    assert reader.read_large(1, 0, place, 9, 1 << 20).last == 1, "the third lacks its digest"
    path.write_bytes(whole[: 1024 + 60_000])
    assert reader.read_large(1, 0, place, 9, 1 << 20).last == 0
    path.write_bytes(whole[: 1024 + 10])
    with pytest.raises(Corrupted):
        reader.read_large(1, 0, place, 9, 1 << 20)
    reader.close()


def test_finished_logs_have_a_map_and_unfinished_ones_are_read_through(tmp_path):
    writer = EntryLogWriter(directory_at(tmp_path), 5000)
    for i in range(10):
        writer.append(run(i % 3, 10 * i, *[b"x" * 100] * 10))
    writer.sync()
    assert len(log_ids(directory_at(tmp_path))) == 5
    reader = EntryLogReader(directory_at(tmp_path), SystemThreads().lock())
    finished, last = log_ids(directory_at(tmp_path))[:-1], log_ids(directory_at(tmp_path))[-1]
    assert all(reader.ledgers_map_offset(i) for i in finished)
    assert not reader.ledgers_map_offset(last)
    for log_id in (*finished, last):
        scanned = {}
        for _, found in reader.scan(log_id):
            assert found.checked_payloads(found.first, found.last, 1 << 20)
            scanned[found.ledger_id] = scanned.get(found.ledger_id, 0) + len(found.blob)
        assert reader.ledgers(log_id) == (scanned, 0)
    reader.close()
    # A new writer never appends to what is there.
    again = EntryLogWriter(directory_at(tmp_path), 5000)
    assert again.append(run(1, 0, b"x")) >> 32 == last + 1


def test_a_scan_stops_where_a_crash_cut_the_log(tmp_path):
    writer = EntryLogWriter(directory_at(tmp_path), 1 << 20)
    writer.append(run(1, 0, b"abc", b"def"))
    writer.sync()
    path = tmp_path / "0.log"
    whole = path.read_bytes()
    for size in range(1024, 1024 + 2 * 43 + 2):
        path.write_bytes(whole[:size])
        reader = EntryLogReader(directory_at(tmp_path), SystemThreads().lock())
        found = [p for _, r in reader.scan(0) for p in payloads(r, r.first, r.last, 1 << 20)]
        assert found == [b"abc", b"def"][: (size - 1024) // 43]
        reader.close()
    path.write_bytes(whole)  # zeros behind it up to the end of a block
    assert len(whole) == BLOCK_BYTES
    reader = EntryLogReader(directory_at(tmp_path), SystemThreads().lock())
    assert [r.count for _, r in reader.scan(0)] == [2]
    reader.close()


def test_large_entries_are_scanned(tmp_path):
    writer = EntryLogWriter(directory_at(tmp_path), 1 << 30)
    bodies = [bytes([i]) * 3_000_000 for i in range(4)]
    for i, body in enumerate(bodies):
        writer.append(run(1, i, body))
    writer.finish()
    reader = EntryLogReader(directory_at(tmp_path), SystemThreads().lock())
    found = [p for _, r in reader.scan(0) for p in payloads(r, r.first, r.last, 1 << 30)]
    assert found == bodies
    reader.close()


def test_what_was_flushed_can_be_read_before_it_is_synced(tmp_path):
    writer = EntryLogWriter(directory_at(tmp_path), 1 << 20)
    reader = EntryLogReader(directory_at(tmp_path), SystemThreads().lock())
    for i in range(3):
        written = run(1, i, b"x" * 100)
        place = writer.append(written)
        writer.flush()
        assert trimmed(reader.read(1, i, place, 1 << 20)) == written
    reader.close()


@pytest.fixture
def disk():
    return MemoryDisk()


def written(disk, *runs):
    """Each in a log of its own; and the locations."""
    writer = EntryLogWriter(disk.directory("/logs"), 1)
    places = [writer.append(each) for each in runs]
    writer.finish()
    return places


def reading(disk):
    return EntryLogReader(disk.directory("/logs"), SystemThreads().lock())


def test_a_log_that_is_forgotten_meanwhile_is_read_to_the_end(disk, monkeypatch):
    """A collector forgets and removes it while a reader is in it."""
    (place,) = written(disk, run(1, 0, b"abc"))
    reader, closed = reading(disk), []
    pread, close = MemoryReadFile.pread, MemoryReadFile.close

    def forgotten(file, size, offset):
        reader.forget(0)
        if "0.log" in disk.directory("/logs").names():
            disk.directory("/logs").remove("0.log")
        assert not closed
        return pread(file, size, offset)

    monkeypatch.setattr(MemoryReadFile, "pread", forgotten)
    monkeypatch.setattr(MemoryReadFile, "close", lambda file: (closed.append(file), close(file)))
    assert reader.read(1, 0, place, 100).first == 0
    assert len(closed) == 1, "by the last who used it"
    with pytest.raises(FileNotFoundError):
        reader.read(1, 0, place, 100)
    reader.close()


def test_a_few_logs_are_open_and_the_one_used_last_stays(disk, monkeypatch):
    places = written(disk, *[run(1, i, b"%d" % i) for i in range(OPEN_LOGS_MAX + 1)])
    opened = []
    open_file = MemoryDirectory.open

    def noting(directory, name, **more):
        opened.append(name)
        return open_file(directory, name, **more)

    monkeypatch.setattr(MemoryDirectory, "open", noting)
    reader = reading(disk)
    for entry_id in (*range(OPEN_LOGS_MAX), 0, OPEN_LOGS_MAX, 0):
        reader.read(1, entry_id, places[entry_id], 100)
    assert len(opened) == OPEN_LOGS_MAX + 1
    reader.read(1, 1, places[1], 100)
    assert opened[-1] == "1.log", "it was the oldest"
    assert len(opened) == OPEN_LOGS_MAX + 2
    reader.close()


def test_a_sector_that_cannot_be_read_damages_what_is_in_it(disk, monkeypatch):
    """And not the entry before it, which is read alone then."""
    place, *_ = written(disk, run(1, 0, b"a" * 100, b"b" * 1000))
    bad = (place & 0xFFFFFFFF) + 200
    pread = MemoryReadFile.pread

    def failing(file, size, offset):
        if offset <= bad < offset + size:
            raise OSError(errno.EIO, "Input/output error")
        return pread(file, size, offset)

    monkeypatch.setattr(MemoryReadFile, "pread", failing)
    reader = reading(disk)
    assert reader.read(1, 0, place, 1 << 20).checked_payloads(0, 0, 1) == [b"a" * 100]
    with pytest.raises(Corrupted):
        reader.read(1, 1, place + 140, 1 << 20).checked_payloads(1, 1, 1)

    def refuse(file, size, offset):
        raise OSError(errno.EACCES, "no")

    monkeypatch.setattr(MemoryReadFile, "pread", refuse)
    with pytest.raises(OSError, match="no"):
        reader.read(1, 0, place, 100)
    reader.close()


def test_what_is_written_behind_records_of_an_unfinished_log_is_told(disk):
    writer = EntryLogWriter(disk.directory("/logs"), 1 << 20)
    writer.append(run(1, 0, b"abc"))
    writer.sync()
    reader = reading(disk)
    assert reader.ledgers(0) == ({1: 43}, 0), "zeros behind it are its end"
    file = disk.directory("/logs").open_for_writing("0.log", Creation.EXISTING)
    file.pwrite(b"x", 2000)
    assert reader.ledgers(0) == ({1: 43}, 1024 + 43)
    reader.close()
    writer.abandon()
