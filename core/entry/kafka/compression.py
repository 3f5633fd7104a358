"""Decompresses records by the codecs of Kafka's `CompressionType`. Pure.

A batch does not state its uncompressed size, so the formats have their own framing: gzip, LZ4
frames, Zstandard, and Snappy in the blocks of the Java client, or bare as other clients write it.

Invariant: no more than the limit is decompressed.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping
from struct import Struct
from typing import Final, NamedTuple

import cramjam

from magnetar.core.kernel.errors import Corrupted

RECORDS_BYTES_MAX: Final = 64 * 1024 * 1024
"""Uncompressed bytes of the records of one batch."""
NONE: Final = 0
_FAILURES: Final = (cramjam.DecompressionError, zlib.error)


class Oversized(Corrupted):
    """The uncompressed records exceed the caller's limit."""


_XERIAL_HEAD: Final = b"\x82SNAPPY\x00"
_XERIAL_HEAD_BYTES: Final = 16
"""The size of the header of snappy-java's framing: magic and two version numbers."""
_XERIAL_VERSIONS: Final = b"\0\0\0\x01" * 2
_XERIAL_BLOCK_BYTES: Final = 32 * 1024
_LZ4_HEAD: Final = b"\x04\x22\x4d\x18\x60\x40\x82"
"""The header of our frames: magic, flags for independent blocks of up to 64 KiB without checksums,
and the header checksum."""
_LZ4_BLOCK_BYTES: Final = 64 * 1024
_LZ4_SIZE: Final = Struct("<I")
_LZ4_AS_IT_IS: Final = 1 << 31
_SIZE: Final = Struct(">I")
_GZIP_WINDOW: Final = 31
_GZIP_MEMBERS_MAX: Final = 64
"""Each member costs as much as 10 KB of data, and the rest is copied. Clients write one."""
_ZSTD_MAGIC: Final = b"\x28\xb5\x2f\xfd"
_ZSTD_HEAD_BYTES_MAX: Final = 18
_ZSTD_LEVEL: Final = 3
"""The default level of Kafka."""
_GUESS: Final = 8
"""The first guess of the compression ratio."""


def _oversized(size_max: int) -> Oversized:
    return Oversized(f"the records have more than {size_max} bytes uncompressed")


def _gunzip(payload: bytes | memoryview, size_max: int) -> bytes:
    found = b""
    for _ in range(_GZIP_MEMBERS_MAX):
        undo = zlib.decompressobj(_GZIP_WINDOW)
        found += undo.decompress(payload, size_max + 1 - len(found))
        if len(found) > size_max:
            raise _oversized(size_max)
        if not undo.eof:
            raise Corrupted("the records are cut off")
        payload = undo.unused_data
        if not payload:
            return found
    raise Corrupted(f"the records are in more than {_GZIP_MEMBERS_MAX} parts")


def _into_room(
    undo: Callable[[bytes | memoryview, bytearray], int],
    payload: bytes | memoryview,
    size_max: int,
) -> bytes:
    """Decompress data of unknown size into growing buffers."""
    size = max(len(payload) * _GUESS, 4096)
    while True:
        room = bytearray(min(size, size_max))
        try:
            return bytes(memoryview(room)[: undo(payload, room)])
        except cramjam.DecompressionError as error:
            said = str(error)  # the error refers to the buffer, and would keep it alive
        if "write whole buffer" not in said or size >= size_max:
            break
        size *= _GUESS
    del room
    if "write whole buffer" not in said:
        raise Corrupted(f"they cannot be uncompressed: {said}")
    raise _oversized(size_max)


def _unframe_lz4(payload: bytes | memoryview, size_max: int) -> bytes:
    return _into_room(cramjam.lz4.decompress_into, payload, size_max)


def _unzstd(payload: bytes | memoryview, size_max: int) -> bytes:
    if _zstd_claims(payload) > size_max:
        raise _oversized(size_max)
    return _into_room(cramjam.zstd.decompress_into, payload, size_max)


def _zstd_claims(payload: bytes | memoryview) -> int:
    """The content size of the first frame; 0 if it is not stated (RFC 8878, 3.1.1.1)."""
    if len(payload) < _ZSTD_HEAD_BYTES_MAX or payload[:4] != _ZSTD_MAGIC:
        return 0
    head = payload[4]
    single = head >> 5 & 1
    bytes_of_size = (single, 2, 4, 8)[head >> 6]
    at = 5 + (not single) + (0, 1, 2, 4)[head & 3]
    claims = int.from_bytes(payload[at : at + bytes_of_size], "little")
    return claims + 256 if bytes_of_size == 2 else claims


def _unsnappy(payload: bytes | memoryview, size_max: int) -> bytes:
    if payload[: len(_XERIAL_HEAD)] != _XERIAL_HEAD:
        return _bare_snappy(payload, size_max, size_max)
    found, at = [], _XERIAL_HEAD_BYTES
    left = size_max
    while at < len(payload):
        if at + _SIZE.size > len(payload):
            raise Corrupted("the records are cut off")
        end = at + _SIZE.size + _SIZE.unpack_from(payload, at)[0]
        if end > len(payload):
            raise Corrupted("the records are cut off")
        found.append(_bare_snappy(payload[at + _SIZE.size : end], left, size_max))
        left -= len(found[-1])
        at = end
    return b"".join(found)


def _bare_snappy(payload: bytes | memoryview, left: int, size_max: int) -> bytes:
    if cramjam.snappy.decompress_raw_len(payload) > left:
        raise _oversized(size_max)
    return bytes(cramjam.snappy.decompress_raw(payload))


def _gzip(records: bytes) -> bytes:
    do = zlib.compressobj(wbits=_GZIP_WINDOW)
    return do.compress(records) + do.flush()


def _blocks_of(records: bytes, size: int) -> Iterator[bytes]:
    return (records[at : at + size] for at in range(0, len(records), size))


def _xerial(records: bytes) -> bytes:
    written = [_XERIAL_HEAD, _XERIAL_VERSIONS]
    for block in _blocks_of(records, _XERIAL_BLOCK_BYTES):
        packed = bytes(cramjam.snappy.compress_raw(block))
        written += _SIZE.pack(len(packed)), packed
    return b"".join(written)


def _frame_lz4(records: bytes) -> bytes:
    """Compress into independent blocks, the only ones that Java's client reads."""
    written = [_LZ4_HEAD]
    for block in _blocks_of(records, _LZ4_BLOCK_BYTES):
        packed = bytes(cramjam.lz4.compress_block(block, store_size=False))
        if len(packed) < len(block):
            written += _LZ4_SIZE.pack(len(packed)), packed
        else:
            written += _LZ4_SIZE.pack(len(block) | _LZ4_AS_IT_IS), block
    written.append(_LZ4_SIZE.pack(0))
    return b"".join(written)


def _in_zstd(records: bytes) -> bytes:
    return bytes(cramjam.zstd.compress(records, level=_ZSTD_LEVEL))


class Codec(NamedTuple):
    """A codec for records."""

    name: str
    do: Callable[[bytes], bytes]
    undo: Callable[[bytes | memoryview, int], bytes]
    """Decompresses up to that many bytes, else raises `Oversized`."""


CODECS: Final[Mapping[int, Codec]] = {
    1: Codec("gzip", _gzip, _gunzip),
    2: Codec("snappy", _xerial, _unsnappy),
    3: Codec("lz4", _frame_lz4, _unframe_lz4),
    4: Codec("zstd", _in_zstd, _unzstd),
}
"""The codecs by their number in a batch's attributes."""


def compress_records(records: bytes, codec: int) -> bytes:
    """Compress as Kafka's Java client does."""
    return records if codec == NONE else _codec_of(codec).do(records)


def decompress_records(
    payload: bytes | memoryview, codec: int, size_max: int | None = None
) -> bytes:
    """Decompress the records of a batch; `Oversized` beyond the limit."""
    if codec == NONE:
        return bytes(payload)
    way = _codec_of(codec)
    try:
        return way.undo(payload, RECORDS_BYTES_MAX if size_max is None else size_max)
    except _FAILURES as error:
        raise Corrupted(f"the records are no {way.name}: {error}") from error


def _codec_of(number: int) -> Codec:
    if number not in CODECS:
        raise Corrupted(f"the records are compressed in an unknown way, {number}")
    return CODECS[number]
