"""Linux's own writes: durable bytes, an end that is told, failures; a thread elsewhere."""

import os
import select
from contextlib import suppress

import pytest

from magnetar.bookie.machine import kernel_writes
from magnetar.bookie.machine.kernel_writes import (
    KernelWrites,
    new_kernel_writes,
    open_kernel_writes,
)
from magnetar.bookie.machine.memory import aligned
from magnetar.bookie.tests.real_disk import directory_at, journal_files_at

SIZE = 64 * 1024


@pytest.fixture(params=[KernelWrites, new_kernel_writes], ids=["reference", "twin"])
def opened(tmp_path, monkeypatch, request):
    """(writes, buffer, descriptor of a journal), to be written past the page cache"""
    monkeypatch.setattr(kernel_writes, "new_kernel_writes", request.param)
    buffer = aligned(SIZE)
    writes = open_kernel_writes(buffer)
    if writes is None or not directory_at(tmp_path).direct:
        pytest.skip("this system or its file system does not write by itself")
    file = journal_files_at(tmp_path, size_max=SIZE, spares_max=0).create(1, synced=True)
    yield writes, buffer, file.fd
    file.close()
    writes.close()


def result(writes):
    poller = select.poll()
    poller.register(writes.descriptor, select.POLLIN)
    assert poller.poll(10_000)
    return writes.ended()


def written(writes, fd, offset, start, size):
    """The file system may always say that it would have to wait; somebody else may be syncing."""
    while True:
        try:
            writes.begin(fd, offset, start, size)
            return result(writes)
        except BlockingIOError:
            continue


def test_a_part_of_the_buffer_is_where_it_should_be(opened, tmp_path):
    writes, buffer, fd = opened
    buffer[512:1024] = b"x" * 512
    assert written(writes, fd, 4096, 512, 512) == 512
    assert not writes.busy
    data = (tmp_path / "1.txn").read_bytes()
    assert data[512:] == bytes(4096 - 512) + b"x" * 512 + bytes(SIZE - 4608)


def test_asking_before_the_end_says_nothing(opened):
    writes, _, fd = opened
    assert writes.ended() is None
    assert written(writes, fd, 0, 0, 512) == 512
    assert writes.ended() is None


def test_what_cannot_begin_and_what_fails_is_an_oserror(opened):
    writes, _, fd = opened
    bad = os.open(os.devnull, os.O_RDONLY)
    with pytest.raises(OSError, match="Bad file descriptor"):
        writes.begin(bad, 0, 0, 512)
    os.close(bad)
    assert not writes.busy
    with pytest.raises(OSError, match="Invalid argument"):  # a place no disk has
        written(writes, fd, 100, 0, 100)
    assert not writes.busy
    assert written(writes, fd, 0, 0, 512) == 512  # it goes on


def test_a_file_system_that_would_have_to_wait_says_so(opened, tmp_path):
    """Here the page cache holds what would be overwritten."""
    writes, _, _ = opened
    path = tmp_path / "cached"
    path.write_bytes(bytes(SIZE))
    fd = os.open(path, os.O_RDWR | os.O_DIRECT | os.O_DSYNC)

    def overwrite():
        for _ in range(100):
            writes.begin(fd, 0, 0, 512)
            result(writes)
            path.write_bytes(bytes(SIZE))

    with pytest.raises(BlockingIOError):
        overwrite()
    os.close(fd)
    assert not writes.busy


def test_who_waits_without_a_loop_hears_the_end(opened):
    writes, _, fd = opened
    count = None
    writes.begin(fd, 0, 0, 512)
    with suppress(BlockingIOError):
        while count is None:
            writes.wait()
            count = writes.ended()
        assert count == 512
    assert not writes.busy
