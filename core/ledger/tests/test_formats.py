import struct
import time
import zlib
from collections.abc import Sequence

import cramjam
import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnetar.core.kernel.errors import Corrupted
from magnetar.core.kernel.varints import varint
from magnetar.core.ledger import formats
from magnetar.core.ledger.formats import (
    CursorSnapshot,
    LedgerEntryInfo,
    ManagedCursorInfo,
    ManagedLedgerInfo,
    Range,
)

IDS = st.integers(-1, 2**63 - 1)
POSITIONS = st.tuples(IDS, IDS)
RANGES = st.lists(st.tuples(POSITIONS, POSITIONS), max_size=4).map(tuple)
BITS = st.lists(st.tuples(POSITIONS, st.integers(0, 2**200)), max_size=4).map(tuple)
WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
PROPERTIES = st.dictionaries(WORDS, WORDS, max_size=3)
SNAPSHOTS = st.builds(
    CursorSnapshot,
    mark_delete=POSITIONS,
    ranges=RANGES,
    bits=BITS,
    properties=st.dictionaries(WORDS, IDS, max_size=2),
)
CURSORS = st.builds(
    ManagedCursorInfo,
    cursors_ledger_id=IDS,
    snapshot=SNAPSHOTS,
    last_active_ms=st.integers(0, 2**60),
    cursor_properties=PROPERTIES,
)
LEDGERS = st.builds(
    ManagedLedgerInfo,
    ledgers=st.lists(
        st.builds(
            LedgerEntryInfo,
            ledger_id=IDS,
            entries=IDS,
            size=IDS,
            closed_ms=IDS,
            properties=PROPERTIES,
            offload_context=st.binary(max_size=9),
        ),
        max_size=4,
    ).map(tuple),
    terminated=st.none() | POSITIONS,
    properties=PROPERTIES,
)


@given(LEDGERS)
def test_managed_ledgers_survive(info: ManagedLedgerInfo) -> None:
    assert formats.decode_managed_ledger(formats.encode_managed_ledger(info)) == info


@given(SNAPSHOTS)
def test_snapshots_survive(snapshot: CursorSnapshot) -> None:
    assert formats.decode_snapshot(formats.encode_snapshot(snapshot)) == snapshot


@given(CURSORS)
def test_cursors_survive(info: ManagedCursorInfo) -> None:
    assert formats.decode_cursor(formats.encode_cursor(info)) == info


def test_the_bytes_of_a_managed_ledger() -> None:
    info = ManagedLedgerInfo(
        ledgers=[LedgerEntryInfo(5, 2, 300, 9, {"a": "b"})],
        terminated=(5, 1),
        properties={"k": "v"},
    )
    pair = lambda key, value: b"\x0a\x01" + key + b"\x12\x01" + value  # noqa: E731 (shorter so)
    ledger = b"\x08\x05\x10\x02\x18\xac\x02\x20\x09" + b"\x32\x06" + pair(b"a", b"b")
    assert formats.encode_managed_ledger(info) == (
        b"\x0a" + bytes([len(ledger)]) + ledger
        + b"\x12\x04\x08\x05\x10\x01"
        + b"\x1a\x06" + pair(b"k", b"v")
    )  # fmt: skip


def test_the_bytes_of_a_snapshot() -> None:
    snapshot = CursorSnapshot((5, 1), [((5, 2), (5, 4))], [((5, 7), 2**63 | 5)], {})
    ten_bytes = b"\x85\x80\x80\x80\x80\x80\x80\x80\x80\x01"
    assert formats.encode_snapshot(snapshot) == (
        b"\x08\x05\x10\x01"
        + b"\x1a\x0c\x0a\x04\x08\x05\x10\x02\x12\x04\x08\x05\x10\x04"
        + b"\x2a\x11\x0a\x04\x08\x05\x10\x07\x10" + ten_bytes
    )  # fmt: skip


def test_a_cursor_that_never_moved_is_before_everything() -> None:
    info = formats.decode_cursor(b"\x08\x07")
    assert info.cursors_ledger_id == 7
    assert info.snapshot.mark_delete == (-1, -1)


def test_ranges_as_bitmaps_are_understood() -> None:
    message = formats.stored.StoredSnapshot(ledger_id=1, entry_id=2)
    message.bitmaps.add(ledger_id=1, acked=formats.words_of(0b1110_0100 | 1 << 63 | 1 << 64))
    message.bitmaps.add(ledger_id=3, acked=[1])
    assert formats.decode_snapshot(message.SerializeToString()).ranges == (
        ((1, 1), (1, 2)),
        ((1, 4), (1, 7)),
        ((1, 62), (1, 64)),
        ((3, -1), (3, 0)),
    )


def compressed(kind: int, data: bytes, size: int) -> bytes:
    head = formats.stored.CompressedHeader(compression=kind, uncompressed_size=size)
    encoded = head.SerializeToString()
    return b"\x47\x78" + len(encoded).to_bytes(4, "big") + encoded + data


PLAIN = formats.encode_managed_ledger(
    ManagedLedgerInfo(ledgers=[LedgerEntryInfo(i, 50_000) for i in range(100)])
)
COMPRESSED = [
    (0, PLAIN),
    (1, bytes(cramjam.lz4.compress_block(PLAIN, store_size=False))),
    (2, zlib.compress(PLAIN)),
    (3, bytes(cramjam.zstd.compress(PLAIN))),
    (4, bytes(cramjam.snappy.compress_raw(PLAIN))),
]


@pytest.mark.parametrize(("kind", "data"), COMPRESSED)
def test_compressed_metadata_is_read(kind: int, data: bytes) -> None:
    found = formats.decode_managed_ledger(compressed(kind, data, len(PLAIN)))
    assert found == formats.decode_managed_ledger(PLAIN)


@pytest.mark.parametrize(("kind", "data"), COMPRESSED)
def test_compressed_metadata_that_lies_is_corrupted(kind: int, data: bytes) -> None:
    for claimed in (len(PLAIN) - 1, len(PLAIN) + 1, -1, 2**31 - 1):
        with pytest.raises(Corrupted):
            formats.decode_managed_ledger(compressed(kind, data, claimed))
    with pytest.raises(Corrupted):
        formats.decode_managed_ledger(compressed(kind, data[: len(data) // 2], len(PLAIN)))


@pytest.mark.parametrize(
    "data",
    [
        b"\x47\x78",
        b"\x47\x78\x00\x00\x00\x09",
        b"\x47\x78\xff\xff\xff\x00aaa",
        b"\xff",
        b"\x12\x02\x08\x01",
    ],
)
def test_other_bytes_are_corrupted(data: bytes) -> None:
    for decode in (formats.decode_managed_ledger, formats.decode_cursor, formats.decode_snapshot):
        with pytest.raises(Corrupted):
            decode(data)
    with pytest.raises(Corrupted):
        formats.decode_cursor(compressed(9, b"", 0))


def test_properties_that_are_not_text_are_corrupted() -> None:
    for pair in (b"\x0a\x01\xff\x12\x01b", b"\x0a\x01b\x12\x01\xff"):
        with pytest.raises(Corrupted):
            formats.decode_managed_ledger(b"\x1a\x06" + pair)


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_corrupted(data: bytes) -> None:
    for decode in (formats.decode_managed_ledger, formats.decode_cursor, formats.decode_snapshot):
        try:
            decode(data)
        except Corrupted:
            continue


def test_words_of_a_long_mask_take_no_time_of_their_own() -> None:
    """A client may send a megabit; cut off word by word it took seconds."""
    words = [-1, 0, 7] * 50_000 + [1]
    bits = ((1, 2), sum((word % (1 << 64)) << (64 * at) for at, word in enumerate(words[:3])))
    snapshot = CursorSnapshot(mark_delete=(0, 0), bits=[bits])
    assert formats.decode_snapshot(formats.encode_snapshot(snapshot)).bits == (bits,)
    mask = int.from_bytes(struct.pack(f"<{len(words)}q", *words), "little")
    began = time.process_time()
    assert formats.words_of(mask) == words
    assert formats.words_of(0) == []
    assert time.process_time() - began < 1.0


@given(RANGES)
def test_ranges_have_the_bytes_that_protobuf_gives_them(ranges: Sequence[Range]) -> None:
    """Negative ones too, of which the lower ends of ranges are made."""
    whole = formats.stored.StoredSnapshot(ledger_id=1, entry_id=2, ranges=formats._ranges(ranges))
    whole.properties.add(key="k", value=-3)
    snapshot = CursorSnapshot((1, 2), ranges, properties={"k": -3})
    assert formats.encode_snapshot(snapshot) == whole.SerializeToString()


def test_ranges_that_were_stored_before_are_not_made_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cursor with ten thousand holes is saved many times a second."""
    made: list[int] = []

    def noting(number: int) -> bytes:
        made.append(number)
        return varint(number)

    monkeypatch.setattr("magnetar.core.ledger.formats.varint", noting)
    ranges = [((1, entry), (1, entry + 1)) for entry in range(0, 20_000, 2)]
    formats._range_field.cache_clear()
    first = formats.encode_snapshot(CursorSnapshot((1, -1), ranges))
    assert len(made) == 4 * len(ranges)
    made.clear()
    ranges[5] = ((1, 10), (1, 12))
    assert formats.encode_snapshot(CursorSnapshot((1, -1), ranges)) != first
    assert len(made) == 4
