"""Records: what is packed is unpacked, and the compiled twins do the same as the pure functions."""

from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnetar.bookie.format import records

IDS = st.integers(-(1 << 63), (1 << 62))
PAYLOADS = st.lists(
    st.one_of(st.binary(max_size=300), st.sampled_from([b"x" * 2007, b"y" * 2049, b"z" * 70_000])),
    max_size=12,
)


def test_the_digest_vector_that_the_stock_reader_verified():
    blob, offsets = records.pack(6, 0, -1, 0, [b"C-0"], [b"CRC32"])
    assert blob[36:] == bytes.fromhex("32fe39e2") + b"CRC32C-0"
    assert list(offsets) == [0, 48]


@given(PAYLOADS, st.data())
def test_unpacking_ends_before_what_was_changed(payloads, data):
    blob, offsets = records.pack(5, 10, 9, 0, payloads)
    assert records.unpack(blob, offsets, 0, len(payloads)) == payloads
    if payloads:
        place = data.draw(st.integers(0, len(payloads) - 1))
        changed = bytearray(blob)
        changed[offsets[place] + 5] ^= 1
        assert records.unpack(bytes(changed), offsets, 0, len(payloads)) == payloads[:place]


# -- compiled --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def compiled():
    return pytest.importorskip(
        "magnetar.bookie.format.compiled", reason="built where there is a C compiler"
    )


@given(IDS, IDS, IDS, IDS, PAYLOADS, st.data())
def test_packing_alike(compiled, ledger_id, first, confirmed, length, payloads, data):
    heads = data.draw(
        st.one_of(
            st.none(),
            st.lists(st.binary(max_size=25), min_size=len(payloads), max_size=len(payloads)),
        )
    )
    arguments = (ledger_id, first, confirmed, length, payloads, heads)
    blob, offsets = compiled.pack(*arguments)
    assert (blob, offsets) == records.pack(*arguments)
    assert offsets.typecode == "I"


@given(PAYLOADS, st.data())
def test_unpacking_alike(compiled, payloads, data):
    blob, offsets = records.pack(5, 10, 9, 0, payloads)
    rotten = bytearray(blob)
    for _ in range(data.draw(st.integers(0, 2)) if blob else 0):
        rotten[data.draw(st.integers(0, len(blob) - 1))] = data.draw(st.integers(0, 255))
    start = data.draw(st.integers(0, len(payloads)))
    stop = data.draw(st.integers(start, len(payloads)))
    found = compiled.unpack(bytes(rotten), offsets, start, stop)
    assert found == records.unpack(bytes(rotten), offsets, start, stop)


@given(st.binary(max_size=200), st.lists(st.integers(0, (1 << 32) - 1), max_size=5), st.data())
def test_offsets_that_lie_are_refused_or_cut_short(compiled, blob, offsets, data):
    start, stop = data.draw(st.integers(-2, 6)), data.draw(st.integers(-2, 6))
    try:
        found = compiled.unpack(blob, array("I", offsets), start, stop)
    except (IndexError, ValueError):
        return
    assert all(payload in blob for payload in found)


@pytest.mark.parametrize("wrong", [None, "text", bytearray(b"x"), 5, [b""]])
def test_other_things_are_refused(compiled, wrong):
    blob, offsets = records.pack(1, 2, 3, 4, [b"x"])
    with pytest.raises(TypeError):
        compiled.pack(1, 2, 3, 4, [b"", wrong])
    with pytest.raises(TypeError):
        compiled.pack(1, 2, 3, 4, [b""], [wrong])
    with pytest.raises(TypeError):
        compiled.unpack(wrong, offsets, 0, 1)
    with pytest.raises(TypeError):
        compiled.unpack(blob, wrong, 0, 1)


def test_numbers_out_of_range_are_refused(compiled):
    blob, offsets = records.pack(1, 2, 3, 4, [b"x"])
    for refused in (
        lambda: compiled.pack(1 << 63, 0, 0, 0, [b""]),
        lambda: compiled.pack(0, 1 << 63, 0, 0, [b""]),
        lambda: compiled.pack(0, (1 << 63) - 1, 0, 0, [b"", b""]),
        lambda: compiled.pack(0, 0, 0, (1 << 63) - 1, [b"x"]),
        lambda: compiled.pack(0, 0, 0, 0, [b"x"], [b"", b""]),
        lambda: compiled.unpack(blob, offsets, 0, 2),
        lambda: compiled.unpack(blob, offsets, -1, 1),
        lambda: compiled.unpack(blob[:-1], offsets, 0, 1),
    ):
        with pytest.raises((OverflowError, ValueError, IndexError)):
            refused()
    with pytest.raises(TypeError):
        compiled.unpack(blob, array("Q", offsets), 0, 1)
