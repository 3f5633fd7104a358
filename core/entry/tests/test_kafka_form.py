"""A batch goes in and comes out; everybody else's entries are left alone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.entry import kafka_form, pulsar_metadata


@given(st.binary(max_size=200), st.integers(1, 2**31 - 1), st.integers(1, 2**50))
def test_a_batch_comes_out_as_it_went_in(batch: bytes, offsets: int, now_ms: int) -> None:
    entry = kafka_form.wrapped(batch, offsets, now_ms)
    assert kafka_form.batch_in(entry) == batch
    assert pulsar_metadata.publish_time(entry) == now_ms
    assert pulsar_metadata.message_count(entry) == (offsets, True)


@pytest.mark.parametrize("entry", [b"", b"\x0e\x01", b"\0\0\0\x02\x0a\x05kafkaesque\x10\x00\x18"])
def test_other_entries(entry: bytes) -> None:
    assert kafka_form.batch_in(entry) is None
