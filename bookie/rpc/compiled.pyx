# cython: language_level=3
"""The compiled twins of `rows`, which is the reference. See `core/native`."""

from magnetar.core.native.octets cimport bytes_of, put_bytes, put_u32, put_u64, u32_at, unwritten
from cpython cimport array
from libc.stdint cimport INT64_MAX, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcmp

import array

cdef enum:
    LENGTH_BYTES = 4
    SAME_BYTES = 24
    BEFORE_ENTRY = 28
    FRAME_BYTES_MIN = 60
    RESPONSE_BYTES = 24
    ADD = 1
    # The highest offset.
    BLOB_BYTES_MAX = 0x7FFFFFFF

cdef array.array NO_OFFSETS = array.array("I")
if NO_OFFSETS.itemsize != sizeof(uint32_t):
    raise ImportError("array('I') has other items than 32-bit numbers here")


cdef inline int64_t _id_at(const uint8_t *data) noexcept:
    return <int64_t>((<uint64_t>u32_at(data) << 32) | u32_at(data + 4))


def gather(bytes data not None, Py_ssize_t start, Py_ssize_t bytes_max):
    """The records of the row of adds at `start`, their offsets, and the end of the row."""
    cdef const uint8_t *begin = bytes_of(data)
    cdef Py_ssize_t end = len(data), at = start, total = 0, count = 0, size, place
    cdef int64_t ledger_id = 0, expected = 0
    cdef array.array offsets
    cdef bytes blob
    cdef uint8_t *to
    if start < 0 or start > end:
        raise IndexError("no such place")
    bytes_max = min(bytes_max, <Py_ssize_t>BLOB_BYTES_MAX)
    while end - at >= FRAME_BYTES_MIN:
        size = u32_at(begin + at)
        if size < FRAME_BYTES_MIN - LENGTH_BYTES or size > end - at - LENGTH_BYTES:
            break
        if count == 0:
            ledger_id = _id_at(begin + at + BEFORE_ENTRY)
            expected = _id_at(begin + at + BEFORE_ENTRY + 8)
        elif (
            _id_at(begin + at + BEFORE_ENTRY) != ledger_id
            or _id_at(begin + at + BEFORE_ENTRY + 8) != expected
            or memcmp(begin + at + LENGTH_BYTES, begin + start + LENGTH_BYTES, SAME_BYTES) != 0
            or total + size - SAME_BYTES + LENGTH_BYTES > bytes_max
        ):
            break
        total += size - SAME_BYTES + LENGTH_BYTES
        at += LENGTH_BYTES + size
        count += 1
        if expected == INT64_MAX:
            break
        expected += 1
    offsets = array.clone(NO_OFFSETS, count + 1, False)
    blob = unwritten(total)
    to = bytes_of(blob)
    at, total = start, 0
    for place in range(count):
        offsets.data.as_uints[place] = <uint32_t>total
        size = <Py_ssize_t>u32_at(begin + at) - SAME_BYTES
        put_u32(to, <uint32_t>size)
        to = put_bytes(to + LENGTH_BYTES, begin + at + BEFORE_ENTRY, size)
        total += LENGTH_BYTES + size
        at += BEFORE_ENTRY + size
    offsets.data.as_uints[count] = <uint32_t>total
    return blob, offsets, at


def responses(uint32_t head, int code, int64_t ledger_id, int64_t first, Py_ssize_t count) -> bytes:
    """Whole frames that answer so many adds alike."""
    if count <= 0:
        return b""
    if first > INT64_MAX - count + 1:
        raise OverflowError("an entry id has more than 63 bits")
    cdef bytes made = unwritten(count * (LENGTH_BYTES + RESPONSE_BYTES))
    cdef uint8_t *to = bytes_of(made)
    cdef Py_ssize_t place
    for place in range(count):
        put_u32(to, RESPONSE_BYTES)
        put_u32(to + 4, head)
        put_u32(to + 8, <uint32_t>code)
        put_u64(to + 12, <uint64_t>ledger_id)
        put_u64(to + 20, <uint64_t>(first + place))
        to += LENGTH_BYTES + RESPONSE_BYTES
    return made


def frames(bytes blob not None, array.array offsets not None, bytes same not None) -> bytes:
    """Whole frames that add the records of a run; `same` are the header and the key of each."""
    cdef Py_ssize_t count = len(offsets) - 1, more = len(same), place, start, end, size
    cdef const uint8_t *begin = bytes_of(blob)
    cdef const uint8_t *before = bytes_of(same)
    cdef bytes made
    cdef uint8_t *to
    if offsets.ob_descr.typecode != b"I":
        raise TypeError("offsets are an array of 'I'")
    if count < 1:
        return b""
    for place in range(count):
        start, end = offsets.data.as_uints[place], offsets.data.as_uints[place + 1]
        if end < start + LENGTH_BYTES or end > len(blob):
            raise IndexError("a record ends before it begins, or behind the blob")
    size = offsets.data.as_uints[count] - <Py_ssize_t>offsets.data.as_uints[0]
    made = unwritten(size + count * more)
    to = bytes_of(made)
    for place in range(count):
        start, end = offsets.data.as_uints[place], offsets.data.as_uints[place + 1]
        put_u32(to, <uint32_t>(more + end - start - LENGTH_BYTES))
        to = put_bytes(to + LENGTH_BYTES, before, more)
        to = put_bytes(to, begin + start + LENGTH_BYTES, end - start - LENGTH_BYTES)
    return made


def answered(bytes data not None, Py_ssize_t start):
    """The row of responses to adds at `start`: code, ledger, first id, their number, and its end."""
    cdef const uint8_t *begin = bytes_of(data)
    cdef const uint8_t *head
    cdef Py_ssize_t end = len(data) - LENGTH_BYTES - RESPONSE_BYTES, at = start, count = 0
    cdef int64_t first
    if start < 0 or start > end:
        return 0, 0, 0, 0, start
    head = begin + start
    if u32_at(head) != RESPONSE_BYTES or (u32_at(head + 4) >> 16 & 0xFF) != ADD:
        return 0, 0, 0, 0, start
    first = _id_at(head + 20)
    while (
        at <= end
        and memcmp(begin + at, head, 20) == 0
        and <uint64_t>_id_at(begin + at + 20) == <uint64_t>first + <uint64_t>count
        and (count == 0 or _id_at(begin + at + 20) > first)
    ):
        at += LENGTH_BYTES + RESPONSE_BYTES
        count += 1
    return <int32_t>u32_at(head + 8), _id_at(head + 12), first, count, at
