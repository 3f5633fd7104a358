"""What every Disk must do. Implementations run `CHECKS` on a fresh directory each."""

from __future__ import annotations

import mmap
from collections.abc import Callable

import pytest

from magnetar.core.ports.disk import Creation, Directory, Disk, WriteMode

Check = Callable[[Disk, Directory], None]


def put(directory: Directory, name: str, data: bytes) -> None:
    file = directory.open_for_writing(name, Creation.REPLACE)
    assert file.pwrite(data, 0) == len(data)
    file.close()


def get(directory: Directory, name: str) -> bytes:
    file = directory.open(name)
    try:
        return file.pread(file.size() + 1, 0)
    finally:
        file.close()


def what_is_written_is_read(disk: Disk, directory: Directory) -> None:
    file = directory.open_for_writing("file", Creation.NEW)
    assert file.pwrite(b"0123456789", 0) == 10
    assert file.pwrite(memoryview(b"ab"), 4) == 2
    assert file.pwritev([b"x", b"yz"], 12) == 3
    file.sync()
    file.close()
    reading = directory.open("file")
    assert reading.size() == 15
    assert reading.pread(100, 0) == b"0123ab6789\0\0xyz"
    assert reading.pread(3, 13) == b"yz"
    assert reading.pread(3, 99) == b""
    buffers = [memoryview(bytearray(4)), memoryview(bytearray(100))]
    assert reading.preadv(buffers, 2) == 13
    assert bytes(buffers[0]) == b"23ab"
    assert bytes(buffers[1][:9]) == b"6789\0\0xyz"
    reading.close()
    direct = directory.open("file", direct=True)
    whole = memoryview(mmap.mmap(-1, 4096))
    assert direct.preadv([whole], 0) == 15
    assert bytes(whole[:4]) == b"0123"
    direct.close()


def the_way_a_file_comes_to_be_is_what_was_said(disk: Disk, directory: Directory) -> None:
    with pytest.raises(FileNotFoundError):
        directory.open("file")
    with pytest.raises(FileNotFoundError):
        directory.open_for_writing("file", Creation.EXISTING)
    assert directory.names() == []
    put(directory, "file", b"abc")
    with pytest.raises(FileExistsError):
        directory.open_for_writing("file", Creation.NEW)
    file = directory.open_for_writing("file", Creation.EXISTING)
    file.pwrite(b"X", 1)
    file.close()
    assert get(directory, "file") == b"aXc"
    directory.open_for_writing("file", Creation.REPLACE).close()
    assert get(directory, "file") == b""


def a_file_is_as_long_as_it_is_made(disk: Disk, directory: Directory) -> None:
    file = directory.open_for_writing("file", Creation.NEW)
    file.reserve(0, 8192)
    file.pwrite(b"abc", 0)
    assert get(directory, "file") == b"abc"
    file.truncate(2)
    assert get(directory, "file") == b"ab"
    file.allocate(5)
    assert get(directory, "file") == b"ab\0\0\0"
    file.close()


def direct_writes_are_whole_sectors(disk: Disk, directory: Directory) -> None:
    if not directory.direct:
        pytest.skip("no direct writes here")
    assert directory.names() == [], "what tried it leaves nothing"
    data = memoryview(mmap.mmap(-1, 4096))
    data[:3] = b"abc"
    for mode in (WriteMode.DIRECT, WriteMode.DIRECT_SYNC):
        file = directory.open_for_writing("file", Creation.REPLACE, mode)
        assert file.pwrite(data[:512], 512) == 512
        with pytest.raises(OSError, match="Invalid argument"):
            file.pwrite(data[:512], 100)
        file.close()
        assert get(directory, "file") == bytes(512) + b"abc" + bytes(509)


def names_change_as_they_are_told(disk: Disk, directory: Directory) -> None:
    put(directory, "one", b"1")
    put(directory, "two", b"2")
    directory.rename("one", "two")
    assert directory.names() == ["two"]
    assert get(directory, "two") == b"1"
    directory.link("two", "three")
    with pytest.raises(FileExistsError):
        directory.link("two", "three")
    file = directory.open_for_writing("two", Creation.EXISTING)
    file.pwrite(b"X", 0)
    file.close()
    assert get(directory, "three") == b"X", "they are the same file"
    directory.remove("two")
    assert directory.names() == ["three"]
    directory.sync()
    for change in (directory.remove, lambda name: directory.rename(name, "other")):
        with pytest.raises(FileNotFoundError):
            change("two")


def an_open_file_outlives_its_name(disk: Disk, directory: Directory) -> None:
    put(directory, "file", b"abc")
    reading = directory.open("file")
    directory.remove("file")
    assert reading.pread(3, 0) == b"abc"
    reading.close()


def directories_are_in_directories(disk: Disk, directory: Directory) -> None:
    below = directory.directory("below")
    put(below, "file", b"abc")
    assert directory.names() == ["below"]
    assert get(directory.directory("below"), "file") == b"abc"
    assert get(disk.directory(below.path), "file") == b"abc"
    assert below.path == f"{directory.path}/below"
    directory.rename("below", "other")
    assert get(directory.directory("other"), "file") == b"abc"
    directory.remove("other")
    assert directory.names() == []


def a_lock_is_held_once(disk: Disk, directory: Directory) -> None:
    with disk.lock(directory, "lock"):
        with pytest.raises(BlockingIOError), disk.lock(directory, "lock"):
            raise AssertionError
        with disk.lock(directory, "another"):
            pass
    with disk.lock(directory, "lock"):
        pass


def there_is_room(disk: Disk, directory: Directory) -> None:
    usage = disk.usage(directory)
    assert 0 <= usage.used_part <= 1
    assert usage.free_bytes > 0


def a_closed_file_is_closed(disk: Disk, directory: Directory) -> None:
    file = directory.open_for_writing("file", Creation.NEW)
    file.close()
    for call in (lambda: file.pwrite(b"x", 0), file.sync, file.close):
        with pytest.raises(OSError, match="Bad file descriptor"):
            call()


CHECKS: list[Check] = [
    what_is_written_is_read,
    the_way_a_file_comes_to_be_is_what_was_said,
    a_file_is_as_long_as_it_is_made,
    direct_writes_are_whole_sectors,
    names_change_as_they_are_told,
    an_open_file_outlives_its_name,
    directories_are_in_directories,
    a_lock_is_held_once,
    there_is_room,
    a_closed_file_is_closed,
]
