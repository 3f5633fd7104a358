import os
import queue
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from magnetar.core.kernel.errors import (
    AlreadyExists,
    BadVersion,
    BrokerError,
    NotFound,
    StorageFailed,
    StorageFull,
)
from magnetar.core.metadata import embedded, end_mark, schema
from magnetar.core.metadata.embedded import (
    VALUES_PER_REST,
    Versions,
    open_embedded,
)
from magnetar.core.metadata.history import Names
from magnetar.core.metadata.listing import KEPT_MIN
from magnetar.core.metadata.schema import NUMBERS_RESERVED
from magnetar.core.ports.metadata_store import ABSENT, Versioned
from magnetar.core.testing.metadata import ignore_loss, overwrite
from magnetar.core.testing.turns import counted_turns

pytest.register_assert_rewrite("magnetar.core.ports.tests.contract_metadata_store")

from magnetar.core.ports.tests import contract_metadata_store as contract  # noqa: E402 (after the rewrite)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "metadata.db"


@pytest.mark.parametrize(
    "check", contract.CHECKS + contract.TREE_CHECKS, ids=lambda check: check.__name__
)
async def test_contract(check: contract.Check, path: Path) -> None:
    async with open_embedded(path, sync=False) as store:
        await check(store)


async def test_everything_but_leases_survives(path: Path) -> None:
    async with open_embedded(path) as store:
        await overwrite(store, "/a", b"one")
        await overwrite(store, "/a", b"two")
        await store.lease("/held", b"me", ignore_loss)
        assert [await store.next("/counter") for _ in range(3)] == [0, 1, 2]
    async with open_embedded(path) as store:
        assert await store.get("/a") == Versioned(b"two", 1)
        assert await store.get("/held") is None
        assert await store.next("/counter") == 3
        with pytest.raises(BadVersion):
            await store.put("/a", b"three", 0)


async def test_a_counter_that_could_not_be_asked_is_not_set_back(path: Path) -> None:
    """A full disk, or an impatient caller: numbers given before must never come again."""
    async with open_embedded(path, sync=False) as store:
        given = [await store.next("/counter") for _ in range(150)]
    async with open_embedded(path, sync=False) as store:
        with trio.CancelScope() as scope:
            scope.cancel()
            await store.next("/counter")
    async with open_embedded(path, sync=False) as store:
        assert await store.next("/counter") > max(given)


async def test_numbers_taken_while_the_store_closes_are_not_given_back(path: Path) -> None:
    """The reservation is on the disk, and its caller has not been told yet."""
    numbers: list[int] = []
    async with open_embedded(path, sync=False) as store:
        numbers += [await store.next("/counter") for _ in range(NUMBERS_RESERVED)]

        async def one_more() -> None:
            numbers.append(await store.next("/counter"))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(one_more)
            await trio.testing.wait_all_tasks_blocked()
            nursery.start_soon(store.close)
    async with open_embedded(path, sync=False) as store:
        assert await store.next("/counter") > max(numbers)


async def test_writes_that_come_together_share_a_sync(path: Path) -> None:
    async with open_embedded(path) as store:
        before = commits(path)
        async with trio.open_nursery() as nursery:
            for i in range(200):
                nursery.start_soon(store.put, f"/n/{i}", b"x" * 100, ABSENT)
        assert len(await store.children("/n")) == 200
        assert commits(path) - before < 50


async def test_many_values_are_read_with_rests(path: Path) -> None:
    async with open_embedded(path) as store:
        values = {f"/n/{number:04}": b"%d" % number for number in range(2 * VALUES_PER_REST)}
        async with trio.open_nursery() as nursery:
            for name, value in values.items():
                nursery.start_soon(store.put, name, value, ABSENT)
        async with counted_turns() as turns:
            assert await store.values([*values, "/n", "/nothing"]) == values
            assert turns.count >= 1
        assert await store.values([]) == {}


async def test_values_between_two_paths(path: Path) -> None:
    async with open_embedded(path) as store:
        for name in ("/a/2", "/a/1", "/a/3", "/b", "/a/1/x"):
            await store.put(name, name.encode(), ABSENT)
        found = [("/a/1", b"/a/1"), ("/a/1/x", b"/a/1/x"), ("/a/2", b"/a/2")]
        assert store.between("/a/1", "/a/2") == found
        assert store.values_between("/a/1", "/a/2") == [value for _, value in found]
        assert store.between("/c", "/d") == store.values_between("/c", "/d") == []


def commits(path: Path) -> int:
    """Commits that the end mark counts."""
    end = end_mark.read(Names(path).mark)
    assert end is not None
    return end.number


async def test_a_cancelled_write_has_happened_or_not_at_all(path: Path) -> None:
    async with open_embedded(path) as store:
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(store.put, "/a", b"1", ABSENT)
                await trio.testing.wait_all_tasks_blocked()
                scope.cancel()
        assert await store.get("/a") == Versioned(b"1", 0)
        with trio.CancelScope() as scope:
            scope.cancel()
            await store.put("/b", b"1", ABSENT)
        assert await store.get("/b") is None


async def test_a_closed_store_says_so(path: Path) -> None:
    async with open_embedded(path) as store:
        await overwrite(store, "/a", b"1")
    with pytest.raises(StorageFailed):
        await store.put("/a", b"2", 0)
    with pytest.raises(StorageFailed):
        await store.get("/a")
    await store.close()


async def open_once(path: Path) -> None:
    async with open_embedded(path) as store:
        await overwrite(store, "/a", b"1")


@pytest.mark.parametrize(
    "content",
    [b"not a database, but a letter to my aunt" * 200, b"SQLite format 3\0" + bytes(5000)],
)
def test_a_damaged_file_is_refused(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(StorageFailed, match=r"metadata\.db"):
        trio.run(open_once, path)
    assert path.read_bytes() == content


def test_a_file_of_another_program_is_refused_and_left_alone(path: Path) -> None:
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE recipe (name TEXT)")
    other.close()
    before = path.read_bytes()
    with pytest.raises(StorageFailed, match="another program"):
        trio.run(open_once, path)
    assert path.read_bytes() == before


def former(path: Path, entries: int = 50) -> None:
    """A store as it was written before there was a commit log."""
    connection = schema.connect(path)
    for i in range(entries):
        connection.execute(schema.PUT, (f"/n/{i}", bytes(1000), 3, 0))
    connection.execute(schema.PUT, ("/leased", b"", 0, 1))
    connection.execute(schema.COUNT, ("/counter", 200))
    connection.close()


def test_a_newer_format_is_refused(path: Path) -> None:
    former(path)
    with sqlite3.connect(path) as other:
        other.execute(f"PRAGMA user_version = {schema.FORMAT + 1}")
    other.close()
    with pytest.raises(StorageFailed, match="format"):
        trio.run(open_once, path)


@pytest.mark.parametrize("damage", ["short", "holes"])
def test_a_former_file_that_is_not_whole_is_refused(path: Path, damage: str) -> None:
    former(path)
    whole = path.read_bytes()
    if damage == "short":
        path.write_bytes(whole[: len(whole) // 2])
    else:
        path.write_bytes(whole[:8192] + b"\xaa" * 4096 + whole[12288:])
    with pytest.raises(StorageFailed, match=r"metadata\.db"):
        trio.run(open_once, path)


def test_an_empty_file_is_a_new_store(path: Path) -> None:
    path.write_bytes(b"")
    trio.run(open_once, path)


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(StorageFailed, match="nowhere"):
        trio.run(open_once, tmp_path / "nowhere" / "metadata.db")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_file_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(StorageFailed, match="metadata"):
            trio.run(open_once, tmp_path / "metadata.db")
    finally:
        tmp_path.chmod(0o700)


def test_a_folder_in_the_place_of_the_file_is_refused(path: Path) -> None:
    path.mkdir()
    with pytest.raises(StorageFailed, match="cannot be opened"):
        trio.run(open_once, path)


async def test_a_full_disk_fails_the_write_and_passes(path: Path) -> None:
    async with open_embedded(path, sync=False) as store:
        await overwrite(store, "/a", b"1")
        limit_pages(store, 8)
        with pytest.raises(StorageFull):
            await overwrite(store, "/big", bytes(1_000_000))
        assert await store.get("/big") is None
        assert await store.put("/a", b"2", 0) == 1
        limit_pages(store, 100_000)
        await overwrite(store, "/big", bytes(1_000_000))


def limit_pages(store: object, pages: int) -> None:
    """As if the disk had room for so much: the one fault that can be had without a device."""
    store._writer.execute(f"PRAGMA max_page_count = {pages}")  # type: ignore[attr-defined]


async def test_after_an_error_of_the_disk_nothing_more_is_written(path: Path) -> None:
    fatal: list[str] = []
    async with open_embedded(path, sync=False, on_fatal=fatal.append) as store:
        await overwrite(store, "/a", b"1")
        store._writer.execute("DROP TABLE node")  # stands for a file that went bad under us
        for _ in range(2):
            with pytest.raises(StorageFailed, match="any more"):
                await store.put("/a", b"2", 0)
    assert len(fatal) == 1


async def test_who_holds_the_file_for_long_fails_what_comes_meanwhile(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A backup, an operator's shell: that must not end all writing for good."""
    monkeypatch.setattr(schema, "BUSY_MS", 1)
    async with open_embedded(path, on_fatal=pytest.fail) as store:
        await overwrite(store, "/a", b"1")
        other = sqlite3.connect(Names(path).live, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StorageFailed, match="somebody else"):
            await store.put("/a", b"2", 0)
        assert await store.get("/a") == Versioned(b"1", 0)
        other.execute("ROLLBACK")
        other.close()
        assert await store.put("/a", b"2", 0) == 1


async def test_a_mistake_of_ours_leaves_nobody_waiting(path: Path) -> None:
    def mistake(connection: sqlite3.Connection, _: Versions) -> tuple[int, None]:
        connection.execute("DELETE FROM node")
        raise AssertionError("a mistake of ours")

    async with open_embedded(path) as store:
        await overwrite(store, "/a", b"1")
        with trio.fail_after(5):
            with pytest.raises(StorageFailed, match="a mistake of ours"):
                await store._write("/a", mistake)
            with pytest.raises(StorageFailed, match="any more"):
                await store.put("/a", b"2", 0)
        assert await store.get("/a") == Versioned(b"1", 0)


async def test_versions_are_known_of_few_paths(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And the same for all: what is written over, deleted, created again, and forgotten."""
    monkeypatch.setattr(embedded, "VERSIONS_MAX", 2)
    async with open_embedded(path) as store:
        for name in "abcd":
            assert await store.put(f"/{name}", b"0", ABSENT) == 0
            assert await store.put(f"/{name}", b"1", 0) == 1
        assert set(store._versions) == {"/c", "/d"}
        for name in "abcd":
            with pytest.raises(BadVersion):
                await store.put(f"/{name}", b"2", 0)
            await store.delete(f"/{name}", 1)
            with pytest.raises(NotFound):
                await store.delete(f"/{name}", 1)
            assert await store.put(f"/{name}", b"3", ABSENT) == 0
        assert len(store._versions) == 2


class Calls:
    """A loop that accepts calls of threads, or not, and makes them when the test says so."""

    def __init__(self, *, runs: bool) -> None:
        self.expected = 0
        self.runs = runs
        self.asked: queue.SimpleQueue[Callable[[], object]] = queue.SimpleQueue()

    def call(self, what: Callable[[], object]) -> bool:
        if self.runs:
            self.asked.put(what)
        return self.runs


@pytest.mark.parametrize("runs", [True, False])
async def test_a_loop_hears_of_writes_as_long_as_it_runs(path: Path, runs: bool) -> None:
    calls = Calls(runs=runs)
    outcomes: list[tuple[int, BrokerError | None]] = []
    told = trio.Event()

    def done(version: int, error: BrokerError | None) -> None:
        outcomes.append((version, error))
        told.set()

    async with open_embedded(path, calls=calls) as store:
        calls.runs = False
        assert await store.put("/a", b"1", ABSENT) == 0
        calls.runs = runs
        assert store.put_at_once("/a", b"2", 0, done)
        assert calls.expected == 1, "a moment later"
        if runs:
            calls.asked.get()()
            assert outcomes == [(1, None)]
        else:
            await told.wait()
        assert calls.expected == 0
        calls.runs = False
    assert outcomes == [(1, None)]


async def test_a_new_path_without_a_task_is_in_the_list(path: Path) -> None:
    outcomes: list[tuple[int, BrokerError | None]] = []

    def done(*outcome: Any) -> None:
        outcomes.append(outcome)

    async with open_embedded(path) as store:
        for number in range(KEPT_MIN):
            await store.put(f"/n/{number}", b"", ABSENT)
        assert len(await store.children("/n")) == KEPT_MIN
        assert store.put_at_once("/n/new", b"", ABSENT, done)
        assert store.put_at_once("/n/new", b"", ABSENT, done)
        assert not store._listings._kept, "the list that was kept is not right any more"
        await store.put("/behind", b"", ABSENT)
        assert outcomes[0] == (0, None)
        assert isinstance(outcomes[1][1], AlreadyExists)
        assert len(await store.children("/n")) == KEPT_MIN + 1
        assert len(store._listings._kept) == 1, "it is kept again"
    assert not store.put_at_once("/n/new", b"", 0, done), "it is closed"


async def test_a_mistake_behind_one_write_is_not_that_of_others(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def mistaken(version: int, error: BrokerError | None) -> None:
        raise ZeroDivisionError

    async with open_embedded(path) as store:
        await store.put("/a", b"1", ABSENT)
        assert store.put_at_once("/a", b"2", 0, mistaken)
        assert await store.put("/a", b"3", 1) == 2
    assert "what follows a write of /a failed" in caplog.text


WRITER = """
import sys, trio
from pathlib import Path
from magnetar.core.metadata.embedded import open_embedded

async def main():
    async with open_embedded(Path(sys.argv[1])) as store:
        for i in range(1_000_000):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(store.put, f"/n/{i}", b"%d" % i, -1)
                nursery.start_soon(store.put, "/last", b"%d" % i, i - 1)
                nursery.start_soon(store.next, "/counter")
            sys.stdout.write(f"{i}\\n")
            sys.stdout.flush()

trio.run(main)
"""


def killed_writer(path: Path, writes: int) -> int:
    """Run `WRITER`, kill it once it has told so much; returns the last it told."""
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    lines = [process.stdout.readline() for _ in range(writes)]
    os.kill(process.pid, signal.SIGKILL)
    # the last line may be torn
    lines += process.stdout.read().split("\n")[:-1]
    process.stdout.close()
    process.wait()
    return int(lines[-1])


@pytest.mark.parametrize("writes", [1, 40, 150])
async def test_what_was_told_survives_a_kill(path: Path, writes: int) -> None:
    last = killed_writer(path, writes)
    async with open_embedded(path) as store:
        for i in range(last + 1):
            assert await store.get(f"/n/{i}") == Versioned(b"%d" % i, 0)
        found = await store.get("/last")
        assert found is not None
        assert found.version >= last
        assert int(found.value) == found.version
        # numbers may be lost, never given twice
        number = await store.next("/counter")
        assert number > last
        assert number % NUMBERS_RESERVED == 0
        assert await store.put("/last", b"", found.version) == found.version + 1
        assert await store.put("/fresh", b"", ABSENT) == 0
