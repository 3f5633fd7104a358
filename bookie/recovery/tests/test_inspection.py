"""What an index must show before it is used: each row of the table at the head of the module."""

from __future__ import annotations

import random

import pytest

from magnetar.bookie.format.journal import Mark
from magnetar.bookie.recovery.inspection import open_index, throw_away
from magnetar.bookie.server.directories import Directories, make_directories, write_last_mark
from magnetar.bookie.server.index import wear
from magnetar.bookie.server.small_files import write_whole
from magnetar.core.kernel.errors import Corrupted
from magnetar.core.ports.disk import Directory
from magnetar.core.testing.memory_disk import MemoryDisk

NAME = "locations"
LAST_MARK = Mark(7, 100)


class Index:
    """An index with the mark and the last ledger that a test chooses."""

    def __init__(self, mark: Mark | None, last_ledger: int = -1, damage: str = "") -> None:
        self._mark, self._last_ledger, self._damage = mark, last_ledger, damage
        self.closed = False

    def mark(self) -> Mark | None:
        if self._damage:
            raise Corrupted(self._damage)
        return self._mark

    def last_ledger(self) -> int:
        return self._last_ledger

    def close(self) -> None:
        self.closed = True
        if self._damage:
            raise RuntimeError(self._damage)


@pytest.fixture
def directories() -> Directories:
    """Of a bookie that has started before."""
    found = make_directories(MemoryDisk().directory("/bookie"))
    write_last_mark(found, LAST_MARK)
    return found


def inspected(
    directories: Directories, index: Index, *, marked: bool = True
) -> tuple[bool, list[bool]]:
    """Whether the index must be rebuilt, and for each time it was opened whether it was new."""
    directory = directories.ledgers.directory(NAME)
    write_whole(directory, "CURRENT", b"MANIFEST-1")
    fresh: list[bool] = []

    def make(found: Directory) -> Index:
        fresh.append("CURRENT" not in found.names())
        return Index(None) if fresh[-1] else index

    _, rebuilt = open_index(NAME, make, directories, marked=marked)
    assert index.closed is rebuilt
    return rebuilt, fresh


@pytest.mark.parametrize(
    ("index", "marked"),
    [
        (Index(LAST_MARK), True),
        (Index(None, last_ledger=3), False),
    ],
    ids=["its mark is lastMark", "no version has put a mark yet"],
)
def test_a_sound_index_is_opened_once(directories: Directories, index: Index, marked: bool) -> None:
    assert inspected(directories, index, marked=marked) == (False, [False])


@pytest.mark.parametrize(
    ("index", "marked", "reason"),
    [
        (Index(None, damage="bad block"), True, "the index locations is damaged: bad block"),
        (Index(None, last_ledger=3), True, "has lost what was in it"),
        (Index(None), False, "has lost what was in it"),
        (Index(Mark(7, 99)), True, "is older than lastMark"),
        (Index(Mark(8, 0)), True, "belongs to another journal, 8"),
    ],
)
def test_a_worn_index_is_replaced(
    directories: Directories,
    index: Index,
    marked: bool,
    reason: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    assert inspected(directories, index, marked=marked) == (True, [False, True])
    assert reason in caplog.text
    assert "it is rebuilt" in caplog.text


def test_a_note_of_wear_is_enough(directories: Directories) -> None:
    wear.note(directories.ledgers.directory(NAME), "table 9 is damaged")
    index = Index(LAST_MARK)
    index.closed = True  # it is not even opened
    assert inspected(directories, index) == (True, [True])
    assert not wear.reason(directories.ledgers, NAME)


@pytest.mark.parametrize("started", [True, False])
def test_an_index_may_only_be_missing_before_the_first_start(started: bool) -> None:
    directories = make_directories(MemoryDisk().directory("/bookie"))
    if started:
        write_last_mark(directories, LAST_MARK)
    _, rebuilt = open_index(NAME, lambda _: Index(None), directories, marked=True)
    assert rebuilt is started


def test_a_power_cut_never_removes_the_note_before_the_rest() -> None:
    """An index that is still there after it is noted still; what was moved away is removed."""
    disk = MemoryDisk()
    ledgers = make_directories(disk.directory("/bookie")).ledgers
    write_whole(ledgers.directory(NAME), "CURRENT", b"MANIFEST-1")
    wear.note(ledgers.directory(NAME), "worn")
    noted = disk.steps
    throw_away(ledgers, NAME)
    outcomes = set()
    for steps, after in disk.cuts(random.Random(1).randrange):
        if steps < noted:
            continue
        left = make_directories(after.directory("/bookie")).ledgers
        names = {name for name in left.names() if name.startswith(NAME)}
        if NAME in names:
            assert wear.reason(left, NAME) == "worn"
        throw_away(left, NAME)
        assert not any(name.startswith(NAME) for name in left.names())
        outcomes.add(frozenset(names))
    assert {frozenset({NAME}), frozenset({f"{NAME}.worn"}), frozenset()} == outcomes
