"""What every MetadataStore must do. Implementations run `CHECKS` on a fresh store each."""

from collections.abc import Awaitable, Callable
from typing import Protocol

import pytest
import trio
import trio.testing

from magnetar.core.kernel.errors import AlreadyExists, BadVersion, BrokerError, NotFound
from magnetar.core.ports.metadata_store import ABSENT, MetadataStore, Versioned
from magnetar.core.testing.metadata import overwrite, remove

Check = Callable[[MetadataStore], Awaitable[None]]


async def what_is_put_is_got(store: MetadataStore) -> None:
    assert await store.get("/a/b") is None
    assert await overwrite(store, "/a/b", b"one") == 0
    assert await store.get("/a/b") == Versioned(b"one", 0)
    assert await overwrite(store, "/a/b", b"") == 1
    assert await store.get("/a/b") == Versioned(b"", 1)
    assert await store.get("/a") is None


async def any_bytes_are_kept(store: MetadataStore) -> None:
    value = bytes(range(256)) * 1000
    await overwrite(store, "/a", value)
    assert await store.get("/a") == Versioned(value, 0)


async def absent_means_create(store: MetadataStore) -> None:
    assert await store.put("/a", b"1", ABSENT) == 0
    with pytest.raises(AlreadyExists):
        await store.put("/a", b"2", ABSENT)
    assert await store.get("/a") == Versioned(b"1", 0)


async def a_version_is_written_over_once(store: MetadataStore) -> None:
    with pytest.raises(BadVersion):
        await store.put("/a", b"1", 0)
    await overwrite(store, "/a", b"1")
    assert await store.put("/a", b"2", 0) == 1
    with pytest.raises(BadVersion):
        await store.put("/a", b"3", 0)
    assert await store.get("/a") == Versioned(b"2", 1)


async def writes_without_a_task(store: MetadataStore) -> None:
    """Not every store is able to; one that is says the same as by `put`, and later."""
    outcomes: list[tuple[int, BrokerError | None]] = []
    told = trio.Event()

    def done(version: int, error: BrokerError | None) -> None:
        outcomes.append((version, error))
        told.set()

    await overwrite(store, "/a", b"1")
    if not store.put_at_once("/a", b"2", 0, done):
        assert await store.get("/a") == Versioned(b"1", 0)
        return
    assert outcomes == []
    await told.wait()
    assert outcomes == [(1, None)]
    assert await store.get("/a") == Versioned(b"2", 1)
    told = trio.Event()
    assert store.put_at_once("/a", b"3", 0, done)
    await told.wait()
    assert isinstance(outcomes[1][1], BadVersion)
    assert await store.get("/a") == Versioned(b"2", 1)


async def deletion(store: MetadataStore) -> None:
    with pytest.raises(NotFound):
        await remove(store, "/a")
    await overwrite(store, "/a", b"1")
    await overwrite(store, "/a/child", b"stays")
    with pytest.raises(BadVersion):
        await store.delete("/a", 1)
    await store.delete("/a", 0)
    assert await store.get("/a") is None
    assert await store.get("/a/child") == Versioned(b"stays", 0)
    with pytest.raises(NotFound):
        await store.delete("/a", 0)
    version = await store.put("/a", b"again", ABSENT)
    assert await store.get("/a") == Versioned(b"again", version)
    await remove(store, "/a")
    assert await store.get("/a") is None


async def versions_begin_at_0_again(store: MetadataStore) -> None:
    assert await store.put("/a/b", b"1", ABSENT) == 0
    assert await store.put("/a/b", b"2", 0) == 1
    await store.delete("/a/b", 1)
    assert await store.put("/a/b", b"3", ABSENT) == 0


async def above_others_too(store: MetadataStore) -> None:
    assert await store.put("/a/child", b"stays", ABSENT) == 0
    assert await store.put("/a", b"1", ABSENT) == 0
    await store.delete("/a", 0)
    assert await store.put("/a", b"again", ABSENT) == 0


async def all_that_was_written_is_read(store: MetadataStore) -> None:
    await overwrite(store, "/a", b"1")
    await store.sync()
    assert await store.get("/a") == Versioned(b"1", 0)


async def children_are_one_level_down(store: MetadataStore) -> None:
    assert await store.children("/a") == []
    for path in ("/a/x", "/a/x/deep/er", "/a/only/leads", "/a/x-y", "/a/x0", "/b", "/a", "/ab/c"):
        await overwrite(store, path, b"")
    assert await store.children("/a") == ["only", "x", "x-y", "x0"]
    assert await store.children("/a/x") == ["deep"]
    assert await store.children("/a/x/deep/er") == []
    assert await store.children("/") == ["a", "ab", "b"]
    await remove(store, "/a/x")
    assert await store.children("/a") == ["only", "x", "x-y", "x0"]
    await remove(store, "/a/x/deep/er")
    assert await store.children("/a") == ["only", "x-y", "x0"]


async def names_may_be_anything(store: MetadataStore) -> None:
    odd = ("'; --", 'a"b\\c', "\U0010ffff", "\U0010ffff\U0010ffff")
    names = sorted(["%2F", "é", "日本", "a b", "_", "%", *odd])
    for name in names:
        await overwrite(store, f"/n/{name}", name.encode())
        await overwrite(store, f"/n/{name}/below/\U0010ffff\U0010ffff", b"")
    assert await store.children("/n") == names
    for name in names:
        assert await store.get(f"/n/{name}") == Versioned(name.encode(), 0)


async def many_children(store: MetadataStore) -> None:
    async with trio.open_nursery() as nursery:
        for i in range(300):
            nursery.start_soon(store.put, f"/m/{i:03}", b"", ABSENT)
            nursery.start_soon(store.put, f"/m/{i:03}/cursor", b"", ABSENT)
    assert await store.children("/m") == [f"{i:03}" for i in range(300)]


async def writes_of_one_task_are_in_order(store: MetadataStore) -> None:
    for i in range(20):
        assert await store.put("/a", b"%d" % i, i - 1) == i


async def of_many_writers_one_wins(store: MetadataStore) -> None:
    await overwrite(store, "/a", b"start")
    won: list[int] = []

    async def write(i: int) -> None:
        try:
            await store.put("/a", b"%d" % i, 0)
        except BadVersion:
            return
        won.append(i)

    async with trio.open_nursery() as nursery:
        for i in range(20):
            nursery.start_soon(write, i)
    assert len(won) == 1
    assert await store.get("/a") == Versioned(b"%d" % won[0], 1)


async def a_lease_is_held_once(store: MetadataStore) -> None:
    lost: list[str] = []
    await store.lease("/owner", b"me", lambda: lost.append("me"))
    assert await store.get("/owner") == Versioned(b"me", 0)
    with pytest.raises(AlreadyExists):
        await store.lease("/owner", b"you", lambda: lost.append("you"))
    await remove(store, "/owner")
    await store.lease("/owner", b"you", lambda: lost.append("you"))
    assert lost == [], "who deletes a lease has given it up"


async def numbers_never_repeat(store: MetadataStore) -> None:
    assert [await store.next("/counters/a") for _ in range(3)] == [0, 1, 2]
    assert await store.next("/counters/b") == 0
    seen: list[int] = []

    async def take() -> None:
        seen.extend([await store.next("/counters/a") for _ in range(30)])

    async with trio.open_nursery() as nursery:
        for _ in range(10):
            nursery.start_soon(take)
    assert sorted(seen) == list(range(3, 303))


async def watchers_hear_of_changes(store: MetadataStore) -> None:
    received: list[str] = []
    all_heard: list[str] = []
    end = store.watch("/a", received.append)
    store.watch("/", all_heard.append)
    await overwrite(store, "/a", b"")
    await overwrite(store, "/a/b", b"")
    await overwrite(store, "/ab", b"")
    with pytest.raises(AlreadyExists):
        await store.put("/a/b", b"", ABSENT)
    await remove(store, "/a/b")
    await trio.testing.wait_all_tasks_blocked()
    assert received == ["/a", "/a/b", "/a/b"]
    assert all_heard == ["/a", "/a/b", "/ab", "/a/b"]
    end()
    await overwrite(store, "/a", b"")
    await trio.testing.wait_all_tasks_blocked()
    assert received == ["/a", "/a/b", "/a/b"]


async def a_watcher_may_end_itself(store: MetadataStore) -> None:
    received: list[str] = []

    def once(path: str) -> None:
        received.append(path)
        end()

    end = store.watch("/a", once)
    await overwrite(store, "/a", b"")
    await overwrite(store, "/a", b"")
    await trio.testing.wait_all_tasks_blocked()
    assert received == ["/a"]


class Expiring(MetadataStore, Protocol):
    """A store whose session a test can end."""

    def expire(self) -> None: ...


async def a_lost_lease_is_told_of_before_anybody_can_take_it(store: Expiring) -> None:
    results: list[str] = []
    changed: list[str] = []

    def lost(path: str) -> None:
        assert not changed, "nobody has seen the path change, so nobody can have taken it"
        results.append(path)

    await store.lease("/owner", b"me", lambda: lost("/owner"))
    await store.lease("/other", b"me", lambda: lost("/other"))
    await store.lease("/given-up", b"me", lambda: lost("/given-up"))
    await remove(store, "/given-up")
    await overwrite(store, "/stays", b"")
    store.watch("/", changed.append)
    store.expire()
    await trio.testing.wait_all_tasks_blocked()
    assert results == ["/owner", "/other"]
    assert changed == ["/owner", "/other"]
    assert await store.children("/") == ["stays"]
    store.expire()
    await store.lease("/owner", b"you", lambda: lost("never"))
    assert results == ["/owner", "/other"], "once"


LEASE_CHECKS: list[Callable[[Expiring], Awaitable[None]]] = [
    a_lost_lease_is_told_of_before_anybody_can_take_it
]
"""Of stores whose session can be ended by a test."""
TREE_CHECKS: list[Check] = [above_others_too]
"""Of stores that count no version for a path that only leads to others: ZooKeeper does."""
CHECKS: list[Check] = [
    what_is_put_is_got,
    any_bytes_are_kept,
    absent_means_create,
    a_version_is_written_over_once,
    writes_without_a_task,
    deletion,
    versions_begin_at_0_again,
    all_that_was_written_is_read,
    children_are_one_level_down,
    names_may_be_anything,
    many_children,
    writes_of_one_task_are_in_order,
    of_many_writers_one_wins,
    a_lease_is_held_once,
    numbers_never_repeat,
    watchers_hear_of_changes,
    a_watcher_may_end_itself,
]
