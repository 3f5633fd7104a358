"""What makes bytes and names durable on this system, and what goes past its page cache.

Invariant: whatever returns here without an error is on the disk, not on its way there.
"""

from __future__ import annotations

import fcntl
import mmap
import os
from pathlib import Path
from typing import Final

DIRECT: Final[int] = getattr(os, "O_DIRECT", 0)
DSYNC: Final[int] = getattr(os, "O_DSYNC", 0)


def aligned(size: int) -> memoryview:
    """Zeros that begin at a page, as direct I/O wants it."""
    return memoryview(mmap.mmap(-1, size))


def sync_directory(directory: Path) -> None:
    """Make names durable: what was created, renamed or unlinked in it."""
    fd = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def sync_file(fd: int) -> None:
    """Make a file's bytes durable with what this system has for it."""
    if hasattr(fcntl, "F_FULLFSYNC"):  # macOS: fsync alone stops at the drive's cache
        fcntl.fcntl(fd, fcntl.F_FULLFSYNC)
    elif hasattr(os, "fdatasync"):
        os.fdatasync(fd)
    else:
        os.fsync(fd)


def direct_works(directory: Path) -> bool:
    """Whether aligned writes can go past the page cache here and are durable when they return."""
    if not (DIRECT and DSYNC):
        return False
    probe = directory / "probe.direct"
    try:
        fd = os.open(probe, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | DIRECT | DSYNC, 0o644)
    except OSError:
        probe.unlink(missing_ok=True)
        return False
    try:
        zeros = aligned(1024)
        os.pwrite(fd, zeros, 0)
        # The second write is aligned to 512 bytes and to no more: some disks want 4,096.
        os.pwrite(fd, zeros[:512], 512)
    except OSError:
        return False
    finally:
        os.close(fd)
        probe.unlink(missing_ok=True)
    return True
