# cython: language_level=3
"""The compiled twins of `sockets` and `large_frame`, which are the reference. See `core/native`.

Both write into bytes objects, which Python takes for constant. That is sound while no Python code
can reach the object: C code may fill one that it has made (`PyBytes_FromStringAndSize(NULL, n)` of
the C API's documentation), and `_PyBytes_Resize` may move one with a single reference. So an object
that is still written is a `PyObject *`, which Cython never exposes; it becomes `bytes` when it is
complete. A view of the received part is a view of the `LargeFrame`, not of the object, so it shows
only bytes that no longer change, and keeps them in memory.

AddressSanitizer and UBSan run this in `core/native/tests/test_sanitizers.py`.
"""

from magnetar.core.native.octets cimport bytes_of, cut_out, unwritten
from cpython.buffer cimport PyBuffer_FillInfo
from cpython.exc cimport PyErr_SetFromErrno
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF
from libc.stdint cimport uint8_t
from libc.string cimport memcpy

cdef extern from "Python.h":
    PyObject *new_bytes "PyBytes_FromStringAndSize" (const char *data, Py_ssize_t size) except NULL
    uint8_t *inside "PyBytes_AS_STRING" (PyObject *data)
    int resize "_PyBytes_Resize" (PyObject **data, Py_ssize_t size) except -1
    void release "Py_XDECREF" (PyObject *data)

cdef extern from "sys/socket.h":
    enum:
        MSG_DONTWAIT
    Py_ssize_t recv(int fd, void *to, size_t size, int flags)
    Py_ssize_t give "send" (int fd, const void *data, size_t size, int flags)

cdef enum:
    # Larger reads are received directly into a new bytes object.
    SMALL_BYTES = 64 * 1024

cdef uint8_t[SMALL_BYTES] small


def receive(int fd, bytes left not None, scratch, Py_ssize_t size) -> bytes:
    """The rest of the last read, followed by up to `size` received bytes."""
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
    """As `receive`, when `small` is full and there may be more."""
    cdef Py_ssize_t before = len(left) + SMALL_BYTES, count
    # Not the shared empty object: `left` and `size` make it longer than SMALL_BYTES.
    cdef PyObject *data = new_bytes(NULL, before - SMALL_BYTES + size)
    memcpy(inside(data), bytes_of(left), before - SMALL_BYTES)
    memcpy(inside(data) + before - SMALL_BYTES, small, SMALL_BYTES)
    count = recv(fd, inside(data) + before, size - SMALL_BYTES, MSG_DONTWAIT)
    # End or error: the next call gets it again. `data` is the only reference, as
    # `_PyBytes_Resize` requires; after an error it has freed the object.
    resize(&data, before + max(count, 0))
    whole = <bytes>data
    Py_DECREF(whole)  # the former reference of `data`
    return whole


def send(int fd, bytes data not None) -> int:
    """Send; returns the number of bytes taken."""
    cdef Py_ssize_t count = give(fd, bytes_of(data), len(data), MSG_DONTWAIT)
    if count < 0:
        PyErr_SetFromErrno(OSError)
    return count


cdef class LargeFrame:
    """A frame larger than the shared buffer, while it is received."""

    cdef readonly Py_ssize_t filled
    cdef readonly Py_ssize_t room
    cdef readonly Py_ssize_t before
    # The only reference to the bytes while they are received: they may be written and moved.
    # NULL after they are passed on, and after a resize without memory.
    cdef PyObject *data
    # The former `data` once there is a view: it is not moved, and only its free bytes are
    # written. It lives as long as this object, and so as long as any view of it.
    cdef bytes seen
    # The size of `seen` without its free bytes.
    cdef Py_ssize_t seen_bytes
    # Whether `behind` has passed `seen` on.
    cdef bint given

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
        release(self.data)

    def receive(self, int fd) -> int:
        """Receive more; returns how many bytes, 0 if the peer has closed."""
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
        """Make room for more."""
        if room < self.room or self.data is NULL:
            raise ValueError("it does not grow")
        resize(&self.data, self.before + room)
        self.room = room

    def whole(self) -> bytes:
        """All received bytes."""
        if self.before:
            raise ValueError("something belongs in front of it")
        data = self._handed_on()
        self.room = self.filled = 0
        return data

    def cut(self, Py_ssize_t size) -> bytes:
        """Remove and return the last received bytes."""
        if self.data is NULL:
            raise ValueError("it is whole")
        if not 0 <= size <= self.filled:
            raise ValueError("so much has not come")
        self.filled -= size
        cdef Py_ssize_t end = self.before + self.filled
        return cut_out(<const uint8_t *>inside(self.data), end, end + size)

    def view(self) -> memoryview:
        """All received bytes, without a copy."""
        if self.given:
            raise ValueError("it is whole")
        if self.seen is None:
            self.seen = self._handed_on()
            self.seen_bytes = self.room = self.filled
        return memoryview(self)

    def __getbuffer__(self, Py_buffer *buffer, int flags):
        """A read-only buffer of the bytes of `view`. It refers to this object, which holds them."""
        if self.seen is None:
            raise BufferError("it is not whole")
        PyBuffer_FillInfo(buffer, self, bytes_of(self.seen) + self.before, self.seen_bytes, 1, flags)

    def behind(self, bytes front not None) -> bytes:
        """`front`, which fills the free bytes, followed by the bytes of `view`."""
        if self.seen is None or self.given:
            raise ValueError("it is not whole")
        if len(front) != self.before:
            raise ValueError("it does not fill what was left free")
        # The last write. Views begin after it, and only this object refers to the bytes, so neither
        # they nor their hash were read.
        memcpy(bytes_of(self.seen), bytes_of(front), len(front))
        self.given = True
        self.room = self.filled = 0
        return self.seen

    cdef bytes _handed_on(self):
        """Pass on the received bytes as a `bytes` object of their size."""
        if self.data is NULL:
            raise ValueError("it is whole")
        resize(&self.data, self.before + self.filled)
        data = <bytes>self.data
        Py_DECREF(data)  # the former reference of `self.data`
        self.data = NULL
        return data
