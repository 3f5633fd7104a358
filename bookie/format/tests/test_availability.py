"""Sets of entry ids in Apache's encoding."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnetar.bookie.format.availability import decode, encode
from magnetar.core.kernel.errors import Corrupted, Invalid


def test_what_striping_leaves_takes_one_group():
    ids = [i for i in range(3000) if i % 3]
    data = encode(ids)
    assert len(data) == 64 + 24
    assert decode(data) == ids
    assert data[:8].hex() == "0000000000000001"
    assert data[64:].hex() == f"{1:016x}{2998:016x}{2:08x}{3:08x}"


@given(st.sets(st.integers(0, 200) | st.integers(0, 2**62)))
def test_any_set_comes_back(ids):
    assert decode(encode(sorted(ids))) == sorted(ids)


def test_no_more_bytes_than_may_be():
    ids = [0, 1, 3, 4, 5, 7]
    data = encode(ids)
    assert encode(iter(ids), len(data)) == data
    with pytest.raises(Invalid):
        encode(ids, len(data) - 1)


@pytest.mark.parametrize("data", [b"", bytes(63), bytes(65), b"\1" + bytes(63)])
def test_other_bytes_are_no_set(data):
    with pytest.raises(Corrupted):
        decode(data)
