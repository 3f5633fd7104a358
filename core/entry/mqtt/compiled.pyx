# cython: language_level=3
"""The compiled twins of `segments.py_segments`, `py_behind` and `py_renumbered`, which are the
reference. See `core/native`.

Every offset is compared with the size of the data before it is read; what is not in order is left
to the reference, which raises.
"""

from libc.stdint cimport uint8_t
from libc.string cimport memcmp

from magnetar.core.native.octets cimport bytes_of, cut_out, put_bytes, unwritten

cdef extern from "Python.h":
    ctypedef struct PyTypeObject:
        object (*tp_new)(PyTypeObject *kind, object arguments, void *keywords)
    PyTypeObject PyTuple_Type

cdef object PublishSegment = None
cdef object reference = None

cdef enum:
    PUBLISH = 0x30
    QOS = 0x06
    DUP = 0x08
    LENGTH_BYTES_MAX = 4


cdef inline Py_ssize_t length_at(
    const uint8_t *data, Py_ssize_t at, Py_ssize_t end, Py_ssize_t *length
) noexcept:
    """The offset after a variable byte integer; -1 if it does not end."""
    cdef Py_ssize_t last = min(at + LENGTH_BYTES_MAX, end)
    cdef int shift = 0
    length[0] = 0
    while at < last:
        length[0] |= <Py_ssize_t>(data[at] & 127) << shift
        at += 1
        if data[at - 1] < 128:
            return at
        shift += 7
    return -1


cdef _load():
    global PublishSegment, reference
    from magnetar.core.entry.mqtt import segments as module

    reference, PublishSegment = module, module.PublishSegment


cdef inline object segment(
    Py_ssize_t number, Py_ssize_t packets, Py_ssize_t begin, Py_ssize_t end, uint8_t first,
    bytes topic, bint plain,
):
    """As a named tuple's own `__new__`, which is Python code."""
    fields = (number, packets, begin, end, first, topic, plain)
    return PyTuple_Type.tp_new(<PyTypeObject *>PublishSegment, (fields,), NULL)


def segments(bytes data not None, Py_ssize_t start, bint has_properties) -> list:
    cdef const uint8_t *at_data = bytes_of(data)
    cdef Py_ssize_t size = len(data), at = start
    cdef Py_ssize_t begin, end, length, topic_at, topic_end
    cdef Py_ssize_t last_begin = 0, last_end = 0, last_topic = 0, last_topic_size = -1
    cdef Py_ssize_t index = 0, last_index = 0
    cdef uint8_t first, last_first = 0
    cdef bint plain, last_plain = False
    cdef list found = []
    if PublishSegment is None:
        _load()
    if at < 0:
        return reference.py_segments(data, start, has_properties)
    while at < size:
        begin, first = at, at_data[at]
        at = length_at(at_data, at + 1, size, &length)
        if first & 0xF0 != PUBLISH or at < 0 or length > size - at or at + 2 > size:
            return reference.py_segments(data, start, has_properties)
        end = at + length
        topic_at = at + 2
        topic_end = topic_at + (at_data[at] << 8 | at_data[at + 1])
        at = topic_end + 2 if first & QOS else topic_end
        plain = not first & DUP
        if has_properties and at < end:
            at = length_at(at_data, at, end, &length)
            if at < 0:
                return reference.py_segments(data, start, has_properties)
            at += length
            plain = plain and length == 0
        if at > end:
            return reference.py_segments(data, start, has_properties)
        if (
            plain and last_plain and first == last_first
            and topic_end - topic_at == last_topic_size
            and memcmp(at_data + topic_at, at_data + last_topic, last_topic_size) == 0
        ):
            last_end = end
        else:
            if index:
                found.append(segment(
                    last_index, index - last_index, last_begin, last_end, last_first,
                    cut_out(at_data, last_topic, last_topic + last_topic_size), last_plain,
                ))
            last_index, last_begin, last_end, last_first = index, begin, end, first
            last_topic, last_topic_size, last_plain = topic_at, topic_end - topic_at, plain
        index += 1
        at = end
    if index:
        found.append(segment(
            last_index, index - last_index, last_begin, last_end, last_first,
            cut_out(at_data, last_topic, last_topic + last_topic_size), last_plain,
        ))
    return found


def behind(bytes data not None, Py_ssize_t at, Py_ssize_t count) -> int:
    cdef const uint8_t *at_data = bytes_of(data)
    cdef Py_ssize_t size = len(data), start = at, left = count, length
    if PublishSegment is None:
        _load()
    while left > 0:
        at = length_at(at_data, at + 1, size, &length) if at >= 0 else -1
        if at < 0:
            return reference.py_behind(data, start, count)
        at += length
        left -= 1
    return at


def renumbered(bytes data not None, Py_ssize_t begin, Py_ssize_t end, ids) -> bytes:
    cdef bytes copy
    cdef uint8_t *to
    cdef Py_ssize_t size, at = 0, length, topic_at, place, count = len(ids), which
    cdef bint consecutive = isinstance(ids, range) and count > 1 and ids.step == 1
    cdef list numbers = None if consecutive else list(ids)
    cdef long first = ids.start if consecutive else 0, number
    if PublishSegment is None:
        _load()
    if not 0 <= begin <= end <= len(data):
        return reference.py_renumbered(data, begin, end, ids)
    size = end - begin
    copy = unwritten(size)
    to = bytes_of(copy)
    put_bytes(to, bytes_of(data) + begin, size)
    for which in range(count):
        number = first + which if consecutive else <long>numbers[which]
        topic_at = length_at(to, at + 1, size, &length)
        if not 0 <= number <= 65535 or topic_at < 0 or topic_at + 2 > size:
            return reference.py_renumbered(data, begin, end, ids)
        place = topic_at + 2 + (to[topic_at] << 8 | to[topic_at + 1])
        if place + 2 > size:
            return reference.py_renumbered(data, begin, end, ids)
        to[place] = <uint8_t>(number >> 8)
        to[place + 1] = <uint8_t>number
        at = topic_at + length
    return copy
