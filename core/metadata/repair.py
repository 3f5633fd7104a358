"""Repair of a damaged history: finds what can be recovered, and makes a new generation of it.

A commit states results, so commits behind a damaged one are valid without it: only values that the
damaged ones changed, and no later one changed again, are lost. An operator who accepts that loss
gets a tree without them. Numbers that the lost commits may have handed out are not reused: every
counter moves on by as many as they can have reserved.

Invariant: `examine` changes nothing, and `accept` discards nothing: the old files remain beside the
new ones, under names that end in `.damaged`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Final

from msgspec import Struct

from magnetar.core.kernel.errors import Corrupted
from magnetar.core.metadata import changes, commit_log, end_mark, recovery, schema
from magnetar.core.metadata.commit_log import HEAD_BYTES, Commit, Head
from magnetar.core.metadata.end_mark import End, EndMark
from magnetar.core.metadata.history import Names, write_generation
from magnetar.core.metadata.log_file import Contents

UNKNOWN_COMMITS: Final = 10_000
"""Commits assumed lost, for counters, when their number is unknown."""


class MetadataFinding(Struct, frozen=True):
    """The result of an examination; `damage` is empty if there is none."""

    damage: str
    """A description of the damage."""
    generation: int
    base: Head | None
    """The snapshot to start from; None if none is valid."""
    commits: list[Commit]
    """All recoverable commits in order, with gaps."""
    last: int
    """The highest commit number known to be used."""
    end_is_known: bool

    @property
    def lost(self) -> int:
        """The number of commits known to be missing."""
        first = self.base.number if self.base is not None else 0
        return self.last - first - len(self.commits)


def examine(path: Path) -> MetadataFinding:
    """Examine the history at `path`; `Corrupted` if nothing can be repaired."""
    names = Names(path)
    generations = names.generations()
    if not generations:
        raise Corrupted(f"there is no metadata at {path}: only a backup can bring it back")
    end = end_mark.read(names.mark) if names.mark.exists() else None
    damage = _damage(names, end)
    if end is not None and not damage:
        contents = recovery.read_log(names, end.generation)
        return MetadataFinding(
            "", end.generation, contents.head, contents.commits, contents.number, True
        )
    return _gather(names, generations, end, damage)


def _damage(names: Names, end: End | None) -> str:
    try:
        if end is None:
            return f"{names.mark} is missing or damaged: {recovery.UNKNOWN}"
        contents = recovery.check(names, end)
        recovery.restore(names, contents)[0].close()
    except Corrupted as damage:
        return str(damage)
    finally:
        names.remove_live()
    return ""


def _gather(names: Names, generations: list[int], end: End | None, damage: str) -> MetadataFinding:
    """The latest valid snapshot, and all commits since."""
    logs = {n: found for n in generations if (found := _readable(names, n)) is not None}
    base: Head | None = None
    commits: list[Commit] = []
    for contents in logs.values():
        if _snapshot_is_whole(names, contents.head):
            # It has all earlier commits. If it never counted, others beside it may have.
            base = contents.head
            commits = [one for one in commits if one.number > base.number]
        number = commits[-1].number if commits else (base.number if base is not None else 0)
        commits += [one for one in _all_of(contents) if one.number > number]
    highest = max([commits[-1].number if commits else 0, *(c.head.number for c in logs.values())])
    last = max(highest, end.number if end is not None else 0)
    return MetadataFinding(damage, generations[-1], base, commits, last, end is not None)


def _readable(names: Names, generation: int) -> Contents | None:
    """Read a log; one with a damaged head is searched for commits as well. The first generation
    starts empty, unless it has a snapshot.
    """
    try:
        return recovery.read_log(names, generation)
    except Corrupted:
        try:
            data = names.log(generation).read_bytes()
        except FileNotFoundError:
            return None
        empty = generation == 1 and not names.snapshot(generation).exists()
        return Contents(Head(generation, 0, 0, 0 if empty else -1, 0), [], data)


def _snapshot_is_whole(names: Names, head: Head) -> bool:
    if head.snapshot_bytes < 0:
        return False
    try:
        recovery.copy_snapshot(names, head)
    except Corrupted:
        return False
    finally:
        names.remove_live()
    return True


def _all_of(contents: Contents) -> list[Commit]:
    start = contents.end if contents.commits else HEAD_BYTES
    behind = commit_log.salvage(contents.data, start, contents.number)
    return [*contents.commits, *behind]


def accept(path: Path, found: MetadataFinding, *, sync: bool = True) -> None:
    """Make a new generation of what was found. The caller holds the lock."""
    names = Names(path)
    if found.base is None:
        raise Corrupted(
            f"{path}: no snapshot is whole, and commits alone are no tree: only a backup helps"
        )
    recovery.copy_snapshot(names, found.base)
    with closing(schema.connect(names.live)) as live:
        recovery.replay(live, found.commits)
        _move_counters_on(live, found)
        head = Head(found.generation + 1, found.last + 1, 0, 0, 0)
        head, opened = write_generation(names, head, live, sync=sync)
        opened.close()
    end = End(turn=1, generation=head.generation, number=head.number, chain=head.chain)
    for generation in names.generations():
        if generation < head.generation:
            _keep(names.log(generation))
            _keep(names.snapshot(generation))
    EndMark.create(names.mark, end, sync=sync).close()
    names.remove_live()


def _move_counters_on(live: sqlite3.Connection, found: MetadataFinding) -> None:
    lost = found.lost if found.end_is_known else UNKNOWN_COMMITS
    by = lost * schema.NUMBERS_RESERVED
    rows = live.execute("SELECT path, next FROM counter").fetchall()
    live.execute("BEGIN")
    changes.apply(live, [changes.Count(path, number + by) for path, number in rows])
    live.execute("COMMIT")


def _keep(path: Path) -> None:
    if path.exists():
        path.rename(path.with_name(path.name + ".damaged"))


def report(found: MetadataFinding, say: Callable[[str], None]) -> None:
    """Report what can be recovered and what is lost."""
    if not found.damage:
        say(f"the metadata is whole: {found.last} commits")
        return
    say(found.damage)
    if found.base is None:
        say("no snapshot is whole: only a backup helps")
        return
    since = found.last - found.base.number
    say(f"{len(found.commits)} of the {since} commits since the last whole snapshot can be had")
    if found.lost:
        say(f"{found.lost} are lost, {_ranges(found)}: topics, subscriptions, cursors and policies "
            "that they made or changed are as they were before, or are gone; ledgers that no topic "
            "knows any more are deleted by the next garbage collection")  # fmt: skip
    if not found.end_is_known:
        say("how many came behind the last of them is not known")


def _ranges(found: MetadataFinding) -> str:
    assert found.base is not None
    before = found.base.number
    gaps = []
    for number in [*(commit.number for commit in found.commits), found.last + 1]:
        first, last = before + 1, number - 1
        if first <= last:
            gaps.append(f"{first}" if first == last else f"{first} to {last}")
        before = number
    return "numbers " + ", ".join(gaps)
