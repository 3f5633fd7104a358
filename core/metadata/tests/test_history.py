"""Killed between any two steps, or out of room: what was told is there, what was refused is not."""

import errno
import sqlite3
from pathlib import Path

import pytest
import trio

from magnetar.core.kernel.errors import StorageFailed, StorageFull
from magnetar.core.metadata import files, history
from magnetar.core.metadata.embedded import open_embedded
from magnetar.core.metadata.history import Names
from magnetar.core.metadata.tests.stores import copied, expected, opened, write
from magnetar.core.testing.metadata import overwrite


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "store").mkdir()
    return tmp_path / "store" / "metadata"


def test_killed_at_any_step_of_commits_and_snapshots(path, tmp_path, monkeypatch) -> None:
    """A copy of the files before and after each write, rename and unlink is what a kill leaves."""
    points: list[tuple[Path, int]] = []
    results = 0

    def point() -> None:
        points.append((copied(path, tmp_path / f"point-{len(points)}"), results))

    def wrapped(owner, name) -> None:
        step = getattr(owner, name)

        def with_points(*arguments, **named):
            point()
            result = step(*arguments, **named)
            point()
            return result

        monkeypatch.setattr(owner, name, with_points)

    async def run() -> None:
        nonlocal results
        async with open_embedded(path, sync=False) as store:
            wrapped(files, "write_at")
            wrapped(files, "write_whole")
            wrapped(files, "checksum")
            wrapped(Names, "remove")
            for i in range(8):
                await overwrite(store, f"/n/{i}", b"%d" % i * 20)
                results = i + 1
                await overwrite(store, "/count", b"%d" % results)

    with monkeypatch.context() as patch:
        monkeypatch = patch
        patch.setattr(history, "LOG_BYTES_MIN", 0)
        patch.setattr(history, "LOG_BYTES_MAX", 700)
        trio.run(run)
    assert Names(path).generations()[-1] >= 3
    assert len(points) > 50
    for copy, count in points:
        found = opened(copy)
        assert expected(count).items() <= found.items(), copy
        assert found.items() <= expected(count + 1).items(), copy
        assert opened(copy) == found


@pytest.mark.parametrize("step", range(6))
def test_out_of_room_at_any_step_nothing_has_happened(path, monkeypatch, step) -> None:
    """Of a write that is refused, nothing shows then or after a start; the next one works."""

    async def run() -> None:
        async with open_embedded(path, sync=False, on_fatal=pytest.fail) as store:
            await overwrite(store, "/a", b"1")
            real, count = files.write_at, 0

            def failing(*arguments, **named):
                nonlocal count
                count += 1
                if count == step + 1 or (step == 5 and count == 2):
                    real(*arguments, **named)
                    raise OSError(errno.ENOSPC, "full")
                real(*arguments, **named)

            with monkeypatch.context() as patch:
                patch.setattr(files, "write_at", failing)
                if step in (0, 1, 5):
                    with pytest.raises(StorageFull):
                        await store.put("/a", b"2", 0)
                    value = await store.get("/a")
                    assert value is not None
                    assert value.version == 0
            await overwrite(store, "/b", b"1")

    trio.run(run)

    async def look() -> None:
        async with open_embedded(path, sync=False) as store:
            value = await store.get("/a")
            assert value is not None
            assert value.version == 0
            assert await store.get("/b") is not None

    trio.run(look)


def test_a_live_tree_without_room_takes_the_commit_back(path, monkeypatch) -> None:
    """SQLite finds out when the history has the commit already."""

    async def run() -> None:
        async with open_embedded(path, sync=False, on_fatal=pytest.fail) as store:
            await overwrite(store, "/a", b"1")
            writer = store._writer

            class Full:
                def execute(self, statement, *values):
                    if statement == "COMMIT":
                        error = sqlite3.OperationalError("full")
                        error.sqlite_errorcode = sqlite3.SQLITE_FULL
                        raise error
                    return writer.execute(statement, *values)

                in_transaction = True

            store._writer = Full()
            with pytest.raises(StorageFull):
                await store.put("/a", b"2", 0)
            store._writer = writer
            assert await overwrite(store, "/b", b"1") == 0

    trio.run(run)

    async def look() -> None:
        async with open_embedded(path, sync=False) as store:
            value = await store.get("/a")
            assert value is not None
            assert value.value == b"1"
            assert await store.get("/b") is not None

    trio.run(look)


def test_an_error_of_the_disk_ends_all_writing(path, monkeypatch) -> None:
    async def run() -> None:
        fatal: list[str] = []
        async with open_embedded(path, sync=False, on_fatal=fatal.append) as store:
            await overwrite(store, "/a", b"1")

            def failing(*_, **__):
                raise OSError(errno.EIO, "broken")

            with monkeypatch.context() as patch:
                patch.setattr(files, "write_at", failing)
                with pytest.raises(StorageFailed, match="any more"):
                    await overwrite(store, "/a", b"2")
            with pytest.raises(StorageFailed, match="any more"):
                await overwrite(store, "/a", b"2")
        assert len(fatal) == 1

    trio.run(run)


def test_a_snapshot_that_finds_no_room_is_made_later(path, monkeypatch, caplog) -> None:
    def full(*_, **__):
        raise OSError(errno.ENOSPC, "full")

    with monkeypatch.context() as patch:
        patch.setattr(history, "CLOSING_LOG_BYTES", 0)
        patch.setattr(history, "write_generation", full)
        trio.run(write, path, 5)
    assert "no snapshot" in caplog.text
    assert Names(path).generations() == [1]
    assert opened(path) == expected(5)


def test_a_large_tree_survives_its_snapshots(path, monkeypatch) -> None:
    monkeypatch.setattr(history, "LOG_BYTES_MIN", 20_000)
    monkeypatch.setattr(history, "LOG_BYTES_MAX", 30_000)
    trio.run(write, path, 300, 0, 100)
    names = Names(path)
    assert names.generations()[-1] >= 3
    assert len(names.generations()) == 2
    assert opened(path) == expected(300, 100)
    left = {file.name for file in path.parent.iterdir()}
    assert not {name for name in left if name.endswith((".new", "-journal"))}
