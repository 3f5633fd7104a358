"""Payloads as their producers had them."""

import zlib

import cramjam
import pytest
import zstandard

from core.errors import Corrupted
from wire.http.decompress import SIZE_BYTES_MAX, decompress

PLAIN = b"hello " * 100
PACKED = {
    0: PLAIN,
    1: bytes(cramjam.lz4.compress_block(PLAIN, store_size=False)),
    2: zlib.compress(PLAIN),
    3: zstandard.ZstdCompressor().compress(PLAIN),
    4: bytes(cramjam.snappy.compress_raw(PLAIN)),
}


@pytest.mark.parametrize("codec", PACKED)
def test_every_codec(codec: int) -> None:
    assert decompress(PACKED[codec], codec, len(PLAIN)) == PLAIN


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
