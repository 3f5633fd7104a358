# cython: language_level=3
"""The compiled twins of `hot.records_in`, `hot.answer`, `batches.sound`, `contents.spread`
and `contents.bad`.

See `core/native`.
"""

from magnetar.core.native.octets cimport (
    bytes_of,
    checksum,
    put_bytes,
    put_u32,
    put_u64,
    u32_at,
    u64_at,
    unwritten,
)
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcmp

from magnetar.core.kernel.checksum import crc32c
from magnetar.core.entry.kafka.record_batch import BatchHeader

cdef enum:
    # Offsets in a request: key and version, then the correlation id, then the repeated bytes.
    HEAD_BYTES = 4
    WORDS_AT = 8
    # Empty tagged fields of partition, topic and request.
    TAIL_BYTES = 3
    SIZE_BYTES_MAX = 5
    # Older versions have sizes of four bytes, and no tagged fields.
    FLEXIBLE = 9
    # Sizes in a response: frame size and correlation id; error code and three numbers.
    FRAME_BYTES = 8
    NUMBERS_BYTES = 26
    # Offsets in a batch.
    SIZED_BYTES = 12
    CHECKED_AT = 21
    HEADER_BYTES = 61
    MAGIC = 2
    # Attributes that a producer may not set.
    NOT_TO_SAY = 8 | 32
    TRANSACTIONAL = 16
    # Bytes of a number in a record, and the highest value of the last one.
    INT_BYTES_MAX = 5
    INT_TOP = 15
    LONG_BYTES_MAX = 10
    LONG_TOP = 1

# -- frames ----------------------------------------------------------------------------------------


def records_in(bytes frame not None, Py_ssize_t at, bytes head not None, bytes words not None):
    """The records of a request with this beginning; None for any other."""
    cdef const uint8_t *data = bytes_of(frame)
    cdef Py_ssize_t size = len(frame), place = at + WORDS_AT + len(words), number = 0, end
    cdef int shift = 0
    if at < 0 or len(head) != HEAD_BYTES or place > size:
        return None
    if memcmp(data + at + WORDS_AT, bytes_of(words), len(words)):
        return None
    if memcmp(data + at, bytes_of(head), HEAD_BYTES):
        return None
    if data[at + 3] < FLEXIBLE:
        if size <= place + 4 or <int32_t>u32_at(data + place) != size - place - 4:
            return None
        return memoryview(frame)[place + 4 :]
    while shift < 7 * SIZE_BYTES_MAX and place < size:
        number |= <Py_ssize_t>(data[place] & 127) << shift
        if data[place] < 128:
            end = place + number  # a compact size is one more than the size
            if number < 2 or end != size - TAIL_BYTES:
                return None
            if data[end] or data[end + 1] or data[end + 2]:
                return None
            return memoryview(frame)[place + 1 : end]
        shift += 7
        place += 1
    return None


def answer(
    int32_t correlation_id,
    bytes words not None,
    int64_t offset,
    int64_t start,
    bytes rest not None,
) -> bytes:
    """The frame of a response: the offset of a batch with CreateTime."""
    cdef Py_ssize_t size = FRAME_BYTES + len(words) + NUMBERS_BYTES + len(rest)
    cdef bytes packed = unwritten(size)
    cdef uint8_t *to = bytes_of(packed)
    to = put_u32(to, <uint32_t>(size - 4))
    to = put_u32(to, <uint32_t>correlation_id)
    to = put_bytes(to, bytes_of(words), len(words))
    to[0], to[1] = 0, 0
    to = put_u64(to + 2, <uint64_t>offset)
    to = put_u64(to, <uint64_t>-1)
    to = put_u64(to, <uint64_t>start)
    put_bytes(to, bytes_of(rest), len(rest))
    return packed


# -- batches ---------------------------------------------------------------------------------------


def sound(batch):
    """The header of a batch; None if `check` refuses it."""
    cdef Py_buffer view
    PyObject_GetBuffer(batch, &view, PyBUF_SIMPLE)
    try:
        return _header_if_sound(<const uint8_t *>view.buf, view.len)
    finally:
        PyBuffer_Release(&view)


cdef object _header_if_sound(const uint8_t *data, Py_ssize_t size):
    cdef int16_t attributes, epoch
    cdef int32_t last_delta, first_sequence, records
    cdef int64_t producer
    if size < HEADER_BYTES or data[16] != MAGIC:
        return None
    if <int32_t>u32_at(data + 8) != size - SIZED_BYTES:
        return None
    attributes = <int16_t>_u16_at(data + 21)
    last_delta = <int32_t>u32_at(data + 23)
    producer = <int64_t>u64_at(data + 43)
    epoch = <int16_t>_u16_at(data + 51)
    first_sequence = <int32_t>u32_at(data + 53)
    records = <int32_t>u32_at(data + 57)
    if records < 1 or last_delta != records - 1 or attributes & NOT_TO_SAY:
        return None
    if producer >= 0 and (first_sequence < 0 or epoch < 0):
        return None
    if producer < 0 and attributes & TRANSACTIONAL:
        return None
    if checksum(data + CHECKED_AT, size - CHECKED_AT, 0, crc32c) != u32_at(data + 17):
        return None
    return BatchHeader(
        <int64_t>u64_at(data),
        <int32_t>u32_at(data + 8),
        <int32_t>u32_at(data + 12),
        MAGIC,
        u32_at(data + 17),
        attributes,
        last_delta,
        <int64_t>u64_at(data + 27),
        <int64_t>u64_at(data + 35),
        producer,
        epoch,
        first_sequence,
        records,
    )


cdef inline uint16_t _u16_at(const uint8_t *data) noexcept:
    return <uint16_t>(data[0] << 8 | data[1])


# -- records ---------------------------------------------------------------------------------------


def spread(batch, Py_ssize_t at, Py_ssize_t count, bint keyed):
    """The lowest and the highest timestamp delta of `count` records from `at` on; None if `bad`
    finds a record.
    """
    cdef Py_buffer view
    cdef int64_t low = 0, high = 0
    cdef bint good
    PyObject_GetBuffer(batch, &view, PyBUF_SIMPLE)
    try:
        if not 0 <= at <= view.len:
            return None
        with nogil:
            good = _walk(<const uint8_t *>view.buf + at, <const uint8_t *>view.buf + view.len,
                         count, keyed, &low, &high)
    finally:
        PyBuffer_Release(&view)
    return (low, high) if good else None


cdef bint _walk(
    const uint8_t *data,
    const uint8_t *end,
    Py_ssize_t count,
    bint keyed,
    int64_t *low,
    int64_t *high,
) noexcept nogil:
    cdef Py_ssize_t place
    cdef int64_t number, delta
    for place in range(count):
        if not _int(&data, end, &number) or number < 1 or number > end - data:
            return False
        if not _record(data, data + number, place, keyed, &delta):
            return False
        if place == 0:
            low[0] = high[0] = delta
        elif delta < low[0]:
            low[0] = delta
        elif delta > high[0]:
            high[0] = delta
        data += number
    return data == end


def bad(batch, Py_ssize_t at, Py_ssize_t count, bint keyed, times, Py_ssize_t most):
    """The bad records, and the number of records up to the first one whose end is unknown."""
    cdef Py_buffer view
    cdef int64_t low = times[0], high = times[1], number, delta
    cdef Py_ssize_t place
    cdef const uint8_t *data
    cdef const uint8_t *begin
    cdef const uint8_t *end
    cdef list found = []
    PyObject_GetBuffer(batch, &view, PyBUF_SIMPLE)
    try:
        if not 0 <= at <= view.len:
            return found, 0
        begin = <const uint8_t *>view.buf
        data, end = begin + at, begin + view.len
        for place in range(count):
            if len(found) == most:
                break
            if not _int(&data, end, &number) or number < 0 or number > end - data:
                return found, place
            if not _record(data, data + number, place, keyed, &delta) or not low <= delta <= high:
                found.append((place, data - begin, data - begin + number))
            data += number
    finally:
        PyBuffer_Release(&view)
    return found, count


cdef inline bint _record(
    const uint8_t *data, const uint8_t *end, Py_ssize_t place, bint keyed, int64_t *delta
) noexcept nogil:
    """Whether one record, without its size, is valid; sets its timestamp delta."""
    cdef int64_t number
    if data == end:
        return False
    data += 1
    if not _number(&data, end, LONG_BYTES_MAX, LONG_TOP, delta):
        return False
    if not _int(&data, end, &number) or number != place:
        return False
    if keyed and (data == end or data[0] & 1):
        return False
    if not _string(&data, end, True) or not _string(&data, end, True):
        return False
    return _headers(&data, end) and data == end


cdef inline bint _headers(const uint8_t **at, const uint8_t *end) noexcept nogil:
    cdef int64_t count
    if not _int(at, end, &count) or count < 0 or count > end - at[0]:
        return False
    while count:
        if not _string(at, end, False) or not _string(at, end, True):
            return False
        count -= 1
    return True


cdef inline bint _string(const uint8_t **at, const uint8_t *end, bint nullable) noexcept nogil:
    cdef int64_t size
    if not _int(at, end, &size):
        return False
    if size < 0:
        return nullable
    if size > end - at[0]:
        return False
    at[0] += size
    return True


cdef inline bint _int(const uint8_t **at, const uint8_t *end, int64_t *number) noexcept nogil:
    return _number(at, end, INT_BYTES_MAX, INT_TOP, number)


cdef inline bint _number(
    const uint8_t **at, const uint8_t *end, int bytes_max, uint8_t top, int64_t *number
) noexcept nogil:
    cdef uint64_t value = 0
    cdef uint8_t byte
    cdef int place
    for place in range(bytes_max):
        if at[0] == end:
            return False
        byte = at[0][0]
        at[0] += 1
        value |= <uint64_t>(byte & 127) << 7 * place
        if byte < 128:
            if place == bytes_max - 1 and byte > top:
                return False
            number[0] = <int64_t>(value >> 1) ^ -<int64_t>(value & 1)
            return True
    return False
