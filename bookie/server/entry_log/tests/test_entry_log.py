"""Entry logs: written, finished, cut short, read back."""

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnetar.bookie.format import entry_log as log_format
from magnetar.bookie.format.entries import cut, payloads, seal
from magnetar.bookie.machine.files import SystemWriteFile
from magnetar.bookie.machine.threads import SystemThreads
from magnetar.bookie.server.cache.large_entries import LargeEntries
from magnetar.bookie.server.entry_log import writer as writer_module
from magnetar.bookie.server.entry_log.block_file import BLOCK_BYTES, BlockFile
from magnetar.bookie.server.entry_log.reader import EntryLogReader
from magnetar.bookie.server.entry_log.writer import EntryLogWriter, log_ids
from magnetar.bookie.tests.real_disk import directory_at
from magnetar.core.errors import Corrupted


def run(ledger_id, first, *bodies):
    return seal(ledger_id, first, -1, 0, bodies)


def test_the_first_location_is_apaches(tmp_path):
    writer = EntryLogWriter(directory_at(tmp_path), 1 << 20)
    assert writer.append(run(1, 0, b"x")) == 0x404
    writer.sync()
    assert (tmp_path / "0.log").read_bytes()[:8] == b"BKLO\x00\x00\x00\x01"
    assert (tmp_path / "lastId").read_text() == "0"


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


@given(st.dictionaries(st.integers(0, 2**62), st.integers(1, 2**40), max_size=50))
def test_maps(ledgers):
    assert log_format.read_ledgers_map(log_format.ledgers_map(ledgers), len(ledgers)) == ledgers


def test_maps_in_batches_and_damaged_ones():
    ledgers = {i: i + 1 for i in range(25_000)}
    data = log_format.ledgers_map(ledgers)
    assert data.count(b"\xff" * 15 + b"\xfe") == 3
    assert log_format.read_ledgers_map(data, 25_000) == ledgers
    with pytest.raises(ValueError, match="names"):
        log_format.read_ledgers_map(data, 24_999)
    with pytest.raises(ValueError, match="damaged"):
        log_format.read_ledgers_map(b"\0" * 100, 1)


@pytest.mark.parametrize("data", [b"", b"BKLG".ljust(1024, b"\0"), b"BKLO\0\0\0\x09".ljust(1024)])
def test_headers_that_are_none(data):
    with pytest.raises(ValueError, match="it"):
        log_format.read_header(data)


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


def test_what_was_flushed_can_be_read_before_it_is_synced(tmp_path):
    writer = EntryLogWriter(directory_at(tmp_path), 1 << 20)
    reader = EntryLogReader(directory_at(tmp_path), SystemThreads().lock())
    for i in range(3):
        written = run(1, i, b"x" * 100)
        place = writer.append(written)
        writer.flush()
        assert trimmed(reader.read(1, i, place, 1 << 20)) == written
    reader.close()


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
