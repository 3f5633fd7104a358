"""Linux's own writes: durable bytes, an end that is told, failures; a thread elsewhere."""

import ctypes
import mmap
import os
import select

import pytest

from bookie.journal.files import direct_works
from bookie.journal.kernel_writes import open_kernel_writes

SIZE = 64 * 1024


@pytest.fixture
def opened(tmp_path):
    """(writes, buffer, descriptor of a file that is written past the page cache)"""
    buffer = mmap.mmap(-1, SIZE)
    writes = open_kernel_writes(ctypes.addressof(ctypes.c_char.from_buffer(buffer)))
    if writes is None or not direct_works(tmp_path):
        pytest.skip("this system or its file system does not write by itself")
    path = tmp_path / "file"
    path.write_bytes(bytes(SIZE))
    fd = os.open(path, os.O_RDWR | os.O_DIRECT | os.O_DSYNC)
    yield writes, buffer, fd
    os.close(fd)
    writes.close()


def result(writes):
    poller = select.poll()
    poller.register(writes.descriptor, select.POLLIN)
    assert poller.poll(10_000)
    return writes.ended()


def result_of(writes, fd, offset, size):
    writes.begin(fd, offset, 0, size)
    return result(writes)


def test_a_part_of_the_buffer_is_where_it_should_be(opened, tmp_path):
    writes, buffer, fd = opened
    buffer[512:1024] = b"x" * 512
    writes.begin(fd, 4096, 512, 512)
    assert writes.busy
    assert result(writes) == 512
    assert not writes.busy
    data = (tmp_path / "file").read_bytes()
    assert data == bytes(4096) + b"x" * 512 + bytes(SIZE - 4608)


def test_asking_before_the_end_says_nothing(opened):
    writes, _, fd = opened
    assert writes.ended() is None
    writes.begin(fd, 0, 0, 512)
    with pytest.raises(AssertionError):
        writes.begin(fd, 0, 0, 512)
    assert result(writes) == 512
    assert writes.ended() is None


def test_what_cannot_begin_and_what_fails_is_an_oserror(opened):
    writes, _, fd = opened
    bad = os.open(os.devnull, os.O_RDONLY)
    with pytest.raises(OSError, match="Bad file descriptor"):
        writes.begin(bad, 0, 0, 512)
    os.close(bad)
    assert not writes.busy
    with pytest.raises(OSError, match="Invalid argument"):  # a place no disk has
        result_of(writes, fd, 100, 100)
    assert not writes.busy
    writes.begin(fd, 0, 0, 512)  # it goes on
    assert result(writes) == 512


def test_closing_waits_for_a_write_under_way(tmp_path, opened):
    _, buffer, fd = opened
    other = open_kernel_writes(ctypes.addressof(ctypes.c_char.from_buffer(buffer)))
    buffer[:] = b"y" * SIZE
    other.begin(fd, 0, 0, SIZE)
    other.close()
    assert (tmp_path / "file").read_bytes() == b"y" * SIZE


def test_who_waits_without_a_loop_hears_the_end(opened):
    writes, _, fd = opened
    writes.begin(fd, 0, 0, 512)
    written = None
    while written is None:
        writes.wait()
        written = writes.ended()
    assert written == 512
