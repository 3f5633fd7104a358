"""EntryPart logs as their parts, whole and damaged."""

from hypothesis import given
from hypothesis import strategies as st

from magnetar.bookie.dump.entry_log_dump import parts_of
from magnetar.bookie.dump.parts import Damage, EntryPart, HeaderPart, LedgersMap
from magnetar.bookie.dump.tests.files import an_entry_log, changed, run

LOG = an_entry_log()
IDS = [(7, 0), (7, 1), (7, 2), (8, 5), (8, 6)]


def _ids(data: bytes) -> list[tuple[int, int]]:
    return [(part.ledger, part.entry) for part in parts_of(data) if isinstance(part, EntryPart)]


def test_a_whole_log() -> None:
    parts = list(parts_of(LOG))
    assert parts[0] == HeaderPart(1, len(LOG) - 56, 2)
    assert _ids(LOG) == IDS
    assert all(part.crc32c for part in parts if isinstance(part, EntryPart))
    assert parts[-1] == LedgersMap(len(LOG) - 56, {7: len(run(7, 0, 3)), 8: len(run(8, 5, 2))})


def test_from_a_record_on() -> None:
    start = 1024 + len(run(7, 0, 2))
    assert [part.entry for part in parts_of(LOG, start) if isinstance(part, EntryPart)] == [2, 5, 6]


def test_damage_is_told_and_passed() -> None:
    at = 1024 + len(run(7, 0, 1))
    data = changed(LOG, at, 0x70)
    assert _ids(data) == [IDS[0], *IDS[2:]]
    damages = [part for part in parts_of(data) if isinstance(part, Damage)]
    assert [(part.offset, part.end) for part in damages] == [(at, 1024 + len(run(7, 0, 2)))]


def test_zeros_are_no_damage() -> None:
    data = LOG[:1024] + bytes(4096) + LOG[1024:]
    assert _ids(data) == IDS
    assert not any(isinstance(part, Damage) for part in parts_of(data))


def test_no_log() -> None:
    for data in (b"", b"BKLO", bytes(1024), changed(LOG, 7, 9)):
        assert isinstance(next(parts_of(data)), Damage)


@given(st.integers(1024, len(LOG)), st.binary(max_size=40))
def test_a_dump_goes_to_the_end_whatever_is_there(at: int, noise: bytes) -> None:
    data = LOG[:at] + noise + LOG[at + len(noise) :]
    parts = list(parts_of(data))
    offsets = [part.offset for part in parts if not isinstance(part, HeaderPart)]
    assert offsets == sorted(set(offsets))


@given(st.integers(1024, len(LOG) - 57), st.integers(1, 255))
def test_a_byte_costs_one_entry_at_most(at: int, change: int) -> None:
    data = changed(LOG, at, LOG[at] ^ change)
    intact = [
        (part.ledger, part.entry)
        for part in parts_of(data)
        if isinstance(part, EntryPart) and part.crc32c
    ]
    hurt = IDS[(at - 1024) // len(run(7, 0, 1))]
    assert intact == [each for each in IDS if each != hurt]
