# cython: language_level=3
"""The compiled twins of `sockets` and `gathering`, which are the reference. See `core/native`.

Both write into bytes objects, which Python takes for constant. That is sound while no Python code
can reach the object: C code may fill one that it has made (`PyBytes_FromStringAndSize(NULL, n)` of
the C API's documentation), and `_PyBytes_Resize` may move one with a single reference. So an object
that is still written is a `PyObject *`, which Cython never hands to anybody; it becomes `bytes` when
it is whole. A view of what has come so far is a view of the `LargeFrame`, not of the object, so it
leads nowhere but to bytes that change no more, and keeps them in memory.

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
    # Not shared, even if it were empty: `left` and `size` make it longer than SMALL_BYTES.
    cdef PyObject *data = new_bytes(NULL, before - SMALL_BYTES + size)
    memcpy(inside(data), bytes_of(left), before - SMALL_BYTES)
    memcpy(inside(data) + before - SMALL_BYTES, small, SMALL_BYTES)
    count = recv(fd, inside(data) + before, size - SMALL_BYTES, MSG_DONTWAIT)
    # Nothing more, or something is wrong: the next call will meet that again. The only reference
    # is `data`, as `_PyBytes_Resize` demands; after an error it has freed the object.
    resize(&data, before + max(count, 0))
    whole = <bytes>data
    Py_DECREF(whole)  # the reference that was `data`'s
    return whole


def send(int fd, bytes data not None) -> int:
    """How many bytes the system took."""
    cdef Py_ssize_t count = give(fd, bytes_of(data), len(data), MSG_DONTWAIT)
    if count < 0:
        PyErr_SetFromErrno(OSError)
    return count


cdef class LargeFrame:
    """A frame that is larger than the shared buffer, on its way."""

    cdef readonly Py_ssize_t filled
    cdef readonly Py_ssize_t room
    cdef readonly Py_ssize_t before
    # The only reference to the bytes while they come: they may be written and moved. NULL when
    # they have been handed on, and after a resize for which there was no memory.
    cdef PyObject *data
    # What was `data` once there is a view: neither moved any more nor, behind what was left free,
    # written. It stays for as long as this does, and so for as long as any view of this.
    cdef bytes seen
    # Of `seen`, without what was left free.
    cdef Py_ssize_t seen_bytes
    # Whether `behind` has handed `seen` on.
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
        if self.given:
            raise ValueError("it is whole")
        if self.seen is None:
            self.seen = self._handed_on()
            self.seen_bytes = self.room = self.filled
        return memoryview(self)

    def __getbuffer__(self, Py_buffer *buffer, int flags):
        """Of what `view` shows, to be read only. The buffer holds this, and this the bytes."""
        if self.seen is None:
            raise BufferError("it is not whole")
        PyBuffer_FillInfo(buffer, self, bytes_of(self.seen) + self.before, self.seen_bytes, 1, flags)

    def behind(self, bytes front not None) -> bytes:
        """`front`, which fills what was left free, and behind it all that was seen by `view`."""
        if self.seen is None or self.given:
            raise ValueError("it is not whole")
        if len(front) != self.before:
            raise ValueError("it does not fill what was left free")
        # The last write, and nobody has read there: views begin behind it, and only this knows the
        # object, so its hash has not been computed either.
        memcpy(bytes_of(self.seen), bytes_of(front), len(front))
        self.given = True
        self.room = self.filled = 0
        return self.seen

    cdef bytes _handed_on(self):
        """From now on it is bytes like any others, as long as it has become."""
        if self.data is NULL:
            raise ValueError("it is whole")
        resize(&self.data, self.before + self.filled)
        data = <bytes>self.data
        Py_DECREF(data)  # the reference that was `self.data`'s
        self.data = NULL
        return data
