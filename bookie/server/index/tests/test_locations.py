"""Where entries are: in memory and written out, last entries, deleted ranges."""

import shutil

import pytest

from magnetar.bookie.format.entries import seal
from magnetar.bookie.format.journal import Mark
from magnetar.bookie.machine.rocksdb import RocksDatabases
from magnetar.bookie.server.index import locations as locations_module
from magnetar.bookie.server.index.locations import MARK, LocationIndex
from magnetar.bookie.tests.real_disk import directory_at
from magnetar.core.kernel.errors import Corrupted


@pytest.fixture
def opened(tmp_path):
    def make():
        return LocationIndex(directory_at(tmp_path / "locations"), RocksDatabases(1 << 20))

    return make


def run(ledger_id, first, count):
    return seal(ledger_id, first, -1, 0, [b"abc"] * count)


@pytest.mark.parametrize("written_out_each", [400, 10**9], ids=["often", "once"])
def test_what_is_put_is_found_also_after_closing(opened, monkeypatch, written_out_each):
    monkeypatch.setattr(locations_module, "MEMORY_PUTS_MAX", written_out_each)
    locations = opened()
    pauses = []
    locations.put(
        [(run(1, 0, 5000), 1028), (run(2, 7, 3), 9000)], lambda: pauses.append(1), locations.sync
    )
    locations.sync()
    assert pauses
    for _ in range(2):
        assert locations.find(1, 0) == 1028
        assert locations.find(1, 4999) == 1028 + 4999 * 43
        assert locations.find(1, 5000) is None
        assert locations.last(1) == (4999, 1028 + 4999 * 43)
        assert locations.last(2) == (9, 9000 + 2 * 43)
        assert locations.last(3) is None
        assert len(list(locations.locations(1))) == 5000
        locations.close()
        locations = opened()
    locations.close()


def test_the_newest_location_wins_written_out_or_not(opened):
    locations = opened()
    for i in range(4):
        if i % 2:
            locations.sync()
        locations.put([(run(1, 0, 10), 1000 * (i + 1))], lambda: None, pytest.fail)
        assert locations.find(1, 0) == 1000 * (i + 1)
    locations.close()


def test_a_forgotten_ledger_takes_nobody_with_it(opened):
    locations = opened()
    locations.put([(run(i, 0, 10), 1000) for i in (1, 2, 3)], lambda: None, pytest.fail)
    locations.forget(2)
    assert locations.last(1) is not None
    assert locations.last(2) is None
    assert locations.find(2, 5) is None
    assert locations.find(3, 0) == 1000
    locations.close()


def test_the_next_entry_from_a_place_on(opened):
    locations = opened()
    locations.put([(run(1, 5, 2), 1028), (run(3, 0, 1), 2000)], lambda: None, locations.sync)
    assert locations.at_or_after(0, 0) == (1, 5)
    assert locations.at_or_after(1, 6) == (1, 6)
    assert locations.at_or_after(1, 7) == (3, 0)
    assert locations.at_or_after(3, 1) is None
    assert locations.at_or_after(2**63, 0) is None
    locations.compact((1, 6), (3, 0))
    locations.compact((3, 0), None)
    assert locations.find(1, 5) == 1028
    assert locations.find(3, 0) == 2000


def test_the_highest_id_is_one_like_the_others(opened):
    locations = opened()
    highest = 2**63 - 1
    locations.put([(run(1, highest, 1), 1000), (run(highest, 0, 1), 2000)], list, pytest.fail)
    assert locations.find(1, highest) == 1000
    assert locations.last(1) == (highest, 1000)
    assert locations.find(1, highest + 1) is None
    assert list(locations.locations(1, highest + 1)) == []
    locations.forget(1)
    assert locations.last(1) is None
    assert locations.last(highest) == (0, 2000)
    locations.close()


def marked(opened, *marks):
    """An index that was synced with each of them, and closed."""
    locations = opened()
    for count, mark in enumerate(marks):
        locations.put([(run(count, 0, 10), 1000)], lambda: None, pytest.fail)
        locations.put_mark(mark)
        locations.sync()
    locations.close()


def test_a_mark_is_there_once_it_is_synced(opened):
    locations = opened()
    assert locations.mark() is None
    locations.put_mark(Mark(7, 512))
    assert locations.mark() is None
    locations.sync()
    assert locations.mark() == Mark(7, 512)
    locations.put_mark(Mark(7, 1024))
    locations.close()
    locations = opened()
    assert locations.mark() == Mark(7, 512)
    locations.close()


def test_an_index_that_has_lost_its_end_has_no_mark(opened, tmp_path):
    marked(opened, Mark(1, 512))
    shutil.copytree(tmp_path / "locations", tmp_path / "older")
    marked(opened, Mark(1, 1024))
    note = (tmp_path / "locations" / MARK).read_bytes()
    shutil.rmtree(tmp_path / "locations")
    (tmp_path / "older").rename(tmp_path / "locations")
    (tmp_path / "locations" / MARK).write_bytes(note)
    locations = opened()
    assert locations.mark() is None
    locations.close()


def test_a_flipped_bit_of_a_mark_is_noticed(opened, tmp_path):
    marked(opened, Mark(1, 512))
    file = tmp_path / "locations" / MARK
    results = bytearray(file.read_bytes())
    results[9] ^= 1
    file.write_bytes(results)
    locations = opened()
    with pytest.raises(Corrupted, match="is damaged"):
        locations.mark()
    locations.close()


def test_half_a_mark_is_noticed(opened, tmp_path):
    marked(opened, Mark(1, 512))
    file = tmp_path / "locations" / MARK
    file.write_bytes(file.read_bytes()[:20])
    locations = opened()
    with pytest.raises(Corrupted, match="20 bytes"):
        locations.mark()
    locations.close()


def test_ledgers_that_come_in_order_are_never_compacted(opened):
    """A key that every table has would have it done, whatever else comes."""
    locations = opened()
    for count in range(20):
        locations.put([(run(1, 100 * count, 100), 1000)], lambda: None, pytest.fail)
        locations.put_mark(Mark(1, 512 * (count + 1)))
        locations.sync()
    files = locations._database._rocks.live_files()
    assert len(files) == 20, "some were made one"
    locations.close()


def tables_of(locations):
    files = locations._database._rocks.live_files()
    return sorted((each["start_key"][7], each["end_key"][7]) for each in files)


def test_a_ledger_with_many_entries_has_tables_of_its_own(opened, monkeypatch):
    monkeypatch.setattr(locations_module, "TABLE_PUTS", 1000)
    locations = opened()
    for count in range(4):
        half = [(run(1, 2 * count, 2), 1), (run(2, 1000 * count, 1000), 2), (run(3, count, 1), 3)]
        locations.put(half, lambda: None, locations.sync)
    locations.sync()
    assert tables_of(locations) == [(1, 3)] * 3 + [(2, 2)] * 2, "what is alike follows each other"
    assert [locations.last(each) for each in (1, 2, 3)] == [(7, 44), (3999, 42959), (3, 3)]
    locations.close()


def test_one_ledger_alone_is_not_synced_more_often(opened, monkeypatch):
    monkeypatch.setattr(locations_module, "TABLE_PUTS", 1000)
    locations = opened()
    for count in range(4):
        locations.put([(run(2, 1000 * count, 1000), 2)], lambda: None, pytest.fail)
    locations.sync()
    assert tables_of(locations) == [(2, 2)]
    locations.close()


def test_the_largest_ledgers_of_many_have_tables_of_their_own(opened, monkeypatch):
    monkeypatch.setattr(locations_module, "TABLE_PUTS", 10)
    locations, syncs = opened(), []

    def full():
        syncs.append(1)
        locations.sync()

    half = [(run(ledger_id, 0, 20 + ledger_id % 2 * 200), 1) for ledger_id in range(1, 21)]
    locations.put(half, lambda: None, full)
    assert len(syncs) <= locations_module.TABLES_MAX
    assert [locations.last(ledger_id)[0] for ledger_id in (1, 2, 20)] == [219, 19, 19]
    locations.close()
