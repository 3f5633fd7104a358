"""Finding the next record behind damage."""

from magnetar.bookie.dump import resuming
from magnetar.bookie.dump.tests.files import a_journal, an_entry_log, changed, run
from magnetar.bookie.format import entries, entry_log, journal

MAP = (entry_log.MAP_ENTRY_ID,)


def test_the_next_record_is_found_whatever_is_before() -> None:
    data = b"\xff" * 77 + run(7, 0, 2)
    assert resuming.next_place(data, 0, MAP) == 77
    assert resuming.next_place(data, 78, MAP) == 77 + len(run(7, 0, 1))
    assert resuming.next_place(data, len(data) - 10, MAP) == len(data)


def test_in_a_journal_the_end_of_a_group_will_do() -> None:
    data = a_journal()
    at = 512 + 44 + len(run(7, 0, 3))
    assert data[at : at + 4] == resuming.PADDING
    assert resuming.next_place(data, at - 5, journal.KINDS) == at
    assert resuming.next_place(data, at - 5, MAP) > at


def test_a_record_must_lead_on() -> None:
    log = an_entry_log()
    first = run(7, 0, 1)
    broken = changed(first, 70, 0) + b"\xffgarbage" + log[1024:]
    assert resuming.next_place(broken, 0, MAP) == len(first) + 8


def test_implausible_records() -> None:
    assert resuming.is_record(run(7, 0, 1), 0, MAP)
    assert not resuming.is_record(run(7, 0, 1)[:-1], 0, MAP)
    assert not resuming.is_record(bytes(100), 0, MAP)
    fence = journal.fence_note(7)
    assert resuming.is_record(fence, 0, journal.KINDS)
    assert not resuming.is_record(fence, 0, MAP)


def test_a_length_that_is_read_a_byte_too_late_is_not_followed() -> None:
    """It leads beyond all records, to zeros, which is plausible."""
    short = entries.seal(7, 0, -1, 0, [b"short"] * 100).blob
    data = short + bytes(1 << 16)
    assert resuming.next_place(data, 1, MAP) == len(short) // 100
    assert resuming.is_record(data, 1, MAP)


def test_records_with_other_digests_are_known_by_where_they_lead() -> None:
    short = entries.seal(7, 0, -1, 0, [b"short"] * 10).blob
    size = len(short) // 10
    other = b"".join(changed(short[i : i + size], 36, 0xAB) for i in range(0, len(short), size))
    for noise in (b"", b"\xff" * 33):
        assert resuming.next_place(noise + other, 0, MAP) == len(noise)
        assert resuming.next_place(noise + other, len(noise) + 1, MAP) == len(noise) + size
    assert resuming.next_place(other, 9 * size - 5, MAP) == 9 * size
