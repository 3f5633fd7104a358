"""Journal bytes: the layout that was observed on a stock bookie, and laws."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnetar.bookie.format import journal as journal_format


def test_padding_as_observed():
    # A record of 40 at 512, one of 136 at 556: padding at 696 says 320, the next group is at 1024.
    padding = journal_format.padding(696)
    assert padding[:8] == (-0x100).to_bytes(4, "big", signed=True) + (320).to_bytes(4, "big")
    assert 696 + len(padding) == 1024


@given(st.integers(512, 2**31))
def test_padding_always_ends_on_a_boundary_and_is_never_nothing(position):
    padding = journal_format.padding(position)
    assert (position + len(padding)) % 512 == 0
    assert 8 <= len(padding) < 8 + 512
    assert journal_format.padding_end(padding, 0, position) == len(padding)


def test_header():
    assert len(journal_format.HEADER) == 512
    assert journal_format.HEADER[:8] == b"BKLG\x00\x00\x00\x06"
    assert journal_format.read_header(journal_format.HEADER)
    assert not journal_format.read_header(bytes(512))
    assert not journal_format.read_header(b"")
    with pytest.raises(ValueError, match="version is 7"):
        journal_format.read_header(b"BKLG\x00\x00\x00\x07".ljust(512, b"\0"))
    with pytest.raises(ValueError, match="begin"):
        journal_format.read_header(b"nonsense".ljust(512, b"\0"))


def test_notes():
    key = journal_format.key_note(7, b"k" * 20)
    assert len(key) == 4 + 40
    assert journal_format.parse_note(key[4:]) == journal_format.Note(
        7, journal_format.KEY, b"k" * 20
    )
    fence = journal_format.fence_note(7)
    assert journal_format.parse_note(fence[4:]) == journal_format.Note(7, journal_format.FENCE, b"")
    assert journal_format.kind(fence, 0) == journal_format.FENCE


def test_padding_of_a_bookie_that_aligns_to_more():
    wide = (
        journal_format.padding(4096 - 100)[:4] + (4096 + 92).to_bytes(4, "big") + bytes(4096 + 92)
    )
    assert journal_format.padding_end(wide, 0, 4096 - 100) == 4096 + 100
    assert journal_format.padding_end(wide[:20], 0, 4096 - 100) == 4096 + 100, (
        "as far as it can be seen"
    )


def test_names_and_marks():
    assert journal_format.file_name(0x1A1FE04C255) == "1a1fe04c255.txn"
    assert journal_format.journal_id("1a1fe04c255.txn") == 0x1A1FE04C255
    mark = journal_format.Mark(3, 1024)
    assert journal_format.decode_mark(mark.encode()) == mark
    assert journal_format.Mark(3, 2048) > mark < journal_format.Mark(4, 512)
    with pytest.raises(ValueError, match="16 bytes"):
        journal_format.decode_mark(b"short")


# -- whole groups ----------------------------------------------------------------------------------

GROUPS = (
    st.lists(st.binary(max_size=400), max_size=6),
    st.integers(0, 1 << 40),
    st.booleans(),
)


@given(*GROUPS)
def test_a_whole_group_is_its_records_and_their_padding(records, position, seals):
    buffer = memoryview(bytearray(b"x" * 8192))
    size = journal_format.py_put_group(buffer, records, position, seals)
    data = b"".join(records)
    assert buffer[: len(data)] == data
    assert (position + size) % journal_format.ALIGNMENT_BYTES == 0
    assert bytes(buffer[size:]) == b"x" * (8192 - size)
    assert journal_format.word(bytes(buffer), len(data)) == journal_format.PADDING
    if seals and data:
        assert journal_format.is_sealed(bytes(buffer[:size]), len(data))


@given(*GROUPS)
def test_whole_groups_alike(records, position, seals):
    compiled = pytest.importorskip(
        "magnetar.bookie.format.compiled", reason="built where there is a C compiler"
    )
    one, other = (memoryview(bytearray(b"x" * 8192)) for _ in range(2))
    size = compiled.put_group(one, records, position, seals)
    assert size == journal_format.py_put_group(other, records, position, seals)
    assert one == other


@pytest.mark.parametrize(
    "room", [bytearray(500), bytearray(0), bytes(1024), memoryview(bytearray(2048))[::2]]
)
def test_the_twin_writes_nothing_beyond_the_buffer(room):
    compiled = pytest.importorskip(
        "magnetar.bookie.format.compiled", reason="built where there is a C compiler"
    )
    with pytest.raises((ValueError, TypeError)):
        compiled.put_group(memoryview(room), [b"a" * 20], 512, True)
    with pytest.raises(TypeError):
        compiled.put_group(room, [b"a", "b"], 512, True)
