# cython: language_level=3
"""The compiled twin of `kernel_writes.KernelWrites`, which is the reference. See `core/native`.

The system calls are those of the reference, without ctypes. They only queue and look, so the
interpreter's lock is kept; `close` waits, so it is released.
"""

from libc.errno cimport EAGAIN, EOPNOTSUPP, errno
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memset
from posix.unistd cimport close, read

import os
import select

cdef extern from "linux/aio_abi.h" nogil:
    enum:
        IOCB_CMD_PWRITE
        IOCB_FLAG_RESFD
    struct iocb:
        int aio_rw_flags
        int aio_lio_opcode
        int aio_fildes
        uint64_t aio_buf
        uint64_t aio_nbytes
        int64_t aio_offset
        int aio_flags
        int aio_resfd
    struct io_event:
        int64_t res

cdef extern from "sys/syscall.h" nogil:
    enum:
        SYS_io_destroy
        SYS_io_getevents
        SYS_io_submit

cdef extern from "unistd.h" nogil:
    long syscall(long number, ...)

cdef enum:
    RWF_NOWAIT = 8
    WAIT_MS = 10


cdef object error_of(int number):
    if number == EOPNOTSUPP:  # a file system without RWF_NOWAIT
        number = EAGAIN
    return OSError(number, os.strerror(number))


cdef class KernelWrites:
    """Writes of one buffer."""

    cdef readonly int descriptor
    cdef readonly bint busy
    # Keeps the memory alive while the kernel may read it.
    cdef unsigned char[::1] buffer
    cdef unsigned long context
    cdef iocb block

    def __init__(self, unsigned char[::1] buffer not None, unsigned long context, int descriptor):
        self.descriptor = descriptor
        self.busy = False
        self.buffer = buffer
        self.context = context
        memset(&self.block, 0, sizeof(iocb))

    def begin(self, int fd, int64_t offset, Py_ssize_t start, Py_ssize_t size):
        """Submit a write of `size` bytes of the buffer from `start` on."""
        cdef iocb *blocks[1]
        assert not self.busy, "one write at a time"
        if start < 0 or size <= 0 or size > self.buffer.shape[0] - start:
            raise ValueError("no part of the buffer")
        self.block.aio_rw_flags = RWF_NOWAIT
        self.block.aio_lio_opcode = IOCB_CMD_PWRITE
        self.block.aio_fildes = fd
        self.block.aio_buf = <uint64_t>&self.buffer[start]
        self.block.aio_nbytes = size
        self.block.aio_offset = offset
        self.block.aio_flags = IOCB_FLAG_RESFD
        self.block.aio_resfd = self.descriptor
        blocks[0] = &self.block
        if syscall(SYS_io_submit, self.context, 1L, blocks) != 1:
            raise error_of(errno)
        self.busy = True

    def ended(self):
        """The bytes written, once the write has ended; None before."""
        cdef uint64_t count
        cdef io_event event
        if read(self.descriptor, &count, sizeof(count)) < 0:
            if errno == EAGAIN:
                return None
            raise error_of(errno)
        if not self.busy:
            return None
        if syscall(SYS_io_getevents, self.context, 1L, 1L, &event, NULL) != 1:
            raise error_of(errno)
        self.busy = False
        if event.res < 0:
            raise error_of(<int>-event.res)
        return event.res

    def wait(self):
        """Block until a write has ended, or for `WAIT_MS`."""
        poller = select.poll()
        poller.register(self.descriptor, select.POLLIN)
        poller.poll(WAIT_MS)

    def close(self):
        """Release the context, which waits for a write in flight (io_destroy(2))."""
        with nogil:
            syscall(SYS_io_destroy, self.context)
            close(self.descriptor)
