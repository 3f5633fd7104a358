"""Keys of batches, and that the compiled functions find what the Python ones do."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnetar.core.entry.compaction import Item, KeyRows
from magnetar.core.entry.pulsar import batches
from magnetar.core.entry.pulsar.batches import (
    COMPACTED_OUT,
    batch_rows,
    marked,
    py_batch_rows,
    py_marked,
    usual_message,
)
from magnetar.core.kernel.errors import Corrupted

from .test_messages import message as message_of

FIELDS = st.lists(
    st.one_of(
        st.tuples(st.just(2), st.one_of(st.binary(max_size=150), st.just(b"a2V5"))),
        st.tuples(st.sampled_from([4, 5, 6, 8, 9, 10, 40]), st.integers(0, 2**40)),
        st.tuples(st.sampled_from([1, 7]), st.just(b"")),
    ),
    max_size=4,
)
MESSAGES = st.one_of(
    st.just(COMPACTED_OUT),
    st.builds(
        lambda before, size, behind: message_of(*before, (3, size), *behind, payload=b"v" * size),
        FIELDS,
        st.integers(0, 300),
        FIELDS,
    ),
)


def found(function: object, payload: bytes, count: int) -> tuple[list[Item], bytes] | str:
    try:
        rows, ends, data = function(payload, count)  # type: ignore[operator]
    except Corrupted as error:
        return str(error)
    assert data.startswith(payload)
    return KeyRows(data, rows).items, ends


@given(st.lists(MESSAGES, max_size=5), st.integers(-2, 2))
def test_the_quick_ways_find_what_the_slow_one_does(each: list[bytes], more: int) -> None:
    payload, count = b"".join(each), len(each) + more
    quick = found(py_batch_rows, payload, count)
    assert found(batch_rows, payload, count) == quick
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(batches, "usual_message", lambda _payload, _at: None)
        patched.setattr(batches, "COMPACTED_OUT", b"\xff" * 9)
        assert found(py_batch_rows, payload, count) == quick


@given(st.lists(MESSAGES, min_size=1, max_size=4), st.data())
def test_damage(each: list[bytes], data: st.DataObject) -> None:
    whole = b"".join(each)
    at = data.draw(st.integers(0, len(whole) - 1))
    for spoiled in (whole[:at], whole[:at] + data.draw(st.binary(max_size=3)) + whole[at + 1 :]):
        assert found(batch_rows, spoiled, len(each)) == found(py_batch_rows, spoiled, len(each))


@given(st.binary(max_size=60), st.integers(0, 20))
def test_any_bytes(payload: bytes, count: int) -> None:
    assert found(batch_rows, payload, count) == found(py_batch_rows, payload, count)


def test_a_batch_that_lies_takes_no_memory() -> None:
    with pytest.raises(Corrupted, match="fewer messages"):
        batch_rows(bytes(8), 1 << 40)


@given(st.lists(st.tuples(st.binary(max_size=9), st.booleans()), max_size=9))
def test_messages_are_marked(each: list[tuple[bytes, bool]]) -> None:
    payload, ends, at = b"".join(one for one, _ in each), b"", 0
    for one, _ in each:
        at += len(one)
        ends += struct.pack("=i", at)
    left = bytes(stays for _, stays in each)
    expected = b"".join(one if stays else COMPACTED_OUT for one, stays in each)
    assert marked(payload, ends, left) == py_marked(payload, ends, left) == expected


@pytest.mark.parametrize("function", [marked, py_marked])
def test_not_one_end_for_each_message(function: object) -> None:
    with pytest.raises(ValueError, match=r"."):
        function(b"", b"", b"\1")  # type: ignore[operator]


@given(st.binary(max_size=40), st.integers(0, 50))
def test_the_quick_way_and_damage(data: bytes, at: int) -> None:
    for payload in (data, b"\0\0\0" + data, b"\0\0\0\x06\x12" + data):
        usual = usual_message(payload, at)
        assert usual is None or usual[2] <= len(payload)


def test_what_clients_write_goes_the_quick_way() -> None:
    whole = message_of((2, b"key"), (3, 5), (5, 2**41), (8, 300), payload=b"value")
    assert usual_message(whole, 0) == (9, 5, len(whole))
    for other in ([(3, 5)], [(2, b"key"), (3, 5), (9, 1)], [(2, b"key"), (3, 5), (4, 1)]):
        assert usual_message(message_of(*other, payload=b"value"), 0) is None
