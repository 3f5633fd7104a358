"""A message's payload before compression, by the codecs of Pulsar's `CompressionType`. Pure.

The metadata states beside the payload how large it was; LZ4 and Snappy are bare blocks.

Invariant: the stated size is believed only up to a limit.
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
    return zlib.decompressobj().decompress(payload, size + 1)  # one more, to see that it is more


def _zstd(payload: bytes, size: int) -> bytes:
    room = bytearray(size)
    return bytes(memoryview(room)[: cramjam.zstd.decompress_into(payload, room)])


# of this one the size within the payload decides what is allocated, so that must be right as well


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
"""By the number in a message's metadata."""


def decompress(payload: bytes, codec: int, size: int) -> bytes:
    """`size` is what the metadata says of it uncompressed."""
    if codec == NONE:
        return payload
    if codec not in CODECS:
        raise Corrupted(f"the message is compressed in an unknown way, {codec}")
    if size > SIZE_BYTES_MAX:
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
    """As Pulsar's clients do it."""
    return bytes(cramjam.lz4.compress_block(payload, store_size=False))
