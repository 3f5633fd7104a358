"""What makes the metadata's bytes and names durable.

Invariant: with `sync`, a call that returns without an error has reached the disk.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import Final

from magnetar.core.kernel.checksum import crc32c

DSYNC: Final[int] = 0 if hasattr(fcntl, "F_FULLFSYNC") else getattr(os, "O_DSYNC", 0)
"""Over bytes that the file has already, one such write is one trip to the disk: 0.12 ms where an
`fdatasync` of a file that grows takes 0.15 and a commit of SQLite 0.28. On macOS it stops at the
drive's cache.
"""
CHUNK_BYTES: Final = 1024 * 1024


def open_synced(path: Path, *, sync: bool) -> int:
    return os.open(path, os.O_RDWR | os.O_CLOEXEC | (DSYNC if sync else 0))


def write_at(fd: int, data: bytes, offset: int, *, sync: bool) -> None:
    """Write into a file that `open_synced` has opened."""
    rest = memoryview(data)
    while rest:
        written = os.pwrite(fd, rest, offset)
        offset += written
        rest = rest[written:]
    if sync and not DSYNC:
        sync_file(fd)


def sync_file(fd: int) -> None:
    if hasattr(fcntl, "F_FULLFSYNC"):
        fcntl.fcntl(fd, fcntl.F_FULLFSYNC)
    else:
        os.fsync(fd)


def sync_path(path: Path) -> None:
    """The bytes of a file, or the names in a folder, are durable on return."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        sync_file(fd)
    finally:
        os.close(fd)


def write_whole(path: Path, data: bytes, *, sync: bool) -> None:
    """Replace a file as a whole: a crash leaves the old content or the new."""
    new = path.with_name(path.name + ".new")
    with new.open("wb") as file:
        file.write(data)
        file.flush()
        if sync:
            sync_file(file.fileno())
    new.replace(path)
    if sync:
        sync_path(path.parent)


def checksum(path: Path, target: Path | None = None) -> tuple[int, int]:
    """Size and CRC32C of a file, which is copied to `target` by the way."""
    size = crc = 0
    with path.open("rb") as source, (target or Path(os.devnull)).open("wb") as copy:
        while chunk := source.read(CHUNK_BYTES):
            crc = crc32c(chunk, crc)
            size += len(chunk)
            copy.write(chunk)
    return size, crc


def hold(path: Path) -> int | None:
    """A lock that goes with this process; None if another has it."""
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return None
    return lock
