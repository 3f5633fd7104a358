"""Changes of a folder of files that happen once and whole, over a kill at any moment.

A change is written down before it is carried out:

    1. `redo.json` says which files are to be moved and deleted, and what is done then
    2. files are moved, then others deleted; each step may be repeated
    3. `done.json` notes the batch; `redo.json` is removed

Who finds a `redo.json` carries it out to the end: `RedoLog` does when it is opened. A kill before 1
leaves nothing, one after it leaves nothing undone. Readers may see the files of a change one after
the other: of a merge, for a moment, a row in both.

Invariant: one process has the log (a lock that ends with it); a batch that is noted is never
carried out again.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Self

import msgspec
from msgspec import Struct

from magnetar.spark_connector.jobs.tables.lock import OWN, PARQUET, FolderLock
from magnetar.spark_connector.jobs.tables.staging import sync


class FileChange(Struct, frozen=True):
    """What is to happen; paths are relative to the folder."""

    moves: Sequence[tuple[str, str]]
    deletes: Sequence[str] = ()
    query: str = ""
    batch: int = -1
    """What is done with it, if it is a batch of a query."""


class RedoLog:
    """See the module's docstring."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._own = folder / OWN
        self._lock = FolderLock(folder, PARQUET)
        self._redo, self._done = self._own / "redo.json", self._own / "done.json"
        if self._redo.exists():
            self._carry_out(msgspec.json.decode(self._redo.read_bytes(), type=FileChange))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._lock.release()

    def is_done(self, query: str, batch: int) -> bool:
        return batch <= self._batches().get(query, -1)

    def commit(self, change: FileChange) -> None:
        """Carry a change out, whatever happens meanwhile."""
        write(self._redo, msgspec.json.encode(change))
        self._carry_out(change)

    def _carry_out(self, change: FileChange) -> None:
        folders = set()
        for source, target in change.moves:
            to = self._folder / target
            to.parent.mkdir(parents=True, exist_ok=True)
            folders |= {self._folder / each for each in Path(target).parents}
            if (self._folder / source).exists():  # else it was moved before the kill
                os.replace(self._folder / source, to)
        for each in sorted(folders):
            sync(each)
        for name in change.deletes:
            (self._folder / name).unlink(missing_ok=True)
        if change.query:
            done = self._batches() | {change.query: change.batch}
            write(self._done, msgspec.json.encode(done))
        self._redo.unlink()

    def _batches(self) -> dict[str, int]:
        """The last batch of each query that is done."""
        if not self._done.exists():
            return {}
        return msgspec.json.decode(self._done.read_bytes(), type=dict[str, int])


def write(path: Path, content: bytes) -> None:
    """Have a small file with that content on disk, or as it was before."""
    new = path.with_suffix(".new")
    with new.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(new, path)
    sync(path.parent)
