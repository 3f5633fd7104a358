"""A batch goes in and comes out; everybody else's entries are left alone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnetar.core.entry.kafka import form, record_batch
from magnetar.core.entry.pulsar import metadata
from magnetar.core.entry.record import Record


@given(st.binary(max_size=200), st.integers(1, 2**31 - 1), st.integers(1, 2**50))
def test_a_batch_comes_out_as_it_went_in(batch: bytes, offsets: int, now_ms: int) -> None:
    entry = form.py_wrapped(batch, offsets, now_ms)
    for given_as in (batch, memoryview(batch)):
        assert form.wrapped(given_as, offsets, now_ms) == entry
    assert form.batch_in(entry) == batch
    assert metadata.publish_time(entry) == now_ms
    assert metadata.message_count(entry) == (offsets, True)


@pytest.mark.parametrize("entry", [b"", b"\x0e\x01", b"\0\0\0\x02\x0a\x05kafkaesque\x10\x00\x18"])
def test_other_entries(entry: bytes) -> None:
    assert form.batch_in(entry) is None


@given(
    st.binary(max_size=100),
    st.sampled_from([b"", b"\x0a\x05kafka\x10\x00\x18"]),
    st.none() | st.integers(0, 100) | st.integers(0, 2**32 - 1),
)
def test_both_twins_tell_the_same_time(rest: bytes, begin: bytes, size: int | None) -> None:
    tail = (b"" if size is None else size.to_bytes(4, "big")) + begin + rest
    assert form.latest_time(tail) == form.py_latest_time(tail)


@given(st.integers(-1, 2**62), st.integers(0, 2**50))
def test_the_time_of_a_batch(last_ms: int, now_ms: int) -> None:
    record = Record(0, last_ms, None, b"v")
    entry = form.py_wrapped(record_batch.batch_of([record], 0, 1), 1, now_ms)
    for last_time in (form.py_latest_time, form.latest_time):
        assert last_time(entry) == last_ms
