"""Decompresses payloads by the codecs of Pulsar's `CompressionType`. Pure.

The metadata states the uncompressed size; LZ4 and Snappy are bare blocks without a frame.

Invariant: no more than a limit is allocated, whatever size is stated.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from typing import Final

import cramjam

from magnetar.core.kernel.errors import Corrupted

SIZE_BYTES_MAX: Final = 128 * 1024 * 1024
"""The largest size that metadata may state."""
NONE: Final = 0
LZ4: Final = 1
_FAILURES: Final = (cramjam.DecompressionError, zlib.error)


def _lz4(payload: bytes, size: int) -> bytes:
    room = bytearray(size)
    used = cramjam.lz4.decompress_block_into(payload, room, output_len=size)
    return bytes(room[:used])


def _zlib(payload: bytes, size: int) -> bytes:
    return zlib.decompressobj().decompress(payload, size + 1)  # one byte more, to detect an excess


def _zstd(payload: bytes, size: int) -> bytes:
    room = bytearray(size)
    return bytes(memoryview(room)[: cramjam.zstd.decompress_into(payload, room)])


# Snappy allocates by the size within the payload, so that is checked as well


def _snappy(payload: bytes, size: int) -> bytes:
    if cramjam.snappy.decompress_raw_len(payload) != size:
        return b""
    return bytes(cramjam.snappy.decompress_raw(payload))


CODECS: Final[Mapping[int, tuple[str, Callable[[bytes, int], bytes]]]] = {
    LZ4: ("LZ4", _lz4),
    2: ("ZLIB", _zlib),
    3: ("ZSTD", _zstd),
    4: ("SNAPPY", _snappy),
}
"""The codecs by their number in the metadata."""


def decompress(payload: bytes, codec: int, size: int) -> bytes:
    """Decompress a payload; `size` is its uncompressed size according to the metadata."""
    if codec == NONE:
        return payload
    if codec not in CODECS:
        raise Corrupted(f"the message is compressed in an unknown way, {codec}")
    if not 0 <= size <= SIZE_BYTES_MAX:
        raise Corrupted(f"the message claims to have {size} bytes")
    name, undo = CODECS[codec]
    try:
        found = undo(payload, size)
    except _FAILURES as error:
        raise Corrupted(f"the message is no {name}: {error}") from error
    if len(found) != size:
        raise Corrupted(f"the message has {len(found)} bytes uncompressed and claims {size}")
    return found


def compress_lz4(payload: bytes) -> bytes:
    """Compress as Pulsar's clients do."""
    return bytes(cramjam.lz4.compress_block(payload, store_size=False))
