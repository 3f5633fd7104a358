"""MurmurHash3 with 32 bits and seed 0, made non-negative, as Pulsar's clients and brokers use it
(`StickyKeyConsumerSelectorUtils.java` of 4.2, `Murmur3Hash32.java`).

Pure. Keys of messages repeat, so the hashes of short ones are cached; long ones are not, or a
client could fill memory. Only an attacker sends keys of more than a thousand bytes (hashing a
megabyte takes a quarter of a second): for those the checksum is used, which spreads them as well,
though not as another broker would.
"""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import Final

from magnetar.core.kernel.checksum import crc32c

KEYS_CACHED_MAX: Final = 16_384
KEY_BYTES_CACHED_MAX: Final = 64
KEY_BYTES_HASHED_MAX: Final = 1_024
"""Longer keys get their checksum; a key of this size takes a fifth of a millisecond."""

_MASK: Final = 0xFFFFFFFF
_ONE: Final = 0xCC9E2D51
_TWO: Final = 0x1B873593
_WORD = struct.Struct("<I")


def murmur3(data: bytes) -> int:
    """The hash, as Java's `hash & Integer.MAX_VALUE`."""
    if len(data) <= KEY_BYTES_CACHED_MAX:
        return _cached(data)
    if len(data) > KEY_BYTES_HASHED_MAX:
        return crc32c(data) & 0x7FFFFFFF
    return _hash(data)


def _hash(data: bytes) -> int:
    size = len(data)
    whole = size & ~3
    state = 0
    # intermediate values grow beyond 32 bits where only their low bits matter in the end
    for (word,) in _WORD.iter_unpack(data[:whole]):
        word = word * _ONE & _MASK
        state ^= (word << 15 | word >> 17) * _TWO & _MASK
        state = (state << 13 | state >> 19) * 5 + 0xE6546B64 & _MASK
    if whole != size:
        word = int.from_bytes(data[whole:], "little") * _ONE & _MASK
        state ^= (word << 15 | word >> 17) * _TWO & _MASK
    state ^= size
    state = (state ^ state >> 16) * 0x85EBCA6B & _MASK
    state = (state ^ state >> 13) * 0xC2B2AE35 & _MASK
    return (state ^ state >> 16) & 0x7FFFFFFF


_cached = lru_cache(KEYS_CACHED_MAX)(_hash)
