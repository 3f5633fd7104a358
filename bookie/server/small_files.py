"""Small files that are read and replaced whole.

Invariant: a crash leaves the old file or the new one, never a part of either.
"""

from __future__ import annotations

from magnetar.core.ports.disk import Creation, Directory, WriteFile


def read_whole(directory: Directory, name: str) -> bytes:
    """The contents; `FileNotFoundError` if there is no such file."""
    file = directory.open(name)
    try:
        return file.pread(file.size(), 0)
    finally:
        file.close()


def size_of(directory: Directory, name: str) -> int:
    """The size; `FileNotFoundError` if there is no such file."""
    file = directory.open(name)
    try:
        return file.size()
    finally:
        file.close()


def write_whole(directory: Directory, name: str, data: bytes) -> None:
    """Replace the file. Durable on return."""
    new = name + ".new"
    file = directory.open_for_writing(new, Creation.REPLACE)
    try:
        write_all(file, data, 0)
        file.sync()
    finally:
        file.close()
    directory.rename(new, name)
    directory.sync()


def write_all(file: WriteFile, data: bytes | memoryview, offset: int) -> None:
    """Write all bytes: write(2) may write fewer than it is given."""
    rest = memoryview(data)
    while rest:
        written = file.pwrite(rest, offset)
        offset += written
        rest = rest[written:]
