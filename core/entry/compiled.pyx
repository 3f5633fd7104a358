# cython: language_level=3
"""The compiled twins of `stamps.headers` and `stamps.plain`, of `kafka_form.wrapped` and
`kafka_form.last_time`, which are the reference. See `core/native`.
"""

from magnetar.core.native.octets cimport (
    bytes_of,
    cut_out,
    number_at,
    put_bytes,
    put_u32,
    put_varint,
    u32_at,
    u64_at,
    unwritten,
    varint_end,
    varint_size,
)
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcmp

from magnetar.core.entry.stamps import EntryHeader

cdef enum:
    PREFIX_BYTES = 6
    # Three fields, each a tag and at most ten bytes.
    HEADER_BYTES_MAX = PREFIX_BYTES + 3 * 11
    # Of a record batch: its header, and where that says how late it is.
    BATCH_HEADER_BYTES = 61
    LAST_TIME_AT = 35


def headers(
    Py_ssize_t entries, list counts, uint64_t timestamp_ms, uint64_t first_index
) -> list[bytes]:
    """Headers of a run; `counts` is None where every entry holds one message."""
    cdef uint8_t[HEADER_BYTES_MAX] head
    cdef uint8_t *index_at
    cdef uint8_t *end
    cdef uint64_t index = first_index - 1, count = 1
    cdef list made = []
    cdef Py_ssize_t place
    head[0], head[1], head[PREFIX_BYTES] = 0x0E, 0x02, 0x08
    index_at = put_varint(head + PREFIX_BYTES + 1, timestamp_ms)
    index_at[0] = 0x10
    for place in range(entries if counts is None else len(counts)):
        if counts is not None:
            count = counts[place]
        index += count
        end = put_varint(index_at + 1, index)
        if count > 1:
            end[0] = 0x78
            end = put_varint(end + 1, count)
        put_u32(head + 2, <unsigned int>(end - head - PREFIX_BYTES))
        made.append(cut_out(head, 0, end - head))
    return made


def plain(bytes entry not None):
    """The header of an entry that begins with one of these; None for any other."""
    cdef const uint8_t *data = bytes_of(entry)
    cdef Py_ssize_t at = PREFIX_BYTES, end
    cdef uint64_t timestamp_ms, index, count = 1
    if len(entry) < PREFIX_BYTES or data[0] != 0x0E or data[1] != 0x02:
        return None
    end = PREFIX_BYTES + <Py_ssize_t>u32_at(data + 2)
    if end > len(entry):
        return None
    if not (at := _take(data, at, end, 0x08, &timestamp_ms)):
        return None
    if not (at := _take(data, at, end, 0x10, &index)):
        return None
    if at < end and not (at := _take(data, at, end, 0x78, &count)):
        return None
    return EntryHeader(end, timestamp_ms, index, count) if at == end and count else None


cdef Py_ssize_t _take(
    const uint8_t *data, Py_ssize_t at, Py_ssize_t end, uint8_t tag, uint64_t *number
) noexcept:
    """The number of the field that begins there; returns where it ends, 0 for any other."""
    cdef Py_ssize_t behind
    if at >= end or data[at] != tag:
        return 0
    behind = varint_end(data, at + 1, end)
    if behind:
        number[0] = number_at(data, at + 1, behind)
    return behind


cdef bytes BEGIN = b"\x0a\x05kafka\x10\x00\x18"
cdef bytes FORMAT = b"\x22\x15\x0a\x0centry.format\x12\x05kafka\x58"


def wrapped(batch, uint64_t offsets, uint64_t now_ms) -> bytes:
    """The entry for a batch that takes so many offsets."""
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


def last_time(bytes tail not None):
    """The latest time in the batch, -1 if it says none; None if it is no Kafka producer's."""
    cdef const uint8_t *data = bytes_of(tail)
    cdef uint64_t at
    if len(tail) < 4 + len(BEGIN) or memcmp(data + 4, bytes_of(BEGIN), len(BEGIN)):
        return None
    at = 4 + <uint64_t>u32_at(data)
    if at + BATCH_HEADER_BYTES > <uint64_t>len(tail):
        return -1
    return <int64_t>u64_at(data + at + LAST_TIME_AT)
