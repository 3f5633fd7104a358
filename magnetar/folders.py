"""Temporary folders of `magnetar.standalone()`, cleaned up even after their owners are killed.

A killed process removes nothing. So the process that makes such a folder holds a lock on a file in
it, and its server inherits the lock. When both have ended, for whatever reason, the system releases
the lock, and the next process on this machine that makes such a folder removes the old one.

Invariant: a folder whose lock is held, or that has none, is never touched.
"""

import fcntl
import os
import shutil
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Final

PREFIX: Final = "magnetar-"
LOCK: Final = "owner"


class Folder:
    """One folder with its lock; `remove` removes both."""

    def __init__(self) -> None:
        _sweep_once()
        self.path = Path(tempfile.mkdtemp(prefix=PREFIX))
        new = self.path / (LOCK + ".new")
        self.lock = os.open(new, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(self.lock, fcntl.LOCK_EX)
        new.replace(self.path / LOCK)  # under this name the lock is always held

    def remove(self) -> None:
        """Remove the folder, then release the lock."""
        shutil.rmtree(self.path)
        os.close(self.lock)


@cache
def _sweep_once() -> None:
    """Remove abandoned folders, once per process: a test suite starts many servers."""
    sweep(Path(tempfile.gettempdir()))


def sweep(parent: Path) -> list[Path]:
    """Remove the folders in `parent` whose locks are free, and return them."""
    return [found for found in parent.glob(f"{PREFIX}*/{LOCK}") if _abandoned(found)]


def _abandoned(lock: Path) -> bool:
    """Whether the lock was free; if so, its folder is removed."""
    try:
        descriptor = os.open(lock, os.O_RDWR | os.O_CLOEXEC)
    except OSError:  # another user's, or just removed by its owner
        return False
    try:
        with suppress(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(lock.parent, ignore_errors=True)
            return True
        return False
    finally:
        os.close(descriptor)
