"""Entry bytes: vectors seen on stock software, and laws."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnetar.bookie.format import entries
from magnetar.core.kernel.errors import Corrupted

PAYLOADS = st.lists(st.binary(max_size=900), min_size=1, max_size=12)


def test_an_entry_as_the_stock_client_sealed_it():
    run = entries.seal(11, 3, 2, 6, [b"e3"])
    assert run.blob[4:].hex() == (
        "000000000000000b 0000000000000003 0000000000000002 0000000000000008 e2ad1433 6533"
    ).replace(" ", "")


def test_the_digest_vector_that_the_stock_reader_verified():
    run = entries.seal(6, 0, -1, 0, [b"CRC32C-0"])
    assert run.blob.hex() == (
        "0000002c 0000000000000006 0000000000000000 ffffffffffffffff 0000000000000008"
        " 32fe39e2 4352433332432d30"
    ).replace(" ", "")


def test_a_hundred_zeros_as_captured():
    run = entries.seal(1, 0, -1, 0, [bytes(100)])
    assert run.blob[4:40].hex() == (
        "0000000000000001 0000000000000000 ffffffffffffffff 0000000000000064 2a194824"
    ).replace(" ", "")


@given(PAYLOADS, st.integers(0, 2**62), st.integers(0, 2**62), st.integers(-1, 2**40))
def test_what_is_sealed_is_found_again(payloads, ledger_id, first, confirmed):
    run = entries.seal(ledger_id, first, confirmed, 7, payloads)
    assert entries.payloads(run, first, first + 99, 1 << 30) == payloads
    assert run.checked_payloads(first, first + 99, 1 << 30) == payloads
    assert entries.run_at(run.blob, 0, len(run.blob)) == run
    assert entries.count_intact(run) == len(payloads)
    header = entries.header_of(run, run.last)
    assert header.length == 7 + sum(map(len, payloads))
    assert header.last_confirmed == confirmed


@given(st.binary(min_size=1, max_size=900), st.binary(max_size=90), st.integers(-1, 2**40))
def test_a_payload_that_lies_apart_makes_the_same_record(payload, head, confirmed):
    joined = entries.seal(3, 7, confirmed, 11, [payload], [head])
    run = entries.seal_apart(3, 7, confirmed, 11, payload, head)
    assert run.apart is payload
    assert run.blob + run.apart == joined.blob
    assert (run.size, run.count, run.last) == (joined.size, 1, 7)
    assert run.offsets == joined.offsets
    assert run.payload_bytes(7) == joined.payload_bytes(7)
    assert entries.payloads(run, 7, 9, 1) == [head + payload]
    assert entries.header_of(run, 7) == entries.header_of(joined, 7)


@given(PAYLOADS, st.data())
def test_a_cut_blob_gives_its_whole_records_only(payloads, data):
    run = entries.seal(5, 10, 9, 0, payloads)
    size = data.draw(st.integers(0, len(run.blob)))
    found = entries.run_at(run.blob[:size], 0, size)
    whole = sum(1 for end in run.offsets[1:] if end <= size)
    assert (found.count if found is not None else 0) == whole


@given(PAYLOADS, st.data())
def test_any_flipped_bit_shows(payloads, data):
    run = entries.seal(5, 10, 9, 0, payloads)
    place = data.draw(st.integers(0, run.count - 1))
    start, end = run.offsets[place], run.offsets[place + 1]
    blob = bytearray(run.blob)
    blob[data.draw(st.integers(start + 4, end - 1))] ^= 1 << data.draw(st.integers(0, 7))
    rotten = entries.Run(run.ledger_id, run.first, bytes(blob), run.offsets)
    assert entries.count_intact(rotten) == place
    if place:
        assert rotten.checked_payloads(10, run.last, 1 << 30) == payloads[:place]
    with pytest.raises(Corrupted):
        rotten.checked_payloads(10 + place, run.last, 1 << 30)


@given(PAYLOADS, st.integers(0, 5000), st.data())
def test_bytes_max_is_kept_but_for_the_first(payloads, bytes_max, data):
    run = entries.seal(5, 0, -1, 0, payloads)
    first = data.draw(st.integers(0, run.last))
    found = entries.payloads(run, first, run.last, bytes_max)
    assert found == payloads[first : first + len(found)]
    assert len(found) == 1 or sum(map(len, found)) <= bytes_max
    following = first + len(found)
    if following <= run.last:
        assert sum(map(len, found)) + len(payloads[following]) > bytes_max


@given(PAYLOADS, st.data())
def test_cut_and_rest_make_the_whole(payloads, data):
    run = entries.seal(5, 3, -1, 0, payloads)
    count = data.draw(st.integers(0, run.count - 1))
    rest = entries.rest(run, count)
    head = entries.cut(run, count)
    assert head.blob + rest.blob == run.blob
    assert rest.first == 3 + count
    assert entries.payloads(rest, rest.first, rest.last, 1 << 30) == payloads[count:]


def test_many_bytes_are_a_view_of_the_run():
    run = entries.seal(7, 0, -1, 0, [bytes(entries.VIEW_BYTES_MIN // 2)] * 3)
    one, count = entries.records_of(run, 1, 1, len(run.blob))
    assert (one, count) == (run.blob[run.offsets[1] : run.offsets[2]], 1)
    assert isinstance(one, bytes)
    large = entries.seal(7, 0, -1, 0, [bytes(entries.VIEW_BYTES_MIN)] * 3)
    one, count = entries.records_of(large, 1, 1, len(large.blob))
    assert isinstance(one, bytes), "the view would keep the two others"
    two, count = entries.records_of(run, 1, 9, len(run.blob))
    assert (two, count) == (run.blob[run.offsets[1] :], 2)
    assert two.obj is run.blob


def test_a_broken_record_behind_the_first_only_ends_the_answer():
    """It was read because it stood there; the index may know a whole one elsewhere."""
    run = entries.seal(1, 5, -1, 0, [b"a", b"b", b"c"])
    broken = bytearray(run.blob)
    broken[run.offsets[1] + 40] ^= 1
    torn = entries.Run(1, 5, bytes(broken), run.offsets)
    assert torn.checked_payloads(5, 7, 100) == [b"a"]
    with pytest.raises(Corrupted, match="1:6"):
        torn.checked_payloads(6, 7, 100)
    assert torn.checked_payloads(7, 7, 100) == [b"c"]


@pytest.mark.parametrize(("behind", "kept"), [(0, 0), (10, 10), (80, 80), (81, 0), (4000, 0)])
def test_a_little_behind_a_run_is_not_cut_off(behind, kept):
    whole = entries.seal(1, 0, -1, 0, [b"x" * 100, b"y" * 60])
    assert len(whole.blob) == 240
    found = entries.run_in(whole.blob + b"z" * behind)
    assert len(found.blob) == 240 + kept
    assert entries.cut(found, 2) == whole
    assert found.checked_payloads(0, 1, 1000) == [b"x" * 100, b"y" * 60]
    assert [found.payload_bytes(i) for i in range(2)] == [100, 60]
