# cython: language_level=3
"""The compiled twins of `records`, of `journal.py_put_group`, and of `locations.rows`. See
`core/native`."""

from magnetar.core.native.octets cimport (
    all_bytes,
    bytes_of,
    checksum,
    cut_out,
    put_bytes,
    put_u32,
    put_u64,
    u32_at,
    unwritten,
)
from cpython cimport array
from libc.stdint cimport INT64_MAX, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

import array

from magnetar.core.kernel.checksum import crc32c

cdef enum:
    LENGTH_BYTES = 4
    DIGEST_AT = 36
    PAYLOAD_AT = 40
    # The highest length of a record, and the highest offset.
    BLOB_BYTES_MAX = 0x7FFFFFFF
    # Copying less than this is faster than releasing and taking the interpreter's lock.
    COPIED_AT_ONCE_BYTES = 64 * 1024
    # Of the journal; `journal.py` says what they are.
    ALIGNMENT_BYTES = 512
    WORDS_BYTES = 8
    PADDING = -0x100
    SEAL_BYTES = 12
    SEAL_MAGIC = 0x4D475250

cdef extern from "Python.h":
    ctypedef struct Py_buffer:
        void *buf
        Py_ssize_t len
        int readonly
    bint PyMemoryView_Check(object)
    Py_buffer *buffer_of "PyMemoryView_GET_BUFFER" (object view)
    bint PyBuffer_IsContiguous(const Py_buffer *view, char order)

cdef array.array NO_OFFSETS = array.array("I")
if NO_OFFSETS.itemsize != sizeof(uint32_t):
    raise ImportError("array('I') has other items than 32-bit numbers here")


def pack(
    int64_t ledger_id,
    int64_t first,
    int64_t last_confirmed,
    int64_t length,
    payloads not None,
    heads=None,
):
    """Records of payloads as one blob, with the offset of each and the end of the last."""
    # Copies, because other threads run during a long checksum, and may change the lists.
    cdef list bodies = all_bytes(payloads)
    cdef list starts = all_bytes(heads) if heads else [b""] * len(bodies)
    cdef array.array offsets = array.clone(NO_OFFSETS, len(bodies) + 1, False)
    cdef Py_ssize_t size = _place(starts, bodies, offsets.data.as_uints)
    cdef bytes blob = unwritten(size)
    cdef uint8_t *to = bytes_of(blob)
    cdef Py_ssize_t place
    cdef int64_t taken
    if (bodies and first > INT64_MAX - (len(bodies) - 1)) or length > INT64_MAX - size:
        raise OverflowError("an entry id or a length has more than 63 bits")
    for place in range(len(bodies)):
        taken = offsets.data.as_uints[place + 1] - offsets.data.as_uints[place] - PAYLOAD_AT
        length += taken
        put_u32(to, <uint32_t>(taken + PAYLOAD_AT - LENGTH_BYTES))
        put_u64(to + 4, ledger_id)
        put_u64(to + 12, first + place)
        put_u64(to + 20, last_confirmed)
        put_u64(to + 28, length)
        to = _seal(to, <bytes>starts[place], <bytes>bodies[place])
    return blob, offsets


cdef Py_ssize_t _place(list starts, list bodies, uint32_t *offsets) except -1:
    """Compute the offset of each record; returns the size of all of them."""
    cdef Py_ssize_t place, position = 0
    offsets[0] = 0
    if len(starts) != len(bodies):
        raise ValueError("as many heads as payloads")
    for place in range(len(bodies)):
        position += PAYLOAD_AT + len(<bytes>starts[place]) + len(<bytes>bodies[place])
        if position > BLOB_BYTES_MAX:
            raise OverflowError("a run is too long")
        offsets[place + 1] = <uint32_t>position
    return position


cdef uint8_t *_seal(uint8_t *record, bytes head, bytes body) except NULL:
    """Write the header, the digest and the payload of a record."""
    cdef uint8_t *end = record + PAYLOAD_AT
    cdef uint32_t digest
    end = put_bytes(end, bytes_of(head), len(head))
    end = put_bytes(end, bytes_of(body), len(body))
    digest = checksum(record + LENGTH_BYTES, DIGEST_AT - LENGTH_BYTES, 0, crc32c)
    digest = checksum(record + PAYLOAD_AT, end - record - PAYLOAD_AT, digest, crc32c)
    put_u32(record + DIGEST_AT, digest)
    return end


def unpack(bytes blob not None, offsets not None, Py_ssize_t start, Py_ssize_t stop) -> list[bytes]:
    """Payloads of the records `start`..`stop`, up to the first with a wrong digest."""
    cdef array.array table = offsets
    cdef const uint8_t *data = bytes_of(blob)
    cdef Py_ssize_t place, begin, end
    cdef list found = []
    if table.typecode != "I":
        raise TypeError("offsets are an array of 32-bit numbers")
    if start < 0 or stop >= len(table):
        raise IndexError("no such record")
    for place in range(start, stop):
        begin, end = table.data.as_uints[place], table.data.as_uints[place + 1]
        if begin > end or end > len(blob):
            raise ValueError("offsets beyond the blob")
        if end - begin < PAYLOAD_AT or not _is_intact(data + begin, end - begin):
            break
        found.append(_payload(data + begin + PAYLOAD_AT, end - begin - PAYLOAD_AT))
    return found


cdef bytes _payload(const uint8_t *data, Py_ssize_t size):
    """A copy of bytes; a large one is made without the interpreter's lock."""
    cdef bytes made
    cdef uint8_t *to
    if size < COPIED_AT_ONCE_BYTES:
        return cut_out(data, 0, size)
    made = unwritten(size)
    to = bytes_of(made)
    with nogil:
        memcpy(to, data, size)
    return made


cdef int _is_intact(const uint8_t *record, Py_ssize_t size) except -1:
    cdef uint32_t digest = checksum(record + LENGTH_BYTES, DIGEST_AT - LENGTH_BYTES, 0, crc32c)
    digest = checksum(record + PAYLOAD_AT, size - PAYLOAD_AT, digest, crc32c)
    return digest == u32_at(record + DIGEST_AT)


def put_group(buffer not None, records not None, Py_ssize_t position, bint seals) -> int:
    """Records and padding of a group, into the buffer."""
    cdef list blobs = all_bytes(records)
    cdef Py_ssize_t size = 0, padding
    cdef bytes blob
    cdef uint8_t *to
    cdef uint8_t *end
    cdef Py_buffer *room
    if not PyMemoryView_Check(buffer):
        raise TypeError("the buffer is no memoryview")
    room = buffer_of(buffer)
    if room.readonly or not PyBuffer_IsContiguous(room, b"C"):
        raise TypeError("the buffer is not writable, or has gaps")
    for blob in blobs:
        size += len(blob)
    if position < 0 or position > INT64_MAX - size - 2 * ALIGNMENT_BYTES:
        raise OverflowError("no position in a file")
    padding = ALIGNMENT_BYTES - (position + size) % ALIGNMENT_BYTES - WORDS_BYTES
    if padding < (SEAL_BYTES if seals else 0):
        padding += ALIGNMENT_BYTES
    if size > BLOB_BYTES_MAX or size + WORDS_BYTES + padding > room.len:
        raise ValueError("the group is larger than the buffer")
    to = end = <uint8_t *>room.buf
    for blob in blobs:
        end = put_bytes(end, bytes_of(blob), len(blob))
    put_u32(end, <uint32_t>PADDING)
    put_u32(end + 4, <uint32_t>padding)
    end += WORDS_BYTES
    memset(end, 0, padding)
    if seals:
        put_u32(end, SEAL_MAGIC)
        put_u32(end + 4, <uint32_t>size)
        put_u32(end + 8, checksum(to, size, 0, crc32c))
    return size + WORDS_BYTES + padding


def rows(
    int64_t ledger_id,
    int64_t first,
    offsets not None,
    int64_t location,
    Py_ssize_t start,
    Py_ssize_t stop,
) -> list[tuple[bytes, bytes]]:
    """Keys and values of the records `start`..`stop` in the index of locations."""
    cdef array.array table = offsets
    cdef Py_ssize_t place
    cdef bytes key, value
    cdef list made = []
    if table.typecode != "I":
        raise TypeError("offsets are an array of 32-bit numbers")
    if start < 0 or stop > len(table):
        raise IndexError("no such record")
    for place in range(start, stop):
        if first > INT64_MAX - place or location > INT64_MAX - table.data.as_uints[place]:
            raise OverflowError("an entry id or a location has more than 63 bits")
        key, value = unwritten(16), unwritten(8)
        put_u64(bytes_of(key), <uint64_t>ledger_id)
        put_u64(bytes_of(key) + 8, <uint64_t>(first + place))
        put_u64(bytes_of(value), <uint64_t>(location + table.data.as_uints[place]))
        made.append((key, value))
    return made
