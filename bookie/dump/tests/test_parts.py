"""Counting what a file has."""

from msgspec import json

from magnetar.bookie.dump.parts import Damage, Tally, entry_at, has_crc32c
from magnetar.bookie.dump.tests.files import changed, run


def test_a_wrong_digest_is_damage_where_the_ledger_has_right_ones() -> None:
    good, bad = run(7, 0, 1)[4:], changed(run(7, 1, 1)[4:], 50, 255)
    assert has_crc32c(good)
    assert not has_crc32c(bad)
    assert not has_crc32c(good[:20])
    tally = Tally()
    for entry in (good, bad, changed(run(8, 0, 1)[4:], 50, 255)):
        tally.count(entry_at(0, entry))
    assert not tally.summary().damages
    tally.count(Damage(5, 9, "no record"))
    found = tally.summary()
    assert (found.entries, found.ledgers, found.damaged_entries, found.damages) == (3, 2, 1, 1)
    assert not found.intact


def test_a_part_says_in_json_what_it_is() -> None:
    assert json.encode(Damage(5, 9, "no record")) == (
        b'{"part":"damage","offset":5,"end":9,"what":"no record"}'
    )
