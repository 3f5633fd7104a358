"""The compiled twin makes the same headers; what they mean is tested in `test_header.py`."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnetar.core.entry import stamps
from magnetar.core.kernel.varints import varint

TIMES = st.one_of(st.integers(0, 300), st.integers(0, (1 << 64) - 1))
INDEXES = st.one_of(st.integers(0, 300), st.integers(16_000, 17_000), st.integers(0, 1 << 62))
COUNTS = st.lists(st.one_of(st.just(1), st.integers(1, 300), st.integers(1, 1 << 31)), max_size=300)


@pytest.fixture(scope="module")
def compiled():
    return pytest.importorskip(
        "magnetar.core.entry.compiled", reason="built where there is a C compiler"
    )


def test_the_bytes_of_a_header():
    assert stamps.headers(1, None, 300, 5) == [b"\x0e\x02\x00\x00\x00\x05\x08\xac\x02\x10\x05"]


@given(TIMES, INDEXES, st.integers(0, 300))
def test_singles_alike(compiled, timestamp_ms, first, entries):
    arguments = (entries, None, timestamp_ms, first)
    assert compiled.headers(*arguments) == stamps.headers(*arguments)


@given(TIMES, INDEXES, COUNTS)
def test_batches_alike(compiled, timestamp_ms, first, counts):
    arguments = (len(counts), counts, timestamp_ms, first)
    assert compiled.headers(*arguments) == stamps.headers(*arguments)


@pytest.mark.parametrize("wrong", ["text", 5, (1,), [None], ["1"], [b"1"]])
def test_other_things_are_refused(compiled, wrong):
    with pytest.raises(TypeError):
        compiled.headers(1, wrong, 300, 5)


def test_numbers_out_of_range_are_refused(compiled):
    for arguments in ((1, None, -1, 0), (1, None, 0, -1), (1, [-1], 0, 0), (1 << 70, None, 0, 0)):
        with pytest.raises(OverflowError):
            compiled.headers(*arguments)


FIELDS = st.lists(
    st.tuples(
        st.sampled_from([b"\x08", b"\x10", b"\x78", b"\x08", b"\x20", b""]),
        st.one_of(
            st.integers(0, 1 << 64).map(varint),
            st.binary(max_size=10),
            st.integers(0, 300).map(lambda n: bytes((n & 127 | 128, n >> 7 | 128, 0))),
        ),
    ),
    max_size=4,
).map(lambda fields: b"".join(tag + number for tag, number in fields))


@given(
    FIELDS, st.integers(-2, 2), st.binary(max_size=3), st.sampled_from([stamps.MAGIC, b"\x0e\x01"])
)
def test_whatever_comes_is_read_alike(compiled, metadata, off, rest, magic):
    size = max(0, len(metadata) + off).to_bytes(4, "big")
    for entry in (magic + size + metadata + rest, magic + size + metadata, metadata, magic):
        assert compiled.plain(entry) == stamps.plain(entry)


@given(TIMES, INDEXES, COUNTS, st.binary(max_size=20))
def test_what_was_made_is_read(compiled, timestamp_ms, first, counts, payload):
    index = first - 1
    for made, count in zip(stamps.headers(0, counts, timestamp_ms, first), counts, strict=True):
        index += count
        whole = stamps.EntryHeader(len(made), timestamp_ms, index, count)
        expected = whole if timestamp_ms < 1 << 63 and index < 1 << 63 else None
        assert stamps.plain(made + payload) == compiled.plain(made + payload) == expected
