"""Stores with a known content, copied, damaged and opened again."""

import shutil
from pathlib import Path

import trio

from magnetar.core.metadata import history
from magnetar.core.metadata.embedded import open_embedded
from magnetar.core.metadata.history import Names
from magnetar.core.testing.metadata import overwrite

Values = dict[str, bytes]


async def write(path: Path, count: int, start: int = 0, size: int = 20) -> None:
    """Commits one after the other: /n/<i>, and how many there were."""
    async with open_embedded(path, sync=False) as store:
        for i in range(start, start + count):
            await overwrite(store, f"/n/{i}", b"%d" % i * size)
            await overwrite(store, "/count", b"%d" % (i + 1))


async def content(path: Path) -> Values:
    async with open_embedded(path, sync=False) as store:
        found = {}
        for name in await store.children("/n"):
            value = await store.get(f"/n/{name}")
            assert value is not None
            found[name] = value.value
        counted = await store.get("/count")
        assert counted is None or len(found) in (int(counted.value), int(counted.value) + 1)
        return found


def expected(count: int, size: int = 20) -> Values:
    return {str(i): b"%d" % i * size for i in range(count)}


def copied(path: Path, target: Path) -> Path:
    """The store, elsewhere."""
    if target.exists():
        shutil.rmtree(target)
    target.mkdir()
    for file in path.parent.glob(path.name + "*"):
        shutil.copy(file, target / file.name)
    return target / path.name


def make(path: Path, count: int) -> Values:
    trio.run(write, path, count)
    return expected(count)


def opened(path: Path) -> Values:
    return trio.run(content, path)


def with_generations(path: Path, monkeypatch) -> Values:
    """A store whose second generation has a snapshot and a log with commits."""
    with monkeypatch.context() as patch:
        patch.setattr(history, "CLOSING_LOG_BYTES", 0)
        make(path, 6)
    trio.run(write, path, 6, 6)
    assert Names(path).generations() == [1, 2]
    return expected(12)


def flip(path: Path, at: int, bit: int = 4) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        (byte,) = file.read(1)
        file.seek(at)
        file.write(bytes([byte ^ (1 << bit)]))


def cut(path: Path, at: int) -> None:
    with path.open("r+b") as file:
        file.truncate(at)
