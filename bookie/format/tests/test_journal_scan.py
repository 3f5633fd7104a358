"""Reading a journal after a crash: torn at every byte, zeroed, overwritten, rotten."""

import pytest

from magnetar.bookie.format import entries
from magnetar.bookie.format import journal as journal_format
from magnetar.bookie.format.journal_scan import (
    SMALL_GROUP_BYTES,
    TEAR_BYTES_MAX,
    WINDOW_BYTES,
    RottenError,
    check_empty,
    left_over,
    scan,
)
from magnetar.core.kernel.checksum import crc32c

ZEROS_AHEAD = 4096


def group(position, *blobs):
    records = b"".join(blobs)
    return records + journal_format.padding(position + len(records))


def journal(*groups):
    """A file with a header and these groups (lists of records), zeroed ahead."""
    data = journal_format.HEADER
    for blobs in groups:
        data += group(len(data), *blobs)
    return data + bytes(ZEROS_AHEAD)


def found(data, start=512, **more):
    """What a scan of these bytes gives: (ledger, entry, payload), or notes."""
    out = []
    for item in scan(lambda offset, size: data[offset : offset + size], start, **more):
        if isinstance(item, entries.Run):
            payloads = entries.payloads(item, item.first, item.last, 1 << 30)
            out += [(item.ledger_id, item.first + i, p) for i, p in enumerate(payloads)]
        else:
            out.append(item)
    return out


def run(ledger_id, first, *payloads):
    return entries.seal(ledger_id, first, first - 1, 0, payloads).blob


FIRST = [journal_format.key_note(1, b"k" * 20), run(1, 0, b"zero", b"one"), run(2, 0, b"other")]
LAST = [run(1, 2, b"two", b"three " * 100), journal_format.fence_note(2), run(1, 4, b"four")]
FIRST_FOUND = [
    journal_format.Note(1, journal_format.KEY, b"k" * 20),
    (1, 0, b"zero"),
    (1, 1, b"one"),
    (2, 0, b"other"),
]
LAST_FOUND = [
    (1, 2, b"two"),
    (1, 3, b"three " * 100),
    journal_format.Note(2, journal_format.FENCE, b""),
    (1, 4, b"four"),
]
WHOLE = journal(FIRST, LAST)
LAST_START = len(journal(FIRST)) - ZEROS_AHEAD


def end_of(data):
    """Where a scan ends, and whether anything stands behind that."""

    def read(offset, size):
        return data[offset : offset + size]

    items = scan(read, 512)
    while True:
        try:
            next(items)
        except StopIteration as stop:
            return stop.value, left_over(read, stop.value)


def test_what_stands_behind_the_end_is_seen():
    assert end_of(WHOLE) == (len(WHOLE) - ZEROS_AHEAD, False)
    assert end_of(WHOLE[: len(WHOLE) - ZEROS_AHEAD]) == (len(WHOLE) - ZEROS_AHEAD, False)
    torn = WHOLE[: LAST_START + 40] + bytes(200) + WHOLE[LAST_START + 240 :]
    assert end_of(torn) == (LAST_START, True)


def test_all_is_found():
    assert found(WHOLE) == FIRST_FOUND + LAST_FOUND
    assert found(WHOLE, LAST_START) == LAST_FOUND


@pytest.mark.parametrize("tail", ["cut", "zeros"])
def test_torn_at_every_byte_of_the_last_group(tail):
    """Whatever prefix of the last group reached the disk, its whole records are found."""
    end = len(WHOLE) - ZEROS_AHEAD
    for torn in range(LAST_START, end):
        data = WHOLE[:torn] + (b"" if tail == "cut" else bytes(len(WHOLE) - torn))
        got = found(data)
        assert got[: len(FIRST_FOUND)] == FIRST_FOUND
        assert got == (FIRST_FOUND + LAST_FOUND)[: len(got)], torn
    assert got == FIRST_FOUND + LAST_FOUND


@pytest.mark.parametrize("byte", [0x00, 0x01, 0x7F, 0xFF])
def test_garbage_at_every_byte_of_the_last_group(byte):
    """Rot in the unsynced group invents nothing: records before it, and none that is broken."""
    end = len(WHOLE) - ZEROS_AHEAD
    for place in range(LAST_START, end):
        data = bytearray(WHOLE)
        if data[place] == byte:
            continue
        data[place : place + 16] = bytes([byte]) * 16
        got = [item for item in found(bytes(data)) if not isinstance(item, journal_format.Note)]
        known = [i for i in FIRST_FOUND + LAST_FOUND if not isinstance(i, journal_format.Note)]
        assert got == known[: len(got)], place
        assert len(got) >= 3


def test_sectors_that_arrived_in_any_order():
    """A torn group may have its later sectors and lack earlier ones."""
    end = len(WHOLE) - ZEROS_AHEAD
    for hole in range(LAST_START, end, 512):
        data = WHOLE[:hole] + bytes(512) + WHOLE[hole + 512 :]
        got = found(data)
        assert got == (FIRST_FOUND + LAST_FOUND)[: len(got)]
        assert got[: len(FIRST_FOUND)] == FIRST_FOUND


def test_rot_before_the_last_group_is_kept_for_its_readers_to_stumble_on():
    """An acknowledged entry must not become "no such entry"."""
    data = bytearray(WHOLE)
    place = WHOLE.index(b"one")
    data[place] ^= 1
    got = found(bytes(data))
    assert len(got) == len(FIRST_FOUND + LAST_FOUND)
    (item,) = [
        item
        for item in scan(lambda offset, size: bytes(data[offset : offset + size]), 512)
        if isinstance(item, entries.Run) and item.first <= 1 <= item.last and item.ledger_id == 1
    ]
    assert entries.count_intact(item) == 1


def test_a_length_that_rots_with_much_behind_it_stops_the_start():
    big = [run(1, 4 + i, b"x" * 1_000_000) for i in range(TEAR_BYTES_MAX // 1_000_000 + 2)]
    data = bytearray(journal(FIRST, LAST, *[[blob] for blob in big]))
    data[512] = 0x7F
    with pytest.raises(RottenError):
        found(bytes(data))


@pytest.mark.parametrize("bit", range(16))
def test_a_length_that_rots_to_nonsense_before_the_last_group_stops_the_start(bit):
    """However little there is behind it: all of that was acknowledged."""
    groups = [[run(1, i, b"%d" % i * 100)] for i in range(10)]
    rotten = bytearray(journal(*groups))
    at = len(journal(*groups[:4])) - ZEROS_AHEAD
    rotten[at + bit // 8] ^= 1 << bit % 8
    with pytest.raises(RottenError):
        found(bytes(rotten))


def test_windows_do_not_show():
    """Records across the scan's windows are found whole."""
    blobs = [run(1, i, bytes([i % 256]) * 100_000) for i in range(100)]
    data = journal(*[blobs[i : i + 7] for i in range(0, 100, 7)])
    assert found(data) == [(1, i, bytes([i % 256]) * 100_000) for i in range(100)]


def test_a_journal_without_seals_is_read_once():
    """For each group with a note, all that follows was searched for a seal: 26 s for 4 MB."""
    groups = [[journal_format.fence_note(i), run(i, 0, b"x" * 400)] for i in range(500)]
    data = journal(*groups)
    asked = []

    def read(offset, size):
        asked.append(size)
        return data[offset : offset + size]

    assert len(list(scan(read, 512))) == 2 * len(groups)
    assert sum(asked) <= len(groups) * SMALL_GROUP_BYTES + 3 * WINDOW_BYTES


def test_unknown_notes_are_passed_by():
    lac = (20 + 8).to_bytes(4, "big") + (9).to_bytes(8, "big")
    lac += (
        journal_format.EXPLICIT_LAC.to_bytes(8, "big", signed=True)
        + (8).to_bytes(4, "big")
        + b"12345678"
    )
    got = found(journal([lac, run(9, 0, b"x")]))
    assert got == [journal_format.Note(9, journal_format.EXPLICIT_LAC, b"12345678"), (9, 0, b"x")]


@pytest.mark.parametrize("short", range(9))
def test_two_records_larger_than_a_window_and_what_follows_them(short):
    """Where a window ends, or up to eight bytes before, another large record may begin.

    The scan once took what did not fit into the next window for the torn tail: every message that
    was acknowledged after two of five megabytes was lost when the server was killed.
    """
    large, other = b"x" * (WINDOW_BYTES + 1_000 - short), b"y" * (WINDOW_BYTES + 1_000)
    data = journal([run(1, 0, large), run(2, 0, other)], [run(3, 0, b"small")])
    assert found(data) == [(1, 0, large), (2, 0, other), (3, 0, b"small")]
    first_window = b"z" * (WINDOW_BYTES - len(run(4, 0, b"")) - 512 - short)
    data = journal([run(4, 0, first_window), run(2, 0, other), run(3, 0, b"small")])
    assert found(data, 512) == [(4, 0, first_window), (2, 0, other), (3, 0, b"small")]


@pytest.mark.parametrize("change", [-1, 1, 512, -512, 1 << 20, -(1 << 30), 1 << 30])
def test_padding_that_rots_leads_neither_back_nor_past_what_follows(change):
    """A scan that was led back went on for ever; one led past a group lost it."""
    data = bytearray(WHOLE)
    place = 512 + sum(map(len, FIRST)) + 4
    zeros = int.from_bytes(data[place : place + 4], "big") + change
    data[place : place + 4] = zeros.to_bytes(4, "big", signed=True)
    assert found(bytes(data)) == FIRST_FOUND + LAST_FOUND
    data[data.index(b"other")] ^= 1  # whether a group follows is asked through it
    assert len(found(bytes(data))) == len(FIRST_FOUND + LAST_FOUND)


def other(ledger_id, first, *payloads):
    """Entries whose digests nobody here can check."""
    data = bytearray(run(ledger_id, first, *payloads))
    at = 0
    for payload in payloads:
        data[at + 36 : at + 40] = b"\xaa\xbb\xcc\xdd"
        at += 40 + len(payload)
    return bytes(data)


def sealed(*groups):
    data = journal_format.HEADER
    for blobs in groups:
        records = b"".join(blobs)
        seal = journal_format.seal(len(records), crc32c(records))
        data += records + journal_format.padding(len(data) + len(records), seal)
    return data + bytes(ZEROS_AHEAD)


OTHERS = [
    [journal_format.key_note(1, b"k" * 20), other(1, 0, b"zero", b"one"), other(2, 0, b"other")],
    [other(1, 2, b"two", b"three " * 100), journal_format.fence_note(2), other(1, 4, b"four")],
]


def test_a_seal_proves_entries_with_any_digest():
    data = sealed(*OTHERS)
    assert found(data) == FIRST_FOUND + LAST_FOUND
    assert end_of(data) == (len(data) - ZEROS_AHEAD, False)
    assert found(journal(*OTHERS)) == FIRST_FOUND  # without seals the last group is in doubt


def test_a_group_that_is_torn_anywhere_has_no_seal():
    data = sealed(*OTHERS)
    start = len(sealed(OTHERS[0])) - ZEROS_AHEAD
    seal_end = data.rindex(b"MGRP") + 12
    for cut in range(start, seal_end):
        kept = found(data[:cut] + bytes(len(data) - cut))
        if data[:cut] + bytes(len(data) - cut) != data:
            assert kept == FIRST_FOUND, cut
    for hole in range(start, seal_end - 12, 7):
        torn = bytearray(data)
        torn[hole] ^= 0x40
        assert found(bytes(torn))[:4] == FIRST_FOUND
        assert (1, 4, b"four") not in found(bytes(torn))


def test_rot_in_a_sealed_group_stops_the_start():
    """Nobody knows which entry it was, or whose fence, unless neighbours show its id."""
    whole = sealed(*OTHERS, [other(3, 0, b"last")])
    end = whole.index(b"MGRP") - 8
    for place in range(512, end):
        data = bytearray(whole)
        data[place] ^= 0x40
        with pytest.raises(RottenError):
            found(bytes(data))


def test_entries_that_prove_themselves_are_told_from_those_that_rot():
    """With their own digests, rot in one of them costs that one, and no other."""
    blobs = [run(1, number, b"%d" % number * 30) for number in range(6)]
    data = bytearray(sealed(blobs, LAST))
    data[data.index(b"3" * 30)] ^= 1
    kept = found(bytes(data))
    assert [item[:2] for item in kept[:6]] == [(1, number) for number in range(6)]
    assert [item[2] for item in kept[:6] if item[1] != 3] == [
        b"%d" % number * 30 for number in range(6) if number != 3
    ]


@pytest.mark.parametrize("place", range(4, 20))
@pytest.mark.parametrize("number", [0, 2, 5])
def test_an_id_that_rots_stops_the_start(place, number):
    """Kept under another id, the entry would be "no such entry", and acknowledged."""
    blobs = [run(1, each, b"%d" % each * 30) for each in range(6)]
    data = bytearray(journal(blobs, LAST))
    data[512 + sum(map(len, blobs[:number])) + place] ^= 0x10
    with pytest.raises(RottenError):
        found(bytes(data), proving=True)


def test_zeros_where_a_synced_group_was_stop_the_start():
    """A scan took them for the end, and all that was acknowledged behind them was gone."""
    groups = [[run(1, each, b"%d" % each * 700)] for each in range(5)]
    for data in (sealed(*groups), sealed(*OTHERS, *groups)):
        for start in range(512, len(data) - ZEROS_AHEAD - 1024, 512):
            with pytest.raises(RottenError):
                found(data[:start] + bytes(512) + data[start + 512 :])
    data = journal(*groups)  # without seals, if another group follows that behind the zeros
    for start in range(512, len(data) - ZEROS_AHEAD - 2048, 512):
        with pytest.raises(RottenError):
            found(data[:start] + bytes(512) + data[start + 512 :])


def test_zeros_are_the_end_of_what_was_torn():
    groups = [[run(1, each, b"%d" % each * 700)] for each in range(5)]
    for make in (journal, sealed):
        whole, last = make(*groups), len(make(*groups[:4])) - ZEROS_AHEAD
        for start in range(last, len(whole) - ZEROS_AHEAD, 512):
            kept = found(whole[:start] + bytes(512) + whole[start + 512 :])
            assert kept == found(whole)[: len(kept)]
            assert len(kept) >= 4


@pytest.mark.parametrize("behind", [1 << 12, 5 << 20, 10 << 20, 23 << 20, 30 << 20])
def test_a_torn_group_is_the_end_however_large_the_file_is(behind):
    """The search for its seal went on for ever where more than a window of zeros followed."""
    for whole in (journal(FIRST, LAST), sealed(*OTHERS)):
        start = len(journal(FIRST)) - ZEROS_AHEAD
        torn = whole[: start + 60] + bytes(behind)
        assert found(torn)[: len(FIRST_FOUND)] == FIRST_FOUND
        noted = journal([journal_format.fence_note(7)])[:-ZEROS_AHEAD] + bytes(behind)
        assert found(noted) == [journal_format.Note(7, journal_format.FENCE, b"")]


def test_a_key_whose_second_sector_was_not_written_is_not_believed():
    filler = run(1, 0, b"x" * (512 - 40 - 30))
    group_of_keys = [filler, journal_format.key_note(1, b"k" * 20)]
    whole = journal(FIRST, group_of_keys)
    torn = whole[: LAST_START + 512] + bytes(len(whole) - LAST_START - 512)
    assert found(torn)[len(FIRST_FOUND) :] == [(1, 0, b"x" * (512 - 40 - 30))]


def test_a_far_hole_is_seen():
    groups = [[run(1, each, bytes([each + 1]) * 500_000)] for each in range(12)]
    data = journal(*groups)
    with pytest.raises(RottenError):
        found(data[:512] + bytes(2_500_000) + data[2_500_512:])


def test_a_header_of_zeros_with_something_behind_it_is_damage():
    def check(data):
        check_empty(lambda offset, size: data[offset : offset + size])

    check(bytes(8192))
    check(b"")
    with pytest.raises(RottenError):
        check(bytes(512) + WHOLE[512:])
    with pytest.raises(RottenError):
        check(bytes(5 << 20) + b"x" * (1 << 20))


def test_a_senseless_length_before_a_sealed_group_is_rot():
    data = bytearray(sealed(*OTHERS))
    at = data.index(other(1, 0, b"zero")[:20])
    data[at : at + 4] = b"\x7f\xff\xff\xff"
    with pytest.raises(RottenError):
        found(bytes(data))


@pytest.mark.parametrize("position", range(512, 1536, 5))
def test_padding_ends_where_its_size_leads(position):
    seal = journal_format.seal(10, 7)
    padding = journal_format.padding(position, seal)
    assert (position + len(padding)) % 512 == 0
    assert len(padding) >= 20
    assert journal_format.padding_end(padding + b"next", 0, position) == len(padding)
