"""Opens the embedded store: checks its history, and rebuilds the live tree from it.

    no mark, and no files of ours     a new store
    no mark, and the former file      a store from before the commit log: migrated, once
    no mark, and generations          damage, if anything was ever committed to them
    a mark                            the generation it names, which must have its last commit

Migration: the former file is copied into a first generation, which counts as soon as the mark
exists; then the file is removed, so that no older version finds an outdated tree. After a crash in
between, migration is repeated.

Invariant: anything that differs from what was acknowledged raises `Corrupted`, and leaves the disk
unchanged.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

from magnetar.core.kernel.errors import Corrupted, StorageFailed
from magnetar.core.metadata import changes, end_mark, files, log_file, schema
from magnetar.core.metadata.commit_log import HEAD_BYTES, Commit, Head
from magnetar.core.metadata.end_mark import End, EndMark
from magnetar.core.metadata.history import History, Names, write_generation
from magnetar.core.metadata.log_file import Contents

log = logging.getLogger(__name__)

AHEAD_MAX = 2
"""Commits by which the log may exceed the mark: one by a crash, one by a torn slot."""

UNKNOWN = "nobody knows where the metadata ends"


def open_history(path: Path, *, sync: bool) -> tuple[History, sqlite3.Connection]:
    """The history at `path`, and the live tree. The caller holds the lock."""
    names = Names(path)
    try:
        end = end_mark.read(names.mark)
    except FileNotFoundError:
        if not _only_begun(names):
            raise Corrupted(f"{names.mark} is missing: {UNKNOWN}") from None
        end = _begin(names, sync=sync)
    if end is None:
        raise Corrupted(f"{names.mark} is damaged: {UNKNOWN}")
    contents = check(names, end)
    if _remove_former(names, end) and sync:  # else a later restart could find it again
        files.sync_path(path.parent)
    live, spoilt = restore(names, contents)
    try:
        for generation in names.generations():
            if generation not in (end.generation - 1, end.generation):
                names.remove(generation)
        history = _reopened(names, end, contents, sync=sync)
        if spoilt:
            history.snapshot(live)
        live.execute(schema.DROP_LEASES)
    except BaseException:
        live.close()
        raise
    return history, live


def _reopened(names: Names, end: End, contents: Contents, *, sync: bool) -> History:
    log = log_file.reopen(names.log(end.generation), contents, sync=sync)
    mark = EndMark(names.mark, end, sync=sync)
    if contents.number > end.number:  # the mark counts it from now on
        mark.write(end.generation, contents.number, contents.chain)
    return History(names, mark, log, contents.head, sync=sync)


def _begin(names: Names, *, sync: bool) -> End:
    """Create the first generation, empty or migrated from the former file."""
    head = Head(generation=1, number=0, chain=0, snapshot_bytes=0, snapshot_crc=0)
    if names.path.exists():
        with closing(schema.connect_former(names.path)) as former:
            _, opened = write_generation(names, head, former, sync=sync)
        log.info("the metadata %s is taken over into a history that is checked", names.path)
    else:
        opened = log_file.create(names.log(head.generation), head, sync=sync)
    opened.close()
    end = End(turn=1, generation=1, number=0, chain=0)
    EndMark.create(names.mark, end, sync=sync).close()
    return end


def _only_begun(names: Names) -> bool:
    """Whether the files are no more than what an interrupted `_begin` leaves."""
    generations = names.generations()
    if not generations:
        return True
    if generations != [1]:
        return False
    try:
        contents = read_log(names, 1)
    except Corrupted:
        return not names.log(1).exists() and names.path.exists()
    behind = contents.data[HEAD_BYTES:]
    return behind.count(0) == len(behind)


def _remove_former(names: Names, end: End) -> bool:
    """Remove a former file that was migrated; returns whether there was one. Beside a history
    with later commits it is left alone: it may be an operator's backup.
    """
    there = names.path.exists()
    if there and end.number:
        raise StorageFailed(f"{names.path} lies beside {names.mark}: which is the metadata?")
    for suffix in ("", "-wal", "-shm"):
        names.path.with_name(names.path.name + suffix).unlink(missing_ok=True)
    return there


# -- checking -----------------------------------------------------------------------------------


def check(names: Names, end: End) -> Contents:
    """Read the log of the current generation; `Corrupted` unless it has every counted commit."""
    path = names.log(end.generation)
    contents = read_log(names, end.generation)
    if contents.number < end.number:
        raise Corrupted(
            f"{path} is damaged: it is whole up to commit {contents.number}, and {end.number} were "
            "acknowledged"
        )
    if contents.number > end.number + AHEAD_MAX:
        raise Corrupted(f"{names.mark} is older than {path}: nobody knows where that ends")
    if _chain_at(contents, end.number) != end.chain:
        raise Corrupted(f"{path} and {names.mark} do not belong together")
    return contents


def read_log(names: Names, generation: int) -> Contents:
    path = names.log(generation)
    try:
        contents = log_file.read(path)
    except FileNotFoundError:
        raise Corrupted(f"{path} is missing") from None
    except ValueError as error:
        raise Corrupted(f"{path} is damaged: {error}") from error
    if contents.head.generation != generation:
        raise Corrupted(f"{path} is the log of generation {contents.head.generation}")
    return contents


def _chain_at(contents: Contents, number: int) -> int | None:
    if number == contents.head.number:
        return contents.head.chain
    at = number - contents.head.number - 1
    return contents.commits[at].chain if 0 <= at < len(contents.commits) else None


# -- making the live tree -----------------------------------------------------------------------


def restore(names: Names, contents: Contents) -> tuple[sqlite3.Connection, bool]:
    """Rebuild the tree at the end of the log; returns it, and whether a snapshot is damaged."""
    try:
        copy_snapshot(names, contents.head)
        commits, spoilt = contents.commits, False
    except Corrupted as damage:
        earlier = _whole_before(names, contents.head)
        if earlier is None:
            raise
        copy_snapshot(names, earlier.head)
        log.warning("%s; the one before and its log say the same, and nothing is lost", damage)
        commits, spoilt = earlier.commits + contents.commits, True
    live = schema.connect(names.live)
    try:
        replay(live, commits)
    except BaseException:
        live.close()
        raise
    return live, spoilt


def _whole_before(names: Names, head: Head) -> Contents | None:
    """The previous generation, if its log ends where this one begins."""
    try:
        earlier = read_log(names, head.generation - 1)
    except Corrupted:
        return None
    return earlier if (earlier.number, earlier.chain) == (head.number, head.chain) else None


def copy_snapshot(names: Names, head: Head) -> None:
    """Copy the snapshot of a log to the live file."""
    names.remove_live()
    if not head.snapshot_bytes:
        return
    path = names.snapshot(head.generation)
    try:
        found = files.checksum(path, names.live)
    except FileNotFoundError:
        raise Corrupted(f"{path} is missing") from None
    if found != (head.snapshot_bytes, head.snapshot_crc):
        raise Corrupted(f"{path} is damaged: it does not have its checksum")


def replay(live: sqlite3.Connection, commits: Iterable[Commit]) -> None:
    live.execute("BEGIN")
    for commit in commits:
        try:
            changes.apply(live, changes.decode(commit.body))
        except ValueError as error:
            raise Corrupted(f"commit {commit.number} of the metadata makes no sense") from error
    live.execute("COMMIT")
