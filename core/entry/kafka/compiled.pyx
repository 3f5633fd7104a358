# cython: language_level=3
"""The compiled twins of `form.py_wrapped` and `form.py_latest_time`, which are the reference. See
`core/native`.
"""

from magnetar.core.native.octets cimport (
    bytes_of,
    put_bytes,
    put_u32,
    put_varint,
    u32_at,
    u64_at,
    unwritten,
    varint_size,
)
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcmp

cdef enum:
    # The size of a batch's header, and the offset of its last timestamp.
    BATCH_HEADER_BYTES = 61
    LAST_TIME_AT = 35

cdef bytes BEGIN = b"\x0a\x05kafka\x10\x00\x18"
cdef bytes FORMAT = b"\x22\x15\x0a\x0centry.format\x12\x05kafka\x58"


def wrapped(batch, uint64_t offsets, uint64_t now_ms) -> bytes:
    """The entry for a batch with that many offsets."""
    cdef Py_ssize_t size = len(BEGIN) + varint_size(now_ms) + len(FORMAT) + varint_size(offsets)
    cdef Py_buffer view
    cdef bytes entry
    cdef uint8_t *to
    PyObject_GetBuffer(batch, &view, PyBUF_SIMPLE)
    try:
        entry = unwritten(4 + size + view.len)
        to = put_u32(bytes_of(entry), <uint32_t>size)
        to = put_bytes(to, bytes_of(BEGIN), len(BEGIN))
        to = put_varint(to, now_ms)
        to = put_bytes(to, bytes_of(FORMAT), len(FORMAT))
        to = put_varint(to, offsets)
        put_bytes(to, <const uint8_t *>view.buf, view.len)
        return entry
    finally:
        PyBuffer_Release(&view)


def latest_time(bytes tail not None):
    """The latest time in the batch; -1 if it states none, or is none."""
    cdef const uint8_t *data = bytes_of(tail)
    cdef uint64_t at
    if len(tail) < 4 + len(BEGIN) or memcmp(data + 4, bytes_of(BEGIN), len(BEGIN)):
        return -1
    at = 4 + <uint64_t>u32_at(data)
    if at + BATCH_HEADER_BYTES > <uint64_t>len(tail):
        return -1
    return <int64_t>u64_at(data + at + LAST_TIME_AT)
