"""The outer grammar."""

from contextlib import suppress
from struct import pack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnetar.core.kernel.checksum import crc32c
from magnetar.core.kernel.errors import WireError
from magnetar.wire.pulsar.frames import (
    FrameTail,
    checksum_fits,
    command_end,
    command_frame,
    frame_end,
    split_tail,
    tail_to_store,
)


def test_where_a_frame_ends():
    data = b"??" + pack(">I", 6) + b"123456"
    assert frame_end(data, 2, 100) == 12
    assert frame_end(data[:8], 2, 100) == 12  # not there yet


@pytest.mark.parametrize("size", [0, 3, 101, (1 << 32) - 1])
def test_sizes_that_no_frame_has(size):
    with pytest.raises(WireError):
        frame_end(pack(">I", size), 0, 100)


def test_where_a_command_ends():
    frame = command_frame(b"abc")
    assert command_end(frame + b"next", 0, len(frame)) == len(frame)
    longer = pack(">II", 7, 4) + b"abc"
    with pytest.raises(WireError, match="does not fit"):
        command_end(longer, 0, len(longer))


@given(st.none() | st.binary(max_size=9), st.booleans(), st.binary(max_size=9), st.binary())
def test_tails_come_apart_as_they_were_put_together(broker, checked, metadata, payload):
    body = pack(">I", len(metadata)) + metadata + payload
    checksum = crc32c(body)
    tail = (
        (b"" if broker is None else b"\x0e\x02" + pack(">I", len(broker)) + broker)
        + (b"\x0e\x01" + pack(">I", checksum) if checked else b"")
        + body
    )
    assert split_tail(tail) == FrameTail(broker, checksum if checked else None, metadata, payload)
    if broker is None:
        stored = tail_to_store(tail)
        assert stored[6:] == body
        assert checksum_fits(stored)
        assert not checksum_fits(stored + b"x")


@given(st.binary(max_size=30), st.sampled_from([b"", b"\x0e\x01", b"\x0e\x02"]))
def test_damaged_tails(noise, start):
    for split in (split_tail, tail_to_store):
        with suppress(WireError):
            split(start + noise)
