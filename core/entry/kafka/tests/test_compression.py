"""The records of a batch before compression."""

import random

import cramjam
import lz4.frame
import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnetar.core.entry.kafka.compression import (
    CODECS,
    compress_records,
    decompress_records,
)
from magnetar.core.kernel.errors import Corrupted

PLAIN = b"hello " * 100
RECORDS = st.one_of(
    st.binary(max_size=200),
    st.builds(lambda piece, times: piece * times, st.binary(max_size=9), st.integers(0, 40_000)),
)


@pytest.mark.parametrize("codec", [0, *CODECS])
@pytest.mark.parametrize(
    "records", [b"", PLAIN, PLAIN * 1000, random.Random(1).randbytes(200_000)], ids=len
)
def test_what_kafkas_clients_are_to_read(codec: int, records: bytes) -> None:
    packed = compress_records(records, codec)
    assert decompress_records(packed, codec) == records
    if codec == 3:
        assert lz4.frame.decompress(packed) == records


@given(RECORDS, st.sampled_from([0, *CODECS]))
def test_back_again(records: bytes, codec: int) -> None:
    assert decompress_records(compress_records(records, codec), codec) == records


@pytest.mark.parametrize("codec", [0, *CODECS])
def test_incompressible_blocks(codec: int) -> None:
    noise = bytes(cramjam.zstd.compress(bytes(range(256)) * 4, level=19)) * 3
    assert decompress_records(compress_records(noise, codec), codec) == noise


def test_blocks_of_lz4_stand_alone() -> None:
    made = compress_records(b"x" * 200_000, 3)
    assert made[4] & 0x20, "as the Java client asks for"
    assert bytes(cramjam.lz4.decompress(made)) == b"x" * 200_000


@pytest.mark.parametrize("codec", [5, 7])
def test_unknown_codecs_are_refused(codec: int) -> None:
    with pytest.raises(Corrupted, match="unknown way"):
        compress_records(PLAIN, codec)
    with pytest.raises(Corrupted, match="unknown way"):
        decompress_records(PLAIN, codec)
