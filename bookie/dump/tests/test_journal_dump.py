"""Journals as their parts, whole and damaged."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnetar.bookie.dump.journal_dump import parts_of
from magnetar.bookie.dump.parts import Damage, EntryPart, HeaderPart, NotePart, PaddingPart
from magnetar.bookie.dump.tests.files import KEY, a_journal, changed

JOURNAL = a_journal()


def _told(data: bytes, start: int = 0) -> list[str]:
    """Each part in a word or two."""
    words = {
        HeaderPart: lambda part: f"version {part.version}",
        EntryPart: lambda part: f"{part.ledger}:{part.entry}" + "?" * (not part.crc32c),
        NotePart: lambda part: f"{part.kind} {part.ledger}",
        PaddingPart: lambda part: f"padding {part.seal}".strip(),
        Damage: lambda part: "damage",
    }
    return [words[type(part)](part) for part in parts_of(data, start)]


WHOLE = [
    "version 6", "master key 7", "7:0", "7:1", "7:2", "padding intact",
    "fence 7", "explicit LAC 7", "padding intact", "8:0", "8:1", "7:3", "padding",
]  # fmt: skip


def test_a_whole_journal() -> None:
    assert _told(JOURNAL) == WHOLE
    notes = [part.value for part in parts_of(JOURNAL) if isinstance(part, NotePart)]
    assert notes == [KEY.hex(), "", b"packet".hex()]
    first = next(part for part in parts_of(JOURNAL) if isinstance(part, EntryPart))
    assert (first.last_confirmed, first.length, first.size) == (-1, 40, 76)
    assert JOURNAL[first.offset : first.offset + 4] == (76).to_bytes(4, "big")


def test_from_a_record_on() -> None:
    second = next(part.offset for part in parts_of(JOURNAL) if isinstance(part, NotePart)) + 44
    assert _told(JOURNAL, second) == [*WHOLE[2:5], "padding broken", *WHOLE[6:]], (
        "the group did not begin here"
    )


def test_a_bit_of_a_payload() -> None:
    at = JOURNAL.index(b"entry 1 ")
    told = _told(changed(JOURNAL, at, 0))
    assert told == [*WHOLE[:3], "7:1?", "7:2", "padding broken", *WHOLE[6:]]


def test_a_length_that_leads_nowhere() -> None:
    entry = [part for part in parts_of(JOURNAL) if isinstance(part, EntryPart)][1]
    told = _told(changed(JOURNAL, entry.offset, 0x70))
    assert told == [*WHOLE[:3], "damage", "7:2", "padding broken", *WHOLE[6:]]


def test_a_sector_of_zeros() -> None:
    data = JOURNAL[:512] + bytes(512) + JOURNAL[1024:]
    assert [part for part in _told(data) if part != "damage"] == [WHOLE[0], *WHOLE[6:]]


def test_no_journal() -> None:
    assert _told(b"") == ["damage"]
    assert _told(b"BKLG") == ["damage"]
    assert _told(bytes(512)) == ["damage"]
    assert _told(changed(JOURNAL, 7, 4))[0] == "damage"


@pytest.mark.parametrize("size", range(512, len(JOURNAL), 13))
def test_a_journal_that_is_cut_short(size: int) -> None:
    told = [part for part in _told(JOURNAL[:size]) if part != "damage"]
    assert told[:-1] == WHOLE[: len(told) - 1]


@given(st.integers(512, len(JOURNAL) - 1), st.binary(max_size=40))
def test_a_dump_goes_to_the_end_whatever_is_there(at: int, noise: bytes) -> None:
    data = JOURNAL[:at] + noise + JOURNAL[at + len(noise) :]
    parts = list(parts_of(data))
    offsets = [part.offset for part in parts if not isinstance(part, HeaderPart)]
    assert offsets == sorted(set(offsets))


@given(st.integers(512, JOURNAL.rindex(b"entry 3 ") + 39), st.integers(1, 255))
def test_a_byte_costs_one_entry_at_most(at: int, change: int) -> None:
    told = _told(changed(JOURNAL, at, JOURNAL[at] ^ change))
    entries = [part for part in WHOLE if ":" in part]
    lost = [part for part in entries if part not in told]
    assert len(lost) <= 1
    assert [part for part in told if part in entries] == [
        part for part in entries if part not in lost
    ]
