"""Where keys were last, by the reference and its compiled twin alike."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnetar.core.compaction.key_index import (
    KEYLESS,
    LOST,
    SEED_BYTES,
    STAYS,
    TOMBSTONE,
    KeyIndex,
    among,
    new_key_index,
    py_among,
    short,
)
from magnetar.core.entry.compaction import ROW, Item, KeyRows, rows_of

SEED = bytes(range(SEED_BYTES))
KEYS = st.one_of(st.none(), st.sampled_from([b"", b"a", b"b" * 14, b"b" * 15]), st.binary())
ENTRIES = st.lists(
    st.lists(st.tuples(st.integers(0, 9), KEYS, st.integers(-1, 2)), max_size=5), max_size=20
)
BITS, LAST = 3, 7
is_pure = new_key_index is KeyIndex


def items_of(entry: list) -> list[Item]:  # type: ignore[type-arg]
    """Messages whose places ascend."""
    places = sorted(place for place, _, _ in entry)
    return [Item(at, key, value) for at, (_, key, value) in zip(places, entry, strict=True)]


def fate(item: Item, *, is_last: bool) -> int:
    if item.key is None:
        return KEYLESS
    if not is_last:
        return LOST
    return STAYS if item.size > 0 else TOMBSTONE


@given(ENTRIES, ENTRIES)
def test_the_last_message_of_each_key(before: list, entries: list) -> None:  # type: ignore[type-arg]
    indexes = [KeyIndex(SEED), new_key_index(SEED)]
    last: dict[bytes, int] = {}
    every = list(enumerate(map(items_of, entries)))
    for number, items in every:
        for item in items:
            if item.key is not None:
                last[item.key] = (number << BITS) + min(item.place, LAST)
        for index in indexes:
            index.note_rows(rows_of(items), number << BITS, LAST)
    ordered = memoryview(indexes[0].orders()).cast("Q").tolist()
    assert ordered == sorted(last.values())
    for index in indexes:
        assert len(index) == len(last)
        assert index.orders() == indexes[0].orders()
        assert all(index.order_of(key) == order for key, order in last.items())
        for items in map(items_of, before):
            expected = [fate(one, is_last=one.key not in last) for one in items]
            assert list(index.unknown(rows_of(items))) == expected
    orders = set(last.values())
    for number, items in every:
        base = number << BITS
        expected = [fate(one, is_last=base + min(one.place, LAST) in orders) for one in items]
        for function in (among, py_among):
            judged = function(indexes[0].orders(), rows_of(items), base, LAST)
            assert list(judged) == expected


@pytest.mark.parametrize("index", [KeyIndex(SEED), new_key_index(SEED)])
def test_many_keys(index: KeyIndex) -> None:
    for number in range(5_000):
        index.note(b"key-%d" % number, number)
    for number in range(0, 5_000, 3):
        index.note(b"key-%d" % number, 5_000 + number)
    assert len(index) == 5_000
    assert [index.order_of(b"key-%d" % number) for number in (0, 1, 4_998, 5_000)] == [
        *(5_000, 1, 9_998, -1)
    ]
    while index.forget(1_000):
        pass
    assert len(index) == 0
    assert index.order_of(b"key-1") == -1
    index.note(b"again", 7)
    assert index.order_of(b"again") == 7


@pytest.mark.parametrize("count", [1, 63, 64, 65, 127, 128, 1_000])
def test_many_rows_at_once(count: int) -> None:
    """The twin looks for 64 keys at a time; the same key may come several times among them."""
    keys = [None if place % 7 == 3 else b"key-%d" % (place % 50) for place in range(count)]
    rows = rows_of([Item(place, key, place % 3 - 1) for place, key in enumerate(keys)])
    other = rows_of([Item(place, b"key-%d" % place, 1) for place in range(count)])
    reference, twin = KeyIndex(SEED), new_key_index(SEED)
    for index in (reference, twin):
        index.note_rows(rows, 5_000, count)
    assert len(twin) == len({key for key in keys if key is not None})
    assert twin.orders() == reference.orders()
    for asked in (rows, other):
        assert twin.unknown(asked) == reference.unknown(asked)
        orders = reference.orders()
        assert among(orders, asked, 5_000, count) == py_among(orders, asked, 5_000, count)


def test_long_keys_are_short() -> None:
    keys = [b"", b"a" * 15, b"a" * 16, b"a" * 17, short(b"a" * 16)]
    assert [len(short(key)) for key in keys] == [0, 15, 15, 15, 15]
    assert len({short(key) for key in keys}) == len(keys)


@pytest.mark.skipif(is_pure, reason="not compiled")
def test_the_hash_is_siphash() -> None:
    """Vectors of its authors (`vectors.h`), for the key 00 01 .. 0f and the data 00 01 .."""
    from magnetar.core.compaction.compiled import hashed  # type: ignore[import-not-found]

    assert hashed(SEED, b"").hex() == "a3817f04ba25a8e66df67214c7550293"
    assert hashed(SEED, b"\0").hex() == "da87c1d86b99af44347659119b22fc45"
    found = {hashed(SEED, bytes(range(size))) for size in range(64)}
    assert len(found) == 64


@pytest.mark.skipif(is_pure, reason="not compiled")
def test_rows_outside_their_data_are_refused() -> None:
    index = new_key_index(SEED)
    for row in ((0, 0, 2, 1), (0, -1, 1, 1), (0, 2**31 - 1, 2**31 - 1, 1)):
        bad = KeyRows(b"k", ROW.pack(*row))
        for function in (
            lambda keys: index.note_rows(keys, 0, 9),
            index.unknown,
            lambda keys: among(b"", keys, 0, 9),
        ):
            with pytest.raises(ValueError, match="outside"):
                function(bad)
    with pytest.raises(ValueError, match="no rows"):
        index.unknown(KeyRows(b"", b"123"))
