"""The declared layouts are those that bookies write."""

from magnetar.bookie.dump import layouts
from magnetar.bookie.dump.tests.files import KEY, run
from magnetar.bookie.format import entries, entry_log, journal


def test_an_entry() -> None:
    found = layouts.ENTRY.parse(run(7, 3, 1)[4:])
    header = entries.header_of(entries.run_in(run(7, 3, 1)), 3)
    assert (found.ledger, found.entry, found.last_confirmed, found.length) == (
        header.ledger_id, header.entry_id, header.last_confirmed, header.length,
    )  # fmt: skip


def test_notes_and_padding() -> None:
    note = journal.key_note(7, KEY)
    head = layouts.RECORD_HEAD.parse(note)
    assert (head.size, head.ledger, head.entry) == (len(note) - 4, 7, journal.KEY)
    assert layouts.NOTE_VALUE.parse(note[20:]).value == KEY
    padding = journal.padding(600, journal.seal(5, 9))
    assert layouts.PADDING.parse(padding).size == len(padding) - 8
    assert layouts.SEAL.parse(padding[8:]) == {"magic": b"MGRP", "size": 5, "checksum": 9}


def test_headers_and_the_ledgers_map() -> None:
    assert layouts.JOURNAL_HEADER.parse(journal.HEADER).version == 6
    found = layouts.LOG_HEADER.parse(entry_log.header(1234, 5))
    assert (found.version, found.map_offset, found.ledgers) == (1, 1234, 5)
    batch = layouts.MAP_BATCH.parse(entry_log.ledgers_map({7: 100, 8: 200})[20:])
    assert {each.ledger: each.bytes for each in batch.ledgers} == {7: 100, 8: 200}
