"""The data directory: checks that it is ours, of a known format, and not in use.

The storage tier manages its contents. This module owns two files: `magnetar.json` marks a data
directory and states its format; a process holds `lock` while it uses the directory.

Invariant: nothing is written into a directory that is not ours, or that another process holds.
"""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from magnetar.operator_error import OperatorError

FORMAT: Final = 2
"""Incremented when older versions cannot read what a newer one writes. 2: the metadata is a
history of its own (docs/decisions/0014), which an older version would not see at all.
"""
MARKER: Final = "magnetar.json"
LOCK: Final = "lock"
METADATA: Final = "metadata"
BOOKIE: Final = "bookie"
"""Directories of the storage tier."""
NOT_FOREIGN: Final = frozenset({MARKER, MARKER + ".new", LOCK, "lost+found"})


@contextmanager
def opened(name: str) -> Iterator[Path]:
    """The directory `name`, created if missing, and locked by this process during the block."""
    path = Path(name)
    try:
        path.mkdir(parents=True, exist_ok=True)
        _refuse_foreign(path)
        lock = _hold(path)
        if _format(path) != FORMAT:  # before any other change, to keep older versions out
            _write_marker(path)
    except FileExistsError:
        raise OperatorError(f"cannot use the data directory {path}: it is a file") from None
    except OSError as error:
        raise OperatorError(f"cannot use the data directory {path}: {error.strerror}") from None
    try:
        yield path
    finally:
        os.close(lock)  # releases the lock


@contextmanager
def existing(name: str) -> Iterator[Path]:
    """Like `opened`, but only for an existing data directory: for maintenance commands."""
    if not (Path(name) / MARKER).exists():
        raise OperatorError(f"there is no data directory at {name}: it has no {MARKER}")
    with opened(name) as path:
        yield path


def _refuse_foreign(path: Path) -> None:
    if not (path / MARKER).exists():
        others = [name for name in os.listdir(path) if name not in NOT_FOREIGN]
        if "metadata.end" in others and "bookie" in others:
            raise OperatorError(
                f"the data directory {path} has lost its {MARKER}: restore it, or write "
                f"{json.dumps({'format': FORMAT})} into it"
            )
        if others:
            raise OperatorError(
                f"{path} is not a data directory: it has other files and no {MARKER}"
            )
        return
    found = _format(path)
    if found > FORMAT:
        raise OperatorError(
            f"the data directory {path} has format {found}, but this version knows only up to "
            f"{FORMAT}: a newer version of Magnetar wrote it"
        )


def _format(path: Path) -> int:
    """The directory's format; 0 without a marker file."""
    marker = path / MARKER
    try:
        found = json.loads(marker.read_bytes())["format"]
    except FileNotFoundError:
        return 0
    except (ValueError, KeyError, TypeError):
        found = None
    if not isinstance(found, int):
        raise OperatorError(
            f"{marker} is damaged: it does not state the format; restore it, or write "
            f"{json.dumps({'format': FORMAT})} into it"
        )
    return found


def _hold(path: Path) -> int:
    lock = os.open(path / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.pread(lock, 20, 0).decode(errors="replace").strip()
        os.close(lock)
        raise OperatorError(
            f"the data directory {path} is in use by another server (process {holder or 'unknown'})"
        ) from None
    os.ftruncate(lock, 0)
    os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)
    return lock


def _write_marker(path: Path) -> None:
    """Write the marker durably, before anything else: a crash must not leave a directory that
    looks foreign.
    """
    new = path / (MARKER + ".new")
    with new.open("w") as file:
        json.dump({"format": FORMAT}, file)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path / MARKER)
    directory = os.open(path, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def damaged(folder: Path, part: str, error: Exception) -> str:
    """The message for damaged data: what is wrong, and what the operator can do."""
    return (
        f"cannot use the data in {folder}: {error}. Restore the directory from a backup, or run "
        f"`magnetar {part} repair --data-dir {folder}` to see what can be recovered without one"
    )
