"""Payloads as their producers had them."""

import random
import zlib

import cramjam
import lz4.frame
import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnetar.core.entry.compression import (
    KAFKA_CODECS,
    SIZE_BYTES_MAX,
    compress_records,
    decompress,
    decompress_records,
)
from magnetar.core.kernel.errors import Corrupted

PLAIN = b"hello " * 100
PACKED = {
    0: PLAIN,
    1: bytes(cramjam.lz4.compress_block(PLAIN, store_size=False)),
    2: zlib.compress(PLAIN),
    3: bytes(cramjam.zstd.compress(PLAIN)),
    4: bytes(cramjam.snappy.compress_raw(PLAIN)),
}
RECORDS = st.one_of(
    st.binary(max_size=200),
    st.builds(lambda piece, times: piece * times, st.binary(max_size=9), st.integers(0, 40_000)),
)


@pytest.mark.parametrize("codec", PACKED)
def test_every_codec(codec: int) -> None:
    assert decompress(PACKED[codec], codec, len(PLAIN)) == PLAIN


@pytest.mark.parametrize("codec", [0, *KAFKA_CODECS])
@pytest.mark.parametrize(
    "records", [b"", PLAIN, PLAIN * 1000, random.Random(1).randbytes(200_000)], ids=len
)
def test_what_kafkas_clients_are_to_read(codec: int, records: bytes) -> None:
    packed = compress_records(records, codec)
    assert decompress_records(packed, codec) == records
    if codec == 3:
        assert lz4.frame.decompress(packed) == records


@given(RECORDS, st.sampled_from([0, *KAFKA_CODECS]))
def test_back_again(records: bytes, codec: int) -> None:
    assert decompress_records(compress_records(records, codec), codec) == records


@pytest.mark.parametrize("codec", [0, *KAFKA_CODECS])
def test_incompressible_blocks(codec: int) -> None:
    noise = bytes(cramjam.zstd.compress(bytes(range(256)) * 4, level=19)) * 3
    assert decompress_records(compress_records(noise, codec), codec) == noise


def test_blocks_of_lz4_stand_alone() -> None:
    made = compress_records(b"x" * 200_000, 3)
    assert made[4] & 0x20, "as the Java client asks for"
    assert bytes(cramjam.lz4.decompress(made)) == b"x" * 200_000


@pytest.mark.parametrize("codec", [1, 2, 3, 4])
@pytest.mark.parametrize("payload", [b"", b"nonsense", b"\xff" * 100])
def test_nonsense_is_told(codec: int, payload: bytes) -> None:
    with pytest.raises(Corrupted):
        decompress(payload, codec, 600)


@pytest.mark.parametrize("codec", [1, 2, 3, 4])
def test_sizes_that_do_not_fit_are_told(codec: int) -> None:
    for size in (10, len(PLAIN) - 1, len(PLAIN) + 1, SIZE_BYTES_MAX + 1):
        with pytest.raises(Corrupted):
            decompress(PACKED[codec], codec, size)


def test_unknown_codecs_are_told() -> None:
    with pytest.raises(Corrupted):
        decompress(PLAIN, 9, len(PLAIN))
    for codec in (5, 7):
        with pytest.raises(Corrupted, match="unknown way"):
            compress_records(PLAIN, codec)
        with pytest.raises(Corrupted, match="unknown way"):
            decompress_records(PLAIN, codec)
