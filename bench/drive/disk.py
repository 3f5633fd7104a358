"""The time of a sync on the bare disk: the lower bound of every synced latency."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

WRITE_BYTES = 4096
WRITES = 200


class DiskSync(msgspec.Struct, frozen=True):
    p50_ms: float
    p99_ms: float


READ_BYTES = 1024 * 1024


def summary(seconds: list[float]) -> DiskSync:
    ordered = sorted(seconds)
    at = [ordered[min(int(q * len(ordered)), len(ordered) - 1)] * 1000 for q in (0.5, 0.99)]
    return DiskSync(p50_ms=at[0], p99_ms=at[1])


def probe(directory: Path, writes: int = WRITES) -> DiskSync:
    """Time pwrite + fdatasync of 4 KiB, one after another, into a zero-filled file."""
    path = directory / "disk-probe"
    path.write_bytes(bytes(WRITE_BYTES * writes))
    file = os.open(path, os.O_WRONLY)
    taken = []
    try:
        os.fsync(file)
        block = os.urandom(WRITE_BYTES)
        for index in range(writes):
            begun = time.perf_counter()
            os.pwrite(file, block, index * WRITE_BYTES)
            os.fdatasync(file)
            taken.append(time.perf_counter() - begun)
    finally:
        os.close(file)
        path.unlink()
    return summary(taken)


def have_cached(directory: Path) -> int:
    """Read every file below, so that the page cache has it; return how many bytes that was.

    One server writes past the page cache and the other through it: here both begin alike.
    """
    size = 0
    for file in _opened(directory):
        while data := os.read(file, READ_BYTES):
            size += len(data)
    return size


def forget_cached(directory: Path) -> int:
    """Sync every file below and drop it from the page cache; return how many bytes that was."""
    size = 0
    for file in _opened(directory):
        os.fsync(file)
        size += os.fstat(file).st_size
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
    return size


def _opened(directory: Path) -> Iterator[int]:
    """Every file below, open to be read. What a server deletes meanwhile is left out."""
    for parent, _, names in os.walk(directory):
        for name in names:
            path = Path(parent, name)
            if not path.is_file():
                continue
            try:
                file = os.open(path, os.O_RDONLY)
            except FileNotFoundError:
                continue
            try:
                yield file
            finally:
                os.close(file)
