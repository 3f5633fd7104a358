"""A message's payload before compression."""

import zlib

import cramjam
import pytest

from magnetar.core.entry.pulsar.compression import CODECS, SIZE_BYTES_MAX, decompress
from magnetar.core.kernel.errors import Corrupted

PLAIN = b"hello " * 100
PACKED = {
    0: PLAIN,
    1: bytes(cramjam.lz4.compress_block(PLAIN, store_size=False)),
    2: zlib.compress(PLAIN),
    3: bytes(cramjam.zstd.compress(PLAIN)),
    4: bytes(cramjam.snappy.compress_raw(PLAIN)),
}


@pytest.mark.parametrize("codec", PACKED)
def test_every_codec(codec: int) -> None:
    assert decompress(PACKED[codec], codec, len(PLAIN)) == PLAIN


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("payload", [b"", b"nonsense", b"\xff" * 100])
def test_nonsense_is_refused(codec: int, payload: bytes) -> None:
    with pytest.raises(Corrupted):
        decompress(payload, codec, 600)


@pytest.mark.parametrize("codec", CODECS)
def test_sizes_that_do_not_fit_are_refused(codec: int) -> None:
    for size in (-1, 10, len(PLAIN) - 1, len(PLAIN) + 1, SIZE_BYTES_MAX + 1):
        with pytest.raises(Corrupted):
            decompress(PACKED[codec], codec, size)


def test_an_unknown_codec_is_refused() -> None:
    with pytest.raises(Corrupted, match="unknown way"):
        decompress(PLAIN, 9, len(PLAIN))
