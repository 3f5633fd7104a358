# cython: language_level=3
"""The compiled twins of `batches.py_batch_rows` and `py_marked`, which are the reference. See
`core/native`.

Every offset is compared with the size of the payload before it is read. What is not plain is left
to `messages.message_of_batch`, which raises if it is damaged. `sched_yield` offers the core to others
now and then (`core/kernel/long_slices.py`).
"""

from libc.stdint cimport INT32_MAX, int32_t, uint8_t, uint64_t
from libc.string cimport memcpy

from magnetar.core.native.octets cimport (
    bytes_of,
    cut_out,
    number_at,
    u32_at,
    unwritten,
    varint_end,
)

cdef object reference = None
cdef object messages = None

cdef enum:
    MESSAGE_BYTES_MIN = 4
    GONE_BYTES = 8
    PAUSE = 512
    # Messages between two offers of the core.
    # Tags of `SingleMessageMetadata`.
    KEY = 2 << 3 | 2
    SIZE = 3 << 3
    GONE = 4 << 3
    IS_BASE64 = 6 << 3
    NULL_VALUE = 9 << 3
    NULL_KEY = 10 << 3

cdef struct Row:
    # `ROW` of core/entry/compaction.py
    int32_t place
    int32_t begin
    int32_t size
    int32_t value


cdef extern from "sched.h" nogil:
    int sched_yield()


cdef _load():
    global reference, messages
    from magnetar.core.entry.pulsar import batches, messages as module

    reference, messages = batches, module


cdef Py_ssize_t plain(
    const uint8_t *data, Py_ssize_t at, Py_ssize_t size, Row *row, bint *gone
) noexcept nogil:
    """Read the message at `at`; returns where it ends, 0 if that is for the reference to say."""
    cdef Py_ssize_t end, behind, length
    cdef uint8_t tag
    cdef uint64_t number
    cdef bint base64 = False, null_value = False, null_key = False
    if size - at < MESSAGE_BYTES_MIN:
        return 0
    length = <Py_ssize_t>u32_at(data + at)
    at += 4
    if length > size - at:
        return 0
    end = at + length
    row.begin, row.size, row.value, gone[0] = 0, -1, 0, False
    while at < end:
        tag = data[at]
        behind = varint_end(data, at + 1, end)
        if tag > 127 or not behind:
            return 0
        number = number_at(data, at + 1, behind)
        at = behind
        if tag & 7 == 2:
            if number > <uint64_t>(end - at):
                return 0
            if tag == KEY:
                row.begin, row.size = <int32_t>at, <int32_t>number
            at += <Py_ssize_t>number
        elif tag & 7:
            return 0
        elif tag == SIZE:
            if number > INT32_MAX:
                return 0
            row.value = <int32_t>number
        elif tag == GONE:
            gone[0] = number != 0
        elif tag == IS_BASE64:
            base64 = number != 0
        elif tag == NULL_VALUE:
            null_value = number != 0
        elif tag == NULL_KEY:
            null_key = number != 0
    if row.value > size - end or base64:
        return 0
    end += row.value
    if null_value:
        row.value = -1
    if null_key:
        row.size = -1
    return end


def batch_rows(bytes payload not None, Py_ssize_t count) -> tuple:
    cdef const uint8_t *data = bytes_of(payload)
    cdef Py_ssize_t size = len(payload), at = 0, end, place, found = 0, extent = size
    cdef bytes rows, ends
    cdef Row *row
    cdef int32_t *to
    cdef list more = []
    cdef bint gone
    if messages is None:
        _load()
    if count < 0 or count > size // MESSAGE_BYTES_MIN or size > INT32_MAX:
        return reference.py_batch_rows(payload, count)
    rows = unwritten(count * <Py_ssize_t>sizeof(Row))
    ends = unwritten(count * <Py_ssize_t>sizeof(int32_t))
    row, to = <Row *>bytes_of(rows), <int32_t *>bytes_of(ends)
    with nogil:
        for place in range(count):
            end = plain(data, at, size, row, &gone)
            if not end:
                with gil:
                    end, is_gone, key, value = messages.message_of_batch(payload, at)
                    gone = is_gone
                    row.begin, row.size, row.value = 0, -1, value
                    if key is not None and not gone:
                        row.begin, row.size = <int32_t>extent, <int32_t>len(key)
                        more.append(key)
                        extent += len(key)
            at = end
            to[place] = <int32_t>end
            if not gone:
                row.place = <int32_t>place
                row += 1
                found += 1
            if place % PAUSE == PAUSE - 1:
                sched_yield()
    if found < count:
        rows = cut_out(bytes_of(rows), 0, found * <Py_ssize_t>sizeof(Row))
    return rows, ends, b"".join([payload, *more]) if more else payload


def marked(bytes payload not None, bytes ends not None, bytes left not None) -> bytes:
    cdef const uint8_t *data = bytes_of(payload)
    cdef const int32_t *end = <const int32_t *>bytes_of(ends)
    cdef const uint8_t *stays = bytes_of(left)
    cdef Py_ssize_t count = len(left), size = len(payload), place, made = 0
    cdef int32_t begin = 0
    cdef bytes result
    cdef uint8_t *to
    if len(ends) != count * <Py_ssize_t>sizeof(int32_t):
        raise ValueError("not one end for each message")
    for place in range(count):
        if end[place] < begin or end[place] > size:
            raise ValueError("a message ends outside its batch")
        made += end[place] - begin if stays[place] else GONE_BYTES
        begin = end[place]
    result = unwritten(made)
    to = bytes_of(result)
    begin = 0
    with nogil:
        for place in range(count):
            if stays[place]:
                memcpy(to, data + begin, end[place] - begin)
                to += end[place] - begin
            else:
                memcpy(to, b"\x00\x00\x00\x04\x18\x00\x20\x01", GONE_BYTES)
                to += GONE_BYTES
            begin = end[place]
    return result
