"""Finds messages that no consumer can read: batches with missing or overlong messages, and payloads
that cannot be uncompressed.

Apache's broker does not check this. But consumers parse an entry as its metadata describes it: the
C++ client (and so Python's) reads beyond its memory or crashes, Go's panics, and Java's drops the
connection and receives the same entry again and again (3.13, 0.18 and 4.0, tried). Encrypted
payloads and chunks of large messages are not checked, because they cannot be; nor are payloads that
are large once uncompressed, by themselves or for their size, because that would block the loop.

Invariant: no message of a stock client is reported as malformed, nor any whose metadata is not
understood here. `suspects` and `holds` have compiled twins.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from struct import Struct as Layout
from typing import Final

from magnetar.core.entry.pulsar.compression import CODECS, decompress
from magnetar.core.kernel.errors import Corrupted
from magnetar.core.kernel.varints import number_at, varint_end
from magnetar.core.native import quickest

HOME: Final = "magnetar.wire.pulsar.hot.compiled.reading"
UNCOMPRESSED_BYTES_MAX: Final = 256 * 1024
"""Larger payloads are not checked: twice the size of a batch by the defaults of stock clients."""
UNCOMPRESSED_BYTES_MIN: Final = 4 * 1024
UNCOMPRESSED_RATIO: Final = 16
"""A payload that claims more than that, and more than this many times its compressed size, is not
checked either: a hundred bytes may claim 256 KiB, and thousands of such messages may come at once.
"""
CHECKSUM_PART: Final = b"\x0e\x01"
CHECKSUM_BYTES: Final = 6
ENCRYPTION_KEYS: Final = 13 << 3 | 2
COMPRESSION: Final = 8 << 3
UNCOMPRESSED_SIZE: Final = 9 << 3
COUNT: Final = 11 << 3
"""The tag of `num_messages_in_batch` in MessageMetadata: only batches have it."""
CHUNKS: Final = 27 << 3
PAYLOAD_SIZE: Final = 3 << 3
"""The tag of `payload_size` in SingleMessageMetadata."""
PAYLOAD_BYTES_MAX: Final = (1 << 31) - 1
_TAGS: Final = (bytes((COUNT,)), bytes((COMPRESSION,)))
_SIZE: Final = Layout(">I").unpack_from
_KINDS: Final = {0: 0, 1: 8, 2: 0, 5: 4}
"""Bytes of a field by its wire type, if that determines it."""


def malformed(payloads: Sequence[bytes]) -> list[int]:
    """The places of messages that no consumer can read."""
    return [at for at in suspects(payloads) if not _is_readable(payloads[at])]


def py_suspects(payloads: Sequence[bytes]) -> list[int]:
    """The places of malformed batches, and of compressed messages."""
    return [at for at, payload in enumerate(payloads) if _is_suspect(payload)]


def _is_suspect(tail: bytes) -> bool:
    begin, end = _metadata(tail)
    if not begin or not any(tail.find(tag, begin, end) >= 0 for tag in _TAGS):
        return False
    found = _about(tail, begin, end)
    if found is None:
        return False
    count, codec, _ = found
    return codec > 0 or count > PAYLOAD_BYTES_MAX or (count > 0 and not holds(tail, end, count))


def _is_readable(tail: bytes) -> bool:
    begin, end = _metadata(tail)
    found = _about(tail, begin, end)
    if found is None:
        return True
    count, codec, size = found
    if count > PAYLOAD_BYTES_MAX:  # C++ reads a negative number as 0, Java as an error
        return False
    if codec in CODECS:
        likely = max(UNCOMPRESSED_RATIO * (len(tail) - end), UNCOMPRESSED_BYTES_MIN)
        if not 0 < size <= min(likely, UNCOMPRESSED_BYTES_MAX):
            return True
        try:
            tail, end = decompress(tail[end:], codec, size), 0
        except Corrupted:
            return False
    elif codec:
        return True
    return not count or holds(tail, end, count)


def _metadata(tail: bytes) -> tuple[int, int]:
    """Begin and end of the metadata; (0, 0) if there is none."""
    at = CHECKSUM_BYTES if tail.startswith(CHECKSUM_PART) else 0
    if len(tail) < at + 4:
        return 0, 0
    end = at + 4 + _SIZE(tail, at)[0]
    return (at + 4, end) if end <= len(tail) else (0, 0)


def _about(tail: bytes, begin: int, end: int) -> tuple[int, int, int] | None:
    """The number of messages (0 for no batch), the codec, and the uncompressed size; None if the
    payload is not checked.
    """
    count = codec = size = 0
    for tag, number in _fields(tail, begin, end):
        if tag < 0 or tag == ENCRYPTION_KEYS or (tag == CHUNKS and number):
            return None
        if tag == COUNT:
            count = number
        elif tag == COMPRESSION:
            codec = number
        elif tag == UNCOMPRESSED_SIZE:
            size = number
    return count, codec, size


def py_holds(data: bytes, at: int, count: int) -> bool:
    """Whether a batch has that many messages; bytes after them do not matter."""
    for _ in range(count):
        if len(data) - at < 4:
            return False
        begin = at + 4
        end = begin + _SIZE(data, at)[0]
        if end > len(data):
            return False
        size = -1
        for tag, number in _fields(data, begin, end):
            if tag < 0:
                return False
            if tag == PAYLOAD_SIZE:
                size = number
        if not 0 <= size <= min(len(data) - end, PAYLOAD_BYTES_MAX):
            return False
        at = end + size
    return True


suspects = quickest(py_suspects, HOME)
holds = quickest(py_holds, HOME)


def _fields(data: bytes, at: int, end: int) -> Iterator[tuple[int, int]]:
    """Tags, and the values of varint fields; a tag of -1 where parsing fails."""
    while at < end:
        behind = varint_end(data, at, end)
        tag = number_at(data, at, behind) if behind else -1
        kind, number = tag & 7, 0
        at = behind
        if tag < 8 or kind not in _KINDS:
            yield -1, 0
            return
        if kind in (0, 2):
            number, at = _number(data, at, end)
            if at and kind == 2:
                at += number
        else:
            at += _KINDS[kind]
        if not at or at > end:
            yield -1, 0
            return
        yield tag, number


def _number(data: bytes, at: int, end: int) -> tuple[int, int]:
    """A varint and the offset after it; offset 0 if there is none. Negative numbers have ten bytes,
    and count as the largest.
    """
    behind = varint_end(data, at, end)
    if behind:
        return number_at(data, at, behind), behind
    if end - at >= 10 and min(data[at : at + 9]) > 127 and data[at + 9] == 1:
        return 1 << 63, at + 10
    return 0, 0
