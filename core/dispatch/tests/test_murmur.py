import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnetar.core.dispatch.murmur import KEY_BYTES_CACHED_MAX, KEY_BYTES_HASHED_MAX, murmur3
from magnetar.core.kernel.checksum import crc32c


# the published vectors of MurmurHash3_x86_32 with seed 0, their sign bit removed
@pytest.mark.parametrize(
    ("data", "signed"),
    [
        (b"", 0),
        (b"test", 0xBA6BD213),
        (b"Hello, world!", 0xC0363E43),
        (b"The quick brown fox jumps over the lazy dog", 0x2E4FF723),
        (b"\xff\xff\xff\xff", 0x76293B50),
        (b"\x21\x43\x65\x87", 0xF55B516B),
        (b"\x21\x43\x65", 0x7E4A8634),
        (b"\x21\x43", 0xA0F7B07A),
        (b"\x21", 0x72661CF4),
        (b"\x00\x00\x00\x00", 0x2362F9DE),
    ],
)
def test_published_vectors(data: bytes, signed: int) -> None:
    assert murmur3(data) == signed & 0x7FFFFFFF


def plain(data: bytes) -> int:
    """The algorithm as its author describes it, every step cut to 32 bits."""

    def cut(x: int) -> int:
        return x & 0xFFFFFFFF

    def rotate(x: int, r: int) -> int:
        return cut(x << r) | x >> (32 - r)

    h = 0
    for i in range(0, len(data), 4):
        block = data[i : i + 4]
        k = cut(rotate(cut(int.from_bytes(block, "little") * 0xCC9E2D51), 15) * 0x1B873593)
        h ^= k
        if len(block) == 4:
            h = cut(cut(rotate(h, 13) * 5) + 0xE6546B64)
    h ^= len(data)
    h = cut((h ^ h >> 16) * 0x85EBCA6B)
    h = cut((h ^ h >> 13) * 0xC2B2AE35)
    return (h ^ h >> 16) & 0x7FFFFFFF


@given(
    st.binary(max_size=KEY_BYTES_CACHED_MAX)
    | st.binary(min_size=KEY_BYTES_CACHED_MAX + 1, max_size=KEY_BYTES_HASHED_MAX)
)
def test_short_cuts_change_nothing(data: bytes) -> None:
    assert murmur3(data) == plain(data)


def test_very_long_keys_are_divided_by_their_checksum() -> None:
    """A megabyte took a quarter of a second, with the one loop in it."""
    longest = bytes(range(256)) * (KEY_BYTES_HASHED_MAX // 256)
    assert murmur3(longest) == plain(longest)
    assert murmur3(longest + b"x") == crc32c(longest + b"x") & 0x7FFFFFFF
    assert len({murmur3(longest + bytes((last,))) % 65_536 for last in range(256)}) > 250
