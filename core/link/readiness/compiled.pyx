# cython: language_level=3
"""The compiled twin of `poller.EpollPoller`, which is the reference. See `core/native`.

A look that does not wait keeps the interpreter's lock; nothing is allocated but what is ready.
"""

from cpython.exc cimport PyErr_CheckSignals, PyErr_SetFromErrno
from libc.errno cimport EINTR, errno
from libc.math cimport ceil
from libc.stdint cimport uint32_t
from posix.unistd cimport close

cdef extern from "sys/epoll.h" nogil:
    enum:
        EPOLL_CLOEXEC
        EPOLL_CTL_ADD
        EPOLL_CTL_DEL
        EPOLL_CTL_MOD
    ctypedef union epoll_data_t:
        int fd
    struct epoll_event:
        uint32_t events
        epoll_data_t data
    int epoll_create1(int flags)
    int epoll_ctl(int epoll, int operation, int fd, epoll_event *event)
    int epoll_wait(int epoll, epoll_event *events, int count_max, int wait_ms)

cdef enum:
    COUNT_MAX = 256
    WAIT_MS_MAX = 1000000


cdef class EpollPoller:
    """Level-triggered readiness for many descriptors."""

    cdef int epoll

    def __cinit__(self):
        self.epoll = epoll_create1(EPOLL_CLOEXEC)
        if self.epoll < 0:
            PyErr_SetFromErrno(OSError)

    def __dealloc__(self):
        if self.epoll >= 0:
            close(self.epoll)

    def fileno(self) -> int:
        self.check_open()
        return self.epoll

    def watch(self, int fd, uint32_t interest):
        self.control(EPOLL_CTL_ADD, fd, interest)

    def change(self, int fd, uint32_t interest):
        self.control(EPOLL_CTL_MOD, fd, interest)

    def forget(self, int fd):
        self.control(EPOLL_CTL_DEL, fd, 0)

    def ready(self, double wait_seconds, int count_max, /) -> list:
        """What is ready, at once or as soon as something is within that time."""
        cdef epoll_event events[COUNT_MAX]
        cdef int found, place, wait_ms
        self.check_open()
        if not 0 < count_max <= COUNT_MAX:
            raise ValueError("so many are never asked for")
        if not 0 <= wait_seconds * 1000 <= WAIT_MS_MAX:
            raise ValueError("nobody waits so long")
        wait_ms = <int>ceil(wait_seconds * 1000)
        if wait_ms:
            with nogil:
                found = epoll_wait(self.epoll, events, count_max, wait_ms)
        else:
            found = epoll_wait(self.epoll, events, count_max, 0)
        if found < 0:
            if errno != EINTR:
                PyErr_SetFromErrno(OSError)
            PyErr_CheckSignals()  # its handler may raise; else the caller looks again soon
            return []
        return [(events[place].data.fd, events[place].events) for place in range(found)]

    def close(self):
        if self.epoll >= 0:
            close(self.epoll)
            self.epoll = -1

    cdef int check_open(self) except -1:
        if self.epoll < 0:
            raise ValueError("it is closed")
        return 0

    cdef int control(self, int operation, int fd, uint32_t interest) except -1:
        cdef epoll_event event
        self.check_open()
        event.events = interest
        event.data.fd = fd
        if epoll_ctl(self.epoll, operation, fd, &event) < 0:
            PyErr_SetFromErrno(OSError)
        return 0
