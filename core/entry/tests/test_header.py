import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnetar.core.entry import header
from magnetar.core.entry.header import EntryHeader
from magnetar.core.kernel.errors import Corrupted

PAYLOADS = st.lists(st.binary(max_size=20), min_size=1, max_size=300)
NOW_MS = 1_790_000_000_000
TIMES = st.one_of(st.integers(0, 2**63), st.integers(NOW_MS - 10**9, NOW_MS + 10**9))
INDEXES = st.one_of(st.integers(0, 300), st.integers(0, 2**62))


def stamp(
    payloads: list[bytes], counts: list[int] | None, timestamp_ms: int, first_index: int
) -> list[bytes]:
    """Entries as they are stored: each payload behind its header."""
    made = header.headers(len(payloads), counts, timestamp_ms, first_index)
    return [head + payload for head, payload in zip(made, payloads, strict=True)]


def test_the_bytes_of_a_header() -> None:
    (entry,) = stamp([b"\x0e\x01rest"], None, 300, 5)
    assert entry == b"\x0e\x02\x00\x00\x00\x05\x08\xac\x02\x10\x05\x0e\x01rest"
    (entry,) = stamp([b"p"], [300], 300, 5)
    assert entry == b"\x0e\x02\x00\x00\x00\x09\x08\xac\x02\x10\xb0\x02\x78\xac\x02p"


@given(payloads=PAYLOADS, timestamp_ms=TIMES, first=INDEXES)
def test_a_run_of_single_messages(payloads: list[bytes], timestamp_ms: int, first: int) -> None:
    stamped = stamp(payloads, None, timestamp_ms, first)
    assert len(stamped) == len(payloads)
    for i, (entry, payload) in enumerate(zip(stamped, payloads, strict=True)):
        found = header.read(entry)
        assert entry[found.size :] == payload
        assert found == EntryHeader(found.size, timestamp_ms, first + i, 1)
    assert header.counts_of(stamped) is None


@given(payloads=PAYLOADS, timestamp_ms=TIMES, first=INDEXES, data=st.data())
def test_a_run_of_batches(
    payloads: list[bytes], timestamp_ms: int, first: int, data: st.DataObject
) -> None:
    n = len(payloads)
    counts = data.draw(st.lists(st.integers(1, 2000), min_size=n, max_size=n))
    stamped = stamp(payloads, counts, timestamp_ms, first)
    index = first - 1
    for entry, payload, count in zip(stamped, payloads, counts, strict=True):
        index += count
        found = header.read(entry)
        assert entry[found.size :] == payload
        assert found == EntryHeader(found.size, timestamp_ms, index, count)
    assert header.counts_of(stamped) == (None if set(counts) == {1} else counts)


def test_entries_of_brokers_that_write_no_header() -> None:
    bare = b"\x0e\x01\x00\x00\x00\x00rest"
    assert header.read(bare) == header.NONE == EntryHeader(0, 0, -1, 1)
    assert header.read(b"") == header.NONE
    assert header.counts_of([bare, bare]) is None
    ours = stamp([b"x"], [7], NOW_MS, 1000)
    assert header.counts_of([bare, *ours]) == [1, 7]
    assert header.counts_of([*ours, bare]) == [7, 1]


def test_fields_in_another_order_and_fields_unknown() -> None:
    metadata = (
        b"\x10\x96\x01"  # index first
        + b"\x32\x03abc"  # 6: bytes
        + b"\x39"
        + bytes(8)  # 7: 64 bits
        + b"\x3d"
        + bytes(4)  # 7: 32 bits
        + b"\x98\x06\x01"  # 99: varint
        + b"\x08\xac\x02"
    )
    entry = b"\x0e\x02" + len(metadata).to_bytes(4, "big") + metadata + b"rest"
    found = header.read(entry)
    assert found == EntryHeader(6 + len(metadata), 300, 150, 1)
    assert entry[found.size :] == b"rest"


def test_a_short_timestamp_where_ours_would_be_long() -> None:
    # 08 01 | 20 05 | 20 80 01, then what looks like our index tag is the value of field 4
    metadata = b"\x08\x01\x20\x05\x18\x80\x01\x10\x80\x02"
    entry = b"\x0e\x02" + len(metadata).to_bytes(4, "big") + metadata
    assert header.read(entry) == EntryHeader(len(entry), 1, 256, 1)
    metadata = b"\x08\x01\x20\x80\x80\x80\x01\x10\x80\x02"
    entry = b"\x0e\x02" + len(metadata).to_bytes(4, "big") + metadata
    assert header.read(entry) == EntryHeader(len(entry), 1, 256, 1)


def test_a_timestamp_of_a_far_century() -> None:
    for timestamp_ms in (2**46, 2**50):
        (entry,) = stamp([b""], None, timestamp_ms, 500)
        assert header.read(entry) == EntryHeader(len(entry), timestamp_ms, 500, 1)


@pytest.mark.parametrize(
    "tail", [b"\x80\x02\x78", b"\x80\x02\x78\x00", b"\x80\x02\x78\x05\x20\x01"]
)
def test_odd_tails_take_the_slow_way(tail: bytes) -> None:
    metadata = b"\x08" + b"\xff\xff\xff\xff\xff\x01" + b"\x10" + tail
    entry = b"\x0e\x02" + len(metadata).to_bytes(4, "big") + metadata
    if tail.endswith(b"\x78"):
        with pytest.raises(Corrupted):
            header.read(entry)
    else:
        assert header.read(entry).index == 256
        assert header.read(entry).count == (5 if b"\x05" in tail else 1)


def test_an_unknown_field_after_ours() -> None:
    (entry,) = stamp([b""], None, NOW_MS, 100_000)
    longer = entry[:2] + (len(entry) - 6 + 2).to_bytes(4, "big") + entry[6:] + b"\x20\x01"
    assert header.read(longer) == EntryHeader(len(longer), NOW_MS, 100_000, 1)


@pytest.mark.parametrize(
    "entry",
    [
        b"\x0e\x02",
        b"\x0e\x02\x00\x00\x00\x05\x08",
        b"\x0e\x02\x00\x00\x00\x01\x08",
        b"\x0e\x02\x00\x00\x00\x02\x08\x80",
        b"\x0e\x02\x00\x00\x00\x02\x32\x05rest",
        b"\x0e\x02\x00\x00\x00\x02\x33\x05rest",
        b"\x0e\x02\x00\x00\x00\x03\x39\x05\x00rest",
        b"\x0e\x02\xff\xff\xff\xff" + bytes(40),
    ],
)
def test_a_broken_header_is_corruption(entry: bytes) -> None:
    with pytest.raises(Corrupted):
        header.read(entry)


@given(st.binary(max_size=40), st.booleans())
def test_any_bytes_are_read_or_corrupted(data: bytes, with_magic: bool) -> None:
    entry = header.MAGIC + data if with_magic else data
    try:
        found = header.read(entry)
    except Corrupted:
        return
    assert 0 <= found.size <= len(entry)
    assert found.count >= 1


@given(st.binary(max_size=30), TIMES, st.integers(0, 2**40))
def test_torn_headers_are_never_misread(payload: bytes, timestamp_ms: int, index: int) -> None:
    (entry,) = stamp([payload], None, timestamp_ms, index)
    size = header.read(entry).size
    for cut in range(2, size):
        with pytest.raises(Corrupted):
            header.read(entry[:cut])
