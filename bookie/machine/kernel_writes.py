"""Asynchronous writes of Linux: submitted with io_submit(2), their end signalled by an eventfd(2).

A write to a file opened with O_DIRECT and O_DSYNC is durable when it ends, and no thread waits for
it: nothing is passed between threads, and none competes for the interpreter lock. A single small
write costs the process 30 us of CPU in all, with a thread more than 110
(`docs/decisions/0007-the-journal-without-a-thread.md`).

Invariant: one write at a time; the buffer belongs to the kernel until `ended` returns its result.

Linux has it on the machines below. Elsewhere, or where it is forbidden (by seccomp, for example),
`open_kernel_writes` returns None, and the journal uses a thread.

`KernelWrites` has a compiled twin.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import select
import struct
import sys
from typing import Final

from magnetar.core.native import quickest
from magnetar.core.ports.disk import SubmittedWrites

WAIT_MS: Final = 10

_NUMBERS: Final = {"x86_64": (206, 207, 208, 209), "aarch64": (0, 1, 4, 2)}
"""System calls io_setup, io_destroy, io_getevents, io_submit, by machine."""
_WRITE: Final = 1
_WITH_EVENTFD: Final = 1
"""IOCB_FLAG_RESFD of linux/aio_abi.h: the block names an eventfd."""
_NO_WAIT: Final = 8
"""RWF_NOWAIT of linux/fs.h: fail with EAGAIN rather than wait for a lock of the file system."""
_CONTROL_BLOCK: Final = struct.Struct("<QIiHhIQQqQII")
"""data, key, flags; operation, priority, file; buffer, size, offset; reserved, flags, descriptor"""
_EVENT: Final = struct.Struct("<QQqq")
"""data, control block; result, second result"""


class KernelWrites:
    """`SubmittedWrites` of one buffer; see the module's docstring."""

    def __init__(self, buffer: memoryview, context: int, descriptor: int) -> None:
        self.descriptor = descriptor
        """Readable when a write may have ended."""
        self.busy = False
        self._buffer = ctypes.c_char.from_buffer(buffer)
        """Keeps the memory alive while the kernel may read it."""
        self._address = ctypes.addressof(self._buffer)
        self._call = _system().syscall
        numbers = map(ctypes.c_long, _NUMBERS[platform.machine()])
        _, self._destroy, self._get, self._submit = numbers
        self._context = ctypes.c_ulong(context)
        self._one = ctypes.c_long(1)
        self._block = ctypes.create_string_buffer(_CONTROL_BLOCK.size)
        self._blocks = (ctypes.c_void_p * 1)(ctypes.addressof(self._block))
        self._event = ctypes.create_string_buffer(_EVENT.size)

    def begin(self, fd: int, offset: int, start: int, size: int) -> None:
        """Submit a write of `size` bytes of the buffer from `start` on. OSError if that fails.

        BlockingIOError, here or from `ended`, means that the file system would have to wait, so
        nothing is written; a thread should write instead.
        """
        assert not self.busy, "one write at a time"
        _CONTROL_BLOCK.pack_into(
            self._block, 0,
            0, 0, _NO_WAIT, _WRITE, 0, fd,
            self._address + start, size, offset, 0, _WITH_EVENTFD, self.descriptor,
        )  # fmt: skip
        taken = self._call(self._submit, self._context, self._one, self._blocks)
        if taken != 1:
            raise _error(ctypes.get_errno())
        self.busy = True

    def ended(self) -> int | None:
        """The bytes written, once the write has ended; None before. OSError if it failed."""
        try:
            os.eventfd_read(self.descriptor)
        except BlockingIOError:
            return None
        if not self.busy:
            return None
        found = self._call(self._get, self._context, self._one, self._one, self._event, None)
        if found < 0:
            raise _error(ctypes.get_errno())
        self.busy = False
        _, _, result, _ = _EVENT.unpack_from(self._event)
        if result < 0:
            raise _error(-result)
        return int(result)

    def wait(self) -> None:
        """Block until a write has ended, or for `WAIT_MS`."""
        poller = select.poll()
        poller.register(self.descriptor, select.POLLIN)
        poller.poll(WAIT_MS)

    def close(self) -> None:
        """Release the context, which waits for a write in flight (io_destroy(2))."""
        self._call(self._destroy, self._context)
        os.close(self.descriptor)


def _error(number: int) -> OSError:
    if number == errno.EOPNOTSUPP:  # a file system without RWF_NOWAIT
        number = errno.EAGAIN
    return OSError(number, os.strerror(number))


def _system() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


new_kernel_writes = quickest(KernelWrites, "magnetar.bookie.machine.compiled")


def open_kernel_writes(buffer: memoryview) -> SubmittedWrites | None:
    """The writes of one buffer; None where the system lacks or forbids them."""
    if sys.platform != "linux" or platform.machine() not in _NUMBERS:
        return None
    setup = _NUMBERS[platform.machine()][0]
    context = ctypes.c_ulong(0)
    if _system().syscall(ctypes.c_long(setup), ctypes.c_long(1), ctypes.byref(context)) != 0:
        if ctypes.get_errno() in (errno.EAGAIN, errno.ENOSYS, errno.EPERM, errno.ENOMEM):
            return None
        raise _error(ctypes.get_errno())
    descriptor = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
    return new_kernel_writes(buffer, context.value, descriptor)
