"""Records in any order, with any byte of them changed: all others are found."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnetar.bookie.format import entries
from magnetar.bookie.recovery import salvage
from magnetar.bookie.recovery.salvage import Damaged, Gap, Salvaged, records_in

BASE = 64


def sealed(ledger_id, first, payloads):
    return entries.seal(ledger_id, first, -1, 0, payloads).blob


def found_in(data, monkeypatch=None):
    items = list(records_in(lambda at, size: data[at : at + size], 0, BASE, len(data)))
    ids = [
        (one.run.ledger_id, one.run.first + i)
        for one in items
        if isinstance(one, Salvaged)
        for i in range(one.run.count)
    ]
    return ids, items


def made():
    data = bytearray(BASE)
    starts = {}
    for ledger_id in (3, 70_000, 2**40):
        for entry_id, size in enumerate((0, 1, 300, 70_000, 64)):
            starts[ledger_id, entry_id] = len(data)
            data += sealed(ledger_id, entry_id, [bytes([entry_id]) * size])
    return bytes(data), starts


def test_all_is_found_where_nothing_is_damaged():
    data, starts = made()
    for tail in (b"", bytes(5000)):
        ids, items = found_in(data + tail)
        assert ids == list(starts)
        assert all(isinstance(one, Salvaged) for one in items)


def test_a_changed_byte_costs_its_record_and_no_other():
    data, starts = made()
    random.seed(7)
    edges = [*starts.values(), len(data)]
    for key, start, stop in zip(starts, edges, edges[1:], strict=False):
        for at in {start, start + 3, start + 8, start + 19, start + 39, stop - 1}:
            changed = bytearray(data)
            changed[at] ^= 0x21
            ids, items = found_in(bytes(changed))
            assert ids == [one for one in starts if one != key], at
            assert any(isinstance(one, Damaged | Gap) for one in items)


def test_a_page_of_noise_costs_what_is_in_it():
    data, starts = made()
    at = starts[70_000, 1]
    changed = data[:at] + bytes(random.Random(1).randbytes(4096)) + data[at + 4096 :]
    ids, _ = found_in(changed)
    lost = {one for one, start in starts.items() if at <= start < at + 4096}
    lost.add((70_000, 3))
    assert set(starts) - set(ids) <= lost


@pytest.mark.parametrize("window", [64, 100, 1000])
def test_windows_of_any_size_find_the_same(window, monkeypatch):
    data, starts = made()
    monkeypatch.setattr(salvage, "FIRST_WINDOW_BYTES", window)
    ids, _ = found_in(data)
    assert ids == list(starts)
    changed = bytearray(data)
    changed[starts[3, 2]] ^= 0xFF
    ids, _ = found_in(bytes(changed))
    assert ids == [one for one in starts if one != (3, 2)]


FORGED = b"pad" * 10 + sealed(9, 0, [b"somebody else's"]) + b"pad" * 10
"""A message that has a record in it, as an entry log that is sent has."""


@pytest.mark.parametrize("window", [64, salvage.FIRST_WINDOW_BYTES])
@pytest.mark.parametrize("behind", [b"", sealed(3, 2, [b"behind"]), bytes(5000)])
def test_what_is_inside_of_a_damaged_record_is_not_searched(behind, window):
    data = bytearray(BASE) + sealed(3, 0, [b"before"])
    start = len(data)
    data += sealed(3, 1, [FORGED]) + behind
    data[start + entries.RECORD_OVERHEAD_BYTES] ^= 1
    items = list(records_in(lambda at, n: bytes(data[at : at + n]), 0, BASE, len(data), window))
    runs = [(one.run.ledger_id, one.run.first, one.sure) for one in items if type(one) is Salvaged]
    found = {(ledger_id, first) for ledger_id, first, _ in runs}
    sure = {(ledger_id, first) for ledger_id, first, sure in runs if sure}
    assert {(3, 0)} <= sure <= {(3, 0), (3, 2)}
    assert (9, 0) not in sure
    if not behind or behind[:4] != bytes(4):
        assert (9, 0) not in found
        assert ((3, 2) in sure) == bool(behind)
    assert [one.entry_id for one in items if isinstance(one, Damaged)] == [1]


def test_what_a_search_has_found_is_not_sure():
    data = bytearray(BASE) + sealed(3, 0, [b"before"])
    start = len(data)
    data += sealed(3, 1, [FORGED]) + sealed(3, 2, [b"behind"])
    data[start + 1] ^= 1  # its length, which leads nowhere now
    items = [one for one in found_in(bytes(data))[1] if isinstance(one, Salvaged)]
    seen = [(one.run.ledger_id, one.run.first, one.sure) for one in items]
    assert seen == [(3, 0, True), (9, 0, False), (3, 2, False)]


@given(st.binary(max_size=500))
def test_noise_holds_nothing(noise):
    ids, _ = found_in(bytes(BASE) + noise)
    assert ids == []


def test_entries_with_another_digest_are_taken_as_they_lead_on():
    some = entries.seal(1, 0, -1, 0, [b"%05d" % i for i in range(50)])
    other = entries.Run(1, 0, some.blob.replace(b"000", b"001"), some.offsets)
    data = bytes(1024) + other.blob

    def read(offset, size):
        return data[offset : offset + size]

    found = list(salvage.records_in(read, 0, 1024, len(data), unjudged=lambda run: True))
    assert [(one.run.first, one.run.count) for one in found] == [(0, 50)]
    judged = list(salvage.records_in(read, 0, 1024, len(data)))
    assert not any(isinstance(one, salvage.Salvaged) and one.run.count == 50 for one in judged)
