"""Temporary folders of `magnetar.standalone()` that do not outlive their owners for long.

A process that is killed removes nothing. So the maker of such a folder holds a lock on a file in
it, and so does the server in it, which inherits the lock; when both are gone, however they went,
the system has let go of it, and the next owner on this machine sweeps the folder away.

Invariant: a folder whose lock somebody holds, or in which there is none, is never touched.
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
    """One folder with its lock; `remove` ends both."""

    def __init__(self) -> None:
        _sweep_once()
        self.path = Path(tempfile.mkdtemp(prefix=PREFIX))
        new = self.path / (LOCK + ".new")
        self.lock = os.open(new, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(self.lock, fcntl.LOCK_EX)
        new.replace(self.path / LOCK)  # who finds it under this name finds it held

    def remove(self) -> None:
        """Take the folder away, then let go of it."""
        shutil.rmtree(self.path)
        os.close(self.lock)


@cache
def _sweep_once() -> None:
    """A test suite starts many servers; what others left behind is looked for once."""
    sweep(Path(tempfile.gettempdir()))


def sweep(parent: Path) -> list[Path]:
    """Remove the folders in `parent` that nobody holds any more, and return them."""
    return [found for found in parent.glob(f"{PREFIX}*/{LOCK}") if _abandoned(found)]


def _abandoned(lock: Path) -> bool:
    """Whether nobody held it; then its folder is gone."""
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
