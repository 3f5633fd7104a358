"""Where entries are: in memory and written out, last entries, deleted ranges."""

import pytest
from rocksdict import Cache

from bookie import index
from bookie.entries import seal
from bookie.index import LocationIndex, split
from core.errors import Corrupted


@pytest.fixture
def opened(tmp_path):
    def make():
        return LocationIndex(tmp_path / "locations", Cache(1 << 20))

    return make


def run(ledger_id, first, count):
    return seal(ledger_id, first, -1, 0, [b"abc"] * count)


@pytest.mark.parametrize("written_out_each", [400, 10**9], ids=["often", "once"])
def test_what_is_put_is_found_also_after_closing(opened, monkeypatch, written_out_each):
    monkeypatch.setattr(index, "MEMORY_PUTS_MAX", written_out_each)
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


def test_impossible_locations():
    assert split((7 << 32) | 1028) == (7, 1028)
    with pytest.raises(Corrupted):
        split(3)
    with pytest.raises(Corrupted):
        split(-1)
