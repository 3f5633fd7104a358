"""The stored forms of managed ledgers and cursors: Apache Pulsar's (MLDataFormats of 4.2). Pure.

The field numbers are in `formats.proto`. Other brokers may store compressed metadata
(PIP-146); that is read, and never written.

Invariants: decoding encoded values gives the same values; bytes that are no such message raise
`Corrupted`; fields that are not interpreted but must survive (offloading) are preserved as bytes.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Final, Protocol, TypeVar

from google.protobuf.message import DecodeError, Message
from msgspec import Struct

from magnetar.core.kernel.errors import Corrupted
from magnetar.core.kernel.varints import varint
from magnetar.core.ledger import formats_pb2 as stored
from magnetar.core.ledger.log.chain import START, Position

Range = tuple[Position, Position]
"""Open-closed: (the position before the first, the last]."""

INLINE: Final = -1
"""The ledger id of a cursor whose state is in the znode itself."""
UNCOMPRESSED_BYTES_MAX: Final = 256 * 1024 * 1024
RANGES_REMEMBERED: Final = 32 * 1024
"""Encoded ranges in the cache: cursors with many ranges are saved again and again."""

_COMPRESSED: Final = b"\x47\x78"
_METADATA_SIZE = struct.Struct(">i")
_WORD: Final = 1 << 64
_Unpack = Callable[[bytes, int], bytes]
_M = TypeVar("_M", bound=Message)
_V = TypeVar("_V", covariant=True)


class _Pair(Protocol[_V]):
    @property
    def key(self) -> str: ...

    @property
    def value(self) -> _V: ...


class LedgerEntryInfo(Struct, frozen=True):
    """One ledger in the list of a managed ledger."""

    ledger_id: int
    entries: int = 0
    size: int = 0
    closed_ms: int = 0
    """0 while it is open."""
    properties: Mapping[str, str] = {}
    offload_context: bytes = b""
    """The OffloadContext (PIP-17) as another broker wrote it."""


class ManagedLedgerInfo(Struct, frozen=True):
    """The ledgers of one topic, in order."""

    ledgers: Sequence[LedgerEntryInfo] = ()
    terminated: Position | None = None
    """The last position of a terminated topic."""
    properties: Mapping[str, str] = {}


class CursorSnapshot(Struct, frozen=True):
    """The acknowledgements of a cursor."""

    mark_delete: Position = START
    ranges: Sequence[Range] = ()
    bits: Sequence[tuple[Position, int]] = ()
    """For batches acknowledged in part: a 1 for each message that is not yet acknowledged."""
    properties: Mapping[str, int] = {}
    pending: bytes = b""
    """What open transactions acknowledge (`cursor/pending_acks.py`). Pulsar keeps that in a log of
    its own, and its tools pass over the field."""


class ManagedCursorInfo(Struct, frozen=True):
    """One cursor: its state, or the ledger that holds its state."""

    cursors_ledger_id: int = INLINE
    snapshot: CursorSnapshot = CursorSnapshot()
    last_active_ms: int = 0
    cursor_properties: Mapping[str, str] = {}


def encode_managed_ledger(info: ManagedLedgerInfo) -> bytes:
    message = stored.StoredManagedLedger(properties=_pairs(info.properties))
    for ledger in info.ledgers:
        added = message.ledgers.add(
            ledger_id=ledger.ledger_id,
            entries=ledger.entries,
            size=ledger.size,
            timestamp=ledger.closed_ms,
            properties=_pairs(ledger.properties),
        )
        if ledger.offload_context:
            added.offload_context = ledger.offload_context
    if info.terminated is not None:
        message.terminated.CopyFrom(_position(info.terminated))
    return message.SerializeToString()


def decode_managed_ledger(data: bytes) -> ManagedLedgerInfo:
    message = _parse(stored.StoredManagedLedger, data)
    return ManagedLedgerInfo(
        ledgers=tuple(
            LedgerEntryInfo(
                ledger_id=ledger.ledger_id,
                entries=ledger.entries,
                size=ledger.size,
                closed_ms=ledger.timestamp,
                properties=_plain_pairs(ledger.properties),
                offload_context=ledger.offload_context,
            )
            for ledger in message.ledgers
        ),
        terminated=_plain(message.terminated) if message.HasField("terminated") else None,
        properties=_plain_pairs(message.properties),
    )


def encode_snapshot(snapshot: CursorSnapshot) -> bytes:
    """A snapshot as an entry of the cursor's ledger.

    Most ranges were in the last snapshot too, so their bytes are cached: to encode ten thousand of
    them takes 30 ms, for a cursor that may be saved five times a second.
    """
    ledger_id, entry_id = snapshot.mark_delete
    head = stored.StoredSnapshot(ledger_id=ledger_id, entry_id=entry_id)
    rest = stored.StoredSnapshot(
        batches=_batches(snapshot.bits), properties=_longs(snapshot.properties)
    )
    if snapshot.pending:
        rest.pending = snapshot.pending
    return b"".join(
        (
            head.SerializeToString(),
            *map(_range_field, snapshot.ranges),
            rest.SerializePartialToString(),
        )
    )


@lru_cache(RANGES_REMEMBERED)
def _range_field(one: Range) -> bytes:
    """One of the `ranges` of a snapshot as a protobuf field."""
    lower, upper = (
        b"\x08" + varint(ledger_id % _WORD) + b"\x10" + varint(entry_id % _WORD)
        for ledger_id, entry_id in one
    )
    body = b"\x0a%c%b\x12%c%b" % (len(lower), lower, len(upper), upper)
    return b"\x1a%c%b" % (len(body), body)


def decode_snapshot(data: bytes) -> CursorSnapshot:
    message = _parse(stored.StoredSnapshot, data)
    ranges = _plain_ranges(message.ranges)
    for bitmap in message.bitmaps:
        ranges += _runs(bitmap.ledger_id, _mask(bitmap.acked))
    return CursorSnapshot(
        mark_delete=(message.ledger_id, message.entry_id),
        ranges=tuple(ranges),
        bits=_plain_bits(message.batches),
        properties=_plain_pairs(message.properties),
        pending=message.pending,
    )


def encode_cursor(info: ManagedCursorInfo) -> bytes:
    snapshot = info.snapshot
    message = stored.StoredCursor(
        cursors_ledger_id=info.cursors_ledger_id,
        mark_delete_ledger_id=snapshot.mark_delete[0],
        mark_delete_entry_id=snapshot.mark_delete[1],
        ranges=_ranges(snapshot.ranges),
        properties=_longs(snapshot.properties),
        last_active=info.last_active_ms,
        batches=_batches(snapshot.bits),
        cursor_properties=_pairs(info.cursor_properties),
    )
    if snapshot.pending:
        message.pending = snapshot.pending
    return message.SerializeToString()


def decode_cursor(data: bytes) -> ManagedCursorInfo:
    message = _parse(stored.StoredCursor, data)
    mark_delete = START
    if message.HasField("mark_delete_ledger_id"):
        mark_delete = (message.mark_delete_ledger_id, message.mark_delete_entry_id)
    return ManagedCursorInfo(
        cursors_ledger_id=message.cursors_ledger_id,
        snapshot=CursorSnapshot(
            mark_delete=mark_delete,
            ranges=tuple(_plain_ranges(message.ranges)),
            bits=_plain_bits(message.batches),
            properties=_plain_pairs(message.properties),
            pending=message.pending,
        ),
        last_active_ms=message.last_active,
        cursor_properties=_plain_pairs(message.cursor_properties),
    )


# -- parts of messages ------------------------------------------------------------------------


def _position(position: Position) -> stored.StoredPosition:
    return stored.StoredPosition(ledger_id=position[0], entry_id=position[1])


def _plain(position: stored.StoredPosition) -> Position:
    return (position.ledger_id, position.entry_id)


def _pairs(values: Mapping[str, str]) -> list[stored.StringPair]:
    return [stored.StringPair(key=key, value=value) for key, value in values.items()]


def _plain_pairs(pairs: Iterable[_Pair[_V]]) -> dict[str, _V]:
    values = {pair.key: pair.value for pair in pairs}
    # where text is not UTF-8, protobuf hands out bytes in its place
    if any(isinstance(text, bytes) for pair in values.items() for text in pair):
        raise Corrupted("a property in stored metadata is not text")
    return values


def _longs(values: Mapping[str, int]) -> list[stored.LongPair]:
    return [stored.LongPair(key=key, value=value) for key, value in values.items()]


def _ranges(ranges: Iterable[Range]) -> list[stored.StoredRange]:
    return [
        stored.StoredRange(lower=_position(lower), upper=_position(upper))
        for lower, upper in ranges
    ]


def _plain_ranges(ranges: Iterable[stored.StoredRange]) -> list[Range]:
    return [(_plain(one.lower), _plain(one.upper)) for one in ranges]


def _batches(bits: Iterable[tuple[Position, int]]) -> list[stored.StoredBatch]:
    return [
        stored.StoredBatch(position=_position(position), unacked=words_of(mask))
        for position, mask in bits
    ]


def _plain_bits(batches: Iterable[stored.StoredBatch]) -> tuple[tuple[Position, int], ...]:
    return tuple((_plain(batch.position), _mask(batch.unacked)) for batch in batches)


def words_of(mask: int) -> list[int]:
    """A mask as signed 64-bit words, lowest first, as `BitSet.toLongArray` of Java."""
    count = -(-mask.bit_length() // 64)
    return list(struct.unpack(f"<{count}q", mask.to_bytes(8 * count, "little")))


def _mask(words: Sequence[int]) -> int:
    return int.from_bytes(struct.pack(f"<{len(words)}q", *words), "little")


def _runs(ledger_id: int, mask: int) -> list[Range]:
    """Runs of ones as ranges; each step takes a whole run, of any length."""
    runs: list[Range] = []
    start = 0
    while mask:
        zeros = (mask & -mask).bit_length() - 1
        mask >>= zeros
        ones = (~mask & (mask + 1)).bit_length() - 1
        mask >>= ones
        start += zeros
        runs.append(((ledger_id, start - 1), (ledger_id, start + ones - 1)))
        start += ones
    return runs


# -- the compressed form ----------------------------------------------------------------------


def _parse(kind: type[_M], data: bytes) -> _M:
    try:
        message = kind.FromString(_plain_bytes(data))
    except (DecodeError, zlib.error) as error:
        raise Corrupted(f"stored metadata is not a {kind.__name__}: {error}") from error
    if not message.IsInitialized():
        raise Corrupted(f"stored metadata is a {kind.__name__} without its required fields")
    return message


def _plain_bytes(data: bytes) -> bytes:
    """Decompress, if the bytes begin with magic, i32 size of a header, and the header."""
    if not data.startswith(_COMPRESSED):
        return data
    if len(data) < 6:
        raise Corrupted("compressed metadata ends within its header")
    end = 6 + _METADATA_SIZE.unpack_from(data, 2)[0]
    if not 6 <= end <= len(data):
        raise Corrupted("the header of compressed metadata is longer than the metadata")
    head = stored.CompressedHeader.FromString(data[6:end])
    size = head.uncompressed_size
    if not 0 <= size <= UNCOMPRESSED_BYTES_MAX:
        raise Corrupted(f"compressed metadata claims to hold {size} bytes")
    unpack = _UNPACK.get(head.compression)
    if unpack is None:
        raise Corrupted(f"metadata is compressed in the unknown way {head.compression}")
    plain: bytes = unpack(data[end:], size)
    if len(plain) != size:
        raise Corrupted(f"compressed metadata holds {len(plain)} bytes instead of {size}")
    return plain


def _unpack_zlib(data: bytes, size: int) -> bytes:
    # one byte more than promised is enough to see that the promise is broken
    return zlib.decompressobj().decompress(data, size + 1)


def _cramjam(codec: str, function: str, *, sized: bool) -> _Unpack:
    """A decompressor; the library is loaded when the first compressed metadata is read."""

    def unpack(data: bytes, size: int) -> bytes:
        import cramjam

        decompress = getattr(getattr(cramjam, codec), function)
        try:
            return bytes(decompress(data, output_len=size) if sized else decompress(data))
        except cramjam.DecompressionError as error:
            raise Corrupted(f"stored metadata cannot be decompressed: {error}") from error

    return unpack


_UNPACK: Final[dict[int, _Unpack]] = {
    0: lambda data, size: data,
    1: _cramjam("lz4", "decompress_block", sized=True),
    2: _unpack_zlib,
    3: _cramjam("zstd", "decompress", sized=False),
    4: _cramjam("snappy", "decompress_raw", sized=False),
}
