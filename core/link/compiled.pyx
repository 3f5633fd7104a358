# cython: language_level=3
"""The compiled twins of `sockets` and `gathering`, which are the reference. See `core/native`."""

from magnetar.core.native.octets cimport bytes_of, cut_out, unwritten
from cpython.exc cimport PyErr_SetFromErrno
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF
from libc.stdint cimport uint8_t
from libc.string cimport memcpy

cdef extern from "Python.h":
    PyObject *new_bytes "PyBytes_FromStringAndSize" (const char *data, Py_ssize_t size) except NULL
    uint8_t *inside "PyBytes_AS_STRING" (PyObject *data)
    int resize "_PyBytes_Resize" (PyObject **data, Py_ssize_t size) except -1
    void let_go "Py_XDECREF" (PyObject *data)

cdef extern from "sys/socket.h":
    enum:
        MSG_DONTWAIT
    Py_ssize_t recv(int fd, void *to, size_t size, int flags)
    Py_ssize_t give "send" (int fd, const void *data, size_t size, int flags)

cdef enum:
    # What is more than this is much: the rest of it is received where it stays.
    SMALL_BYTES = 64 * 1024

cdef uint8_t[SMALL_BYTES] small


def receive(int fd, bytes left not None, scratch, Py_ssize_t size) -> bytes:
    """What is left of before, and what has come behind it: `size` bytes more at most."""
    cdef Py_ssize_t before = len(left), count
    cdef bytes data
    if size < 0:
        raise ValueError("a size below nothing")
    count = recv(fd, small, min(size, SMALL_BYTES), MSG_DONTWAIT)
    if count < 0:
        PyErr_SetFromErrno(OSError)
    if count == SMALL_BYTES and size > SMALL_BYTES:
        return _receive_much(fd, left, size)
    data = unwritten(before + count)
    memcpy(bytes_of(data), bytes_of(left), before)
    memcpy(bytes_of(data) + before, small, count)
    return data


cdef bytes _receive_much(int fd, bytes left, Py_ssize_t size):
    """The same when `small` is full, and there may be more."""
    cdef Py_ssize_t before = len(left) + SMALL_BYTES, count
    cdef PyObject *data = new_bytes(NULL, before - SMALL_BYTES + size)
    memcpy(inside(data), bytes_of(left), before - SMALL_BYTES)
    memcpy(inside(data) + before - SMALL_BYTES, small, SMALL_BYTES)
    count = recv(fd, inside(data) + before, size - SMALL_BYTES, MSG_DONTWAIT)
    # Nothing more, or something is wrong: the next call will meet that again.
    resize(&data, before + max(count, 0))
    whole = <bytes>data
    Py_DECREF(whole)  # of the two that hold it now
    return whole


def send(int fd, bytes data not None) -> int:
    """How many bytes the system took."""
    cdef Py_ssize_t count = give(fd, bytes_of(data), len(data), MSG_DONTWAIT)
    if count < 0:
        PyErr_SetFromErrno(OSError)
    return count


cdef class Gathering:
    """A frame that is larger than the shared buffer, on its way."""

    cdef readonly Py_ssize_t filled
    cdef readonly Py_ssize_t room
    cdef readonly Py_ssize_t before
    # Nobody else knows of it before it is whole, so it may be written and moved.
    cdef PyObject *data
    # What was `data`, when some see it, but not what was left free.
    cdef bytes seen

    def __cinit__(
        self, bytes begin not None, Py_ssize_t room, Py_ssize_t skipped=0, Py_ssize_t before=0
    ):
        cdef Py_ssize_t come = len(begin) - skipped
        self.data = NULL
        if skipped < 0 or before < 0 or not 0 <= come <= room:
            raise ValueError("what has come does not fit")
        self.data = new_bytes(NULL, before + room)
        memcpy(inside(self.data) + before, bytes_of(begin) + skipped, come)
        self.filled, self.room, self.before = come, room, before

    def __dealloc__(self):
        let_go(self.data)

    def receive(self, int fd) -> int:
        """How many bytes have come, 0 if the peer has closed."""
        if self.data is NULL:
            raise ValueError("it is whole")
        cdef Py_ssize_t count = recv(
            fd,
            inside(self.data) + self.before + self.filled,
            self.room - self.filled,
            MSG_DONTWAIT,
        )
        if count < 0:
            PyErr_SetFromErrno(OSError)
        self.filled += count
        return count

    def grow(self, Py_ssize_t room):
        """There is more to come."""
        if room < self.room or self.data is NULL:
            raise ValueError("it does not grow")
        resize(&self.data, self.before + room)
        self.room = room

    def whole(self) -> bytes:
        """All that has come."""
        if self.before:
            raise ValueError("something belongs in front of it")
        data = self._handed_on()
        self.room = self.filled = 0
        return data

    def cut(self, Py_ssize_t size) -> bytes:
        """Take off the last bytes that have come."""
        if self.data is NULL:
            raise ValueError("it is whole")
        if not 0 <= size <= self.filled:
            raise ValueError("so much has not come")
        self.filled -= size
        cdef Py_ssize_t end = self.before + self.filled
        return cut_out(<const uint8_t *>inside(self.data), end, end + size)

    def view(self) -> memoryview:
        """All that has come, where it is."""
        if self.seen is None:
            self.seen = self._handed_on()
            self.room = self.filled
        return memoryview(self.seen)[self.before :]

    def behind(self, bytes front not None) -> bytes:
        """`front`, which fills what was left free, and behind it all that was seen by `view`."""
        if self.seen is None:
            raise ValueError("it is not whole")
        if len(front) != self.before:
            raise ValueError("it does not fill what was left free")
        data, self.seen = self.seen, None
        memcpy(bytes_of(data), bytes_of(front), len(front))
        self.room = self.filled = 0
        return data

    cdef bytes _handed_on(self):
        """From now on it is bytes like any others, as long as it has become."""
        if self.data is NULL:
            raise ValueError("it is whole")
        resize(&self.data, self.before + self.filled)
        data = <bytes>self.data
        Py_DECREF(data)  # of the two that hold it now
        self.data = NULL
        return data
