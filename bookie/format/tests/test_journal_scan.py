"""Reading a journal after a crash: torn at every byte, zeroed, overwritten, rotten."""

import pytest

from magnetar.bookie.format import entries
from magnetar.bookie.format import journal as journal_format
from magnetar.bookie.format.journal_scan import (
    TEAR_BYTES_MAX,
    WINDOW_BYTES,
    RottenError,
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


def found(data, start=512):
    """What a scan of these bytes gives: (ledger, entry, payload), or notes."""
    out = []
    for item in scan(lambda offset, size: data[offset : offset + size], start):
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
    assert end_of(WHOLE[:512] + bytes(512) + WHOLE[1024:]) == (512, True)
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


def test_rot_in_a_sealed_group_is_kept_for_its_client_to_see():
    data = bytearray(sealed(*OTHERS))
    data[data.index(b"zero")] ^= 0x40
    kept = found(bytes(data))
    assert kept[1] == (1, 0, b":ero")
    assert kept[2:] == FIRST_FOUND[2:] + LAST_FOUND


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
