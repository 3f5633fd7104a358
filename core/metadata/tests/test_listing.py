"""Lists of children: right whatever the tree looks like, in steps, and in nobody's way."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
import trio

from magnetar.core.metadata import schema
from magnetar.core.metadata.embedded import EmbeddedMetadata, open_embedded
from magnetar.core.metadata.listing import KEPT_NAMES_MAX, PATHS_PER_REST, Listings
from magnetar.core.ports.metadata_store import ABSENT
from magnetar.core.testing.turns import counted_turns

NUMBER = 4 * PATHS_PER_REST + 1


async def put_all(store: EmbeddedMetadata, paths: list[str]) -> None:
    async with trio.open_nursery() as nursery:
        for each in paths:
            nursery.start_soon(store.put, each, b"", ABSENT)


def leaves(number: int) -> list[str]:
    return [f"/n/{number:05}"]


def pairs(number: int) -> list[str]:
    return [f"/n/{number:05}", f"/n/{number:05}/below"]


def mostly_below(number: int) -> list[str]:
    """The first child has a thousand below it, and its name is the beginning of others."""
    return [f"/n/a/{number:05}", f"/n/a-{number % 10}/x", f"/n/b{number % 700:03}/{number}"]


@pytest.mark.parametrize("tree", [leaves, pairs, mostly_below])
async def test_children_of_trees(tmp_path: Path, tree: Callable[[int], list[str]]) -> None:
    paths = [path for number in range(NUMBER) for path in tree(number)]
    async with open_embedded(tmp_path / "metadata", sync=False) as store:
        await put_all(store, [*dict.fromkeys(paths), "/m/x", "/n0", "/o"])
        expected = sorted({path.split("/")[2] for path in paths})
        async with counted_turns() as turns:
            assert await store.children("/n") == expected
            assert turns.count >= 2
        assert await store.children("/nothing") == []


async def test_behind_jumps_are_those_that_begin_like_the_last_child(tmp_path: Path) -> None:
    """The last path of the first page is a child, and the next ones begin with its name."""
    path = tmp_path / "metadata"
    writer = schema.connect(path)
    below = [f"/n/x/{number:05}" for number in range(PATHS_PER_REST - 2)]
    last = ["/n/x", "/n/y", "/n/y-1", "/n/y-partition-0", "/n/y/c", "/n/z"]
    writer.executemany(schema.PUT, [(each, b"", 0, 0) for each in (*below, *last)])
    listings = Listings(partial(schema.connect_reader, path))
    assert await listings.children("/n") == ["x", "y", "y-1", "y-partition-0", "z"]
    listings.close()
    writer.close()


async def test_what_is_written_during_a_list_is_read_at_once_and_not_listed(
    tmp_path: Path,
) -> None:
    path = tmp_path / "metadata"
    writer, connect = schema.connect(path), partial(schema.connect_reader, path)
    names = [f"{number:05}" for number in range(NUMBER)]
    writer.executemany(schema.PUT, [(f"/n/{name}", b"", 0, 0) for name in names])
    listings, reader = Listings(connect), connect()
    found: list[list[str]] = []

    async def listed() -> None:
        found.append(await listings.children("/n"))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(listed)
        for _ in range(2):  # after these it has begun, and is not done
            await trio.lowlevel.checkpoint()
        assert not found
        with listings.moving("/n/z"):
            writer.execute(schema.PUT, ("/n/z", b"late", 1, 0))
        assert reader.execute(schema.GET, ("/n/z",)).fetchall() == [(b"late", 1)]
        assert await listings.children("/n") == [*names, "z"]
    assert found == [names]
    assert await listings.children("/n") == [*names, "z"]
    for each in (listings, reader, writer):
        each.close()


async def test_a_list_that_is_given_up_holds_nothing(tmp_path: Path) -> None:
    path = tmp_path / "metadata"
    writer = schema.connect(path)
    writer.executemany(schema.PUT, [(f"/n/{each}", b"", 0, 0) for each in range(NUMBER)])
    listings = Listings(partial(schema.connect_reader, path))
    with trio.CancelScope() as scope:
        scope.cancel()
        await listings.children("/n")
    assert scope.cancelled_caught
    writer.execute(schema.PUT, ("/n/z", b"late", 1, 0))
    assert len(await listings.children("/n")) == NUMBER + 1
    listings.close()
    writer.close()


async def test_a_long_list_is_kept_until_a_path_is_made_or_deleted(tmp_path: Path) -> None:
    names = [f"{number:05}" for number in range(NUMBER)]
    async with open_embedded(tmp_path / "metadata", sync=False) as store:
        await put_all(store, [f"/n/{name}" for name in names])
        assert await store.children("/n") == names
        await store.put("/n/00000", b"new", 0)
        await store.put("/other", b"", ABSENT)
        async with counted_turns() as turns:
            (await store.children("/n")).clear()
            assert await store.children("/n") == names, "what was given is the caller's"
            assert turns.count == 0, "nothing was read"
        await store.put("/n/a/below", b"", ABSENT)
        assert await store.children("/n") == [*names, "a"]
        await store.lease("/n/b", b"", lambda: None)
        assert await store.children("/n") == [*names, "a", "b"]
        await store.delete("/n/a/below", 0)
        assert await store.children("/n") == [*names, "b"]


async def test_a_list_is_not_kept_that_was_read_while_a_path_was_made(tmp_path: Path) -> None:
    path = tmp_path / "metadata"
    writer = schema.connect(path)
    names = [f"{number:05}" for number in range(NUMBER)]
    writer.executemany(schema.PUT, [(f"/n/{name}", b"", 0, 0) for name in names])
    listings = Listings(partial(schema.connect_reader, path))
    with listings.moving("/n/z"):
        assert await listings.children("/n") == names
        writer.execute(schema.PUT, ("/n/z", b"late", 1, 0))
    assert await listings.children("/n") == [*names, "z"]
    listings.close()
    writer.close()


async def test_kept_lists_are_bounded(tmp_path: Path) -> None:
    """The list that was asked for longest ago is read again."""
    path = tmp_path / "metadata"
    writer = schema.connect(path)
    places = range(KEPT_NAMES_MAX // NUMBER + 1)
    names = [f"{number:05}" for number in range(NUMBER)]
    for place in places:
        writer.executemany(schema.PUT, [(f"/{place}/{name}", b"", 0, 0) for name in names])
    listings = Listings(partial(schema.connect_reader, path))
    turns_of = []
    for place in (*places, *reversed(places)):
        async with counted_turns() as turns:
            assert await listings.children(f"/{place}") == names
            turns_of.append(turns.count)
    assert [place for place in places if not turns_of[-1 - place]] == list(places)[1:]
    assert turns_of[-1]
    listings.close()
    writer.close()
