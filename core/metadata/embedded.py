"""A MetadataStore on this machine's disk: a checked history, and SQLite for queries.

Theory. Reads are answered at once on a connection of their own, from committed data (SQLite's
write-ahead log: readers and the writer do not wait for each other); lists of children have others
(`listing.py`). Writes go to a queue; the
thread takes all queued writes, decides each in one transaction, writes their changes as one commit
of the history, and commits the transaction when that is durable. So a hundred concurrent writes
cost as much as one, and no reader sees what may still be lost. Callers wait, shielded, until then:
a queued write always reports its outcome.

    caller --queue--> thread: BEGIN, every write in order, history (sync), COMMIT --loop--> callers

`put_at_once` has no task that waits. A link that runs hears of outcomes in a sweep, so that answers
are sent at its end; the writes of tasks take the same way (`core/link/readiness/thread_calls.py`).

SQLite itself is never synced, and rebuilt from the history at each start: `history.py` describes
what is on the disk, and what a crash or damage does to it.

Invariants: a write that was answered is on the disk; a write whose condition fails changes nothing;
nothing is written after a failed sync, since the state of the disk is unknown.
Leases live as long as this process: they are cleared when the store is opened.
"""

from __future__ import annotations

import errno
import logging
import os
import queue
import sqlite3
import threading
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec
import trio

from magnetar.core.kernel.cooperation import Cooperative
from magnetar.core.kernel.errors import (
    AlreadyExists,
    BadVersion,
    BrokerError,
    NotFound,
    StorageFailed,
    StorageFull,
)
from magnetar.core.metadata import changes, recovery, schema
from magnetar.core.metadata import history as histories
from magnetar.core.metadata.changes import Change, Count, Delete, Put
from magnetar.core.metadata.history import History, Names
from magnetar.core.metadata.listing import Listings
from magnetar.core.ports.group_commit import ThreadCalls
from magnetar.core.ports.metadata_store import ABSENT, PutDone, Versioned

log = logging.getLogger(__name__)

GROUP_WRITES_MAX: Final = 1_000
"""Writes of one transaction; more wait for the next."""
VALUES_PER_REST: Final = 250
"""Values read before other tasks run, in a third of a millisecond."""

_PASSING: Final[dict[int, Callable[[], StorageFailed]]] = {
    sqlite3.SQLITE_FULL: lambda: StorageFull("there is no room on the disk for metadata"),
    sqlite3.SQLITE_BUSY: lambda: StorageFailed("somebody else holds the metadata's file"),
}
"""SQLite's errors that leave everything unchanged and may be temporary."""
_FULL: Final = (errno.ENOSPC, errno.EDQUOT)

VERSIONS_MAX: Final = 10_000
"""Paths whose versions are in memory."""

Versions = Mapping[str, int]
Work = Callable[[sqlite3.Connection, Versions], tuple[int, Change | None]]
"""Runs in the thread: checks a condition, and returns the answer and the change. It gets the
versions of some paths, too."""


class Write:
    """A queued write."""

    __slots__ = ("error", "path", "result", "tell", "work")

    def __init__(
        self, path: str, work: Work, tell: Callable[[Write], object] = lambda _: None
    ) -> None:
        """`tell` is called on the loop, with the write when it has its outcome."""
        self.path = path
        self.work = work
        self.result = 0
        self.error: BrokerError | None = None
        self.tell = tell


class EmbeddedMetadata:
    """See the module's docstring. Made by `open_embedded`."""

    def __init__(
        self,
        history: History,
        connect_reader: Callable[[], sqlite3.Connection],
        writer: sqlite3.Connection,
        on_fatal: Callable[[str], None],
        calls: ThreadCalls | None,
    ) -> None:
        self._on_fatal = on_fatal
        self._calls = calls
        self._history = history
        self._reader = connect_reader()
        self._listings = Listings(connect_reader)
        self._writer = writer
        self._queue: queue.SimpleQueue[Write | None] = queue.SimpleQueue()
        self._token = trio.lowlevel.current_trio_token()
        self._watches: list[tuple[str, Callable[[str], None]]] = []
        self._counters: dict[str, _Counter] = {}
        self._closed = False
        self._ended = trio.Event()
        self._broken: StorageFailed | None = None
        self._versions: dict[str, int] = {}
        """Of paths written last, so that a record which is written again and again costs one
        statement less each time: the thread hands the interpreter over with each of them. The
        thread's own."""
        self._thread = threading.Thread(target=self._serve, name="metadata-writer", daemon=True)
        self._thread.start()

    # -- reading ------------------------------------------------------------------------------

    async def get(self, path: str) -> Versioned | None:
        rows = self._rows(schema.GET, (path,))
        return Versioned(*rows[0]) if rows else None

    async def values(self, paths: Sequence[str]) -> dict[str, bytes]:
        """Those of many paths, as far as there are any: a statement for some takes a seventh of
        the time that one for each does.
        """
        found: dict[str, bytes] = {}
        async for start in Cooperative(range(0, len(paths), VALUES_PER_REST), 1):
            some = msgspec.json.encode(paths[start : start + VALUES_PER_REST]).decode()
            found.update(self._rows(schema.VALUES, (some,)))
        return found

    def between(self, first: str, last: str) -> list[tuple[str, bytes]]:
        """All from one path to another, which are read, too, in order. Plain call: the caller knows
        that they are few.
        """
        return self._rows(schema.BETWEEN, (first, last))

    def values_between(self, first: str, last: str) -> list[bytes]:
        """The same without paths."""
        return [value for (value,) in self._rows(schema.VALUES_BETWEEN, (first, last))]

    async def children(self, path: str) -> list[str]:
        """All of one state of the tree, however long it takes."""
        try:
            return await self._listings.children(path)
        except sqlite3.Error as error:
            raise StorageFailed(f"the metadata cannot be read: {error}") from error

    def _rows(self, query: str, values: Any) -> list[Any]:
        try:
            return self._reader.execute(query, values).fetchall()
        except sqlite3.Error as error:
            raise StorageFailed(f"the metadata cannot be read: {error}") from error

    # -- writing ------------------------------------------------------------------------------

    async def put(self, path: str, value: bytes, expected: int) -> int:
        work = partial(_put, path, value, expected, False)
        if expected != ABSENT:
            return await self._write(path, work)
        with self._listings.moving(path):
            return await self._write(path, work)

    @property
    def puts_at_once(self) -> bool:
        return True

    def put_at_once(self, path: str, value: bytes, expected: int, done: PutDone) -> bool:
        if self._closed:
            return False
        _check(path)
        is_new = expected == ABSENT
        if is_new:
            self._listings.begin_move(path)
        if self._calls is not None:
            self._calls.expected += 1
        work = partial(_put, path, value, expected, False)
        self._queue.put(Write(path, work, partial(self._tell_outcome, is_new, done)))
        return True

    def _tell_outcome(self, is_new: bool, done: PutDone, write: Write) -> None:
        if self._calls is not None:
            self._calls.expected -= 1
        if is_new:
            self._listings.end_move()
        done(write.result, write.error)

    async def delete(self, path: str, expected: int) -> None:
        with self._listings.moving(path):
            await self._write(path, partial(_delete, path, expected))

    async def lease(self, path: str, value: bytes, lost: Callable[[], None]) -> None:
        """`lost` is never called: the session is this process, which holds the store's lock."""
        del lost
        with self._listings.moving(path):
            await self._write(path, partial(_put, path, value, ABSENT, True))

    async def next(self, path: str) -> int:
        counter = self._counters.setdefault(path, _Counter())
        while counter.next >= counter.limit:
            async with counter.lock:
                if counter.next >= counter.limit:
                    limit = await self._write(path, partial(_reserve, path), answered=False)
                    counter.next, counter.limit = limit - schema.NUMBERS_RESERVED, limit
        number, counter.next = counter.next, counter.next + 1
        return number

    async def _write(self, path: str, work: Work, *, answered: bool = True) -> int:
        _check(path)
        await trio.lowlevel.checkpoint_if_cancelled()
        if self._closed:
            raise StorageFailed("the metadata store is closed")
        done = trio.Event()
        write = Write(path if answered else "", work, lambda _: done.set())
        self._queue.put(write)
        with trio.CancelScope(shield=True):
            await done.wait()
        if write.error is not None:
            raise write.error
        return write.result

    # -- watching -----------------------------------------------------------------------------

    def watch(self, prefix: str, changed: Callable[[str], None]) -> Callable[[], None]:
        entry = (prefix, changed)
        self._watches.append(entry)
        return lambda: self._watches.remove(entry) if entry in self._watches else None

    async def sync(self) -> None:
        """Nothing: all readers see the same values."""

    def _deliver(self, group: list[Write]) -> None:
        """Deliver outcomes to the callers, on the loop."""
        for write in group:
            try:
                write.tell(write)
            except Exception:  # a defect of ours: all others hear of their writes
                log.exception("what follows a write of %s failed", write.path)
            if write.error is None and write.path:
                for prefix, changed in list(self._watches):
                    if write.path == prefix or write.path.startswith(prefix.rstrip("/") + "/"):
                        changed(write.path)

    # -- the thread ---------------------------------------------------------------------------

    def _serve(self) -> None:
        """Write group after group until `close`."""
        more = True
        while more:
            group: list[Write] = []
            write = self._queue.get()
            while write is not None:
                group.append(write)
                if len(group) == GROUP_WRITES_MAX or self._queue.empty():
                    break
                write = self._queue.get()
            more = write is not None
            if group:
                self._commit(group)
                self._tell(partial(self._deliver, group))
                self._make_snapshot()
        self._close_history()
        self._tell(self._ended.set)

    def _tell(self, what: Callable[[], object]) -> None:
        if self._calls is not None and self._calls.call(what):
            return
        try:
            self._token.run_sync_soon(what)
        except trio.RunFinishedError:
            # the loop has ended, and its callers with it
            return

    def _commit(self, group: list[Write]) -> None:
        """Carry out every write of the group, or fail all."""
        logged = False
        try:
            if self._broken is not None:
                raise self._broken
            self._writer.execute("BEGIN IMMEDIATE")
            changed = self._decide(group)
            if changed:
                logged = True
                self._history.commit(changed)
            self._writer.execute("COMMIT")
        except StorageFailed as error:
            self._fail(group, error)
        except Exception as error:  # noqa: BLE001 - our own mistake must not leave callers waiting
            # for ever, and each later one with them.
            self._fail(group, self._judged(error, logged=logged))

    def _decide(self, group: list[Write]) -> list[Change]:
        """Decide each write; it sees those before it."""
        changed: list[Change] = []
        for write in group:
            try:
                write.result, change = write.work(self._writer, self._versions)
            except BrokerError as refusal:
                write.error = refusal
                continue
            if change is not None:
                changes.apply(self._writer, (change,))
                changed.append(change)
                self._note(change)
        return changed

    def _note(self, change: Change) -> None:
        """Know the version of a path that is written, for as long as few others are."""
        if isinstance(change, Count):
            return
        versions = self._versions
        versions.pop(change.path, None)
        if isinstance(change, Put):
            versions[change.path] = change.version
            if len(versions) > VERSIONS_MAX:
                del versions[next(iter(versions))]

    def _judged(self, error: Exception, *, logged: bool) -> StorageFailed:
        """Undo the group. After a temporary error writing goes on; any other ends it."""
        self._versions.clear()
        passing = _PASSING.get(getattr(error, "sqlite_errorcode", 0) & 0xFF)
        if isinstance(error, OSError) and error.errno in _FULL:
            passing = _PASSING[sqlite3.SQLITE_FULL]
        try:
            if self._writer.in_transaction:
                self._writer.execute("ROLLBACK")
            if logged and passing is not None:
                self._history.retract()
        except (sqlite3.Error, OSError):
            passing = None
        return passing() if passing is not None else self._break(error)

    def _break(self, error: Exception) -> StorageFailed:
        """Stop writing: only a restart can find out what the disk holds."""
        self._broken = StorageFailed(f"the metadata cannot be written any more: {error!r}")
        self._tell(partial(self._on_fatal, str(self._broken)))
        return self._broken

    def _make_snapshot(self) -> None:
        if self._broken is None and self._history.snapshot_is_due:
            try:
                self._history.snapshot(self._writer)
            except OSError as error:  # whether the mark was written is unknown
                self._break(error)

    def _close_history(self) -> None:
        try:
            self._history.close(self._writer, whole=self._broken is None)
        except OSError as error:
            self._break(error)
        self._writer.close()

    @staticmethod
    def _fail(group: list[Write], error: StorageFailed) -> None:
        for write in group:
            write.error = error

    # -- closing ------------------------------------------------------------------------------

    async def close(self) -> None:
        """Finish queued writes, return unused numbers, end the thread."""
        if self._closed:
            return
        with trio.CancelScope(shield=True):
            self._closed = True
            for path, counter in self._counters.items():
                unused = partial(_give_back, path, counter.next, counter.limit)
                self._queue.put(Write("", unused))
            self._queue.put(None)
            await self._ended.wait()
        # the thread reports its end last
        self._thread.join()
        self._reader.close()
        self._listings.close()


class _Counter:
    """The reserved numbers `next`..`limit` (exclusive) of a counter."""

    __slots__ = ("limit", "lock", "next")

    def __init__(self) -> None:
        self.next = self.limit = 0
        self.lock = trio.Lock()


@asynccontextmanager
async def open_embedded(
    path: Path,
    *,
    sync: bool = True,
    on_fatal: Callable[[str], None] = lambda _: None,
    calls: ThreadCalls | None = None,
) -> AsyncIterator[EmbeddedMetadata]:
    """Open the store whose files are named `path` and a suffix; its folder must exist.

    `Corrupted` if it is damaged, `StorageFailed` if it is not ours, of a newer format, or in use.
    Without `sync` a crash of the machine (not of the process) may damage it. `on_fatal` is called
    once, with the reason, when nothing can be written: a sync has failed, and only a restart can
    find out what the disk holds. `calls` are those of the loop that serves clients, if there is
    one.
    """
    lock = histories.hold(Names(path))
    try:
        history, writer = recovery.open_history(path, sync=sync)
        connect = partial(schema.connect_reader, Names(path).live)
        store = EmbeddedMetadata(history, connect, writer, on_fatal, calls)
        try:
            yield store
        finally:
            await store.close()
            Names(path).remove_live()
    finally:
        os.close(lock)


# -- what the thread does ---------------------------------------------------------------------


def _check(path: str) -> None:
    """Raise for a bad path, which is a defect: callers build paths from checked names."""
    assert path.startswith("/"), path
    assert not path.endswith("/"), path
    path.encode()


def _version(connection: sqlite3.Connection, versions: Versions, path: str) -> int:
    known = versions.get(path)
    if known is not None:
        return known
    row = connection.execute(schema.GET_VERSION, (path,)).fetchone()
    return ABSENT if row is None else int(row[0])


def _put(
    path: str,
    value: bytes,
    expected: int,
    lease: bool,
    connection: sqlite3.Connection,
    versions: Versions,
) -> tuple[int, Change]:
    version = _version(connection, versions, path)
    if expected != version:
        if expected == ABSENT:
            raise AlreadyExists(f"{path} exists")
        raise BadVersion(f"{path} has version {version}, not {expected}")
    return version + 1, Put(path, value, version + 1, lease)


def _delete(
    path: str, expected: int, connection: sqlite3.Connection, versions: Versions
) -> tuple[int, Change]:
    version = _version(connection, versions, path)
    if version == ABSENT:
        raise NotFound(f"{path} does not exist")
    if expected != version:
        raise BadVersion(f"{path} has version {version}, not {expected}")
    return version, Delete(path)


def _counted(connection: sqlite3.Connection, path: str) -> int:
    row = connection.execute(schema.GET_COUNTER, (path,)).fetchone()
    return 0 if row is None else int(row[0])


def _reserve(path: str, connection: sqlite3.Connection, _: Versions) -> tuple[int, Change]:
    """Reserve numbers of a counter; the answer is the first of them."""
    limit = _counted(connection, path) + schema.NUMBERS_RESERVED
    return limit, Count(path, limit)


def _give_back(
    path: str, number: int, limit: int, connection: sqlite3.Connection, _: Versions
) -> tuple[int, Change | None]:
    """Return the numbers `number`..`limit`, if they were the last to be reserved.

    Nothing is returned for a counter that could not be read (0 to 0), or is just being read: its
    numbers could be used twice, and with them a ledger's id.
    """
    ours = number < limit and _counted(connection, path) == limit
    return number, Count(path, number) if ours else None
