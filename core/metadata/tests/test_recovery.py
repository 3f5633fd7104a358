"""What a start makes of each damage: nothing acknowledged is missing, or it refuses."""

import shutil
import sqlite3
from pathlib import Path

import pytest
import trio

from magnetar.core.kernel.errors import Corrupted, StorageFailed
from magnetar.core.metadata import end_mark, files, log_file, schema
from magnetar.core.metadata.embedded import open_embedded
from magnetar.core.metadata.end_mark import SLOT_BYTES
from magnetar.core.metadata.history import Names
from magnetar.core.metadata.tests.stores import (
    copied,
    cut,
    expected,
    flip,
    make,
    opened,
    with_generations,
)
from magnetar.core.testing.metadata import overwrite


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "store").mkdir()
    return tmp_path / "store" / "metadata"


def refused(path: Path, sentence: str = "") -> None:
    before = {file: file.read_bytes() for file in path.parent.iterdir() if ".live" not in file.name}
    with pytest.raises(Corrupted, match=sentence):
        opened(path)
    after = {file: file.read_bytes() for file in path.parent.iterdir() if ".live" not in file.name}
    assert before == after


def test_a_bit_flipped_anywhere_in_the_log_is_refused(path: Path, tmp_path: Path) -> None:
    make(path, 4)
    end = log_file.read(Names(path).log(1)).end
    for at in range(0, end, 3):
        copy = copied(path, tmp_path / "copy")
        flip(Names(copy).log(1), at, at % 8)
        try:
            found = opened(copy)
        except Corrupted as error:
            assert "damaged" in str(error)  # noqa: PT017
        else:  # padding, and the head's spare bytes
            assert found == expected(4)


def test_a_log_cut_anywhere_is_refused(path: Path, tmp_path: Path) -> None:
    make(path, 4)
    end = log_file.read(Names(path).log(1)).end
    for at in range(0, end - 8, 5):
        copy = copied(path, tmp_path / "copy")
        cut(Names(copy).log(1), at)
        refused(copy, "damaged")
        copy = copied(path, tmp_path / "copy")  # as long as it was, with nothing in it
        log = Names(copy).log(1)
        whole = log.read_bytes()
        log.write_bytes(whole[:at] + bytes(len(whole) - at))
        refused(copy, "damaged")


def test_a_torn_tail_is_dropped_at_every_byte(path: Path, tmp_path: Path) -> None:
    """The commit after the last that was counted, as a crash may leave it."""
    make(path, 4)
    counted = copied(path, tmp_path / "counted")
    mark = Names(counted).mark.read_bytes()

    async def one_more() -> None:
        async with open_embedded(path, sync=False) as store:
            await overwrite(store, "/n/4", b"4" * 20)

    start = log_file.read(Names(path).log(1)).end
    trio.run(one_more)
    end = log_file.read(Names(path).log(1)).end
    whole = Names(path).log(1).read_bytes()
    for torn in range(start, end + 1):
        for tail in (bytes(len(whole) - torn), b"\x55" * (len(whole) - torn), b""):
            copy = copied(path, tmp_path / "copy")
            Names(copy).mark.write_bytes(mark)
            Names(copy).log(1).write_bytes(whole[:torn] + tail)
            found = opened(copy)
            assert expected(4).items() <= found.items()
            assert found.items() <= expected(5).items()
            assert opened(copy) == found


def test_a_missing_log_is_refused(path: Path) -> None:
    make(path, 3)
    Names(path).log(1).unlink()
    refused(path, r"\.1\.log is missing")


@pytest.mark.parametrize("generations", [False, True])
def test_a_missing_mark_is_refused(path: Path, monkeypatch, generations: bool) -> None:
    with_generations(path, monkeypatch) if generations else make(path, 3)
    Names(path).mark.unlink()
    refused(path, "nobody knows where")


def test_a_mark_with_one_flipped_bit_costs_nothing(path: Path, tmp_path: Path) -> None:
    make(path, 3)
    for slot in (0, SLOT_BYTES):
        for at in range(40):
            copy = copied(path, tmp_path / "copy")
            flip(Names(copy).mark, slot + at, at % 8)
            assert opened(copy) == expected(3)


def test_a_mark_that_is_cut_or_empty_is_refused_or_costs_nothing(
    path: Path, tmp_path: Path
) -> None:
    make(path, 3)
    for at in (0, 1, 39, 100, SLOT_BYTES, SLOT_BYTES + 43, 2 * SLOT_BYTES - 1):
        copy = copied(path, tmp_path / "copy")
        cut(Names(copy).mark, at)
        if at < 40:
            refused(copy, "nobody knows where")
        else:
            assert opened(copy) == expected(3)


def test_a_mark_of_long_ago_is_refused(path: Path, tmp_path: Path) -> None:
    make(path, 3)
    old = Names(path).mark.read_bytes()
    trio.run(open_and_put, path, 5)
    Names(path).mark.write_bytes(old)
    refused(path, "older than")


async def open_and_put(path: Path, count: int) -> None:
    async with open_embedded(path, sync=False) as store:
        for i in range(count):
            await overwrite(store, "/other", b"%d" % i)


def test_a_log_of_another_time_is_refused(path: Path, tmp_path: Path) -> None:
    make(path, 3)
    other = tmp_path / "other"
    other.mkdir()
    trio.run(open_and_put, other / "metadata", 9)
    shutil.copy(Names(other / "metadata").log(1), Names(path).log(1))
    refused(path, "do not belong together|older than")


def test_a_snapshot_that_is_flipped_or_gone_costs_nothing(
    path: Path, tmp_path, monkeypatch
) -> None:
    """The generation before says the same once more; without it the damage is refused."""
    whole = with_generations(path, monkeypatch)
    size = Names(path).snapshot(2).stat().st_size
    for at in [None, 0, *range(7, size, 997), size - 1]:
        copy = copied(path, tmp_path / "copy")
        if at is None:
            Names(copy).snapshot(2).unlink()
        else:
            flip(Names(copy).snapshot(2), at)
        lonely = copied(copy, tmp_path / "lonely")
        Names(lonely).log(1).unlink()
        refused(lonely, r"\.2\.db is (damaged|missing)")
        assert opened(copy) == whole
        assert Names(copy).generations() == [2, 3]
        assert opened(copy) == whole


def test_a_log_deleted_behind_a_snapshot_is_refused(path: Path, monkeypatch) -> None:
    with_generations(path, monkeypatch)
    Names(path).log(2).unlink()
    refused(path, r"\.2\.log is missing")


def test_all_of_a_generation_deleted_is_refused(path: Path, monkeypatch) -> None:
    with_generations(path, monkeypatch)
    Names(path).remove(2)
    refused(path, r"\.2\.log is missing")


# -- taking over ---------------------------------------------------------------------------------


def former(path: Path) -> None:
    connection = schema.connect(path)
    for name, value in expected(5).items():
        connection.execute(schema.PUT, (f"/n/{name}", value, 3, 0))
    connection.execute(schema.PUT, ("/leased", b"", 0, 1))
    connection.execute(schema.COUNT, ("/counter", 200))
    connection.close()


async def looked(path: Path) -> None:
    async with open_embedded(path, sync=False) as store:
        found = await store.get("/n/1")
        assert found is not None
        assert found.version == 3
        assert await store.get("/leased") is None
        assert await store.next("/counter") == 200
        await overwrite(store, "/n/new", b"")


def test_a_former_store_is_taken_over_once(path: Path) -> None:
    former(path)
    trio.run(looked, path)
    assert not path.exists()
    assert opened(path) == expected(5) | {"new": b""}


def test_a_former_store_is_gone_for_good_before_anything_is_committed(path, monkeypatch) -> None:
    """Back after a power failure, it would lie beside a history that has gone on."""
    former(path)
    steps = []
    sync_path, write_at = files.sync_path, files.write_at

    def synced(target: Path) -> None:
        sync_path(target)
        if target == path.parent and not path.exists():
            steps.append("gone")

    def written(*given, **more) -> None:
        steps.append("written")
        write_at(*given, **more)

    monkeypatch.setattr(files, "sync_path", synced)
    monkeypatch.setattr(files, "write_at", written)

    async def put() -> None:
        async with open_embedded(path) as store:
            await overwrite(store, "/n/new", b"")

    trio.run(put)
    assert steps[0] == "gone"


def test_a_taking_over_that_is_cut_short_is_done_again(path: Path, monkeypatch, tmp_path) -> None:
    """Killed before and after each step that changes a name."""
    former(path)
    whole = copied(path, tmp_path / "whole")
    points = []
    replace, unlink = Path.replace, Path.unlink

    def point() -> None:
        points.append(copied(path, tmp_path / f"point-{len(points)}"))

    def replacing(self, target):
        point()
        result = replace(self, target)
        point()
        return result

    def unlinking(self, missing_ok=False):
        there = self.exists()
        unlink(self, missing_ok=missing_ok)
        if there and ".live" not in self.name:
            point()

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", replacing)
        patch.setattr(Path, "unlink", unlinking)
        trio.run(looked, path)
    assert len(points) > 4
    for copy in [whole, *points]:
        trio.run(looked, copy)
        assert not copy.exists()


def test_a_backup_beside_a_living_store_is_not_thrown_away(path: Path) -> None:
    make(path, 3)
    former(path)
    with pytest.raises(StorageFailed, match="which is the metadata"):
        opened(path)
    assert sqlite3.connect(path).execute("SELECT count(*) FROM node").fetchone() == (6,)


def test_a_second_process_is_refused(path: Path) -> None:
    async def two() -> None:
        async with open_embedded(path, sync=False) as store:
            with pytest.raises(StorageFailed, match="in use"):
                async with open_embedded(path, sync=False):
                    raise AssertionError
            await overwrite(store, "/a", b"")

    trio.run(two)


def test_what_the_mark_says_after_a_crash_before_it(path: Path, tmp_path: Path) -> None:
    """A commit that nobody was told of counts, and from then on is not lost either."""
    make(path, 3)
    before = Names(path).mark.read_bytes()
    end = end_mark.read(Names(path).mark)
    trio.run(open_and_put, path, 1)
    Names(path).mark.write_bytes(before)
    opened(path)
    assert end is not None
    found = end_mark.read(Names(path).mark)
    assert found is not None
    assert found.number == end.number + 1
