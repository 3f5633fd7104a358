"""Paths that have changed, and a store that does not answer."""

from __future__ import annotations

import pytest
import trio

from magnetar.core.kernel.errors import NotReady
from magnetar.core.metadata.changed_paths import RETRY_SECONDS, ChangedPaths
from magnetar.core.metadata.memory import MemoryMetadata


class Owner:
    """Loads paths, of which some fail and some change nothing."""

    def __init__(self) -> None:
        self.failing: set[str] = set()
        self.loaded: list[str] = []
        self.in_force = 0
        self.paths = ChangedPaths("things", self.load, self.put_in_force, ["/a"])

    async def load(self, path: str) -> bool:
        if path in self.failing:
            raise NotReady("the session is lost")
        self.loaded.append(path)
        return not path.endswith("same")

    def put_in_force(self) -> None:
        self.in_force += 1


async def test_what_changes_is_loaded_and_put_in_force_once() -> None:
    owner, metadata = Owner(), MemoryMetadata()
    owner.paths.follow(metadata, ["/a"])
    await owner.paths.settled()
    assert (owner.loaded, owner.in_force) == (["/a"], 1)
    await metadata.put("/a/b", b"", -1)
    await metadata.put("/elsewhere", b"", -1)
    owner.paths.note("/a/c")
    await owner.paths.settled()
    assert (owner.loaded[1:], owner.in_force) == (["/a/b", "/a/c"], 2)
    owner.paths.note("/a/same")
    await owner.paths.settled()
    assert owner.in_force == 2
    owner.paths.note("/a/b")
    owner.paths.forget(["/a"])
    await owner.paths.settled()
    assert owner.loaded[-1] == "/a/same"


async def test_storage_is_asked_again(
    autojump_clock: object, caplog: pytest.LogCaptureFixture
) -> None:
    """What was loaded before a failure is in force in the end, though the rest changes nothing."""
    owner = Owner()
    owner.failing.add("/b/same")
    owner.paths.note("/b/same")
    with pytest.raises(NotReady):
        await owner.paths.settled()
    assert (owner.loaded, owner.in_force) == (["/a"], 0)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(owner.paths.run)
        await trio.sleep(3.5 * RETRY_SECONDS)
        text = "changed things are not in force, storage is asked again: the session is lost"
        assert [one.message for one in caplog.records].count(text) == 4
        owner.failing.clear()
        await trio.sleep(RETRY_SECONDS)
        assert (owner.loaded, owner.in_force) == (["/a", "/b/same"], 1)
        nursery.cancel_scope.cancel()
