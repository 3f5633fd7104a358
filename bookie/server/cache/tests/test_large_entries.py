"""Large entries taken out of what was read, and small ones left in it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnetar.bookie.format.entries import Run, seal
from magnetar.bookie.server.cache.large_entries import LARGE_BYTES, LargeEntries, split_large
from magnetar.core.kernel.errors import Corrupted


def broken(run: Run, place: int) -> Run:
    at = run.offsets[place + 1] - 1
    blob = run.blob[:at] + bytes([run.blob[at] ^ 1]) + run.blob[at + 1 :]
    return Run(run.ledger_id, run.first, blob, run.offsets)


def test_small_entries_stay_where_they_are():
    run = seal(1, 0, -1, 0, [b"x" * 100] * 1000)
    assert split_large(run) is run


@given(
    st.lists(st.integers(LARGE_BYTES, LARGE_BYTES + 100), min_size=1, max_size=6),
    st.integers(0, 5),
    st.integers(0, 7),
    st.integers(0, 4 * LARGE_BYTES),
)
def test_as_the_run_would_give_them(sizes, first, last, bytes_max):
    run = seal(1, 10, -1, 0, [bytes([place]) * size for place, size in enumerate(sizes)])
    found = split_large(run)
    assert isinstance(found, LargeEntries)
    assert (found.ledger_id, found.first, found.last) == (1, 10, run.last)
    assert abs(found.memory_bytes - run.memory_bytes) < 100 * len(sizes)
    first = min(10 + first, run.last)
    assert found.payload_bytes(first) == run.payload_bytes(first)
    last = max(first, 10 + last)
    expected = run.checked_payloads(first, last, bytes_max)
    assert found.checked_payloads(first, last, bytes_max) == expected


def test_what_is_behind_one_without_its_digest_is_left_out():
    run = seal(1, 10, -1, 0, [bytes([place]) * LARGE_BYTES for place in range(4)])
    found = split_large(broken(run, 2))
    assert (found.first, found.last) == (10, 11)
    with pytest.raises(Corrupted):
        split_large(broken(run, 0))
