"""Several ledger directories, as one with entry logs."""

import pytest

from magnetar.bookie.format.entries import seal
from magnetar.bookie.machine.threads import SystemThreads
from magnetar.bookie.server.entry_log.reader import EntryLogReader
from magnetar.bookie.server.entry_log.writer import EntryLogWriter, log_ids
from magnetar.bookie.server.log_directories import LogDirectories
from magnetar.bookie.server.small_files import read_whole, write_whole
from magnetar.core.ports.disk import Creation
from magnetar.core.testing.memory_disk import MemoryDisk


@pytest.fixture
def parts():
    disk = MemoryDisk()
    return [disk.directory(path) for path in ("/a", "/b", "/c")]


@pytest.fixture
def together(parts):
    return LogDirectories(parts)


def begin(together, name):
    together.open_for_writing(name, Creation.NEW).close()


def entry(entry_id):
    return seal(1, entry_id, -1, 0, [b"x"])


def where(parts, name):
    return [place for place, each in enumerate(parts) if name in each.names()]


def test_logs_go_to_each_in_turn_and_all_else_to_the_first(parts, together):
    for name in ("0.log", "1.log", "2.log", "3.log"):
        begin(together, name)
    assert [where(parts, f"{i}.log") for i in range(4)] == [[0], [1], [2], [0]]
    write_whole(together, "lastId", b"3")
    assert where(parts, "lastId") == [0]
    assert read_whole(together, "lastId") == b"3"
    assert log_ids(together) == [0, 1, 2, 3]
    again = LogDirectories(parts)
    begin(again, "4.log")
    assert where(parts, "4.log") == [1], "in turn, also over a start"


def test_a_full_one_is_passed_over_as_long_as_there_is_another(parts, together):
    begin(together, "0.log")
    together.full = frozenset({1})
    begin(together, "1.log")
    assert where(parts, "1.log") == [2]
    assert not together.is_left("1.log")
    together.full = frozenset({0, 2})
    assert together.is_left("1.log")
    begin(together, "2.log")
    assert where(parts, "2.log") == [1]
    together.full = frozenset({0, 1, 2})
    assert not together.is_left("1.log"), "it is as good as any"
    begin(together, "3.log")
    assert where(parts, "3.log") == [2]


def test_logs_are_found_where_they_are(parts):
    write_whole(parts[2], "7.log", b"seven")
    together = LogDirectories(parts)
    assert read_whole(together, "7.log") == b"seven"
    assert together.place_of("7.log") == 2
    together.remove("7.log")
    assert where(parts, "7.log") == []
    with pytest.raises(FileNotFoundError):
        together.open("7.log")
    with pytest.raises(FileNotFoundError):
        together.remove("8.log")


def test_a_writer_leaves_a_full_disk_and_a_reader_reads_on(parts, together):
    writer = EntryLogWriter(together, 1 << 20)
    locations = [writer.append(entry(0))]
    together.full = frozenset({0})
    writer.move_on()
    locations.append(writer.append(entry(1)))
    writer.move_on()
    locations.append(writer.append(entry(2)))
    writer.flush()
    assert [where(parts, f"{i}.log") for i in range(2)] == [[0], [1]]
    assert [location >> 32 for location in locations] == [0, 1, 1]
    reader = EntryLogReader(together, SystemThreads().lock())
    for entry_id, location in enumerate(locations):
        assert reader.read(1, entry_id, location, 100).first == entry_id
    writer.abandon()
    again = EntryLogWriter(LogDirectories(parts), 1 << 20)
    assert again.append(entry(3)) >> 32 == 2, "ids go on over all of them"
    again.abandon()
