"""What is lost is said, what is not is there, and nothing is thrown away."""

import shutil
from pathlib import Path

import pytest
import trio

from magnetar.core.kernel.errors import Corrupted
from magnetar.core.metadata import log_file, repair
from magnetar.core.metadata.embedded import open_embedded
from magnetar.core.metadata.history import Names
from magnetar.core.metadata.tests.stores import (
    copied,
    cut,
    expected,
    flip,
    make,
    opened,
    with_generations,
    write,
)
from magnetar.core.testing.metadata import overwrite


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "store").mkdir()
    return tmp_path / "store" / "metadata"


def words(path: Path) -> str:
    said: list[str] = []
    repair.report(repair.examine(path), said.append)
    return "\n".join(said)


async def numbered(path: Path) -> None:
    async with open_embedded(path, sync=False) as store:
        for i in range(6):
            await overwrite(store, f"/n/{i}", b"%d" % i * 20)
        await store.next("/counter")


async def number(path: Path) -> int:
    async with open_embedded(path, sync=False) as store:
        return await store.next("/counter")


def test_a_whole_store_is_said_to_be_whole(path: Path, monkeypatch) -> None:
    with_generations(path, monkeypatch)
    before = {file: file.read_bytes() for file in path.parent.iterdir()}
    assert "whole" in words(path)
    assert {file: file.read_bytes() for file in path.parent.iterdir()} == before


@pytest.mark.parametrize("bit", range(0, 300, 7))
def test_only_the_damaged_commit_is_lost(path: Path, tmp_path: Path, bit: int) -> None:
    trio.run(numbered, path)
    contents = log_file.read(Names(path).log(1))
    start, end = contents.commits[2].end, contents.commits[3].end
    if start + bit >= end - 8:
        return
    flip(Names(path).log(1), start + bit)
    with pytest.raises(Corrupted):
        opened(path)
    found = repair.examine(path)
    assert found.lost == 1
    assert "1 are lost, numbers 4" in words(path)
    repair.accept(path, found)
    whole = expected(6)
    del whole["3"]
    assert opened(path) == whole
    assert trio.run(number, path) > 100  # the one that was lost may have given some
    assert Names(path).log(1).with_name("metadata.1.log.damaged").exists()


@pytest.mark.parametrize("bit", range(0, 8 * 52, 41))
def test_a_first_log_with_a_damaged_head_goes_on_from_nothing(path: Path, bit: int) -> None:
    trio.run(numbered, path)
    flip(Names(path).log(1), bit // 8)
    with pytest.raises(Corrupted):
        opened(path)
    found = repair.examine(path)
    assert found.lost == 0
    repair.accept(path, found)
    assert opened(path) == expected(6)


def test_a_log_that_is_cut_loses_its_end(path: Path) -> None:
    trio.run(numbered, path)
    contents = log_file.read(Names(path).log(1))
    cut(Names(path).log(1), contents.commits[2].end + 5)
    found = repair.examine(path)
    assert found.lost == len(contents.commits) - 3
    assert "numbers 4 to" in words(path)
    repair.accept(path, found)
    assert opened(path) == expected(3)


def test_a_missing_mark_leaves_the_end_unknown(path: Path) -> None:
    trio.run(numbered, path)
    Names(path).mark.unlink()
    assert "not known" in words(path)
    repair.accept(path, repair.examine(path))
    assert opened(path) == expected(6)
    assert trio.run(number, path) > 100_000


def test_a_lost_log_goes_back_to_its_snapshot(path: Path, monkeypatch) -> None:
    """Not to the file, which nobody vouches for any more, but to what is the same."""
    with_generations(path, monkeypatch)
    Names(path).log(2).unlink()
    found = repair.examine(path)
    assert found.lost == 12
    repair.accept(path, found)
    assert opened(path) == expected(6)


def test_what_cannot_be_repaired_says_so(path: Path, tmp_path: Path, monkeypatch) -> None:
    with pytest.raises(Corrupted, match="backup"):
        repair.examine(path)
    with_generations(path, monkeypatch)
    Names(path).snapshot(2).unlink()
    Names(path).log(1).unlink()
    assert "only a backup" in words(path)
    with pytest.raises(Corrupted, match="only a backup"):
        repair.accept(path, repair.examine(path))


def test_a_repair_that_is_cut_short_is_done_again(path: Path, tmp_path: Path, monkeypatch) -> None:
    trio.run(numbered, path)
    contents = log_file.read(Names(path).log(1))
    flip(Names(path).log(1), contents.commits[1].end + 30)
    points = []
    for name in ("rename", "replace"):
        step = getattr(Path, name)

        def with_points(self, target, step=step):
            points.append(copied(path, tmp_path / f"point-{len(points)}"))
            return step(self, target)

        monkeypatch.setattr(Path, name, with_points)
    repair.accept(path, repair.examine(path))
    monkeypatch.undo()
    whole = expected(6)
    del whole["2"]
    assert len(points) > 2
    for copy in points:
        found = repair.examine(copy)
        if found.damage:
            repair.accept(copy, found)
        assert opened(copy) == whole


def test_a_snapshot_that_never_counted_hides_no_later_commit(path: Path, tmp_path: Path) -> None:
    """A crash left it, and another one brought it back after it had been removed."""
    make(path, 3)
    beside = copied(path, tmp_path / "beside")

    async def snapshot() -> None:
        async with open_embedded(beside, sync=False) as store:
            store._history.snapshot(store._writer)

    trio.run(snapshot)
    trio.run(write, path, 3, 3)
    for of in (Names.snapshot, Names.log):
        shutil.copy(of(Names(beside), 2), of(Names(path), 2))
    contents = log_file.read(Names(path).log(1))
    flip(Names(path).log(1), contents.commits[-1].end - 20)
    repair.accept(path, repair.examine(path))
    found = opened(path)
    assert {"3", "4"} <= set(found)
